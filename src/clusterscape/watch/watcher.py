"""Follows a site: counts every sample for the lives it belongs to, judges them by all rules, keeps violations, tells of them.

Light to build: numba and the past are loaded by ``open``, in the background. What is stored before that is read from the store.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.stats.needs import Needs, needs_of
from clusterscape.model import Allocation, SampleBatch, Unit, UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.hardware import is_hardware
from clusterscape.model.rules import Rule, Subject, Violation
from clusterscape.model.run_units import is_run_unit
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.warm_up import Area, WarmUp
from clusterscape.watch.alerts import Alerts
from clusterscape.watch.hardware_judging import HardwareJudge
from clusterscape.watch.judging import Judged, add_values, gather_facts, judge
from clusterscape.watch.keeper import Turned, ViolationKeeper
from clusterscape.watch.rejudging import Rejudging
from clusterscape.watch.rulebook import RuleBook
from clusterscape.watch.telling import Teller

if TYPE_CHECKING:
    from clusterscape.watch.life_statistics import LifeStatistics

log = logging.getLogger(__name__)

SHOWN_METRICS = frozenset(
    {"gpu_util_ratio", "sm_active_ratio", "tensor_active_ratio", "power_watts", "memory_used_bytes"}
)
"""Kept for every life whatever rules ask: what the overview colors by."""

WARM_UP_CHECK_S = 0.5
"""How soon ``stop`` is heeded while rules are compiled."""

RETELL_MS = 3_600_000
"""Turns of the last hour are told again after a start; those that were told before are known by their identity."""


class Watch:
    """One per site. Hooks are called by ingest's thread, ``judge`` and ``keep`` by a background one, all else by any."""

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
        """``decides``: whether this process keeps and tells violations; one that does not judges for its own pages only.

        ``warm_up``: ``run`` opens no sooner than rules are compiled, so that ingest never waits for a compiler.
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
        self._believe_store()
        self._unwritten = Turned()
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
            "rules", log, fails="rules could not be judged", works="rules are judged again"
        )
        self._teller = None if alerts is None else Teller(alerts, records, clock=clock)
        self._gate = threading.Lock()
        self._statistics: LifeStatistics | None = None
        self._followed_version = 0

    @property
    def statistics(self) -> "LifeStatistics | None":
        """The statistics of all lives; None until ``open`` is done."""
        return self._statistics

    @property
    def open_violations(self) -> Sequence[Violation]:
        """What breaks a rule, or did until a moment ago."""
        return (*self._keeper.open.values(), *self.hardware.open)

    def _keeper_of(self, rule: Rule) -> ViolationKeeper:
        subject = rule.scope.subject
        return self.hardware.keeper(subject) if subject.is_hardware else self._keeper

    def _believe_store(self) -> None:
        found = self._records.open_violations()
        self._keeper.replace(each for each in found if not is_hardware(each.workload))
        self.hardware.replace(found)

    @property
    def unposted(self) -> int:
        """Turns of violations that wait in memory, because the disk of the alerts took them not."""
        return 0 if self._teller is None else self._teller.unposted

    # what people change

    def save_rule(self, rule: Rule) -> Rule:
        """Add or replace a rule. Where it judges differently now, its past is judged anew in the background."""
        before = next((each for each in self.book.rules() if each.key == rule.key), None)
        saved = self.book.save(rule)
        self.rejudging.note(before, saved)
        self.wake()
        return saved

    def remove_rule(self, key: str) -> None:
        """Forget an own rule and its violations, after their end was told; a shipped one becomes again what it was."""
        shipped = self.book.shipped(key)
        with self._judging:
            before = next((each for each in self.book.rules() if each.key == key), None)
            if shipped is None:
                now = self._clock()
                turned = self._keeper.drop_rule(key, now)
                turned.stopped.extend(self.hardware.drop_rule(key, now).stopped)
                self._write(turned, self._workloads([each.workload for each in turned.stopped]))
            self.book.remove(key)
            if shipped is None:
                self._records.remove_violations(key)
                self.rejudging.forget(key)
        if shipped is not None:
            self.rejudging.note(before, shipped)
        self.wake()

    # what other processes do

    def on_rules_elsewhere(self) -> None:
        """Another process changed a rule or what it says: judge by the same rules, show the same violations."""
        self.book.reload()
        if self._decides():
            self.rejudging.wake()
            self._is_due.set()
            return
        with self._judging:
            self._believe_store()
        self.judge()

    @property
    def watched_metrics(self) -> list[str]:
        """What the statistics are made of, where somebody else stores it."""
        return [] if self._statistics is None else sorted(self._statistics.metrics)

    # what ingest tells

    def on_units(self, units: Iterable[Unit]) -> None:
        """Units are new or changed."""
        if (statistics := self._gated()) is not None:
            statistics.on_units(units)

    def on_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Allocations began or ended; these are all that are open."""
        if (statistics := self._gated()) is not None:
            statistics.on_allocations(one_life_each(open_allocations), at_ms)

    def on_samples(self, batch: SampleBatch) -> None:
        """A scrape was stored."""
        if (statistics := self._gated()) is not None:
            statistics.on_samples(batch)

    def on_history(self, batches: Sequence[SampleBatch]) -> None:
        """A past was stored."""
        if (statistics := self._gated()) is not None:
            statistics.on_history(batches)
        if all(is_run_unit(unit) for batch in batches for unit in batch.units.values):
            self.rejudging.note_late_runs()
        else:
            self.rejudging.note_history()

    def _gated(self) -> "LifeStatistics | None":
        """Ingest waits here while ``open`` takes up the last run: what it has stored by then is read, the rest is told."""
        with self._gate:
            return self._statistics

    # what runs in the background

    def open(self) -> None:
        """Load the statistics as they were; the first ``judge`` reads what has been missed since."""
        from clusterscape.watch.life_statistics import LifeStatistics, ring_samples_for

        statistics = LifeStatistics(
            self._metrics,
            self._checkpoint,
            needs=self._needs(),
            ring_samples=ring_samples_for(self._scrape_s),
        )
        self._followed_version = self.book.version
        with self._gate:
            held = one_life_each(self._records.open_allocations())
            statistics.start(self._records.units(), held, self._clock())
            self._statistics = statistics
        if self._decides():
            self._retell()

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
        """End ``run`` after the judgement that is under way."""
        self._is_stopping = True
        self.rejudging.stop()
        self._is_due.set()

    def judge(self) -> Judged | None:
        """Judge all lives now; writes and tells what turned. None until the statistics are there."""
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
            self.hardware.look(now)
            if not self._decides():
                self._decided = False
                return judged  # the one that decides says when pages are to look again
            if not self._decided:  # the one that decided before may have written more than was heard of
                self._decided = True
                self._believe_store()
            turned = add_values(self._keeper.judge(judged.judgement), judged)
            self._keeper.amend(turned.started)
            of_hardware = self.hardware.turn()
            turned = Turned(
                started=[*turned.started, *of_hardware.started], stopped=[*turned.stopped, *of_hardware.stopped]
            )
            try:
                self._write(turned, workloads)
            finally:
                same = _says_the_same(before, judged) and all(
                    _says_the_same(hardware_before.get(subject), each) for subject, each in self.hardware.judged.items()
                )
                if turned or not same:
                    self._changes.bump_rules()
                if of_hardware:  # the picture shows the health of GPUs
                    self._changes.bump_inventory()
            return judged

    def wake(self) -> None:
        """A rule changed: the page may ask again, and ``judge`` is due."""
        self._changes.bump_rules()
        self._is_due.set()

    def close(self) -> None:
        """Write the statistics down, so that the next start need not count them again. Judging must have ended."""
        if self._statistics is not None:
            self._statistics.checkpoint()
        if self.alerts is not None:
            self.alerts.close()

    def _needs(self) -> Needs:
        conditions = [
            one
            for rule in self.book.rules()
            if not rule.scope.subject.is_hardware
            for one in iter_conditions(rule.expression)
        ]
        return needs_of(conditions) | Needs(SHOWN_METRICS)

    def _workloads(self, wanted: Sequence[WorkloadId]) -> Mapping[WorkloadId, Workload]:
        """Active ones are in memory; those that ended a moment ago are looked up."""
        found = {workload.id: workload for workload in self._records.active_workloads()}
        for name in wanted:
            if name not in found and not is_hardware(name) and (ended := self._records.workload(name)) is not None:
                found[name] = ended
        return found

    def _write(self, turned: Turned, workloads: Mapping[WorkloadId, Workload]) -> None:
        """Write what turned, then tell it. What the store did not take is written with what turns next, and told then."""
        owed = self._unwritten = Turned(
            started=[*self._unwritten.started, *turned.started], stopped=[*self._unwritten.stopped, *turned.stopped]
        )
        if owed:
            self._records.write_violations([*owed.started, *owed.stopped])
            self._unwritten = Turned()
        if self._teller is not None:
            self._teller.learn(self.book.rules())
            self._teller.tell(owed.stopped, owed.started, workloads)

    def _retell(self) -> None:
        """Violations are written first and told then: what was written before a crash may not have been told."""
        if self._teller is None:
            return
        recent = self._records.violations(start_ms=UnixMs(self._clock() - RETELL_MS))
        # What was found afterwards, in a past that was judged anew, is told to nobody.
        untold = self.rejudging.done_at()
        started = [each for each in recent if each.since >= untold.get(each.rule, 0)]
        stopped = [each for each in recent if each.until is not None and each.until > untold.get(each.rule, 0)]
        self._teller.learn(self.book.rules())
        self._teller.tell(stopped, started, self._workloads([each.workload for each in recent]))


def one_life_each(allocations: Iterable[Allocation]) -> list[Allocation]:
    """Two sources may tell of the same workload on the same unit, the later one with a later beginning: the first counts."""
    found: dict[tuple[WorkloadId, UnitId], Allocation] = {}
    for each in allocations:
        known = found.get((each.workload, each.unit))
        if known is None or each.from_at < known.from_at:
            found[each.workload, each.unit] = each
    return list(found.values())


def _says_the_same(before: Judged | None, after: Judged) -> bool:
    return (
        before is not None
        and before.book_version == after.book_version
        and before.workloads == after.workloads
        and before.units == after.units
        and np.array_equal(before.verdicts.states, after.verdicts.states)
    )
