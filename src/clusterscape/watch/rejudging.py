"""Judges the past again when a rule changes: violations of the old rule are replaced by those that the new one would have had.

Runs in the background. The record store keeps which rules are due, so that a restart loses none. Open violations stay open; no
alerts are sent for the past.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from clusterscape.model import UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Rule, Violation
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.watch.judging import ViolationKeeper
from clusterscape.watch.rulebook import RuleBook

log = logging.getLogger(__name__)

REJUDGED = "rule-rejudged"
PAST_MS = 7 * 86_400_000
"""How much of the past is judged again. Older violations belong to the old rule and are deleted."""
STEP_MS = 600_000
"""The resolution of starts and ends; shorter violations may be missed."""
RETRY_S = 60.0
HISTORY_PAUSE_S = 2.0
"""Debounce: past samples are stored in parts and judged after the last one."""

LATE_RUNS_PAUSE_S = 900.0
"""Rate limit: late runs arrive at any time, and the past is judged for them at most this often."""

Key = tuple[str, WorkloadId, UnitId | None]


class _StoppedError(Exception):
    """The process shuts down: the past is judged after the next start."""


class Rejudging:
    """Judges the past in the background. The lock ``judging`` is held while violations change; ``judge`` acquires it itself."""

    def __init__(
        self,
        *,
        book: RuleBook,
        records: RecordStore,
        metrics: MetricStore,
        changes: Changes,
        clock: Callable[[], UnixMs],
        keeper_of: Callable[[Rule], ViolationKeeper],
        judging: threading.Lock,
        judge: Callable[[], object],
        decides: Callable[[], bool] = lambda: True,
        loops: BackgroundLoops | None = None,
    ) -> None:
        self._decides = decides
        self._book = book
        self._records = records
        self._metrics = metrics
        self._changes = changes
        self._clock = clock
        self._keeper_of = keeper_of
        self._judging = judging
        self._judge = judge
        self._noting = threading.Lock()
        self._is_due = threading.Event()
        self._is_stopping = False
        self._history_at = -HISTORY_PAUSE_S
        self._has_late_runs = False
        self._late_runs_judged_at = -LATE_RUNS_PAUSE_S
        self._loop = (loops or BackgroundLoops()).loop(
            "rejudging", log, fails="judging the past failed", works="judging the past works again"
        )

    def note(self, before: Rule | None, after: Rule) -> None:
        """A rule was saved: its past is due if the rule is new or judges differently."""
        if before is None or (before.expression, before.scope) != (after.expression, after.scope):
            self._mark(after.key, is_due=True)
        self._is_due.set()  # It may have been due before it was enabled.

    def note_history(self) -> None:
        """Past samples were stored that no rule has judged."""
        self._mark_all()
        self._history_at = time.monotonic()
        self._is_due.set()

    def note_late_runs(self) -> None:
        """Samples of tracked runs were stored late: they are judged with the next batch of late runs."""
        if not self._has_late_runs:
            self._has_late_runs = True
            self._is_due.set()

    def _mark_all(self) -> None:
        with self._noting:
            due = set(self.due())
            for rule in self._book.enabled():
                if rule.key not in due:
                    self._mark(rule.key, is_due=True)

    def forget(self, rule: str) -> None:
        """Forget a removed rule."""
        self._records.remove_document(REJUDGED, rule)

    def done_at(self) -> Mapping[str, UnixMs]:
        """By rule, the time until which its violations were judged afterwards: no alerts are sent for these."""
        bodies = {document.key: document.body for document in self._records.documents(REJUDGED)}
        return {key: UnixMs(int(str(body["at"]))) for key, body in bodies.items() if not body["is_due"]}

    def due(self) -> list[str]:
        """Keys of the rules whose past must be judged again."""
        return [document.key for document in self._records.documents(REJUDGED) if document.body["is_due"]]

    def run(self) -> None:
        """Judge due rules whenever a rule changes, until ``stop``."""
        while not self._is_stopping:
            with self._loop:
                while (
                    remaining_s := self._history_at + HISTORY_PAUSE_S - time.monotonic()
                ) > 0 and not self._is_stopping:
                    time.sleep(min(remaining_s, 0.1))
                self._mark_late_runs()
                with suppress(_StoppedError):
                    self.rejudge_due()
            if not self._is_stopping:
                self._is_due.wait(RETRY_S if self._loop.is_failing else self._late_runs_due_in_s())
            self._is_due.clear()

    def _mark_late_runs(self) -> None:
        if self._late_runs_due_in_s() == 0.0:
            self._has_late_runs = False
            self._late_runs_judged_at = time.monotonic()
            self._mark_all()

    def _late_runs_due_in_s(self) -> float | None:
        """Seconds until late runs are judged; None: there are none."""
        if not self._has_late_runs:
            return None
        return max(0.0, self._late_runs_judged_at + LATE_RUNS_PAUSE_S - time.monotonic())

    def wake(self) -> None:
        """Check for due rules: another process may have marked some."""
        self._is_due.set()

    def stop(self) -> None:
        """End ``run``, even while a past is being judged."""
        self._is_stopping = True
        self._is_due.set()

    def rejudge_due(self) -> None:
        """Judge the past of all due rules; a disabled rule waits until it is enabled."""
        if not self._decides():
            return
        rules = {rule.key: rule for rule in self._book.rules()}
        for key in self.due():
            rule = rules.get(key)
            if rule is not None and rule.is_enabled:
                self._rejudge(rule)

    def _rejudge(self, rule: Rule) -> None:
        from clusterscape.watch.trial import try_rule

        # Open violations are found and reported live first; the past is then merged with them.
        self._judge()
        history_at = self._history_at
        cut = self._clock()
        start = UnixMs(cut - PAST_MS)
        trial = try_rule(
            rule,
            records=self._records,
            metrics=self._metrics,
            start_ms=start,
            end_ms=cut,
            step_ms=STEP_MS,
            progress=self._check,
        )
        with self._judging:
            current = next((candidate for candidate in self._book.rules() if candidate.key == rule.key), None)
            is_same = current is not None and (current.expression, current.scope) == (rule.expression, rule.scope)
            if not is_same or self._history_at != history_at:
                return  # The rule or the past changed in the meantime: it is still due.
            stored = self._records.violations(rule=rule.key, start_ms=cut)
            keeper = self._keeper_of(rule)
            open_violations = [violation for key, violation in keeper.open.items() if key[0] == rule.key]
            merged = merge_past(trial.violations, stored, open_violations, cut)
            self._records.replace_violations(rule.key, merged)
            keeper.amend(violation for violation in merged if violation.until is None)
            self._mark(rule.key, is_due=False, at=cut)
        self._changes.bump_rules()

    def _check(self, _: float) -> None:
        if self._is_stopping:
            raise _StoppedError

    def _mark(self, rule: str, *, is_due: bool, at: UnixMs | None = None) -> None:
        now = self._clock()
        self._records.write_document(REJUDGED, rule, {"is_due": is_due, "at": at or now}, at_ms=now)


def merge_past(
    tried: Sequence[Violation], stored: Iterable[Violation], opened: Iterable[Violation], cut: UnixMs
) -> list[Violation]:
    """Merge violations of the past until ``cut`` (``tried``) with those found live since; overlapping ones become one.

    ``stored``: those that end after ``cut``; ``opened``: open ones. An open violation stays open, with the start that the
    changed rule gives it.
    """
    open_at_cut = {_key_of(violation): violation for violation in tried if violation.until is None}
    live: dict[tuple[Key, UnixMs], Violation] = {
        (_key_of(violation), violation.since): violation for violation in stored if violation.until
    }
    live |= {(_key_of(violation), violation.since): violation for violation in opened}
    merged = [violation for violation in tried if violation.until is not None]
    for (key, since), violation in sorted(live.items(), key=lambda item: item[0][1]):
        before = open_at_cut.pop(key, None)
        if before is not None:
            merged.append(replace(violation, since=before.since))
        elif since >= cut:
            merged.append(violation)
        elif violation.until is None:
            merged.append(replace(violation, since=cut))
    return merged + [replace(violation, until=cut) for violation in open_at_cut.values()]


def _key_of(violation: Violation) -> Key:
    return (violation.rule, violation.workload, violation.unit)
