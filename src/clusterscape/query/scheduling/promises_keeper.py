"""Keeps promises: looks at the queue when it changed, writes the ledgers down, so that a restart loses none.

Two documents hold them: the open ledgers, and those of the last workloads that started or left.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from clusterscape.model import WorkloadId, WorkloadState
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.live_queue import read_live_queue
from clusterscape.query.scheduling.promises import Ledger, PromiseBook, Slip, SlipCause
from clusterscape.warm_up import Area

log = logging.getLogger(__name__)

KIND = "promises"
MOST_CLOSED = 500
LOOK_EVERY_S = 15.0
"""A changed inventory is looked at so often at most."""


class PromiseKeeper:
    """One per site. ``run`` in a background thread; all else by any."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._book = PromiseBook(open=_read(context, "open"))
        self._closed = _read(context, "closed")
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._seen: int | None = None
        self._loop = context.loops.loop(
            "promises", log, fails="promises could not be kept", works="promises are kept again"
        )

    def ledger(self, workload: str) -> Ledger | None:
        """What a workload was promised, waiting or not; None where that is not known."""
        return self._book.open.get(workload) or self._closed.get(workload)

    def open_ledgers(self) -> Mapping[str, Ledger]:
        """Of all that wait."""
        return dict(self._book.open)

    def look(self) -> None:
        """Take in the queue as it is now, and write down what moved."""
        with self._lock:
            self._seen = self._context.changes.versions.inventory
            queue = read_live_queue(self._context)
            before = dict(self._book.open)
            waiting = {job.workload for job in queue.waiting}
            gone = [name for name in self._book.open if name not in waiting]
            closed = self._book.look(queue, self._starts(gone))
            for ledger in closed:
                self._closed[ledger.workload] = ledger
            for name in list(self._closed)[:-MOST_CLOSED]:
                del self._closed[name]
            if self._book.open != before:
                self._write("open", self._book.open)
            if closed:
                self._write("closed", self._closed)

    def follow(self) -> None:
        """Read what another process keeps."""
        with self._lock:
            self._book = PromiseBook(open=_read(self._context, "open"))
            self._closed = _read(self._context, "closed")

    def _starts(self, gone: list[str]) -> dict[str, int]:
        """When those began that wait no more; one that was withdrawn never did."""
        starts = {}
        for name in gone:
            found = self._context.records.workload(WorkloadId(name))
            if found is not None and found.started_at is not None and found.state is not WorkloadState.WAITING:
                starts[name] = found.started_at // 1000
        return starts

    def run(self) -> None:
        """Look whenever the inventory changed, at most every LOOK_EVERY_S, until ``stop``."""
        while not self._stopped.wait(LOOK_EVERY_S):
            if not self._context.warm_up.is_ready(Area.QUEUE):
                continue
            if self._context.changes.versions.inventory == self._seen and not self._loop.is_failing:
                continue
            with self._loop:
                self.look()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def _write(self, key: str, ledgers: Mapping[str, Ledger]) -> None:
        body = {"ledgers": [_to_row(ledger) for ledger in ledgers.values()]}
        self._context.records.write_document(KIND, key, body, at_ms=self._context.clock())


def _to_row(ledger: Ledger) -> list[object]:
    slips = [[slip.at_s, slip.cause.value, slip.change_s, list(slip.by)] for slip in ledger.slips]
    return [
        ledger.workload,
        ledger.first_at_s,
        ledger.first_s,
        ledger.last_s,
        ledger.is_schedulers,
        slips,
        ledger.started_s,
        ledger.left_s,
    ]


def _read(context: QueryContext, key: str) -> dict[str, Ledger]:
    document = context.records.document(KIND, key)
    rows: Any = document.body.get("ledgers", []) if document else []
    found = {}
    for name, first_at, first, last, is_schedulers, slips, started, left in rows:
        read = tuple(Slip(at, SlipCause(cause), change, tuple(by)) for at, cause, change, by in slips)
        found[name] = Ledger(name, first_at, first, last, is_schedulers, read, started, left)
    return found
