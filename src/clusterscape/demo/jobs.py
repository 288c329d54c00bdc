"""A job of the demo cluster: its request, its owner, how it ends and how its GPUs behave; and its state at any time."""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.demo.scheduler import Grant, JobEnding, Reason, SubmittedJob
from clusterscape.model import WorkloadKind, WorkloadState
from clusterscape.simulate.faults import FaultKind

MEMORY_MIB_PER_CPU = 7800

DRAWS = 8


class Behavior(StrEnum):
    """How a job's GPUs behave while it runs."""

    HEALTHY = "healthy"
    VALIDATION = "validation"  # regular dips for validation, data and checkpoints
    INPUT_BOUND = "input_bound"  # waits for data most of the time
    STALLED = "stalled"  # after a while: full utilization, little power, no progress
    IDLE_TAIL = "idle_tail"  # computes at first, then only holds its GPUs
    MEMORY_LEAK = "memory_leak"
    NODE_MASTER = "node_master"  # the first GPU of each node works, the others wait for it
    INTERACTIVE = "interactive"  # bursts between long pauses


@dataclass(frozen=True, slots=True)
class ArrayTask:
    """A task of a job array with ``task_count`` tasks."""

    array_id: int
    task_id: int
    task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJob:
    """``job`` is the request to the scheduler. ``outcome`` applies if the job runs to its end."""

    job: SubmittedJob
    name: str
    project: str
    experiment: str
    behavior: Behavior
    draws: tuple[float, ...]  # DRAWS random numbers in [0, 1) that determine details of its behavior
    stream: str  # name of its job stream, whose demand it counts for
    kind: WorkloadKind = WorkloadKind.JOB
    qos: str = "normal"
    outcome: WorkloadState = WorkloadState.COMPLETED
    exit_code: int = 0
    exit_signal: int | None = None
    hold_reason: str | None = None  # why it is not eligible at submission
    array: ArrayTask | None = None

    @property
    def native_id(self) -> str:
        """The id in Slurm's format: ``4711`` or ``4711_3``."""
        return f"{self.array.array_id}_{self.array.task_id}" if self.array else str(self.job.id)

    @property
    def cpus_per_node(self) -> int:
        """CPU cores requested on each node."""
        return 12 * self.job.gpus_per_node

    @property
    def cpus(self) -> int:
        """CPU cores requested in total."""
        return self.cpus_per_node * self.job.nodes

    @property
    def memory_gib(self) -> int:
        """Memory requested in total, in whole GiB as Slurm prints it."""
        return self.cpus * MEMORY_MIB_PER_CPU // 1024


_ENDINGS = {
    JobEnding.TIMEOUT: WorkloadState.TIMEOUT,
    JobEnding.NODE_FAILED: WorkloadState.NODE_FAILED,
    JobEnding.REQUEUED: WorkloadState.WAITING,
}


@dataclass(slots=True)
class Attempt:
    """One execution of a job; ``units`` are indices of GPUs in the cluster, node by node."""

    start_s: int
    grants: tuple[Grant, ...]
    units: tuple[int, ...]
    end_s: int | None = None
    ending: JobEnding | None = None

    def is_running_at(self, time_s: int) -> bool:
        """Whether the job holds its GPUs at ``time_s``."""
        return self.start_s <= time_s and (self.end_s is None or time_s < self.end_s)


@dataclass(slots=True)
class Life:
    """A job from submission to end."""

    demo: DemoJob
    waits: list[tuple[int, Reason]] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    withdrawn_s: int | None = None

    @property
    def ended_s(self) -> int | None:
        """When it ended; None if it has not."""
        if self.withdrawn_s is not None:
            return self.withdrawn_s
        last = self.attempts[-1] if self.attempts else None
        return None if last is None or last.ending is JobEnding.REQUEUED else last.end_s

    def attempts_by(self, time_s: int) -> list[Attempt]:
        """Attempts begun by ``time_s``."""
        return [attempt for attempt in self.attempts if attempt.start_s <= time_s]

    def state_at(self, time_s: int) -> WorkloadState | None:
        """The job's state; None before its submission."""
        if time_s < self.demo.job.submit_s:
            return None
        if self.withdrawn_s is not None and self.withdrawn_s <= time_s:
            return WorkloadState.CANCELLED
        begun = self.attempts_by(time_s)
        if not begun:
            return WorkloadState.WAITING
        last = begun[-1]
        if last.is_running_at(time_s) or last.ending is None:
            return WorkloadState.RUNNING
        return _ENDINGS.get(last.ending, self.demo.outcome)

    def reason_at(self, time_s: int) -> str | None:
        """Why the job waits, as a Slurm reason code."""
        job = self.demo.job
        if time_s < job.queued_s:
            return self.demo.hold_reason
        place = bisect_right(self.waits, time_s, key=_time)
        return self.waits[place - 1][1].value if place else Reason.PRIORITY.value


@dataclass(frozen=True, slots=True)
class Outage:
    """A node out of service during [from_s, to_s), and the operator's reason."""

    node: int
    kind: FaultKind
    from_s: int
    to_s: int
    reason: str


@dataclass(frozen=True, slots=True)
class XidError:
    """A GPU reported ``code``; the exporter shows it during [from_ms, to_ms)."""

    unit: int
    code: int
    from_ms: int
    to_ms: int


def _time(wait: tuple[int, Reason]) -> int:
    return wait[0]
