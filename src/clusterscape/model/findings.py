"""Findings: conclusions in words with their evidence and their size. Records only; ``analyze`` computes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.ids import UnitId, UnixMs
from clusterscape.model.rules import Severity


class FindingKind(StrEnum):
    """The type of a finding."""

    IMBALANCE = "imbalance"
    SLOW_NODE = "slow_node"
    PERIODIC_DIPS = "periodic_dips"
    STALL = "stall"
    MEMORY_GROWTH = "memory_growth"
    THROTTLING = "throttling"
    COMMUNICATION_BOUND = "communication_bound"
    IDLE_TAIL = "idle_tail"
    ODD_GPU = "odd_gpu"
    STRAGGLER = "straggler"


class SizeUnit(StrEnum):
    """The unit of a finding's size."""

    GPU_HOURS = "gpu_hours"
    SECONDS = "seconds"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """A number with its 95 % interval, in ``unit`` (a metric's unit, "seconds", "ratio" …). None: unbounded on that side."""

    value: float
    low: float | None
    high: float | None
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One conclusion. ``size`` says how much it matters; ``units``, the window and ``numbers`` are the evidence.

    ``reason`` is the rule of thumb behind it and what to do; ``metrics`` are those to look at.
    """

    kind: FindingKind
    severity: Severity
    title: str
    reason: str
    size: float
    size_unit: SizeUnit
    units: tuple[UnitId, ...]
    start_at: UnixMs
    end_at: UnixMs
    metrics: tuple[str, ...]
    numbers: Mapping[str, SizeEstimate] = field(default_factory=dict)
