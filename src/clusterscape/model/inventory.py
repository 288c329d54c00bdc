"""What a cluster consists of: nodes, partitions and units. Records only; who holds a unit is an Allocation."""

from dataclasses import dataclass
from enum import StrEnum

from clusterscape.model.identity_fields import FreeText, PublicText
from clusterscape.model.ids import GpuUuid, NodeId, UnitId, UnixMs, WorkloadId


class NodeState(StrEnum):
    """A node's state for scheduling, reduced to what a reader must tell apart."""

    IDLE = "idle"
    MIXED = "mixed"
    ALLOCATED = "allocated"
    DRAINING = "draining"  # takes no new work, still runs some
    DRAINED = "drained"
    DOWN = "down"
    UNKNOWN = "unknown"

    @property
    def is_available(self) -> bool:
        """Whether the scheduler may start new work here."""
        return self in (NodeState.IDLE, NodeState.MIXED, NodeState.ALLOCATED)


class UnitKind(StrEnum):
    """What one square stands for."""

    GPU = "gpu"
    MIG = "mig"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTurn:
    """A node was in this state from then on."""

    node: NodeId
    from_at: UnixMs
    state: NodeState
    reason: FreeText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A host. ``partitions`` may hold several names; ``machine_type`` is e.g. ``A100-80G``."""

    id: NodeId
    partitions: tuple[PublicText, ...] = ()
    machine_type: PublicText | None = None
    state: NodeState = NodeState.UNKNOWN
    reason: FreeText | None = None  # why drained or down, in the operator's words
    gpu_count: int = 0
    cpu_count: int | None = None
    memory_bytes: int | None = None
    features: tuple[PublicText, ...] = ()
    rack: PublicText | None = None
    driver_version: PublicText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A named set of nodes with a queue."""

    name: str
    nodes: tuple[NodeId, ...] = ()
    is_up: bool = True
    is_default: bool = False
    max_time_s: int | None = None  # None: no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One square: a GPU, a MIG instance, or one GPU that a waiting workload asks for.

    A GPU has ``node`` and ``index``; a MIG instance also ``parent`` and ``mig_profile``; a requested unit only ``workload``.
    """

    id: UnitId
    kind: UnitKind = UnitKind.GPU
    node: NodeId | None = None
    index: int | None = None
    uuid: GpuUuid | None = None
    machine_type: str | None = None
    memory_bytes: int | None = None
    power_limit_watts: float | None = None
    pci_bus_id: str | None = None
    parent: UnitId | None = None
    mig_profile: str | None = None
    workload: WorkloadId | None = None
