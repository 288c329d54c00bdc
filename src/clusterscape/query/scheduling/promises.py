"""Promised starts of waiting workloads, and why they slipped. Read here; written by `services/promises.py`.

A promise is the start in a plan by time limits, or the scheduler's own estimate. The slips of a workload sum exactly to its
start − its first promise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class SlipCause(StrEnum):
    """Why a promised start moved."""

    OVERDUE = "overdue"  # it did not start at the planned time
    LIMIT_CHANGED = "limit_changed"  # the time limit of a running workload changed
    NODES_CHANGED = "nodes_changed"  # nodes went out of service or returned
    ENDED = "ended"  # a running workload ended
    LEFT = "left"  # a waiting workload was cancelled
    STARTED = "started"  # another workload started, perhaps on its GPUs (backfill)
    ARRIVED = "arrived"  # a workload was submitted that is ahead of it
    REORDERED = "reordered"  # priorities or requests changed
    SCHEDULER = "scheduler"  # the scheduler changed its plan for an unknown reason
    UNSEEN = "unseen"  # it was held, or not observed, for a time
    OWN_START = "own_start"  # it started earlier or later than last promised


@dataclass(frozen=True, slots=True)
class Slip:
    """A change of a promised start. ``change_s`` > 0: later. ``by``: some of the workloads or nodes that caused it."""

    at_s: int
    cause: SlipCause
    change_s: int
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromiseLedger:
    """The promises of one workload. ``started_s`` is None while it waits, and if it was cancelled before it started."""

    workload: str
    first_at_s: int
    first_s: int
    last_s: int
    is_schedulers: bool
    slips: tuple[Slip, ...] = ()
    started_s: int | None = None
    left_s: int | None = None

    @property
    def slipped_s(self) -> int:
        """The sum of all slips: last promise, or start, − first promise."""
        return sum(slip.change_s for slip in self.slips)


@dataclass(slots=True)
class Promises:
    """The ledgers of a site as last written. Both mappings are replaced, never changed: any thread may read them."""

    open: Mapping[str, PromiseLedger] = field(default_factory=dict)
    """Ledgers of waiting workloads."""
    closed: Mapping[str, PromiseLedger] = field(default_factory=dict)
    """Ledgers of the latest workloads that started or were cancelled."""

    def ledger(self, workload: str) -> PromiseLedger | None:
        """The ledger of a workload, waiting or not; None if there is none."""
        return self.open.get(workload) or self.closed.get(workload)
