"""Input and output of the demo's scheduler: jobs and nodes, and events in order of time.

Times are whole seconds since an origin that the caller chooses.
"""

from dataclasses import dataclass
from enum import StrEnum

from clusterscape.simulate.faults import FaultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """A request for ``nodes`` × ``gpus_per_node`` GPUs of one partition.

    ``run_s`` is the run time without a limit; the scheduler knows only ``limit_s``, at which it ends the job. Higher
    ``priority`` goes first, then the earlier ``eligible_s`` (default: at submission), then the lower id.
    """

    id: int
    partition: str
    submit_s: int
    run_s: int
    limit_s: int
    gpus_per_node: int
    nodes: int = 1
    user: str = ""
    priority: int = 0
    eligible_s: int | None = None
    withdraw_s: int | None = None  # leaves the queue then if it has not started
    is_requeued: bool = False  # if its node fails: waits again instead of ending

    def __post_init__(self) -> None:
        if min(self.nodes, self.gpus_per_node, self.run_s, self.limit_s) < 1:
            raise ValueError(f"job {self.id}: nodes, gpus_per_node, run_s and limit_s must be at least 1")
        if self.eligible_s is not None and self.eligible_s < self.submit_s:
            raise ValueError(f"job {self.id}: eligible before it is submitted")

    @property
    def gpus(self) -> int:
        """GPUs over all nodes."""
        return self.nodes * self.gpus_per_node

    @property
    def queued_s(self) -> int:
        """When the job enters the queue."""
        return self.submit_s if self.eligible_s is None else self.eligible_s


@dataclass(frozen=True, slots=True)
class SimNode:
    """A node of the simulated cluster; it belongs to exactly one partition."""

    name: str
    partition: str
    gpus: int


class Reason(StrEnum):
    """Why a job waits, as Slurm reason codes."""

    RESOURCES = "Resources"  # at the head of the queue: GPUs are reserved for it
    PRIORITY = "Priority"  # other jobs are ahead
    USER_LIMIT = "QOSMaxGRESPerUser"  # its user has reached the limit of GPUs


class JobEnding(StrEnum):
    """How a job left its GPUs or the queue."""

    FINISHED = "finished"
    TIMEOUT = "timeout"
    NODE_FAILED = "node_failed"
    REQUEUED = "requeued"  # its node failed and it waits again
    WITHDRAWN = "withdrawn"  # left the queue without having started


@dataclass(frozen=True, slots=True)
class Grant:
    """GPUs of one node allocated to a job: ``node`` is the node's name, ``gpus`` the indices, ascending."""

    node: str
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JobWaited:
    """The job entered the queue, or its reason to wait changed."""

    time_s: int
    job: SubmittedJob
    reason: Reason


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The job got its GPUs."""

    time_s: int
    job: SubmittedJob
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The job released its GPUs, or left the queue (WITHDRAWN)."""

    time_s: int
    job: SubmittedJob
    ending: JobEnding


@dataclass(frozen=True, slots=True)
class NodeClosed:
    """The node takes no new jobs from now on."""

    time_s: int
    node: str
    kind: FaultKind


@dataclass(frozen=True, slots=True)
class NodeOpened:
    """The node is in service again."""

    time_s: int
    node: str


Event = JobWaited | JobStarted | JobEnded | NodeClosed | NodeOpened
