"""Workloads, their executions, and the allocations of units to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.identity_fields import (
    ExperimentName,
    FreeText,
    OwnerText,
    ProjectName,
    PublicText,
    UserName,
    WorkloadTags,
)
from clusterscape.model.ids import UnitId, UnixMs, WorkloadId


class WorkloadKind(StrEnum):
    """How a workload was started."""

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
    """The evidence for an allocation, most reliable first."""

    SCHEDULER_INDEX = "scheduler_index"  # the scheduler names node and GPU index (Slurm gres_detail)
    POD_RESOURCES = "pod_resources"  # the kubelet names the device
    EXPORTER_LABEL = "exporter_label"  # the exporter labels the GPU with a job (hpc_job)
    PROCESS = "process"  # a process of the workload ran on the GPU
    WHOLE_NODE = "whole_node"  # the scheduler names only nodes, and the workload has all their GPUs


CONFIDENCE: Mapping[AllocationSource, float] = {
    AllocationSource.SCHEDULER_INDEX: 1.0,
    AllocationSource.POD_RESOURCES: 1.0,
    AllocationSource.WHOLE_NODE: 0.95,
    AllocationSource.EXPORTER_LABEL: 0.9,
    AllocationSource.PROCESS: 0.8,
}
"""Default confidence of each source; if two disagree, the scheduler wins and the conflict is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One finished period during which a workload held GPUs.

    A requeued, preempted or resized job has several. ``is_estimated``: its end is when the job left the scheduler's queue;
    the exact end follows with the accounting.
    """

    started_at: UnixMs
    ended_at: UnixMs
    gpus: int = 0
    suspended_s: int = 0
    state: WorkloadState = WorkloadState.UNKNOWN  # how it ended
    word: PublicText | None = None  # the scheduler's state, if it is more specific than ours: "REQUEUED", "RESIZING"
    submitted_at: UnixMs | None = None
    is_estimated: bool = False

    @property
    def run_s(self) -> float:
        """Run time without suspensions."""
        return max(0.0, (self.ended_at - self.started_at) / 1000 - self.suspended_s)

    @property
    def gpu_s(self) -> float:
        """GPU-seconds, as the scheduler's accounting counts them."""
        return self.run_s * self.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Anything that requests units. Times are Unix ms; None is "not yet" or "unknown".

    Times and exit codes are those of its latest execution; previous ones are in ``earlier``, by start.
    """

    id: WorkloadId
    state: WorkloadState
    kind: WorkloadKind = WorkloadKind.JOB
    name: OwnerText | None = None
    user: UserName | None = None
    project: ProjectName | None = None
    experiment: ExperimentName | None = None
    partition: PublicText | None = None
    resource_type: PublicText | None = None  # machine type × GPU count, "A100-8"
    qos: FreeText | None = None
    priority: int | None = None
    gpus_requested: int = 0
    nodes_requested: int | None = None
    time_limit_s: int | None = None
    submitted_at: UnixMs | None = None
    eligible_at: UnixMs | None = None
    started_at: UnixMs | None = None
    ended_at: UnixMs | None = None
    expected_start_at: UnixMs | None = None  # the scheduler's estimate for a waiting workload
    pending_reason: FreeText | None = None  # as the scheduler reports it, e.g. "Resources"
    exit_code: int | None = None
    exit_signal: int | None = None
    restarts: int = 0
    nodes: tuple[PublicText, ...] = ()
    tags: WorkloadTags = field(default_factory=dict)
    gpus_allocated: int | None = None  # as the accounting counts them; None: unknown, assumed equal to those requested
    suspended_s: int = 0  # of finished suspensions
    suspended_at: UnixMs | None = None  # start of the current suspension
    earlier: tuple[Execution, ...] = ()
    derived_exit_code: int | None = None  # the highest exit code of its steps
    derived_exit_signal: int | None = None
    cpus: int | None = None  # CPU cores that it was allocated, or requests while it waits
    memory_requested_bytes: int | None = None  # on all nodes together

    @property
    def gpus_held(self) -> int:
        """GPUs that it holds while running."""
        return self.gpus_requested if self.gpus_allocated is None else self.gpus_allocated

    def ended_execution(self, *, word: str | None = None) -> Execution | None:
        """Its latest execution, if that has ended."""
        if self.started_at is None or self.ended_at is None or self.state.is_active:
            return None
        return Execution(
            started_at=self.started_at,
            ended_at=max(self.started_at, self.ended_at),
            gpus=self.gpus_held,
            suspended_s=self.suspended_s,
            state=self.state,
            word=word,
            submitted_at=self.submitted_at,
        )

    def run_s(self, now: UnixMs) -> float | None:
        """Run time of its latest execution without suspensions; None if it has not started."""
        if self.state is WorkloadState.WAITING or self.started_at is None:
            return None
        # After a resize the accounting starts a new execution, while the queue still reports the first start.
        ends = (execution.ended_at for execution in self.earlier if execution.started_at >= self.started_at)
        begun = max([self.started_at, *ends])
        stop = self.ended_at if self.ended_at is not None else now
        if self.state is WorkloadState.SUSPENDED and self.suspended_at is not None:
            stop = min(stop, self.suspended_at)
        return max(0.0, (stop - begun) / 1000 - self.suspended_s)

    def gpu_s(self, now: UnixMs) -> float | None:
        """GPU-seconds of all its executions, as the scheduler's accounting counts them; None if it never started."""
        run_s = self.run_s(now)
        if run_s is None and not self.earlier:
            return None
        return (run_s or 0.0) * self.gpus_held + sum(execution.gpu_s for execution in self.earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Workload ``workload`` held ``unit`` during [from_at, to_at); ``to_at`` None means it still does."""

    workload: WorkloadId
    unit: UnitId
    from_at: UnixMs
    to_at: UnixMs | None = None
    source: AllocationSource = AllocationSource.SCHEDULER_INDEX
    confidence: float = 1.0
