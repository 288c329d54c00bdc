"""Watches a site: counts samples for their lives, judges lives by all rules, stores violations and sends alerts.

Fast to construct: ``open`` loads numba and the statistics in the background, and reads samples stored before from the store.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.stats.contract import Needs, needs_of
from clusterscape.model import Allocation, SampleBatch, Unit, UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.rules import Rule, Subject, Violation, is_no_workload
from clusterscape.model.runs import is_run_unit
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.warm_up import Area, WarmUp
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.judging import (
    HardwareJudge,
    Judged,
    ViolationChanges,
    ViolationKeeper,
    add_values,
    gather_facts,
    judge,
)
from clusterscape.watch.notifier import Notifier
from clusterscape.watch.rejudging import Rejudging
from clusterscape.watch.rulebook import RuleBook

if TYPE_CHECKING:
    from clusterscape.watch.life_statistics import LifeStatistics

log = logging.getLogger(__name__)

SHOWN_METRICS = frozenset(
    {"gpu_util_ratio", "sm_active_ratio", "tensor_active_ratio", "power_watts", "memory_used_bytes"}
)
"""Kept for every life, even if no rule needs them: the overview colors by them."""

WARM_UP_CHECK_S = 0.5
"""How often ``stop`` is checked while rules are compiled."""

REPOST_MS = 3_600_000
"""Turns of the last hour are posted again after a start; duplicates are detected by their id."""


class Watch:
    """Watches one site. Ingest's thread calls the hooks, a background thread calls ``judge``; the rest is thread-safe."""

    def __init__(
        self,
        *,
        records: RecordStore,
        metrics: MetricStore,
        changes: Changes,
        clock: Callable[[], UnixMs],
        checkpoint: Path | None = None,
        alerts: Alerts | None = None,
        scrape_s: float = 15.0,
        decides: Callable[[], bool] = lambda: True,
        loops: BackgroundLoops | None = None,
        warm_up: WarmUp | None = None,
    ) -> None:
        """``decides``: whether this process stores violations and sends alerts; other processes judge only for their own pages.

        ``warm_up``: ``run`` opens only after rules are compiled, so that ingest never waits for the compiler.
        """
        self._warm_up = warm_up or WarmUp()
        self._decides = decides
        self._decided = decides()
        self.book = RuleBook(records, clock=clock)
        self.alerts = alerts
        self.judged: Judged | None = None
        self._records = records
        self._metrics = metrics
        self._changes = changes
        self._clock = clock
        self._checkpoint = checkpoint
        self._scrape_s = scrape_s
        self._keeper = ViolationKeeper()
        self.hardware = HardwareJudge(records, metrics, self.book)
        self._load_violations()
        self._unwritten = ViolationChanges()
        self._is_due = threading.Event()
        self._is_stopping = False
        self._judging = threading.Lock()
        self.rejudging = Rejudging(
            book=self.book,
            records=records,
            metrics=metrics,
            changes=changes,
            clock=clock,
            keeper_of=self._keeper_of,
            judging=self._judging,
            judge=self.judge,
            decides=decides,
            loops=loops,
        )
        self._loop = (loops or BackgroundLoops()).loop(
            "rules", log, fails="judging rules failed", works="judging rules works again"
        )
        self._notifier = None if alerts is None else Notifier(alerts, records, clock=clock)
        self._gate = threading.Lock()
        self._statistics: LifeStatistics | None = None
        self._followed_version = 0

    @property
    def statistics(self) -> "LifeStatistics | None":
        """The statistics of all lives; None until ``open`` has run."""
        return self._statistics

    @property
    def open_violations(self) -> Sequence[Violation]:
        """Open violations, including those that have not settled yet."""
        return (*self._keeper.open.values(), *self.hardware.open)

    def _keeper_of(self, rule: Rule) -> ViolationKeeper:
        subject = rule.scope.subject
        return self.hardware.keeper(subject) if subject.is_lifeless else self._keeper

    def _load_violations(self) -> None:
        violations = self._records.open_violations()
        self._keeper.replace(violation for violation in violations if not is_no_workload(violation.workload))
        self.hardware.replace(violations)

    @property
    def unposted(self) -> int:
        """Number of turns that wait in memory, because they could not be written to the alert spool."""
        return 0 if self._notifier is None else self._notifier.unposted

    # Changes by users

    def save_rule(self, rule: Rule) -> Rule:
        """Add or replace a rule. If it judges differently, the past is judged again in the background."""
        before = next((candidate for candidate in self.book.rules() if candidate.key == rule.key), None)
        saved = self.book.save(rule)
        self.rejudging.note(before, saved)
        self.wake()
        return saved

    def remove_rule(self, key: str) -> None:
        """Delete a rule of the site and its violations, after sending their stops; reset a shipped rule to its original."""
        shipped = self.book.shipped(key)
        with self._judging:
            before = next((rule for rule in self.book.rules() if rule.key == key), None)
            if shipped is None:
                now = self._clock()
                changes = self._keeper.drop_rule(key, now)
                changes.stopped.extend(self.hardware.drop_rule(key, now).stopped)
                self._write(changes, self._workloads([violation.workload for violation in changes.stopped]))
            self.book.remove(key)
            if shipped is None:
                self._records.remove_violations(key)
                self.rejudging.forget(key)
        if shipped is not None:
            self.rejudging.note(before, shipped)
        self.wake()

    # Changes by other processes

    def on_rules_elsewhere(self) -> None:
        """Another process changed rules or violations: load them."""
        self.book.reload()
        if self._decides():
            self.rejudging.wake()
            self._is_due.set()
            return
        with self._judging:
            self._load_violations()
        self.judge()

    @property
    def watched_metrics(self) -> list[str]:
        """The metrics that statistics are computed from, for samples that another process stores."""
        return [] if self._statistics is None else sorted(self._statistics.metrics)

    # Hooks of ingest

    def on_units(self, units: Iterable[Unit]) -> None:
        """Units are new or changed."""
        if (statistics := self._wait_for_statistics()) is not None:
            statistics.on_units(units)

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Allocations started or ended; ``open_allocations`` are all that are open."""
        if (statistics := self._wait_for_statistics()) is not None:
            statistics.on_allocations(deduplicate_allocations(open_allocations), at_ms)

    def on_samples(self, batch: SampleBatch) -> None:
        """A scrape was stored."""
        if (statistics := self._wait_for_statistics()) is not None:
            statistics.on_samples(batch)

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        """Past samples were stored."""
        if (statistics := self._wait_for_statistics()) is not None:
            statistics.on_history(batches)
        if all(is_run_unit(unit) for batch in batches for unit in batch.units.values):
            self.rejudging.note_late_runs()
        else:
            self.rejudging.note_history()

    def _wait_for_statistics(self) -> "LifeStatistics | None":
        """The statistics. Ingest waits here while ``open`` loads them: samples stored before are read from the store."""
        with self._gate:
            return self._statistics

    # Background work

    def open(self) -> None:
        """Load the statistics of the checkpoint; the first ``judge`` reads samples missed since."""
        from clusterscape.watch.life_statistics import LifeStatistics, ring_samples_for

        statistics = LifeStatistics(
            self._metrics,
            self._checkpoint,
            needs=self._needs(),
            ring_samples=ring_samples_for(self._scrape_s),
        )
        self._followed_version = self.book.version
        with self._gate:
            open_allocations = deduplicate_allocations(self._records.open_allocations())
            statistics.start(self._records.units(), open_allocations, self._clock())
            self._statistics = statistics
        if self._decides():
            self._repost_recent()

    def run(self, every_s: float) -> None:
        """Open, then judge every ``every_s`` and whenever a rule changes, until ``stop``."""
        rejudging: threading.Thread | None = None
        while not self._is_stopping:
            if not self._warm_up.wait(Area.RULES, WARM_UP_CHECK_S):
                continue
            with self._loop:
                if self._statistics is None:
                    self.open()
                if rejudging is None:
                    rejudging = threading.Thread(target=self.rejudging.run, name="rejudging")
                    rejudging.start()
                self.judge()
            self._is_due.wait(every_s)
            self._is_due.clear()
        if rejudging is not None:
            rejudging.join()

    def stop(self) -> None:
        """End ``run`` after the current judgement."""
        self._is_stopping = True
        self.rejudging.stop()
        self._is_due.set()

    def judge(self) -> Judged | None:
        """Judge all lives now; writes the changes and sends alerts. None until the statistics are loaded."""
        statistics = self._statistics
        if statistics is None:
            return None
        with self._judging:
            version = self.book.version
            if version != self._followed_version:
                statistics.require(self._needs())
                self._followed_version = version
            statistics.tick(self._clock())
            columns = statistics.columns()
            workloads = self._workloads(columns.workloads)
            facts = gather_facts(columns, workloads, self._records.units())
            now = self._clock()
            judged = judge(self.book.enabled(Subject.WORKLOADS), columns, facts, at=now, book_version=version)
            before, self.judged = self.judged, judged
            hardware_before = self.hardware.judged
            self.hardware.judge(now)
            if not self._decides():
                self._decided = False
                return judged  # the deciding process notifies pages
            if not self._decided:  # the previous deciding process may have written more than was received
                self._decided = True
                self._load_violations()
            changes = add_values(self._keeper.judge(judged.judgement), judged)
            self._keeper.amend(changes.started)
            hardware_changes = self.hardware.apply()
            changes = ViolationChanges(
                started=[*changes.started, *hardware_changes.started],
                stopped=[*changes.stopped, *hardware_changes.stopped],
            )
            try:
                self._write(changes, workloads)
            finally:
                same = _has_same_verdicts(before, judged) and all(
                    _has_same_verdicts(hardware_before.get(subject), hardware_judged)
                    for subject, hardware_judged in self.hardware.judged.items()
                )
                if changes or not same:
                    self._changes.bump_rules()
                if hardware_changes:  # the picture shows the health of GPUs
                    self._changes.bump_inventory()
            return judged

    def wake(self) -> None:
        """A rule changed: notify pages, and judge soon."""
        self._changes.bump_rules()
        self._is_due.set()

    def close(self) -> None:
        """Write a checkpoint of the statistics for the next start. Judging must have ended."""
        if self._statistics is not None:
            self._statistics.checkpoint()
        if self.alerts is not None:
            self.alerts.close()

    def _needs(self) -> Needs:
        conditions = [
            condition
            for rule in self.book.rules()
            if not rule.scope.subject.is_lifeless
            for condition in iter_conditions(rule.expression)
        ]
        return needs_of(conditions) | Needs(SHOWN_METRICS)

    def _workloads(self, names: Sequence[WorkloadId]) -> Mapping[WorkloadId, Workload]:
        """Workloads by id: active ones from memory; those that ended recently are read from the store."""
        workloads = {workload.id: workload for workload in self._records.active_workloads()}
        for name in names:
            if (
                name not in workloads
                and not is_no_workload(name)
                and (ended := self._records.workload(name)) is not None
            ):
                workloads[name] = ended
        return workloads

    def _write(self, changes: ViolationChanges, workloads: Mapping[WorkloadId, Workload]) -> None:
        """Write the changes, then send alerts. If the store fails, they are written and sent with the next changes."""
        pending = self._unwritten = ViolationChanges(
            started=[*self._unwritten.started, *changes.started], stopped=[*self._unwritten.stopped, *changes.stopped]
        )
        if pending:
            self._records.write_violations([*pending.started, *pending.stopped])
            self._unwritten = ViolationChanges()
        if self._notifier is not None:
            self._notifier.update_rules(self.book.rules())
            self._notifier.notify(pending.stopped, pending.started, workloads)

    def _repost_recent(self) -> None:
        """Post recent turns again: violations are written before alerts are sent, so a crash may have lost alerts."""
        if self._notifier is None:
            return
        recent = self._records.violations(start_ms=UnixMs(self._clock() - REPOST_MS))
        # No alerts are sent for violations of a past that was judged again.
        rejudged_until = self.rejudging.done_at()
        started = [violation for violation in recent if violation.since >= rejudged_until.get(violation.rule, 0)]
        stopped = [
            violation
            for violation in recent
            if violation.until is not None and violation.until > rejudged_until.get(violation.rule, 0)
        ]
        self._notifier.update_rules(self.book.rules())
        self._notifier.notify(stopped, started, self._workloads([violation.workload for violation in recent]))


def deduplicate_allocations(allocations: Iterable[Allocation]) -> list[Allocation]:
    """One allocation per workload and unit, with the earliest start: two sources may report the same one."""
    earliest: dict[tuple[WorkloadId, UnitId], Allocation] = {}
    for allocation in allocations:
        other = earliest.get((allocation.workload, allocation.unit))
        if other is None or allocation.from_at < other.from_at:
            earliest[allocation.workload, allocation.unit] = allocation
    return list(earliest.values())


def _has_same_verdicts(before: Judged | None, after: Judged) -> bool:
    return (
        before is not None
        and before.book_version == after.book_version
        and before.workloads == after.workloads
        and before.units == after.units
        and np.array_equal(before.verdicts.states, after.verdicts.states)
    )
