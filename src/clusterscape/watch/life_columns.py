"""The statistics of all lives as columns, as they stood when asked for: what rules are judged by.

Implements ``LifeColumns``. Each column is computed once; percentiles that were asked for last time are found in one pass.
A window is exact from the samples kept; one that reaches further back than those is left to ``long_windows``.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.stats.exact import SIDE_KINDS, rank_of
from clusterscape.analyze.stats.kernels import Bools
from clusterscape.model import Names, UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import Statistic, StatisticKind
from clusterscape.model.samples import Float64s, Int32s, Int64s
from clusterscape.model.statistics import STATISTICS
from clusterscape.watch.lives import Kept, Lives
from clusterscape.watch.slots import ENDLESS

LongWindow = Callable[["LifeView", str, Statistic, int, Int64s], Float64s]
"""(view, metric, statistic, window in ms, places of rows in the view) → values of those rows."""

Percentiles = dict[tuple[str, int | None], set[float]]
"""Percentiles asked for, by metric and window."""

Brackets = dict[tuple[str, int], Float64s]
"""Where the percentiles of a window were last time: hints for finding them this time, by metric and window."""


class Layout:
    """Whose lives the rows are and their units' limits; the same object as long as neither changes."""

    def __init__(self, lives: Lives) -> None:
        slots = lives.slots
        self.version = lives.layout_version
        self.rows: Int64s = slots.used_rows()
        self.generation: Int64s = slots.generation[self.rows]
        self.from_at: Int64s = slots.from_at[self.rows]
        self.end_ms: Int64s = slots.until_at[self.rows]
        self.units = slots.units.values
        self.unit: Int32s = slots.unit[self.rows]
        self.limits: dict[str, Float64s] = {}  # by metric, found when first asked for
        workloads, codes = Names(), np.zeros(slots.row_count, np.int32)
        for (workload, _, _), row in slots.keys.items():
            codes[row] = workloads.code(workload)
        self.workloads = workloads.values
        self.workload: Int32s = codes[self.rows]


class LifeView:
    """``LifeColumns`` of one moment."""

    def __init__(
        self,
        lives: Lives,
        layout: Layout,
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
        self.asked: Percentiles = defaultdict(set)
        self._expect = expect
        self._brackets: Brackets = {} if brackets is None else brackets
        self._long_window = long_window
        self._columns: dict[tuple[str, Statistic, int | None], Float64s] = {}
        self._found: dict[tuple[str, int | None, float], Float64s] = {}
        self._counts: dict[tuple[str, int], tuple[Int64s, Bools]] = {}
        self._summaries: dict[tuple[str, int], dict[StatisticKind, Float64s]] = {}

    @property
    def row_count(self) -> int:
        """How many lives."""
        return len(self.layout.rows)

    @cached_property
    def workloads(self) -> Sequence[WorkloadId]:
        """The workloads that ``workload`` counts through."""
        return [WorkloadId(name) for name in self.layout.workloads]

    @cached_property
    def units(self) -> Sequence[UnitId]:
        """The units that ``unit`` counts through."""
        return [UnitId(name) for name in self.layout.units]

    @property
    def workload(self) -> Int32s:
        """Per row a place in ``workloads``."""
        return self.layout.workload

    @property
    def unit(self) -> Int32s:
        """Per row a place in ``units``."""
        return self.layout.unit

    @property
    def from_at(self) -> Int64s:
        """When each life began."""
        return self.layout.from_at

    @cached_property
    def until_at(self) -> Int64s:
        """When each life ended, or now where it has not."""
        return np.where(self.is_open, np.maximum(self.at_ms, self.from_at), self.layout.end_ms)

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Whether each life still goes on."""
        is_open: Bools = self.layout.end_ms == ENDLESS
        return is_open

    @cached_property
    def is_complete(self) -> NDArray[np.bool_]:
        """Whether nothing of a life's past is still to be read from the store."""
        with self.lives.lock:
            complete = self._is_same()
            for kept in self.lives.serving.values():
                complete &= ~kept.is_pending[self.layout.rows]
            return complete

    def limits(self, metric: str) -> Float64s:
        """See ``StatisticColumns``."""
        known = self.layout.limits
        if metric not in known:
            with self.lives.lock:
                known[metric] = self.lives.limits(metric, self.layout.rows)
        return known[metric]

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        """See ``StatisticColumns``. Of a window longer than the samples kept, at least so many."""
        with self.lives.lock:
            kept = self.lives.serving.get(metric)
            if kept is None:
                return np.zeros(self.row_count, np.int64)
            if window_ms is None:
                return np.where(self._is_same(), kept.sketch.samples(self.layout.rows), 0)
            counts, are_all = self._count(kept, window_ms)
            if not are_all.all():
                life = kept.sketch.samples(self.layout.rows)
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
                kept = self.lives.serving.get(metric)
                if kept is None:
                    self._columns[key] = np.full(self.row_count, np.nan)
                elif window_ms is None:
                    self._columns[key] = self._find_life(kept, statistic)
                else:
                    self._columns[key] = self._find_window(kept, statistic, window_ms)
            if window_ms is not None and kept is not None:
                self._columns[key] = self._look_further(kept, statistic, window_ms)
        return self._columns[key]

    def _is_same(self) -> Bools:
        """Rows that still belong to the lives this view is of."""
        is_same: Bools = self.lives.slots.generation[self.layout.rows] == self.layout.generation
        return is_same

    def _of_same(self, column: Float64s) -> Float64s:
        """The column without rows that have changed hands since."""
        return column if self.lives.layout_version == self.layout.version else np.where(self._is_same(), column, np.nan)

    def _is_older(self, window_ms: int) -> Bools:
        """Lives of which a window holds only a part."""
        is_older: Bools = self.from_at <= self.until_at - window_ms
        return is_older

    def _find_life(self, kept: Kept, statistic: Statistic) -> Float64s:
        rows = self.layout.rows
        if statistic.kind is StatisticKind.PERCENTILE:
            found = self._share_pass(kept, statistic, None, lambda ranks: kept.sketch.percentiles(rows, ranks))
        else:
            found = kept.sketch.column(rows, statistic)
        return self._of_same(found)

    def _share_pass(
        self,
        kept: Kept,
        statistic: Statistic,
        window_ms: int | None,
        find: Callable[[Sequence[float]], Float64s],
    ) -> Float64s:
        """A percentile, and in the same pass those that were asked for last time."""
        key = (kept.sketch.metric, window_ms)
        rank_of(statistic)  # refuses nonsense before it is remembered
        percentile = statistic.percentile or 0.0
        self.asked[key].add(percentile)
        if (*key, percentile) not in self._found:
            wanted = sorted(self._expect.pop(key, set()) | {percentile})
            ranks = [number / 100.0 for number in wanted]
            self._found |= {(*key, number): found for number, found in zip(wanted, find(ranks), strict=True)}
        return self._found[*key, percentile]

    def _count(self, kept: Kept, window_ms: int) -> tuple[Int64s, Bools]:
        """How many samples kept are in the window, and for which rows those are all."""
        key = (kept.sketch.metric, window_ms)
        if key not in self._counts:
            self._counts[key] = kept.sketch.count_recent(self.layout.rows, self.until_at - window_ms)
        return self._counts[key]

    def _find_window(self, kept: Kept, statistic: Statistic, window_ms: int) -> Float64s:
        """From the samples kept where those are all, from the life where that lies within the window; NaN elsewhere."""
        counts, are_all = self._count(kept, window_ms)
        if are_all.all():
            column = self._read_rings(kept, statistic, window_ms, counts)
        else:
            column = self._read_rings(kept, statistic, window_ms, np.where(are_all, counts, 0))
            young = np.flatnonzero(~are_all & ~self._is_older(window_ms))
            column = column.copy()
            column[young] = kept.sketch.column(self.layout.rows[young], statistic)
        return self._of_same(column)

    def _read_rings(self, kept: Kept, statistic: Statistic, window_ms: int, counts: Int64s) -> Float64s:
        """Exact, of the last ``counts`` samples of each row; NaN where that is none. What shares a pass is found together."""
        sketch, rows = kept.sketch, self.layout.rows
        if statistic.kind is StatisticKind.PERCENTILE:
            return self._share_pass(
                kept,
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
        """Hints of the last view where they have the right shape; those of other lives or ranks are wrong and do no harm."""
        shape, known = (ranks, self.row_count, 2), self._brackets.get((metric, window_ms))
        if known is None or known.shape != shape:
            known = self._brackets[metric, window_ms] = np.full(shape, np.nan)
        return known

    def _look_further(self, kept: Kept, statistic: Statistic, window_ms: int) -> Float64s:
        """The rows whose window reaches back beyond the samples kept, from the store. Without the lock: it takes long."""
        metric = kept.sketch.metric
        column = self._columns[metric, statistic, window_ms]
        _, are_all = self._counts[metric, window_ms]
        places = np.flatnonzero(~are_all & self._is_older(window_ms) & self.is_complete)
        if self._long_window is None or not len(places):
            return column
        column = column.copy()  # others may share it
        column[places] = self._long_window(self, metric, statistic, window_ms, places)
        return column


class LifeViews:
    """Hands out views: the same one as long as nothing changed, so that its columns are computed once."""

    def __init__(self, lives: Lives, *, long_window: LongWindow | None = None) -> None:
        self._lives = lives
        self._long_window = long_window
        self._layout: Layout | None = None
        self._view: LifeView | None = None
        self._brackets: Brackets = {}

    def columns(self, at_ms: UnixMs | None = None) -> LifeView:
        """The lives as they are now; ``at_ms`` is what windows and ages are counted back from, else the newest sample."""
        with self._lives.lock:
            at_ms = self._lives.newest_ms if at_ms is None else at_ms
            view = self._view
            if view is not None and (view.version, view.at_ms) == (self._lives.version, at_ms):
                return view
            if self._layout is None or self._layout.version != self._lives.layout_version:
                self._layout = Layout(self._lives)
            expect = {} if view is None else {key: set(asked) for key, asked in view.asked.items()}
            self._view = LifeView(
                self._lives,
                self._layout,
                at_ms,
                expect=expect,
                brackets=self._brackets,
                long_window=self._long_window,
            )
            return self._view
