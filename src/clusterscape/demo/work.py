"""A job of the pretend cluster: what the scheduler is told, whose it is, how it will end, and how its GPUs will behave."""

from dataclasses import dataclass
from enum import StrEnum

from clusterscape.demo.scheduler import Job
from clusterscape.model import WorkloadKind, WorkloadState

DRAWS = 8


class Behavior(StrEnum):
    """What a job's GPUs look like while it runs."""

    HEALTHY = "healthy"
    VALIDATION = "validation"  # regular dips for validation, data and checkpoints
    INPUT_BOUND = "input_bound"  # waits for data most of the time
    STALLED = "stalled"  # from some moment on: full utilization, hardly any power, no progress
    IDLE_TAIL = "idle_tail"  # worked once, now only holds its GPUs
    MEMORY_LEAK = "memory_leak"
    NODE_MASTER = "node_master"  # the first GPU of each node works, the others wait for it
    INTERACTIVE = "interactive"  # bursts between long pauses


@dataclass(frozen=True, slots=True)
class ArrayTask:
    """Which task of which job array; ``task_count`` tasks in all."""

    array_id: int
    task_id: int
    task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJob:
    """``job`` is what the scheduler sees. ``outcome`` holds where the job is let run to its end."""

    job: Job
    name: str
    project: str
    experiment: str
    behavior: Behavior
    draws: tuple[float, ...]  # DRAWS numbers in [0, 1) from which the details of its behavior follow
    stream: str  # the kind of jobs whose demand it adds to
    kind: WorkloadKind = WorkloadKind.JOB
    qos: str = "normal"
    outcome: WorkloadState = WorkloadState.COMPLETED
    exit_code: int = 0
    exit_signal: int | None = None
    hold_reason: str | None = None  # why it is not eligible at submission
    array: ArrayTask | None = None

    @property
    def native_id(self) -> str:
        """The id as Slurm's users write it: ``4711`` or ``4711_3``."""
        return f"{self.array.array_id}_{self.array.task_id}" if self.array else str(self.job.id)

    @property
    def cpus_per_node(self) -> int:
        """CPU cores asked for on each node."""
        return 12 * self.job.gpus_per_node
