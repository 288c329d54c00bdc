"""A snapshot of the statistics of all lives as columns, which rules are judged by.

Implements ``LifeColumns``. Each column is computed once; percentiles that were requested last time are computed in one pass.
Windows are exact from the samples in memory; longer windows are read by ``catching_up``.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.stats.exact import SIDE_KINDS, rank_of
from clusterscape.model import Names, UnitId, UnixMs, WorkloadId
from clusterscape.model.arrays import Bools, Float64s, Int32s, Int64s
from clusterscape.model.rules import Statistic, StatisticKind
from clusterscape.model.statistics import STATISTICS
from clusterscape.watch.lives import Lives, TrackedSketch
from clusterscape.watch.slots import ENDLESS

LongWindow = Callable[["LifeView", str, Statistic, int, Int64s], Float64s]
"""(view, metric, statistic, window in ms, indices of rows in the view) → values of those rows."""

Percentiles = dict[tuple[str, int | None], set[float]]
"""Requested percentiles, by metric and window."""

Brackets = dict[tuple[str, int], Float64s]
"""Last values of the percentiles of a window, as hints for the next computation, by metric and window."""


class LifeLayout:
    """The life of each row and the limits of its unit; the same object as long as neither changes."""

    def __init__(self, lives: Lives) -> None:
        slots = lives.slots
        self.version = lives.layout_version
        self.rows: Int64s = slots.used_rows()
        self.generation: Int64s = slots.generation[self.rows]
        self.from_at: Int64s = slots.from_at[self.rows]
        self.end_ms: Int64s = slots.until_at[self.rows]
        self.units = slots.units.values
        self.unit: Int32s = slots.unit[self.rows]
        self.limits: dict[str, Float64s] = {}  # by metric, computed on first use
        workloads, codes = Names(), np.zeros(slots.row_count, np.int32)
        for (workload, _, _), row in slots.keys.items():
            codes[row] = workloads.code(workload)
        self.workloads = workloads.values
        self.workload: Int32s = codes[self.rows]


class LifeView:
    """``LifeColumns`` at one time."""

    def __init__(
        self,
        lives: Lives,
        layout: LifeLayout,
        at_ms: UnixMs,
        *,
        expect: Percentiles,
        brackets: Brackets | None = None,
        long_window: LongWindow | None,
    ) -> None:
        self.lives = lives
        self.layout = layout
        self.at_ms = at_ms
        self.version = lives.version
        self.requested: Percentiles = defaultdict(set)
        self._expect = expect
        self._brackets: Brackets = {} if brackets is None else brackets
        self._long_window = long_window
        self._columns: dict[tuple[str, Statistic, int | None], Float64s] = {}
        self._percentiles: dict[tuple[str, int | None, float], Float64s] = {}
        self._counts: dict[tuple[str, int], tuple[Int64s, Bools]] = {}
        self._summaries: dict[tuple[str, int], dict[StatisticKind, Float64s]] = {}

    @property
    def row_count(self) -> int:
        """Number of lives."""
        return len(self.layout.rows)

    @cached_property
    def workloads(self) -> Sequence[WorkloadId]:
        """The workloads that ``workload`` indexes."""
        return [WorkloadId(name) for name in self.layout.workloads]

    @cached_property
    def units(self) -> Sequence[UnitId]:
        """The units that ``unit`` indexes."""
        return [UnitId(name) for name in self.layout.units]

    @property
    def workload(self) -> Int32s:
        """Per row, an index into ``workloads``."""
        return self.layout.workload

    @property
    def unit(self) -> Int32s:
        """Per row, an index into ``units``."""
        return self.layout.unit

    @property
    def from_at(self) -> Int64s:
        """When each life started."""
        return self.layout.from_at

    @cached_property
    def until_at(self) -> Int64s:
        """When each life ended, or now if it is open."""
        return np.where(self.is_open, np.maximum(self.at_ms, self.from_at), self.layout.end_ms)

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Whether each life is open."""
        is_open: Bools = self.layout.end_ms == ENDLESS
        return is_open

    @cached_property
    def is_complete(self) -> NDArray[np.bool_]:
        """Whether all past samples of each life have been read from the store."""
        with self.lives.lock:
            complete = self._is_same()
            for tracked in self.lives.serving.values():
                complete &= ~tracked.is_pending[self.layout.rows]
            return complete

    def limits(self, metric: str) -> Float64s:
        """See ``StatisticColumns``."""
        limits = self.layout.limits
        if metric not in limits:
            with self.lives.lock:
                limits[metric] = self.lives.limits(metric, self.layout.rows)
        return limits[metric]

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        """See ``StatisticColumns``. A lower bound for windows that are longer than the samples in memory."""
        with self.lives.lock:
            tracked = self.lives.serving.get(metric)
            if tracked is None:
                return np.zeros(self.row_count, np.int64)
            if window_ms is None:
                return np.where(self._is_same(), tracked.sketch.samples(self.layout.rows), 0)
            counts, are_all = self._count(tracked, window_ms)
            if not are_all.all():
                life = tracked.sketch.samples(self.layout.rows)
                counts = np.where(self._is_older(window_ms) | are_all, counts, life)
            return np.where(self._is_same(), counts, 0)

    def column(self, metric: str, statistic: Statistic, *, window_ms: int | None = None) -> Float64s:
        """See ``StatisticColumns``."""
        key = (metric, statistic, window_ms)
        derive = STATISTICS[statistic.kind].derive
        if derive is not None:
            return derive(lambda kind: self.column(metric, Statistic(kind), window_ms=window_ms))
        if key not in self._columns:
            with self.lives.lock:
                tracked = self.lives.serving.get(metric)
                if tracked is None:
                    self._columns[key] = np.full(self.row_count, np.nan)
                elif window_ms is None:
                    self._columns[key] = self._find_life(tracked, statistic)
                else:
                    self._columns[key] = self._find_window(tracked, statistic, window_ms)
            if window_ms is not None and tracked is not None:
                self._columns[key] = self._read_long_windows(tracked, statistic, window_ms)
        return self._columns[key]

    def _is_same(self) -> Bools:
        """Rows that still belong to the lives of this view."""
        is_same: Bools = self.lives.slots.generation[self.layout.rows] == self.layout.generation
        return is_same

    def _of_same(self, column: Float64s) -> Float64s:
        """The column with NaN in rows that now belong to other lives."""
        return column if self.lives.layout_version == self.layout.version else np.where(self._is_same(), column, np.nan)

    def _is_older(self, window_ms: int) -> Bools:
        """Lives that started before the window."""
        is_older: Bools = self.from_at <= self.until_at - window_ms
        return is_older

    def _find_life(self, tracked: TrackedSketch, statistic: Statistic) -> Float64s:
        rows = self.layout.rows
        if statistic.kind is StatisticKind.PERCENTILE:
            column = self._share_pass(tracked, statistic, None, lambda ranks: tracked.sketch.percentiles(rows, ranks))
        else:
            column = tracked.sketch.column(rows, statistic)
        return self._of_same(column)

    def _share_pass(
        self,
        tracked: TrackedSketch,
        statistic: Statistic,
        window_ms: int | None,
        find: Callable[[Sequence[float]], Float64s],
    ) -> Float64s:
        """A percentile; computes in the same pass those that were requested last time."""
        key = (tracked.sketch.metric, window_ms)
        rank_of(statistic)  # raises for invalid percentiles before they are recorded
        percentile = statistic.percentile or 0.0
        self.requested[key].add(percentile)
        if (*key, percentile) not in self._percentiles:
            percentiles = sorted(self._expect.pop(key, set()) | {percentile})
            ranks = [number / 100.0 for number in percentiles]
            self._percentiles |= {
                (*key, number): values for number, values in zip(percentiles, find(ranks), strict=True)
            }
        return self._percentiles[*key, percentile]

    def _count(self, tracked: TrackedSketch, window_ms: int) -> tuple[Int64s, Bools]:
        """The number of samples in memory that are in the window, and the rows for which these are all samples."""
        key = (tracked.sketch.metric, window_ms)
        if key not in self._counts:
            self._counts[key] = tracked.sketch.count_recent(self.layout.rows, self.until_at - window_ms)
        return self._counts[key]

    def _find_window(self, tracked: TrackedSketch, statistic: Statistic, window_ms: int) -> Float64s:
        """From the samples in memory if they cover the window, from the life if it is within the window; else NaN."""
        counts, are_all = self._count(tracked, window_ms)
        if are_all.all():
            column = self._read_rings(tracked, statistic, window_ms, counts)
        else:
            column = self._read_rings(tracked, statistic, window_ms, np.where(are_all, counts, 0))
            young = np.flatnonzero(~are_all & ~self._is_older(window_ms))
            column = column.copy()
            column[young] = tracked.sketch.column(self.layout.rows[young], statistic)
        return self._of_same(column)

    def _read_rings(self, tracked: TrackedSketch, statistic: Statistic, window_ms: int, counts: Int64s) -> Float64s:
        """Exact statistics of the last ``counts`` samples of each row; NaN for none. Computes related statistics together."""
        sketch, rows = tracked.sketch, self.layout.rows
        if statistic.kind is StatisticKind.PERCENTILE:
            return self._share_pass(
                tracked,
                statistic,
                window_ms,
                lambda ranks: sketch.recent_percentiles(
                    rows, counts, ranks, self._bracket(sketch.metric, window_ms, len(ranks))
                ),
            )
        if statistic.kind in SIDE_KINDS:
            return sketch.recent_sides(rows, counts, statistic)
        key = (sketch.metric, window_ms)
        if key not in self._summaries:
            self._summaries[key] = sketch.recent_summaries(rows, counts)
        return self._summaries[key][statistic.kind]

    def _bracket(self, metric: str, window_ms: int, ranks: int) -> Float64s:
        """Hints of the last view if their shape matches; wrong hints only cost time."""
        shape, hints = (ranks, self.row_count, 2), self._brackets.get((metric, window_ms))
        if hints is None or hints.shape != shape:
            hints = self._brackets[metric, window_ms] = np.full(shape, np.nan)
        return hints

    def _read_long_windows(self, tracked: TrackedSketch, statistic: Statistic, window_ms: int) -> Float64s:
        """Fill rows whose window is longer than the samples in memory from the store. Without the lock, because it is slow."""
        metric = tracked.sketch.metric
        column = self._columns[metric, statistic, window_ms]
        _, are_all = self._counts[metric, window_ms]
        places = np.flatnonzero(~are_all & self._is_older(window_ms) & self.is_complete)
        if self._long_window is None or not len(places):
            return column
        column = column.copy()  # others may share it
        column[places] = self._long_window(self, metric, statistic, window_ms, places)
        return column


class LifeViews:
    """Creates views; returns the same view as long as nothing changed, so that its columns are computed once."""

    def __init__(self, lives: Lives, *, long_window: LongWindow | None = None) -> None:
        self._lives = lives
        self._long_window = long_window
        self._layout: LifeLayout | None = None
        self._view: LifeView | None = None
        self._brackets: Brackets = {}

    def columns(self, at_ms: UnixMs | None = None) -> LifeView:
        """A view of the current lives; windows and ages end at ``at_ms``, by default the newest sample."""
        with self._lives.lock:
            at_ms = self._lives.newest_ms if at_ms is None else at_ms
            view = self._view
            if view is not None and (view.version, view.at_ms) == (self._lives.version, at_ms):
                return view
            if self._layout is None or self._layout.version != self._lives.layout_version:
                self._layout = LifeLayout(self._lives)
            expect = {} if view is None else {key: set(percentiles) for key, percentiles in view.requested.items()}
            self._view = LifeView(
                self._lives,
                self._layout,
                at_ms,
                expect=expect,
                brackets=self._brackets,
                long_window=self._long_window,
            )
            return self._view
