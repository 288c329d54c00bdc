"""Turns what happened to violations into what is told of them. Owns what could not be told yet; the alerts own the rest.

What is muted is kept and not told; when its mute ends first, it is told then. A stop is told even so: it may have started before
it was muted. The disk may be full: what the alerts do not take is kept here and posted again.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from clusterscape.errors import StoreError
from clusterscape.model import UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.rules import Rule, Turn, Violation, ViolationTurn
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.judging import tell_turns
from clusterscape.watch.mutes import is_muted, read_mutes

log = logging.getLogger(__name__)

MOST_UNPOSTED = 100_000
"""Turns kept in memory while the disk takes none; the oldest go first. After a start those of the last hour are told again."""

Workloads = Mapping[WorkloadId, Workload]
Key = tuple[str, WorkloadId, UnitId | None, UnixMs]


class Teller:
    """Not thread-safe: called by whoever judges."""

    def __init__(self, alerts: Alerts, records: RecordStore, *, clock: Callable[[], UnixMs]) -> None:
        self._alerts = alerts
        self._records = records
        self._clock = clock
        self._known: dict[str, Rule] = {}
        self._unposted: list[ViolationTurn] = []
        self._hushed: dict[Key, Violation] = {}

    @property
    def unposted(self) -> int:
        """Turns that the disk did not take yet."""
        return len(self._unposted)

    def learn(self, rules: Iterable[Rule]) -> None:
        """The rules as they are. One that is gone is remembered: its last violations are still to stop."""
        self._known.update((rule.key, rule) for rule in rules)

    def tell(self, stopped: Sequence[Violation], started: Sequence[Violation], workloads: Workloads) -> None:
        """Post what turned and what is owed. What was posted before is known to the alerts and left out."""
        self._hushed.update((_key_of(each), each) for each in started)
        if self._hushed:
            mutes = read_mutes(self._records, self._clock())
            started = [each for each in self._hushed.values() if not is_muted(mutes, each.rule, each.workload)]
        for each in [*started, *stopped]:
            self._hushed.pop(_key_of(each), None)
        self._post(started, stopped, workloads)

    def _post(self, started: Iterable[Violation], stopped: Iterable[Violation], workloads: Workloads) -> None:
        turns = [
            *self._unposted,
            *tell_turns(started, self._known, workloads, Turn.STARTED),
            *tell_turns(stopped, self._known, workloads, Turn.STOPPED),
        ]
        if not turns:
            return
        turns.sort(key=lambda turn: turn.at)
        try:
            self._alerts.post(turns)
        except StoreError as error:
            self._unposted = turns[-MOST_UNPOSTED:]
            log.warning("%d alerts wait to be stored: %s %s", len(turns), error.message, error.hint or "")
        else:
            self._unposted = []


def _key_of(violation: Violation) -> Key:
    return (violation.rule, violation.workload, violation.unit, violation.since)
