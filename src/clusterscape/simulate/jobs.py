"""What goes into a simulation: jobs, nodes and faults. Records only; times are whole seconds since an origin of the caller's."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A request for ``nodes`` × ``gpus_per_node`` GPUs of one partition.

    ``run_s`` is how long the job runs if it is let; the scheduler knows only ``limit_s``, at which it ends the job. Higher
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
    withdraw_s: int | None = None  # leaves the queue then, where it has not started yet
    is_requeued: bool = False  # on a node's failure: starts again instead of ending

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


class FaultKind(StrEnum):
    """What happens to the jobs of a node that leaves service."""

    FAIL = "fail"  # they end
    DRAIN = "drain"  # they run on; nothing new starts


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """A node out of service during [from_s, to_s); ``to_s`` None: for good."""

    node: str
    kind: FaultKind
    from_s: int
    to_s: int | None = None
