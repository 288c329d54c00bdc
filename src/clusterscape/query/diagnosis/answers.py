"""The shapes of answers about a diagnosis; the API's schema and the client's types are generated from these.

Times are Unix ms, ratios 0–1, missing is null. Histograms, lines and scatter plots are Arrow tables (``pictures.py``).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import polars as pl

from clusterscape.model import MetricUnit, WorkloadState
from clusterscape.model.findings import FindingKind, SizeUnit
from clusterscape.model.identity_fields import (
    OwnerText,
    ProjectName,
    PublicText,
    ScopedText,
    UnitRef,
    UserName,
    WorkloadRef,
)
from clusterscape.model.rules import Severity

By = Literal["histogram", "euclidean", "correlation"]
Linkage = Literal["average", "single", "complete", "weighted", "ward", "centroid", "median"]


class EnergySource(StrEnum):
    """How the energy was determined."""

    COUNTER = "counter"  # the GPUs' own energy counters
    POWER = "power"  # mean power × time held


class EventKind(StrEnum):
    """The kind of an event of a workload."""

    START = "start"
    END = "end"
    VIOLATION = "violation"
    XID = "xid"
    COTENANT_IN = "cotenant_in"
    COTENANT_OUT = "cotenant_out"
    ANNOTATION = "annotation"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """The time range [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosedMetric:
    """A metric that GPUs can be compared by; ``has_samples``: the workload's GPUs have it."""

    name: PublicText
    label: PublicText
    unit: MetricUnit
    has_samples: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRule:
    """A rule that a GPU violates now or violated in the window."""

    rule: PublicText
    state: Literal["now", "past"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosedUnit:
    """One GPU of the workload. ``cluster`` null: it cannot be compared; ``odd_rank`` 1 is the GPU furthest from the others.

    ``rules`` are in display order. ``held_to`` null: it is still held.
    """

    unit: UnitRef
    node: PublicText | None
    index: int | None
    global_rank: int | None
    local_rank: int | None
    cluster: int | None
    odd_rank: int | None
    rules: list[UnitRule]
    held_from: int
    held_to: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterExplanation:
    """An attribute that distinguishes the GPUs of a cluster from the others. ``gain``: adjusted mutual information, 0–1."""

    sentence: ScopedText
    attribute: PublicText
    values: list[ScopedText]
    gain: float
    p_value: float
    precision: float
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCluster:
    """GPUs with similar behavior; label 0 is the largest cluster."""

    label: int
    size: int
    units: list[UnitRef]
    explanation: ClusterExplanation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OddUnit:
    """An outlier: a GPU significantly far from the others. ``kinds``: the features that differ, largest difference first."""

    unit: UnitRef
    distance: float
    p_value: float
    kinds: list[PublicText]
    sentence: ScopedText


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingNumber:
    """An estimate with its 95 % interval; null if it is unbounded or unknown."""

    value: float | None
    low: float | None
    high: float | None
    unit: UnitRef


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingAnswer:
    """A conclusion as text, with its size and its evidence."""

    kind: FindingKind
    severity: Severity
    title: ScopedText
    reason: ScopedText
    size: float | None
    size_unit: SizeUnit
    units: list[UnitRef]
    start_at: int
    end_at: int
    metrics: list[PublicText]
    numbers: dict[PublicText, FindingNumber]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisAnswer:
    """The diagnosis of one workload over a window of its life.

    ``linkage`` is SciPy's (n − 1) × 4 over the units of clusters in the order of ``compared``; ``leaves`` is the order of the
    dendrogram; ``heights_for_counts[k − 1]`` cuts it into k clusters. ``gpu_hours``, wasted hours and energy are of the window.
    """

    workload: WorkloadRef
    name: OwnerText | None
    user: UserName | None
    project: ProjectName | None
    partition: PublicText | None
    state: WorkloadState
    machine_types: list[PublicText]
    layout: dict[PublicText, int]
    started_at: int | None
    ended_at: int | None
    life: TimeWindow | None
    window: TimeWindow | None
    gpus: int
    nodes: int
    gpu_hours: float
    wasted_gpu_hours: float | None
    energy_joules: float | None
    energy_from: EnergySource | None
    metrics: list[DiagnosedMetric]
    metric: PublicText | None
    by: By
    step_ms: int | None
    units: list[DiagnosedUnit]
    clusters: list[GpuCluster]
    compared: list[PublicText]
    linkage: list[list[float]]
    leaves: list[UnitRef]
    cut_height: float
    cut_kind: Literal["automatic", "height", "count"]
    heights_for_counts: list[float]
    odd: list[OddUnit]
    odd_note: ScopedText | None
    findings: list[FindingAnswer]
    notes: list[ScopedText]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadEvent:
    """An event on the time axis; ``until`` null: a point in time, or ongoing. ``unit`` null: it concerns all units."""

    at: int
    until: int | None
    kind: EventKind
    unit: UnitRef | None
    text: ScopedText


@dataclass(frozen=True, slots=True)
class Picture:
    """A bulk answer: a table and its response headers."""

    table: pl.DataFrame
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class ScatterPicture(Picture):
    """Points, and ``density``: the number of points in each cell of a grid."""

    density: pl.DataFrame
