"""What has become of each job, kept so that its state can be told for any moment, not only for the last one."""

from bisect import bisect_right
from dataclasses import dataclass, field

from clusterscape.demo.scheduler import Ending, Grant, Reason
from clusterscape.demo.work import DemoJob
from clusterscape.model import WorkloadState
from clusterscape.simulate.faults import FaultKind

_ENDINGS = {
    Ending.TIMEOUT: WorkloadState.TIMEOUT,
    Ending.NODE_FAILED: WorkloadState.NODE_FAILED,
    Ending.REQUEUED: WorkloadState.WAITING,
}


@dataclass(slots=True)
class Attempt:
    """One time a job held GPUs; ``units`` are GPUs by their place in the cluster, node by node."""

    start_s: int
    grants: tuple[Grant, ...]
    units: tuple[int, ...]
    end_s: int | None = None
    ending: Ending | None = None

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
        """When it left for good; None while that is not known."""
        if self.withdrawn_s is not None:
            return self.withdrawn_s
        last = self.attempts[-1] if self.attempts else None
        return None if last is None or last.ending is Ending.REQUEUED else last.end_s

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
        """Why the job waits, in Slurm's words."""
        job = self.demo.job
        if time_s < job.queued_s:
            return self.demo.hold_reason
        place = bisect_right(self.waits, time_s, key=_time)
        return self.waits[place - 1][1].value if place else Reason.PRIORITY.value


@dataclass(frozen=True, slots=True)
class Outage:
    """A node out of service during [from_s, to_s), and the operator's words."""

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
