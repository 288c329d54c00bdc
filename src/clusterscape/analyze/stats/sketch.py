"""Mergeable statistics of one metric over many lives, updated sample by sample. Importing this imports numba.

Over the whole life, all statistics are exact except percentiles, whose error is at most ``bins.error_bound``. The last
``ring_samples`` samples of each row are kept, so that all statistics of trailing windows that they cover are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from clusterscape.analyze.stats import kernels, window_kernels
from clusterscape.analyze.stats.bins import Bins, bins_of
from clusterscape.analyze.stats.contract import Threshold
from clusterscape.analyze.stats.exact import (
    ABOVE_KINDS,
    SIDE_KINDS,
    SUMMARIES,
    rank_of,
    resolve,
    threshold_of,
)
from clusterscape.model.arrays import Bools, Float64s, Int64s, Uint32s
from clusterscape.model.rules import Statistic, StatisticKind
from clusterscape.model.statistics import SHARES, STATISTICS

Array = TypeVar("Array", Float64s, Uint32s)

RING_SAMPLES = 128
"""Thirty-two minutes at a scrape every 15 s."""

_MOMENTS = {
    StatisticKind.MIN: kernels.MIN,
    StatisticKind.MAX: kernels.MAX,
    StatisticKind.MEAN: kernels.MEAN,
    StatisticKind.NOW: kernels.LAST,
    StatisticKind.INCREASE: kernels.INCREASE,
}


@dataclass(slots=True)
class SketchArrays:
    """The state of a sketch, as stored in checkpoints; shapes as in ``kernels.add_samples``."""

    moments: Float64s
    histogram: Uint32s
    limit: Float64s  # the GPU's limit, shape (rows,); NaN if unknown
    ring_value: Float64s
    ring_time: Uint32s
    runs: Float64s


class MetricSketch:
    """Statistics of one metric for rows that can be cleared and used again. Not thread-safe."""

    def __init__(
        self,
        metric: str,
        row_count: int = 0,
        *,
        thresholds: Sequence[Threshold] = (),
        ring_samples: int = RING_SAMPLES,
    ) -> None:
        self.metric = metric
        self.bins: Bins = bins_of(metric)
        self.thresholds = tuple(thresholds)
        self.arrays = SketchArrays(
            moments=np.zeros((0, kernels.MOMENTS)),
            histogram=np.zeros((0, self.bins.count), np.uint32),
            limit=np.zeros(0),
            ring_value=np.zeros((0, ring_samples)),
            ring_time=np.zeros((0, ring_samples), np.uint32),
            runs=np.zeros((len(self.thresholds), 0, kernels.RUNS)),
        )
        self._is_above: Bools = np.array([threshold.is_above for threshold in self.thresholds], np.bool_)
        self._width = np.zeros(0)
        self._threshold = np.zeros((len(self.thresholds), 0))
        self.grow(row_count)

    @property
    def row_count(self) -> int:
        """Number of rows, used or not."""
        return len(self.arrays.moments)

    @property
    def nbytes(self) -> int:
        """Memory usage in bytes."""
        arrays = self.arrays
        kept = (arrays.moments, arrays.histogram, arrays.limit, arrays.ring_value, arrays.ring_time, arrays.runs)
        return sum(array.nbytes for array in (*kept, self._width, self._threshold))

    def grow(self, row_count: int) -> None:
        """Make room for more rows, empty and without a known limit."""
        more = row_count - self.row_count
        if more <= 0:
            return
        arrays, old = self.arrays, self.row_count
        arrays.moments = _longer(arrays.moments, more)
        arrays.histogram = _longer(arrays.histogram, more)
        arrays.ring_value, arrays.ring_time = _longer(arrays.ring_value, more), _longer(arrays.ring_time, more)
        arrays.limit = np.concatenate([arrays.limit, np.full(more, np.nan)])
        empty = np.zeros((len(self.thresholds), more, kernels.RUNS))
        arrays.runs = np.concatenate([arrays.runs, empty], axis=1)
        self._width = np.zeros(row_count)
        self._threshold = np.zeros((len(self.thresholds), row_count))
        self._apply_limits(np.arange(row_count))
        self.clear(np.arange(old, row_count))

    def clear(self, rows: Int64s, limits: Float64s | None = None) -> None:
        """Clear all samples of ``rows``; ``limits`` sets their new limits."""
        arrays = self.arrays
        arrays.moments[rows] = 0.0
        arrays.histogram[rows] = 0
        arrays.runs[:, rows] = np.nan
        arrays.runs[:, rows, kernels.HITS] = 0.0
        if limits is not None:
            arrays.limit[rows] = limits
            self._apply_limits(rows)

    def _apply_limits(self, rows: Int64s) -> None:
        limit = self.arrays.limit[rows]
        scale = np.where(np.isnan(limit), self.bins.full_scale, limit) if self.bins.by_limit else self.bins.full_scale
        self._width[rows] = self.bins.step * scale
        for place, threshold in enumerate(self.thresholds):
            self._threshold[place, rows] = resolve(threshold.quantity, limit)

    def add(self, rows: Int64s, time_ms: Int64s, value: Float64s) -> int:
        """Add samples, given in time order, to their rows; returns how many were added. All arrays have shape (samples,).

        A sample not later than the last one of its row is skipped as a duplicate.
        """
        arrays = self.arrays
        return int(
            kernels.add_samples(
                rows, time_ms, value, arrays.moments, arrays.histogram, self._width, self.bins.least, self.bins.octave,
                arrays.ring_value, arrays.ring_time, arrays.runs, self._threshold, self._is_above,
            )
        )  # fmt: skip

    def lose_rings(self) -> None:
        """Mark the rings as empty, as after loading a checkpoint, which does not contain them."""
        self.arrays.moments[:, kernels.RING_FROM] = self.arrays.moments[:, kernels.COUNT]

    @property
    def has_lost_ring(self) -> Bools:
        """Whether each row has samples but an empty ring, shape (rows,)."""
        count = self.arrays.moments[:, kernels.COUNT]
        lost: Bools = (count > 0.0) & (self.arrays.moments[:, kernels.RING_FROM] == count)
        return lost

    def refill_rings(self, rows: Int64s, time_ms: Int64s, value: Float64s) -> None:
        """Fill lost rings with the last counted samples, all in one call and in time order; later samples are skipped."""
        arrays = self.arrays
        window_kernels.refill_rings(rows, time_ms, value, arrays.moments, arrays.ring_value, arrays.ring_time)

    def merge(self, rows: Int64s, other: "MetricSketch", other_rows: Int64s) -> None:
        """Add the later samples of ``other_rows`` of ``other`` to ``rows``; the result equals that of ``add``."""
        mine, theirs = self.arrays, other.arrays
        if (other.metric, other.thresholds) != (self.metric, self.thresholds):
            raise ValueError(f"{other.metric} cannot be merged into {self.metric}: other bins or thresholds")
        if mine.ring_value.shape[1] != theirs.ring_value.shape[1]:
            raise ValueError("rings of different sizes cannot be merged")
        if not np.array_equal(self._width[rows], other._width[other_rows]):
            raise ValueError("rows of different full scales cannot be merged")
        ends, begins = mine.moments[rows, kernels.LAST_MS], theirs.moments[other_rows, kernels.FIRST_MS]
        are_both = (mine.moments[rows, kernels.COUNT] > 0) & (theirs.moments[other_rows, kernels.COUNT] > 0)
        if (are_both & (begins <= ends)).any():
            raise ValueError("only later samples can be merged into earlier ones")
        mine.histogram[rows] += theirs.histogram[other_rows]
        kernels.merge_rows(
            rows, other_rows, mine.moments, mine.ring_value, mine.ring_time, mine.runs,
            theirs.moments, theirs.ring_value, theirs.ring_time, theirs.runs,
        )  # fmt: skip

    def replace(self, rows: Int64s, other: "MetricSketch", other_rows: Int64s) -> None:
        """Copy the whole state of ``other_rows`` to ``rows``."""
        self.clear(rows, other.arrays.limit[other_rows])
        self.merge(rows, other, other_rows)

    # reading

    def samples(self, rows: Int64s) -> Int64s:
        """Number of samples of each of ``rows``."""
        count: Float64s = self.arrays.moments[rows, kernels.COUNT]
        return count.astype(np.int64)

    def last_ms(self, rows: Int64s) -> Int64s:
        """Time of the last sample of each of ``rows``, Unix ms; 0 if there is none."""
        last: Float64s = self.arrays.moments[rows, kernels.LAST_MS]
        return last.astype(np.int64)

    def column(self, rows: Int64s, statistic: Statistic) -> Float64s:
        """``statistic`` over the whole life, shape (rows,); NaN without samples, and for runs of an unregistered threshold."""
        derive = STATISTICS[statistic.kind].derive
        if derive is not None:
            return derive(lambda kind: self.column(rows, Statistic(kind)))
        moments = self.arrays.moments
        count = moments[rows, kernels.COUNT]
        match statistic.kind:
            case StatisticKind.PERCENTILE:
                percentile: Float64s = self.percentiles(rows, [rank_of(statistic)])[0]
                return percentile
            case StatisticKind.STD:
                column = np.sqrt(moments[rows, kernels.M2] / np.maximum(count, 1.0))
            case StatisticKind.SLOPE:
                spread = moments[rows, kernels.M2_H]
                column = moments[rows, kernels.CO] / np.where(spread > 0.0, spread, np.nan)
            case kind if kind in SIDE_KINDS:
                return self._sides(rows, statistic)
            case kind:
                column = moments[rows, _MOMENTS[kind]]
        return np.where(count > 0.0, column, np.nan)

    def percentiles(self, rows: Int64s, ranks: Sequence[float]) -> Float64s:
        """Percentiles over the whole life, shape (ranks, rows); NaN without samples. ``ranks`` are 0–1, in any order."""
        distinct_ranks = np.unique(np.asarray(ranks, np.float64))
        arrays = self.arrays
        percentiles = kernels.find_percentiles(
            rows, arrays.moments, arrays.histogram, self._width, self.bins.least, self.bins.octave, distinct_ranks
        )
        return percentiles[np.searchsorted(distinct_ranks, ranks)]

    def count_recent(self, rows: Int64s, after_ms: Int64s) -> tuple[Int64s, Bools]:
        """Number of samples after ``after_ms`` (Unix ms, shape (rows,)) in the rings, and whether the rings have all of them."""
        return window_kernels.count_recent(rows, self.arrays.moments, self.arrays.ring_time, after_ms)

    def recent_percentiles(
        self, rows: Int64s, counts: Int64s, ranks: Sequence[float], brackets: Float64s | None = None
    ) -> Float64s:
        """Exact percentiles of the last ``counts`` samples, shape (ranks, rows). ``ranks`` are 0–1, in any order.

        ``brackets``, shape (ranks, rows, 2), NaN at first: makes the next call with the same array faster; see the kernel.
        """
        wanted, arrays = np.asarray(ranks, np.float64), self.arrays
        if brackets is None:
            brackets = np.full((len(wanted), len(rows), 2), np.nan)
        return window_kernels.find_window_percentiles(rows, counts, arrays.moments, arrays.ring_value, wanted, brackets)

    def recent_summaries(self, rows: Int64s, counts: Int64s) -> dict[StatisticKind, Float64s]:
        """Min, max, mean, std, last, increase and slope of the last ``counts`` samples, exact; arrays of shape (rows,)."""
        arrays = self.arrays
        summaries = window_kernels.summarize_windows(rows, counts, arrays.moments, arrays.ring_value, arrays.ring_time)
        return {kind: summaries[place] for kind, place in SUMMARIES.items()}

    def recent_sides(self, rows: Int64s, counts: Int64s, statistic: Statistic) -> Float64s:
        """Share of the last ``counts`` samples beyond a threshold, 0–1, or seconds of the longest run; exact, shape (rows,)."""
        arrays, is_above = self.arrays, statistic.kind in ABOVE_KINDS
        threshold = resolve(threshold_of(statistic), arrays.limit[rows])
        if statistic.kind in SHARES:
            return window_kernels.find_window_shares(
                rows, counts, arrays.moments, arrays.ring_value, threshold, is_above
            )
        return window_kernels.find_window_runs(
            rows, counts, arrays.moments, arrays.ring_value, arrays.ring_time, threshold, is_above
        )

    def _sides(self, rows: Int64s, statistic: Statistic) -> Float64s:
        above, quantity = statistic.kind in ABOVE_KINDS, threshold_of(statistic)
        sought = Threshold(self.metric, above, quantity)
        if sought not in self.thresholds:
            return self._guess_shares(rows, statistic)
        place = self.thresholds.index(sought)
        runs, moments = self.arrays.runs[place], self.arrays.moments
        count, hits = moments[rows, kernels.COUNT], runs[rows, kernels.HITS]
        if statistic.kind in SHARES:
            column = hits / np.maximum(count, 1.0)
        else:
            # The last sample of a run counts for one interval.
            spans = (runs[rows, kernels.LONGEST_MS] + moments[rows, kernels.INTERVAL_MS]) / 1000.0
            column = np.where(hits > 0.0, spans, 0.0)
        return np.where((count > 0.0) & ~np.isnan(self._threshold[place, rows]), column, np.nan)

    def _guess_shares(self, rows: Int64s, statistic: Statistic) -> Float64s:
        if statistic.kind not in SHARES:
            return np.full(len(rows), np.nan)
        arrays = self.arrays
        threshold = resolve(threshold_of(statistic), arrays.limit[rows])
        return kernels.find_shares(
            rows, arrays.moments, arrays.histogram, self._width, self.bins.least, self.bins.octave,
            threshold, statistic.kind in ABOVE_KINDS,
        )  # fmt: skip


def _longer(array: Array, more: int) -> Array:
    # np.zeros uses no memory until it is written, so metrics without samples cost almost nothing.
    longer = np.zeros((len(array) + more, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
