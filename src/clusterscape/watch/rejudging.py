"""Judges the past anew when a rule changes: what the old rule found is replaced by what the new one would have found.

Runs in the background, beside judging. Which rules are due is kept in the record store, so that a restart loses none. What is
open stays open; nobody is alerted of the past.
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
from clusterscape.watch.keeper import ViolationKeeper
from clusterscape.watch.rulebook import RuleBook

log = logging.getLogger(__name__)

REJUDGED = "rule-rejudged"
PAST_MS = 7 * 86_400_000
"""How much is judged anew. What is older was found by a rule that is no more, and goes."""
STEP_MS = 600_000
"""Begins and ends are exact to this; what is shorter may be missed."""
RETRY_S = 60.0
HISTORY_PAUSE_S = 2.0
"""A past is stored in parts, one after the other: it is judged after the last."""

LATE_RUNS_PAUSE_S = 900.0
"""Runs that are sent late come all the time, and from anybody: the past is judged for them so often at most."""

Key = tuple[str, WorkloadId, UnitId | None]


class _StoppedError(Exception):
    """The program ends: the past is judged anew at the next start."""


class Rejudging:
    """``judging`` is held while violations change: the keeper and the store must agree. ``judge`` takes it by itself."""

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
            "rejudging", log, fails="the past could not be judged anew", works="the past is judged anew again"
        )

    def note(self, before: Rule | None, after: Rule) -> None:
        """A rule was saved: its past is due where it judges differently now, or is new."""
        if before is None or (before.expression, before.scope) != (after.expression, after.scope):
            self._mark(after.key, is_due=True)
        self._is_due.set()  # It may be due for long, and on only now.

    def note_history(self) -> None:
        """A past was stored that no rule has judged."""
        self._mark_all()
        self._history_at = time.monotonic()
        self._is_due.set()

    def note_late_runs(self) -> None:
        """Samples of tracked runs were stored late: judged with the next ones, not while others wait for it."""
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
        """A rule is gone."""
        self._records.remove_document(REJUDGED, rule)

    def done_at(self) -> Mapping[str, UnixMs]:
        """Until when the violations of a rule are what was found afterwards: nobody was alerted of these, nor shall be."""
        found = {each.key: each.body for each in self._records.documents(REJUDGED)}
        return {key: UnixMs(int(str(body["at"]))) for key, body in found.items() if not body["is_due"]}

    def due(self) -> list[str]:
        """Keys of the rules whose past is to be judged anew."""
        return [each.key for each in self._records.documents(REJUDGED) if each.body["is_due"]]

    def run(self) -> None:
        """Judge what is due whenever a rule changes, until ``stop``."""
        while not self._is_stopping:
            with self._loop:
                while (rest_s := self._history_at + HISTORY_PAUSE_S - time.monotonic()) > 0 and not self._is_stopping:
                    time.sleep(min(rest_s, 0.1))
                self._take_late_runs()
                with suppress(_StoppedError):
                    self.rejudge_due()
            if not self._is_stopping:
                self._is_due.wait(RETRY_S if self._loop.is_failing else self._late_runs_rest_s())
            self._is_due.clear()

    def _take_late_runs(self) -> None:
        if self._late_runs_rest_s() == 0.0:
            self._has_late_runs = False
            self._late_runs_judged_at = time.monotonic()
            self._mark_all()

    def _late_runs_rest_s(self) -> float | None:
        """Until late runs are judged; None: there are none."""
        if not self._has_late_runs:
            return None
        return max(0.0, self._late_runs_judged_at + LATE_RUNS_PAUSE_S - time.monotonic())

    def wake(self) -> None:
        """Something may be due, because another process says so."""
        self._is_due.set()

    def stop(self) -> None:
        """End ``run``, also in the middle of a past."""
        self._is_stopping = True
        self._is_due.set()

    def rejudge_due(self) -> None:
        """Judge anew the past of all rules that are due; one that is off waits until it is on."""
        if not self._decides():
            return
        rules = {rule.key: rule for rule in self._book.rules()}
        for key in self.due():
            rule = rules.get(key)
            if rule is not None and rule.is_enabled:
                self._rejudge(rule)

    def _rejudge(self, rule: Rule) -> None:
        from clusterscape.watch.trial import try_rule

        # What goes on is found, and told, live: the past is then put before it.
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
            known = next((each for each in self._book.rules() if each.key == rule.key), None)
            is_same = known is not None and (known.expression, known.scope) == (rule.expression, rule.scope)
            if not is_same or self._history_at != history_at:
                return  # The rule or the past changed meanwhile: it is still due.
            stored = self._records.violations(rule=rule.key, start_ms=cut)
            keeper = self._keeper_of(rule)
            opened = [each for key, each in keeper.open.items() if key[0] == rule.key]
            merged = merge_past(trial.violations, stored, opened, cut)
            self._records.replace_violations(rule.key, merged)
            keeper.amend(each for each in merged if each.until is None)
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
    """What was found afterwards until ``cut``, and what was found live since; where they meet they are one.

    ``stored``: those that reach beyond ``cut``; ``opened``: those that go on. What goes on stays so, with the begin that the
    rule gives it now.
    """
    going_on = {_key_of(each): each for each in tried if each.until is None}
    live: dict[tuple[Key, UnixMs], Violation] = {(_key_of(each), each.since): each for each in stored if each.until}
    live |= {(_key_of(each), each.since): each for each in opened}
    merged = [each for each in tried if each.until is not None]
    for (key, since), each in sorted(live.items(), key=lambda item: item[0][1]):
        before = going_on.pop(key, None)
        if before is not None:
            merged.append(replace(each, since=before.since))
        elif since >= cut:
            merged.append(each)
        elif each.until is None:
            merged.append(replace(each, since=cut))
    return merged + [replace(each, until=cut) for each in going_on.values()]


def _key_of(violation: Violation) -> Key:
    return (violation.rule, violation.workload, violation.unit)
