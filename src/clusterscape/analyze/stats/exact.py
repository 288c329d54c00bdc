"""Exact statistics from samples: for dry runs over history, for recorded logs, for trailing windows, and as the tests' oracle.

Importing this imports numba: import it late where the start must be quick.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from clusterscape.analyze.stats import exact_kernels as kernels
from clusterscape.analyze.stats.bins import Limit, limit_of
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.rules import Basis, Quantity, Statistic, StatisticKind
from clusterscape.model.statistics import RUNS, SHARES, STATISTIC_CATALOGUE, STATISTICS

ABOVE_KINDS = frozenset(entry.kind for entry in STATISTIC_CATALOGUE if entry.is_above)
SIDE_KINDS = SHARES | RUNS

_EVER = np.iinfo(np.int64)

SUMMARIES = {
    StatisticKind.MIN: kernels.MIN,
    StatisticKind.MAX: kernels.MAX,
    StatisticKind.MEAN: kernels.MEAN,
    StatisticKind.STD: kernels.STD,
    StatisticKind.NOW: kernels.NOW,
    StatisticKind.SLOPE: kernels.SLOPE,
    StatisticKind.INCREASE: kernels.INCREASE,
}


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one metric for all rows: row ``i`` has ``offsets[i]:offsets[i + 1]``, in time order, no NaN among them."""

    time_ms: Int64s
    value: Float64s
    offsets: Int64s

    @classmethod
    def from_table(cls, time_ms: Int64s, table: Float64s) -> "Series":
        """From a table of rows × common times in which NaN is a missing sample."""
        is_there = ~np.isnan(table)
        offsets = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))]).astype(np.int64)
        return cls(np.broadcast_to(time_ms, table.shape)[is_there].astype(np.int64), table[is_there], offsets)

    @classmethod
    def from_rows(cls, row: Int64s, time_ms: Int64s, value: Float64s, row_count: int) -> "Series":
        """From samples in any order, each with its row. Of two at the same time the later one in the arrays stays."""
        order = np.lexsort((time_ms, row))
        row, time_ms = row[order], time_ms[order]
        is_last = np.ones(len(row), np.bool_)
        is_last[:-1] = (row[1:] != row[:-1]) | (time_ms[1:] != time_ms[:-1])
        row, kept = row[is_last], order[is_last]
        return cls(time_ms[is_last], value[kept], np.searchsorted(row, np.arange(row_count + 1)).astype(np.int64))


def resolve(quantity: Quantity, limits: Float64s) -> Float64s:
    """A threshold for each row, in the metric's unit; NaN if it is relative to an unknown limit."""
    if quantity.basis is Basis.LIMIT:
        return quantity.number * limits
    return np.full(len(limits), quantity.number)


def threshold_of(statistic: Statistic) -> Quantity:
    """The threshold of a statistic that needs one."""
    if statistic.threshold is None:
        raise ValueError(f"{statistic.kind} needs a threshold")
    return statistic.threshold


def rank_of(statistic: Statistic) -> float:
    """The percentile as 0–1."""
    if statistic.percentile is None or not 0.0 <= statistic.percentile <= 100.0:
        raise ValueError(f"a percentile lies between 0 and 100, not at {statistic.percentile}")
    return statistic.percentile / 100.0


class ExactColumns:
    """Statistics over all samples of each row, or over those up to ``at_ms`` (one moment, or one for each row)."""

    def __init__(
        self,
        series: Mapping[str, Series],
        row_count: int,
        *,
        limits: Mapping[str, Float64s] | None = None,
        at_ms: int | Int64s | None = None,
    ) -> None:
        for metric, samples in series.items():
            if len(samples.offsets) != row_count + 1:
                raise ValueError(f"{metric} has {len(samples.offsets) - 1} rows, not {row_count}")
        self._series = series
        self._row_count = row_count
        self._limits = limits or {}
        self._at_ms = at_ms
        # These serve several statistics; sixteen pairs of metric and window are more than rules share at a time.
        self._pieces = lru_cache(16)(self._find_pieces)
        self._summaries = lru_cache(16)(self._summarize)
        self._intervals = lru_cache(16)(self._measure_intervals)

    @property
    def row_count(self) -> int:
        """Number of lives."""
        return self._row_count

    def at(self, at_ms: int | Int64s) -> "ExactColumns":
        """The same lives at ``at_ms``: later samples are ignored."""
        return ExactColumns(self._series, self._row_count, limits=self._limits, at_ms=at_ms)

    def column(self, metric: str, statistic: Statistic, *, window_ms: int | None = None) -> Float64s:
        """See ``StatisticColumns``."""
        if metric not in self._series:
            return np.full(self._row_count, np.nan)
        derive = STATISTICS[statistic.kind].derive
        if derive is not None:
            return derive(lambda kind: self.column(metric, Statistic(kind), window_ms=window_ms))
        if statistic.kind is StatisticKind.PERCENTILE:
            start, stop = self._pieces(metric, window_ms)
            return kernels.find_percentile(self._series[metric].value, start, stop, rank_of(statistic))
        if statistic.kind in SIDE_KINDS:
            return self._sides(metric, statistic, window_ms)
        return self._summaries(metric, window_ms)[:, SUMMARIES[statistic.kind]]

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        """See ``StatisticColumns``."""
        if metric not in self._series:
            return np.zeros(self._row_count, np.int64)
        start, stop = self._pieces(metric, window_ms)
        return stop - start

    def limits(self, metric: str) -> Float64s:
        """See ``StatisticColumns``."""
        limits_of_metric = self._limits.get(metric)
        if limits_of_metric is not None:
            return limits_of_metric
        return np.full(self._row_count, 1.0 if limit_of(metric) is Limit.ONE else np.nan)

    def _sides(self, metric: str, statistic: Statistic, window_ms: int | None) -> Float64s:
        samples = self._series[metric]
        start, stop = self._pieces(metric, window_ms)
        threshold = resolve(threshold_of(statistic), self.limits(metric))
        shares, longest_s = kernels.find_sides(
            samples.time_ms,
            samples.value,
            start,
            stop,
            self._intervals(metric, window_ms),
            threshold,
            statistic.kind in ABOVE_KINDS,
        )
        return shares if statistic.kind in SHARES else longest_s

    def _find_pieces(self, metric: str, window_ms: int | None) -> tuple[Int64s, Int64s]:
        samples = self._series[metric]
        if self._at_ms is None and window_ms is None:
            return samples.offsets[:-1], samples.offsets[1:]
        if self._at_ms is None:
            newest = max((int(s.time_ms.max()) for s in self._series.values() if len(s.time_ms)), default=0)
            until = np.full(self._row_count, newest)
        else:
            until = np.broadcast_to(np.asarray(self._at_ms, np.int64), (self._row_count,)).copy()
        after = np.full(self._row_count, _EVER.min) if window_ms is None else until - window_ms
        return kernels.find_pieces(samples.time_ms, samples.offsets, after, until)

    def _summarize(self, metric: str, window_ms: int | None) -> Float64s:
        samples = self._series[metric]
        start, stop = self._pieces(metric, window_ms)
        return kernels.summarize(samples.time_ms, samples.value, start, stop)

    def _measure_intervals(self, metric: str, window_ms: int | None) -> Float64s:
        """Median time between samples; 0 with fewer than two."""
        start, stop = self._pieces(metric, window_ms)
        pauses = np.diff(self._series[metric].time_ms).astype(np.float64)
        return np.nan_to_num(kernels.find_percentile(pauses, start, np.maximum(stop - 1, start), 0.5))
