"""Reads latest values, series and statistics from a consistent view of files and blocks.

Combines raw samples and coarse values. A view is immutable while the store continues to change.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.errors import StoreError
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.model.durations import DAY_MS
from clusterscape.store.metrics.contract import SeriesStatistic
from clusterscape.store.metrics.embedded.blocks import EMPTY, Block, Keys, Merge, merge_blocks, select, take_rows
from clusterscape.store.metrics.embedded.coarse import aggregates_of, coarse_columns
from clusterscape.store.metrics.embedded.recent import Ring
from clusterscape.store.metrics.embedded.segments import UNREADABLE, ColumnCache, Segment, UnitNames
from clusterscape.store.metrics.kernels import (
    Aggregates,
    aggregate_aggregates,
    compute_coarse_statistics,
    compute_statistics,
    group_steps,
    is_counter,
)

Range = tuple[int, int]


@contextmanager
def damage_of(segment: Segment) -> Iterator[None]:
    """Convert read errors to DamagedSegmentError if the file is damaged, else to StoreError."""
    try:
        yield
    except UNREADABLE as error:
        segment.check()
        raise StoreError(f"cannot read {segment.path}: {error}", hint="See the server's log.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A consistent set of files and blocks."""

    units: UnitNames
    raw: tuple[Segment, ...]
    coarse: tuple[Segment, ...]
    ring: Ring
    compacted_seq: int
    raw_from_ms: int  # before this time only coarse values exist
    coarse_days: Mapping[int, int]  # day → last write included in its coarse values
    kept: ColumnCache

    def read_short(self, metrics: Sequence[str], start_ms: int, end_ms: int) -> list[Block]:
        """As ``read_raw`` of all units for a short time; columns are cached, because neighboring times are likely to follow."""
        parts = []
        for segment in self.raw:
            if segment.overlaps(start_ms, end_ms):
                with damage_of(segment):
                    block = segment.read_short(metrics, self.kept, start_ms=start_ms, end_ms=end_ms)
                parts.append((segment.entry.seq, block))
        return self._with_recent(parts, metrics, start_ms, end_ms, None)

    def read_raw(self, metrics: Sequence[str], start_ms: int, end_ms: int, only: Sequence[str] | None) -> list[Block]:
        """Raw samples in [start, end) as blocks in the order they were written."""
        parts = [
            (segment.entry.seq, read_segment(segment, metrics, start_ms, end_ms, only))
            for segment in self.raw
            if segment.overlaps(start_ms, end_ms)
        ]
        return self._with_recent(parts, metrics, start_ms, end_ms, only)

    def _with_recent(
        self,
        parts: list[tuple[int, Block]],
        metrics: Sequence[str],
        start_ms: int,
        end_ms: int,
        only: Sequence[str] | None,
    ) -> list[Block]:
        """``parts`` (number of the write, block) and blocks that are not compacted, in the order of writes."""
        wanted = None
        if only is not None:
            wanted = np.zeros(len(self.units), np.bool_)
            wanted[self.units.find(only)] = True
        parts = parts + [
            (recent.seq, select(recent.block, metrics, start_ms=start_ms, end_ms=end_ms, wanted=wanted))
            for recent in self.ring.waiting(self.compacted_seq)
            if recent.overlaps(start_ms, end_ms)
        ]
        return [block for _, block in sorted(parts, key=lambda part: part[0]) if len(block)]

    def read_coarse(
        self, metrics: Sequence[str], start_ms: int, end_ms: int, only: Sequence[str] | None
    ) -> list[Block]:
        """Coarse values of steps that start in [start, end)."""
        columns = [column for metric in metrics for column in coarse_columns(metric)]
        blocks = [
            read_segment(segment, columns, start_ms, end_ms, only)
            for segment in sorted(self.coarse, key=lambda segment: segment.entry.seq)
            if segment.overlaps(start_ms, end_ms)
        ]
        return [block for block in blocks if len(block)]

    def find_sources(self, start_ms: int, end_ms: int, step_ms: int | None) -> tuple[list[Range], list[Range]]:
        """Which parts of [start, end) are read from raw samples and which from coarse values.

        Coarse values are used where raw samples were dropped (late samples may exist until they are included), and where the
        step is a multiple of theirs and they are up to date: the result is the same and less is read.
        """
        raw, coarse = [], []
        if start_ms < self.raw_from_ms:
            coarse.append((start_ms, min(end_ms, self.raw_from_ms)))
            raw.append(coarse[0])
            start_ms = min(end_ms, self.raw_from_ms)
        for day, fine_ms in self._current_days(start_ms, end_ms, step_ms) if step_ms else ():
            from_ms = -(-max(day * DAY_MS, start_ms) // fine_ms) * fine_ms
            to_ms = min((day + 1) * DAY_MS, end_ms) // fine_ms * fine_ms
            if from_ms < to_ms:
                raw.append((start_ms, from_ms))
                coarse.append((from_ms, to_ms))
                start_ms = to_ms
        raw.append((start_ms, end_ms))
        return [part for part in raw if part[0] < part[1]], coarse

    def _current_days(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[tuple[int, int]]:
        """The days whose coarse values include every sample and fit the step, and the step of those values."""
        waiting = self.ring.waiting(self.compacted_seq)
        for day, seq in sorted(self.coarse_days.items()):
            begin_ms, stop_ms = day * DAY_MS, (day + 1) * DAY_MS
            if stop_ms <= start_ms or begin_ms >= end_ms or any(block.overlaps(begin_ms, stop_ms) for block in waiting):
                continue
            steps = {segment.entry.step_ms for segment in self.coarse if segment.overlaps(begin_ms, stop_ms)}
            is_current = all(segment.entry.seq <= seq for segment in self.raw if segment.overlaps(begin_ms, stop_ms))
            if is_current and len(steps) == 1 and step_ms % min(steps) == 0:
                yield day, min(steps)

    def rank(self, only: Sequence[str] | None) -> Int64s:
        """The order of units in a result: alphabetical among ``only``, arbitrary for all units."""
        size = len(self.units)
        if only is None:
            return np.arange(size)
        rank = np.zeros(size, np.int64)
        codes = self.units.find(only)
        rank[codes] = np.arange(len(codes))
        return rank


def read_segment(
    segment: Segment, metrics: Sequence[str], start_ms: int, end_ms: int, only: Sequence[str] | None = None
) -> Block:
    """As ``segment.read``; raises DamagedSegmentError if the file is damaged."""
    with damage_of(segment):
        return segment.read(metrics, start_ms=start_ms, end_ms=end_ms, only=only)


def read_latest(view: View, metrics: Sequence[str], at_ms: int, lookback_ms: int) -> pl.DataFrame:
    """See ``MetricStore.latest``. O(units × metrics) while the ring buffer covers the time; otherwise segments are decoded."""
    metrics = list(dict.fromkeys(metrics))
    start_ms, end_ms = at_ms - lookback_ms, at_ms + 1
    if start_ms >= view.ring.complete_from_ms:
        blocks = [
            select(recent.block, metrics, start_ms=start_ms, end_ms=end_ms)
            for recent in view.ring.blocks
            if recent.overlaps(start_ms, end_ms)
        ]
    else:
        blocks = view.read_short(metrics, start_ms, end_ms)
        # A coarse value represents its whole step.
        step_ms = max((segment.entry.step_ms for segment in view.coarse), default=1)
        coarse_end_ms = min(end_ms, view.raw_from_ms)
        blocks += map(_as_samples, view.read_coarse(metrics, start_ms - step_ms + 1, coarse_end_ms, None))
    value = np.full((len(metrics), len(view.units)), np.nan)
    for block in _newest_first(blocks, view):
        _fill(value, block, metrics)
    codes = np.flatnonzero(~np.isnan(value).all(axis=0)) if metrics else np.empty(0, np.int64)
    columns = [pl.Series(name, value[i, codes], nan_to_null=True) for i, name in enumerate(metrics)]
    return pl.DataFrame([view.units.decode_series(codes), *columns])


def _as_samples(coarse: Block) -> Block:
    columns = {}
    for column, value in coarse.columns.items():
        metric, _, aggregate = column.rpartition("#")
        if aggregate == ("last" if is_counter(metric) else "mean"):
            columns[metric] = value
    return Block(coarse.keys, columns)


def _newest_first(blocks: Sequence[Block], view: View) -> Iterator[Block]:
    """The blocks from newest to oldest; those that overlap in time are merged."""
    left = [(int(b.keys.time_ms.max()), int(b.keys.time_ms.min()), i, b) for i, b in enumerate(blocks) if len(b)]
    left.sort(key=lambda item: item[:3])
    while left:
        _, start_ms, index, block = left.pop()
        group = [(index, block)]
        while left and left[-1][0] >= start_ms:
            _, also_ms, index, block = left.pop()
            group.append((index, block))
            start_ms = min(start_ms, also_ms)
        group.sort(key=lambda item: item[0])
        yield group[0][1] if len(group) == 1 else merge_blocks([b for _, b in group], view.rank(None))


def _fill(value: Float64s, block: Block, metrics: Sequence[str]) -> None:
    """Put each unit's last values of ``block`` where ``value`` (metrics × units) has none yet."""
    units, offsets = block.keys.units, block.keys.offsets
    is_open = np.isnan(value[:, units]).any(axis=0)
    if not is_open.any():
        return
    for i, metric in enumerate(metrics):
        column = block.columns.get(metric)
        if column is None:
            continue
        if len(column) > len(units):
            row = np.where(np.isnan(column), -1, np.arange(len(column)))
            last = np.maximum.reduceat(row, offsets[:-1])
            column = np.where(last >= 0, column[last], np.nan)
        value[i, units] = np.where(np.isnan(value[i, units]), column, value[i, units])


def _aggregated(
    view: View,
    metrics: Sequence[str],
    start_ms: int,
    end_ms: int,
    only: Sequence[str] | None,
    step_ms: int | None = None,
) -> tuple[Keys, dict[str, Aggregates]]:
    """Coarse values and raw samples (as steps of one sample each) together."""
    raw_ranges, coarse_ranges = view.find_sources(start_ms, end_ms, step_ms)
    coarse_blocks = [block for part in coarse_ranges for block in view.read_coarse(metrics, *part, only)]
    raw_blocks = [block for part in raw_ranges for block in view.read_raw(metrics, *part, only)]
    coarse, raw = merge_blocks(coarse_blocks, view.rank(only)), merge_blocks(raw_blocks, view.rank(only))
    if not len(coarse):
        return raw.keys, {metric: _single(raw, metric) for metric in metrics}
    if not len(raw):
        return coarse.keys, {metric: aggregates_of(coarse.columns, metric, len(coarse)) for metric in metrics}
    merge = Merge([coarse.keys, raw.keys], view.rank(only))
    joined = {}
    for metric in metrics:
        old, new = aggregates_of(coarse.columns, metric, len(coarse)), _single(raw, metric)
        mean, low, high, last, count = (
            merge.column(pair)
            for pair in (
                (old.mean, new.mean),
                (old.min, new.min),
                (old.max, new.max),
                (old.last, new.last),
                (old.count, new.count),
            )
        )
        joined[metric] = Aggregates(mean, low, high, last, np.nan_to_num(count))
    return merge.keys, joined


def _single(raw: Block, metric: str) -> Aggregates:
    value = raw.columns.get(metric)
    if value is None:
        value = np.full(len(raw), np.nan)
    return Aggregates(value, value, value, value, (~np.isnan(value)).astype(np.float64))


def read_series(
    view: View, metrics: Sequence[str], units: Sequence[str] | None, start_ms: int, end_ms: int, step_ms: int | None
) -> pl.DataFrame:
    """See ``MetricStore.series``. O(samples of the row groups that hold these units) for each segment in the range.

    Without ``units``, all units in no order.
    """
    metrics, only = sorted(set(metrics)), None if units is None else sorted(set(units))
    keys, aggregates = _aggregated(view, metrics, start_ms, end_ms, only, step_ms)
    frames = []
    for metric, fine in aggregates.items():
        rows, values = keys, fine
        if step_ms is not None:
            steps = group_steps(keys.time_ms, keys.offsets, step_ms)
            rows = Keys(keys.units, steps.offsets, steps.time_ms)
            values = aggregate_aggregates(fine, steps)
        frames.append(_series_frame(view.units, metric, rows, values, has_range=step_ms is not None))
    return (
        pl.concat(frames)
        if frames
        else _series_frame(view.units, "", EMPTY.keys, _single(EMPTY, ""), has_range=step_ms is not None)
    )


def _series_frame(units: UnitNames, metric: str, keys: Keys, values: Aggregates, *, has_range: bool) -> pl.DataFrame:
    there = np.flatnonzero(values.count > 0)
    level = values.last if is_counter(metric) else values.mean
    unit = np.repeat(keys.units, keys.lengths)[there]
    columns = [
        pl.Series("metric", [metric], dtype=pl.String).new_from_index(0, len(there)),
        units.decode_series(unit),
        pl.Series("time_ms", keys.time_ms[there]),
        pl.Series("value", level[there]),
    ]
    if has_range:
        columns += [pl.Series("min", values.min[there]), pl.Series("max", values.max[there])]
    return pl.DataFrame(columns)


def read_statistics(
    view: View,
    metric: str,
    statistics: Sequence[SeriesStatistic],
    start_ms: int,
    end_ms: int,
    units: Sequence[str] | None,
) -> pl.DataFrame:
    """See ``MetricStore.statistics``. O(samples of the metric in the segments of the range), one column decoded."""
    only = None if units is None else sorted(set(units))
    statistics = list(dict.fromkeys(statistics))
    if start_ms < view.raw_from_ms:
        keys, aggregates = _aggregated(view, [metric], start_ms, end_ms, only)
        fine = aggregates[metric]
        keys, there = _without_holes(keys, fine.count > 0)
        fine = Aggregates(fine.mean[there], fine.min[there], fine.max[there], fine.last[there], fine.count[there])
        result = compute_coarse_statistics(fine, keys.offsets, statistics, of_counter=is_counter(metric))
    else:
        block = merge_blocks(view.read_raw([metric], start_ms, end_ms, only), view.rank(only))
        value = block.columns.get(metric, np.empty(0))
        keys, there = _without_holes(block.keys, ~np.isnan(value))
        result = compute_statistics(value[there], keys.offsets, statistics)
    columns = [pl.Series(str(statistic), values) for statistic, values in result.items()]
    return pl.DataFrame([view.units.decode_series(keys.units), *columns])


def _without_holes(keys: Keys, is_there: Bools) -> tuple[Keys, Bools | slice]:
    """The keys of the rows with a value, and the index of those rows."""
    if is_there.all():
        return keys, slice(None)
    block = take_rows(Block(keys, {}), is_there)
    return block.keys, is_there
