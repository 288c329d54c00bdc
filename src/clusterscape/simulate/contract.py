"""What a policy is, and what it may see and do in one turn. What a placement is stands in `placing.py`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from clusterscape.simulate.jobs import Job


@dataclass(frozen=True, slots=True)
class Reservation:
    """A promise: ``job`` is planned for ``start_s``, and nothing started by ``backfill`` delays it."""

    job: Job
    start_s: int


class Turn(Protocol):
    """One look at the queue of one partition. A job is offered once, in order, and only while its user is under the limit."""

    @property
    def now_s(self) -> int:
        """The time of this turn."""
        ...

    def waiting(self) -> Iterator[Job]:
        """The waiting jobs in order. The user limit is checked when a job is reached, not before."""
        ...

    def fits(self, job: Job) -> bool:
        """Whether enough GPUs are free now."""
        ...

    def start(self, job: Job) -> bool:
        """Start the job now if it fits."""
        ...

    def reserve(self, job: Job) -> Reservation:
        """The earliest start that the limits of running jobs promise to this job."""
        ...

    def backfill(self, job: Job, reservation: Reservation) -> bool:
        """Start the job now if it fits and ends before the reserved start, or uses only what is left over at that time."""
        ...


class Policy(Protocol):
    """The order and backfill rules of a scheduler."""

    def schedule(self, turn: Turn) -> Job | None:
        """Start what may start now; returns the job for which GPUs are being kept, if there is one."""
        ...
