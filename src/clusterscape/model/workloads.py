"""What asks for units, and who held what when: workloads and allocations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.ids import UnitId, UnixMs, WorkloadId


class WorkloadKind(StrEnum):
    """How a workload came to be."""

    JOB = "job"
    SESSION = "session"  # interactive
    RUN = "run"  # tracked by ClusterScape itself


class WorkloadState(StrEnum):
    """Where a workload is in its life. The first three are active; the rest have ended."""

    WAITING = "waiting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAILED = "node_failed"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"

    @property
    def is_active(self) -> bool:
        """Whether the workload waits for or holds units."""
        return self in (WorkloadState.WAITING, WorkloadState.RUNNING, WorkloadState.SUSPENDED)


class AllocationSource(StrEnum):
    """How we know who holds a unit, best first."""

    SCHEDULER_INDEX = "scheduler_index"  # the scheduler names node and GPU index (Slurm gres_detail)
    POD_RESOURCES = "pod_resources"  # the kubelet names the device
    EXPORTER_LABEL = "exporter_label"  # the exporter labels the GPU with a job (hpc_job)
    PROCESS = "process"  # a process of the workload was seen on the GPU
    WHOLE_NODE = "whole_node"  # the scheduler names only nodes, and the workload has all their GPUs


CONFIDENCE: Mapping[AllocationSource, float] = {
    AllocationSource.SCHEDULER_INDEX: 1.0,
    AllocationSource.POD_RESOURCES: 1.0,
    AllocationSource.WHOLE_NODE: 0.95,
    AllocationSource.EXPORTER_LABEL: 0.9,
    AllocationSource.PROCESS: 0.8,
}
"""Default confidence of each source; the scheduler's word wins where two disagree, and the conflict is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Anything that asks for units. Times are Unix ms; ``None`` is "not yet" or "not known"."""

    id: WorkloadId
    state: WorkloadState
    kind: WorkloadKind = WorkloadKind.JOB
    name: str | None = None
    user: str | None = None
    project: str | None = None
    experiment: str | None = None
    partition: str | None = None
    resource_type: str | None = None  # machine type × GPU count, "A100-8"
    qos: str | None = None
    priority: int | None = None
    gpus_requested: int = 0
    nodes_requested: int | None = None
    time_limit_s: int | None = None
    submitted_at: UnixMs | None = None
    eligible_at: UnixMs | None = None
    started_at: UnixMs | None = None
    ended_at: UnixMs | None = None
    expected_start_at: UnixMs | None = None  # the scheduler's own plan for a waiting workload
    pending_reason: str | None = None  # the scheduler's word, e.g. "Resources"
    exit_code: int | None = None
    exit_signal: int | None = None
    restarts: int = 0
    nodes: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Workload ``workload`` held ``unit`` during [from_at, to_at); ``to_at`` None means it still does."""

    workload: WorkloadId
    unit: UnitId
    from_at: UnixMs
    to_at: UnixMs | None = None
    source: AllocationSource = AllocationSource.SCHEDULER_INDEX
    confidence: float = 1.0
