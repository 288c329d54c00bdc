"""Posts started and stopped violations to the alerts. Keeps those that could not be posted yet.

Muted violations are held back and posted when their mute ends first. Stops are posted even if muted, because the violation may
have started before the mute. If the disk is full, turns are kept in memory and posted again.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from clusterscape.errors import StoreError
from clusterscape.model import UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.rules import Rule, Turn, Violation, ViolationTurn
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.judging import group_turns
from clusterscape.watch.rulebook import is_muted, read_mutes

log = logging.getLogger(__name__)

MOST_UNPOSTED = 100_000
"""Maximum number of turns in memory while the disk is full; the oldest are dropped. After a restart, those of the last hour
are posted again."""

Workloads = Mapping[WorkloadId, Workload]
Key = tuple[str, WorkloadId, UnitId | None, UnixMs]


class Notifier:
    """Posts turns of violations. Not thread-safe: called by the thread that judges."""

    def __init__(self, alerts: Alerts, records: RecordStore, *, clock: Callable[[], UnixMs]) -> None:
        self._alerts = alerts
        self._records = records
        self._clock = clock
        self._rules: dict[str, Rule] = {}
        self._unposted: list[ViolationTurn] = []
        self._muted: dict[Key, Violation] = {}

    @property
    def unposted(self) -> int:
        """Number of turns that could not be written to disk yet."""
        return len(self._unposted)

    def update_rules(self, rules: Iterable[Rule]) -> None:
        """Set the current rules. Removed rules are kept: their last violations have yet to stop."""
        self._rules.update((rule.key, rule) for rule in rules)

    def notify(self, stopped: Sequence[Violation], started: Sequence[Violation], workloads: Workloads) -> None:
        """Post these violations and those that were held back. The alerts ignore duplicates."""
        self._muted.update((_key_of(violation), violation) for violation in started)
        if self._muted:
            mutes = read_mutes(self._records, self._clock())
            started = [
                violation
                for violation in self._muted.values()
                if not is_muted(mutes, violation.rule, violation.workload)
            ]
        for violation in [*started, *stopped]:
            self._muted.pop(_key_of(violation), None)
        self._post(started, stopped, workloads)

    def _post(self, started: Iterable[Violation], stopped: Iterable[Violation], workloads: Workloads) -> None:
        turns = [
            *self._unposted,
            *group_turns(started, self._rules, workloads, Turn.STARTED),
            *group_turns(stopped, self._rules, workloads, Turn.STOPPED),
        ]
        if not turns:
            return
        turns.sort(key=lambda turn: turn.at)
        try:
            self._alerts.post(turns)
        except StoreError as error:
            self._unposted = turns[-MOST_UNPOSTED:]
            log.warning(
                "cannot store %d alerts, keeping them in memory: %s %s", len(turns), error.message, error.hint or ""
            )
        else:
            self._unposted = []


def _key_of(violation: Violation) -> Key:
    return (violation.rule, violation.workload, violation.unit, violation.since)
