"""Alerts on jobs that hang, once for each stall, and when it is over. The verdict is that of ``query/runs/hangs.py``.

Messages name ranks and the class, never functions or files: stacks are for the owner and for whom the site lets see runs.
"""

import hashlib
import threading
from collections.abc import Callable

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity, Turn
from clusterscape.query.runs import HangQuery
from clusterscape.query.runs.answers import HangRow
from clusterscape.store.changes import Changes
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.alerts.turns import AlertTurn

RULE = "hang"
EVERY_S = 2.0
NEW_MS = 3_600_000
"""A stall that began earlier is not reported after a restart."""
_CLASSES = {
    "absent": "does not make the call that the others wait in",
    "mismatch": "made another collective call than the others",
    "dead": "has ended while the others wait for it",
    "deadlock": "waits for a lock, a thread or a process of its own host",
    "kernel": "runs a GPU kernel that does not end",
    "link": "are in the same collective, and no data moves",
    "storage": "waits for a file system",
}


class HangAlerts:
    """Posts a turn for each stall that starts or ends. ``run`` in a thread of its own; ``decides``: whether this process may."""

    def __init__(
        self,
        hangs: HangQuery,
        alerts: Alerts,
        changes: Changes,
        clock: Callable[[], UnixMs],
        decides: Callable[[], bool] = lambda: True,
    ) -> None:
        self._hangs = hangs
        self._alerts = alerts
        self._changes = changes
        self._clock = clock
        self._decides = decides
        self._open: dict[tuple[str, int], HangRow] = {}
        self._version: int | None = None
        self._stopped = threading.Event()

    def run(self) -> None:
        """Follow the runs until ``stop``."""
        while not self._stopped.wait(EVERY_S):
            self.update()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def update(self) -> None:
        """Post what has changed since the last call. Raises StoreError; then the next call posts it."""
        version = self._changes.versions.runs
        if version == self._version or not self._decides():
            return
        now = self._clock()
        rows = {(row.run, row.stalled_at): row for row in self._hangs.all().rows}
        started = {
            key: row
            for key, row in rows.items()
            if row.is_sure and not row.is_over and key not in self._open and now - row.stalled_at < NEW_MS
        }
        over = {key: rows.get(key, row) for key, row in self._open.items() if key not in rows or rows[key].is_over}
        turns = [_turn(row, Turn.STARTED, UnixMs(row.stalled_at)) for row in started.values()]
        turns += [_turn(row, Turn.STOPPED, UnixMs(row.went_on_at or now)) for row in over.values()]
        if turns:
            self._alerts.post_flat(turns)
        self._open = {key: row for key, row in (self._open | started).items() if key not in over}
        self._version = version


def _turn(row: HangRow, turn: Turn, at: UnixMs) -> AlertTurn:
    facts = "\0".join((RULE, turn.value, row.run, str(row.stalled_at)))
    return AlertTurn(
        id=hashlib.sha256(facts.encode()).hexdigest()[:24],
        turn=turn,
        at=at,
        since=UnixMs(row.stalled_at),
        rule=RULE,
        rule_name="Run hangs",
        severity=Severity.CRITICAL,
        reason=describe(row),
        workload=row.workload,
        user=row.user,
        project=None,
        partition=None,
        units=(),
        values={} if row.held_gpus is None else {"GPU-hours per hour": float(row.held_gpus)},
        readings="" if row.held_gpus is None else f"{row.held_gpus:,} GPU-hours per hour",
        name=row.name,
        advice="`clusterscape hang` and the page of the run say where in the code, and why.",
    )


def describe(row: HangRow) -> str:
    """One sentence without names of code."""
    named = ", ".join(map(str, row.ranks[:8])) + (" …" if len(row.ranks) > 8 else "")
    who = f"rank {named}" if len(row.ranks) == 1 else f"ranks {named}" if row.ranks else "all ranks"
    return f"{who[0].upper()}{who[1:]} of {row.world_size or '?'}: {_CLASSES.get(row.kind, row.kind)}."
