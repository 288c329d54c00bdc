"""What a rule would have done: judges the stored past as if the rule had been there, before anybody saves it.

Samples are counted once, in time order, by the same sketches as live ones, and the rule is judged at a limited number of
moments: cost grows with the samples read, not with samples × moments. Begins and ends are exact to one step.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.facts import ScopeFilter
from clusterscape.analyze.stats.needs import needs_of
from clusterscape.analyze.stats.sketch import RING_SAMPLES
from clusterscape.model import SampleBatch, Unit, UnitId, UnixMs, Workload, WorkloadId
from clusterscape.model.rules import Rule, Violation
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore, WorkloadFilter
from clusterscape.watch.catching_up import read_batch
from clusterscape.watch.hardware_trial import follow_hardware
from clusterscape.watch.judging import add_values, gather_facts, judge
from clusterscape.watch.keeper import ViolationKeeper
from clusterscape.watch.life_columns import Brackets, Layout, LifeView
from clusterscape.watch.lives import Lives
from clusterscape.watch.long_windows import LongWindows
from clusterscape.watch.slots import ENDLESS, LifeKey

MOMENTS = 168
SHORTEST_STEP_MS = 60_000
LIVES_AT_ONCE = 512
SAMPLES_AT_ONCE = 4_000_000
EXPECTED_INTERVAL_MS = 15_000
MOST_WORKLOADS = 200_000
MOST_RING_SAMPLES = 8192

Progress = Callable[[float], None]
"""Told the share that is done, 0–1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a rule would have done in [start, end): its violations, and how closely they were looked at."""

    rule: Rule
    start: UnixMs
    end: UnixMs
    step_ms: int
    lives: int
    judged: int  # lives that could be judged at least once
    violations: Sequence[Violation]

    def gpu_hours(self) -> float:
        """Held while the rule was broken."""
        return sum(((each.until or self.end) - each.since) * each.gpus for each in self.violations) / 3_600_000


@dataclass(frozen=True, slots=True)
class _Past:
    workloads: Mapping[WorkloadId, Workload]
    units: Sequence[Unit]
    keys: Sequence[LifeKey]
    ends: Mapping[LifeKey, int]


def try_rule(
    rule: Rule,
    *,
    records: RecordStore,
    metrics: MetricStore,
    start_ms: UnixMs,
    end_ms: UnixMs,
    step_ms: int | None = None,
    progress: Progress = lambda _: None,
) -> Trial:
    """``follow_trial`` to its end; ``progress`` may raise to stop it."""
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
    records: RecordStore,
    metrics: MetricStore,
    start_ms: UnixMs,
    end_ms: UnixMs,
    step_ms: int | None = None,
) -> Generator[float, None, Trial]:
    """Judge every life that overlaps [start, end), each from its own beginning. Memory is bounded, whatever the past.

    ``step_ms``: how far apart the judged moments are; None: as far as a reader who waits can bear. Yields the share that is
    done, 0–1, every second or so; whoever does not go on has stopped it.
    """
    step_ms = step_ms or max(SHORTEST_STEP_MS, -(-(end_ms - start_ms) // MOMENTS))
    yield 0.0
    if rule.scope.subject.is_hardware:
        return (yield from _follow_hardware(rule, records, metrics, start_ms, end_ms, step_ms))
    past = _load(records, start_ms, end_ms)
    chunks = _in_scope(rule, past)
    found: list[Violation] = []
    judged = done = 0
    total = sum(map(len, chunks))
    for chunk in chunks:
        replay = _Replay(rule, past, chunk, metrics)
        for share in replay.run(start_ms, end_ms, step_ms):
            yield (done + share * len(chunk)) / total
        found += replay.violations()
        judged += replay.judged
        done += len(chunk)
    found.sort(key=lambda each: (each.since, each.workload, each.unit or ""))
    return Trial(
        rule=rule, start=start_ms, end=end_ms, step_ms=step_ms, lives=total, judged=judged, violations=tuple(found)
    )


def _follow_hardware(
    rule: Rule, records: RecordStore, metrics: MetricStore, start_ms: UnixMs, end_ms: UnixMs, step_ms: int
) -> Generator[float, None, Trial]:
    following = follow_hardware(
        rule, records=records, metrics=metrics, start_ms=start_ms, end_ms=end_ms, step_ms=step_ms
    )  # fmt: skip
    total, judged, found = yield from following
    found.sort(key=lambda each: (each.since, each.workload, each.unit or ""))
    return Trial(
        rule=rule, start=start_ms, end=end_ms, step_ms=step_ms, lives=total, judged=judged, violations=tuple(found)
    )


def _load(records: RecordStore, start_ms: UnixMs, end_ms: UnixMs) -> _Past:
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
        known = workloads.get(workload)
        stop = max(from_at, to_at if known is None or known.ended_at is None else min(to_at, known.ended_at))
        before = latest.get((workload, unit))
        if before is not None and ends[before] > from_at:
            ends[before] = max(ends[before], stop)  # two sources told of the same life
            continue
        key = latest[workload, unit] = (WorkloadId(workload), UnitId(unit), UnixMs(from_at))
        ends[key] = stop
    return _Past(workloads, records.units(), list(ends), ends)


def _in_scope(rule: Rule, past: _Past) -> list[list[LifeKey]]:
    """The lives that the rule judges, those of one workload together, in chunks that fit into memory."""
    lives = Lives()
    _restore(lives, past, past.keys)
    layout = Layout(lives)
    view = LifeView(lives, layout, UnixMs(0), expect={}, long_window=None)
    facts = gather_facts(view, past.workloads, past.units)
    inside = ScopeFilter(facts).rows(rule.scope)
    names = view.workloads
    by_workload: dict[WorkloadId, list[LifeKey]] = {}
    for row, code in enumerate(view.workload.tolist()):
        if inside is None or inside[row]:
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
    """One chunk of lives, from the first beginning to the end."""

    def __init__(self, rule: Rule, past: _Past, keys: Sequence[LifeKey], metrics: MetricStore) -> None:
        self._rule = rule
        self._past = past
        self._metrics = metrics
        conditions = list(iter_conditions(rule.expression))
        needs = needs_of(conditions)
        window_ms = max((each.window_ms or 0 for each in conditions), default=0)
        # All of the longest window in memory, if it is not too long: it would be read anew at every moment.
        wanted = window_ms * 5 // 4 // EXPECTED_INTERVAL_MS
        self._lives = Lives(ring_samples=min(MOST_RING_SAMPLES, max(RING_SAMPLES, wanted)))
        _restore(self._lives, past, keys)
        self._lives.require(needs)
        for kept in self._lives.all_kept():
            kept.is_pending[:] = False  # nothing was missed: all is still to come
        self._lives.promote()
        self._layout = Layout(self._lives)
        self._long_windows = LongWindows(metrics)
        self._brackets: Brackets = {}
        self._names = sorted(needs.metrics)
        self._units = sorted({key[1] for key in keys})
        self._keeper = ViolationKeeper()
        self._ended: list[Violation] = []
        self._was_judged = np.zeros(len(keys), np.bool_)

    @property
    def judged(self) -> int:
        """Lives that could be judged at least once."""
        return int(self._was_judged.sum())

    def run(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[float]:
        """Count samples and judge step by step; yields the share done."""
        first_ms = int(self._layout.from_at.min())
        cursor = first_ms
        for slice_end in self._slices(first_ms, start_ms, end_ms, step_ms):
            batch = _by_time(read_batch(self._metrics, self._names, self._units, cursor, slice_end))
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
        """Ends of the slices of time that are read at once: whole steps from the start on."""
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
        turned = add_values(self._keeper.judge(judged.judgement), judged)
        self._ended += turned.stopped
        self._keeper.amend(turned.started)

    def violations(self) -> list[Violation]:
        """All of them; those still going on have no end."""
        return [*self._ended, *self._keeper.open.values()]


def _by_time(batch: SampleBatch) -> SampleBatch:
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
