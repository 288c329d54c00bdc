"""Tries a rule on the stored past before it is saved: finds the violations that it would have had.

Samples are counted once, in time order, by the same sketches as live samples, and the rule is judged at a limited number of
times: the cost grows with the number of samples, not with samples × times. Starts and ends are exact to one step.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.facts import ScopeFilter
from clusterscape.analyze.stats.contract import needs_of
from clusterscape.analyze.stats.sketch import RING_SAMPLES
from clusterscape.model import SampleBatch, Unit, UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.rules import Rule, Subject, Violation
from clusterscape.store.metrics.contract import MetricReader
from clusterscape.store.records.contract import RecordReader, WorkloadFilter
from clusterscape.watch.catching_up import LongWindows, read_batch
from clusterscape.watch.hardware_statistics import follow_hardware
from clusterscape.watch.judging import ViolationKeeper, add_values, gather_facts, judge
from clusterscape.watch.life_columns import Brackets, LifeLayout, LifeView
from clusterscape.watch.lives import Lives
from clusterscape.watch.period_statistics import PastSums, PeriodColumns, find_largest, longest_window
from clusterscape.watch.slots import ENDLESS, LifeKey

MOMENTS = 168
SHORTEST_STEP_MS = 60_000
LIVES_AT_ONCE = 512
SAMPLES_AT_ONCE = 4_000_000
EXPECTED_INTERVAL_MS = 15_000
MOST_WORKLOADS = 200_000
MOST_RING_SAMPLES = 8192

Progress = Callable[[float], None]
"""Called with the progress, 0–1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of a trial over [start, end): the violations, and the step between judgements."""

    rule: Rule
    start: UnixMs
    end: UnixMs
    step_ms: int
    lives: int
    judged: int  # lives that could be judged at least once
    violations: Sequence[Violation]

    def gpu_hours(self) -> float:
        """GPU-hours held while the rule was broken."""
        return (
            sum(((violation.until or self.end) - violation.since) * violation.gpus for violation in self.violations)
            / 3_600_000
        )


@dataclass(frozen=True, slots=True)
class _Past:
    workloads: Mapping[WorkloadId, Workload]
    units: Sequence[Unit]
    keys: Sequence[LifeKey]
    ends: Mapping[LifeKey, int]


def try_rule(
    rule: Rule,
    *,
    records: RecordReader,
    metrics: MetricReader,
    start_ms: UnixMs,
    end_ms: UnixMs,
    step_ms: int | None = None,
    progress: Progress = lambda _: None,
) -> Trial:
    """Run ``follow_trial`` to its end; ``progress`` may raise to stop it."""
    following = follow_trial(
        rule, records=records, metrics=metrics, start_ms=start_ms, end_ms=end_ms, step_ms=step_ms
    )  # fmt: skip
    while True:
        try:
            progress(next(following))
        except StopIteration as end:
            trial: Trial = end.value
            return trial


def follow_trial(
    rule: Rule,
    *,
    records: RecordReader,
    metrics: MetricReader,
    start_ms: UnixMs,
    end_ms: UnixMs,
    step_ms: int | None = None,
) -> Generator[float, None, Trial]:
    """Judge every life that overlaps [start, end), each from its start. Memory is bounded.

    ``step_ms``: time between judgements; None: chosen so that an interactive user need not wait long. Yields the progress, 0–1,
    about every second; closing the generator stops the trial.
    """
    step_ms = step_ms or max(SHORTEST_STEP_MS, -(-(end_ms - start_ms) // MOMENTS))
    yield 0.0
    if rule.scope.subject in (Subject.USERS, Subject.PROJECTS):
        return (yield from _follow_periods(rule, records, start_ms, end_ms, step_ms))
    if rule.scope.subject.is_lifeless:
        return (yield from _follow_hardware(rule, records, metrics, start_ms, end_ms, step_ms))
    past = _load(records, start_ms, end_ms)
    chunks = _in_scope(rule, past)
    violations: list[Violation] = []
    judged = done = 0
    total = sum(map(len, chunks))
    for chunk in chunks:
        replay = _Replay(rule, past, chunk, metrics)
        for share in replay.run(start_ms, end_ms, step_ms):
            yield (done + share * len(chunk)) / total
        violations += replay.violations()
        judged += replay.judged
        done += len(chunk)
    violations.sort(key=_sort_key)
    return Trial(
        rule=rule, start=start_ms, end=end_ms, step_ms=step_ms, lives=total, judged=judged, violations=tuple(violations)
    )


def _follow_periods(
    rule: Rule, records: RecordReader, start_ms: UnixMs, end_ms: UnixMs, step_ms: int
) -> Generator[float, None, Trial]:
    """Judge the users or projects at every step, by the jobs that had ended by then."""
    since = UnixMs(max(0, start_ms - longest_window([rule])))
    sums = PastSums(records.summary_columns(start_ms=since, end_ms=UnixMs(end_ms + 1)))
    size, keeper = find_largest(records.nodes()), ViolationKeeper()
    ended: list[Violation] = []
    subjects: set[WorkloadId] = set()
    moments = [*range(start_ms + step_ms, end_ms, step_ms), end_ms]
    for number, moment in enumerate(moments, 1):
        columns = PeriodColumns(rule.scope.subject, sums, [rule], UnixMs(moment), size)
        subjects.update(columns.workloads)
        judged = judge([rule], columns, columns.facts(), at=UnixMs(moment), gpus=columns.gpus)
        changes = add_values(keeper.judge(judged.judgement), judged)
        keeper.amend(changes.started)
        ended += changes.stopped
        yield number / len(moments)
    violations = sorted([*ended, *keeper.open.values()], key=_sort_key)
    return Trial(
        rule=rule,
        start=start_ms,
        end=end_ms,
        step_ms=step_ms,
        lives=len(subjects),
        judged=len(subjects),
        violations=tuple(violations),
    )


def _follow_hardware(
    rule: Rule, records: RecordReader, metrics: MetricReader, start_ms: UnixMs, end_ms: UnixMs, step_ms: int
) -> Generator[float, None, Trial]:
    following = follow_hardware(
        rule, records=records, metrics=metrics, start_ms=start_ms, end_ms=end_ms, step_ms=step_ms
    )  # fmt: skip
    total, judged, violations = yield from following
    violations.sort(key=_sort_key)
    return Trial(
        rule=rule, start=start_ms, end=end_ms, step_ms=step_ms, lives=total, judged=judged, violations=tuple(violations)
    )


def _sort_key(violation: Violation) -> tuple[UnixMs, WorkloadId, str]:
    return (violation.since, violation.workload, violation.unit or "")


def _load(records: RecordReader, start_ms: UnixMs, end_ms: UnixMs) -> _Past:
    page = records.workloads(WorkloadFilter(active_between=(start_ms, end_ms)), limit=MOST_WORKLOADS)
    workloads = {workload.id: workload for workload in page.workloads}
    spans = records.allocation_spans(start_ms=start_ms, end_ms=end_ms).with_columns(
        pl.col("to_at").fill_null(ENDLESS), pl.col("workload").cast(pl.String)
    )
    ends: dict[LifeKey, int] = {}
    latest: dict[tuple[str, str], LifeKey] = {}
    for workload, unit, from_at, to_at in (
        spans.select("workload", "unit", "from_at", "to_at").sort("from_at").iter_rows()
    ):
        record = workloads.get(workload)
        stop = max(from_at, to_at if record is None or record.ended_at is None else min(to_at, record.ended_at))
        before = latest.get((workload, unit))
        if before is not None and ends[before] > from_at:
            ends[before] = max(ends[before], stop)  # two sources reported the same life
            continue
        key = latest[workload, unit] = (WorkloadId(workload), UnitId(unit), UnixMs(from_at))
        ends[key] = stop
    return _Past(workloads, records.units(), list(ends), ends)


def _in_scope(rule: Rule, past: _Past) -> list[list[LifeKey]]:
    """The lives in the scope of the rule, in chunks that fit into memory; lives of one workload stay together."""
    lives = Lives()
    _restore(lives, past, past.keys)
    layout = LifeLayout(lives)
    view = LifeView(lives, layout, UnixMs(0), expect={}, long_window=None)
    facts = gather_facts(view, past.workloads, past.units)
    in_scope = ScopeFilter(facts).rows(rule.scope)
    names = view.workloads
    by_workload: dict[WorkloadId, list[LifeKey]] = {}
    for row, code in enumerate(view.workload.tolist()):
        if in_scope is None or in_scope[row]:
            by_workload.setdefault(names[code], []).append(past.keys[row])
    chunks: list[list[LifeKey]] = []
    for keys in by_workload.values():
        if not chunks or len(chunks[-1]) >= LIVES_AT_ONCE:
            chunks.append([])
        chunks[-1] += keys
    return chunks


def _restore(lives: Lives, past: _Past, keys: Sequence[LifeKey]) -> None:
    lives.follow_units(past.units)
    ends = np.array([past.ends[key] for key in keys], np.int64)
    lives.slots.restore(range(len(keys)), keys, ends, np.ones(len(keys), np.int64))
    lives.layout_version += 1


class _Replay:
    """Judges one chunk of lives, from the first start to the end."""

    def __init__(self, rule: Rule, past: _Past, keys: Sequence[LifeKey], metrics: MetricReader) -> None:
        self._rule = rule
        self._past = past
        self._metrics = metrics
        conditions = list(iter_conditions(rule.expression))
        needs = needs_of(conditions)
        window_ms = max((condition.window_ms or 0 for condition in conditions), default=0)
        # Keep the whole longest window in memory, if it is not too long: else it would be read again at every judgement.
        ring_samples = window_ms * 5 // 4 // EXPECTED_INTERVAL_MS
        self._lives = Lives(ring_samples=min(MOST_RING_SAMPLES, max(RING_SAMPLES, ring_samples)))
        _restore(self._lives, past, keys)
        self._lives.require(needs)
        for tracked in self._lives.all_sketches():
            tracked.is_pending[:] = False  # nothing was missed: all samples follow
        self._lives.promote()
        self._layout = LifeLayout(self._lives)
        self._long_windows = LongWindows(metrics)
        self._brackets: Brackets = {}
        self._names = sorted(needs.metrics)
        self._units = sorted({key[1] for key in keys})
        self._keeper = ViolationKeeper()
        self._ended: list[Violation] = []
        self._was_judged = np.zeros(len(keys), np.bool_)

    @property
    def judged(self) -> int:
        """Number of lives that could be judged at least once."""
        return int(self._was_judged.sum())

    def run(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[float]:
        """Count samples and judge step by step; yields the progress, 0–1."""
        first_ms = int(self._layout.from_at.min())
        cursor = first_ms
        for slice_end in self._slices(first_ms, start_ms, end_ms, step_ms):
            batch = _sort_by_time(read_batch(self._metrics, self._names, self._units, cursor, slice_end))
            used = 0
            moment = max(start_ms, cursor - (cursor - start_ms) % step_ms) + step_ms
            while moment <= slice_end:
                until = int(np.searchsorted(batch.time_ms, moment))
                self._lives.add(_cut(batch, used, until))
                used = until
                self._judge(UnixMs(moment))
                yield (moment - first_ms) / max(1, end_ms - first_ms)
                moment += step_ms
            self._lives.add(_cut(batch, used, len(batch)))
            cursor = slice_end
            if cursor == end_ms and (end_ms - start_ms) % step_ms:
                self._judge(UnixMs(end_ms))
            yield (cursor - first_ms) / max(1, end_ms - first_ms)

    def _slices(self, first_ms: int, start_ms: int, end_ms: int, step_ms: int) -> Iterator[int]:
        """Ends of the time slices that are read at once: whole steps from the start."""
        series = max(1, len(self._units) * len(self._names))
        longest_ms = max(step_ms, SAMPLES_AT_ONCE // series * EXPECTED_INTERVAL_MS // step_ms * step_ms)
        cursor = first_ms
        while cursor < start_ms:
            cursor = min(cursor + longest_ms, start_ms)
            yield cursor
        cursor = max(cursor, start_ms) - (max(cursor, start_ms) - start_ms) % step_ms
        while cursor < end_ms:
            cursor = min(cursor + longest_ms, end_ms)
            yield cursor

    def _judge(self, at: UnixMs) -> None:
        layout = copy(self._layout)
        layout.end_ms = np.where(layout.end_ms > at, ENDLESS, layout.end_ms)
        view = LifeView(self._lives, layout, at, expect={}, brackets=self._brackets, long_window=self._long_windows)
        facts = gather_facts(view, self._past.workloads, self._past.units)
        judged = judge([self._rule], view, facts, at=at)
        self._was_judged |= np.asarray(judged.verdicts.states[0] % 2 == 0)  # TRUE or FALSE
        changes = add_values(self._keeper.judge(judged.judgement), judged)
        self._ended += changes.stopped
        self._keeper.amend(changes.started)

    def violations(self) -> list[Violation]:
        """All violations; open ones have no end."""
        return [*self._ended, *self._keeper.open.values()]


def _sort_by_time(batch: SampleBatch) -> SampleBatch:
    order = np.argsort(batch.time_ms, kind="stable")
    return SampleBatch(
        batch.units,
        batch.metrics,
        batch.unit[order],
        batch.metric[order],
        batch.time_ms[order],
        batch.value[order],
    )


def _cut(batch: SampleBatch, start: int, stop: int) -> SampleBatch:
    piece = slice(start, stop)
    return SampleBatch(
        batch.units, batch.metrics, batch.unit[piece], batch.metric[piece], batch.time_ms[piece], batch.value[piece]
    )
