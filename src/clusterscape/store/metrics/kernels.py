"""Statistics and steps of many series at once, on flat arrays. Pure: no files, no network.

A series is a run of rows: series ``i`` has rows ``offsets[i]:offsets[i + 1]``, in time order; no run is empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.model import METRICS, MetricKind
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.store.metrics.contract import SeriesStatistic

QUANTILES: Mapping[SeriesStatistic, float] = {
    SeriesStatistic.P5: 0.05,
    SeriesStatistic.P25: 0.25,
    SeriesStatistic.P50: 0.5,
    SeriesStatistic.P75: 0.75,
    SeriesStatistic.P95: 0.95,
}


def is_counter(metric: str) -> bool:
    """Whether ``metric`` is a counter; unknown metrics count as gauges."""
    entry = METRICS.get(metric)
    return entry is not None and entry.kind is MetricKind.COUNTER


def compute_statistics(
    value: Float64s, offsets: Int64s, statistics: Sequence[SeriesStatistic]
) -> dict[SeriesStatistic, Float64s]:
    """Each statistic of each series.

    Parameters
    ----------
    value : all samples, no NaN, shape (rows,)
    offsets : borders of the series, shape (series + 1,); no series is empty

    Returns
    -------
    One array of shape (series,) per statistic. O(rows), and O(rows × log(rows / series)) if a quantile is requested.
    """
    if len(offsets) < 2:
        return {statistic: np.empty(0) for statistic in statistics}
    requested = [QUANTILES[statistic] for statistic in statistics if statistic in QUANTILES]
    quantiles = compute_quantiles(value, offsets, requested) if requested else {}
    return {
        statistic: quantiles[QUANTILES[statistic]] if statistic in QUANTILES else _simple(value, offsets, statistic)
        for statistic in statistics
    }


def _simple(value: Float64s, offsets: Int64s, statistic: SeriesStatistic) -> Float64s:
    starts, counts = offsets[:-1], np.diff(offsets)
    match statistic:
        case SeriesStatistic.MIN:
            return np.minimum.reduceat(value, starts)
        case SeriesStatistic.MAX:
            return np.maximum.reduceat(value, starts)
        case SeriesStatistic.MEAN:
            return np.add.reduceat(value, starts) / counts
        case SeriesStatistic.STD:
            mean = np.add.reduceat(value, starts) / counts
            squares = (value - np.repeat(mean, counts)) ** 2
            return np.sqrt(np.add.reduceat(squares, starts) / counts)
        case SeriesStatistic.COUNT:
            return counts.astype(np.float64)
        case SeriesStatistic.FIRST:
            return value[starts]
        case SeriesStatistic.LAST:
            return value[offsets[1:] - 1]
        case SeriesStatistic.INCREASE:
            return compute_increase(value, offsets)
        case _:
            raise AssertionError(f"{statistic} is a quantile")


def compute_increase(value: Float64s, offsets: Int64s) -> Float64s:
    """The increase of each counter from its first to its last sample. After a decrease it restarted from 0."""
    gain = np.zeros(len(value))
    difference = np.diff(value)
    gain[1:] = np.where(difference < 0, value[1:], difference)
    gain[offsets[:-1]] = 0.0
    return np.add.reduceat(gain, offsets[:-1])


def compute_quantiles(value: Float64s, offsets: Int64s, quantiles: Sequence[float]) -> dict[float, Float64s]:
    """Linearly interpolated quantiles (numpy's default) of each series.

    Series are sorted as the rows of a matrix, in classes of similar length so that padding at most doubles the work.
    """
    counts = np.diff(offsets)
    result = {quantile: np.empty(len(counts)) for quantile in quantiles}
    classes = np.frexp(counts)[1]
    for size in np.unique(classes).tolist():
        members = np.flatnonzero(classes == size)
        ordered = np.sort(_padded(value, offsets, members), axis=1)
        for quantile in quantiles:
            result[quantile][members] = _interpolate(ordered, counts[members], quantile)
    return result


def _padded(value: Float64s, offsets: Int64s, members: Int64s) -> Float64s:
    """The rows of these series as a matrix, padded with +inf, which sorts last."""
    counts = np.diff(offsets)[members]
    width = int(counts.max())
    if (counts == width).all():
        if len(members) == len(offsets) - 1:
            return value.reshape(len(members), width)
        rows: Int64s = offsets[members][:, None] + np.arange(width)
        return value[rows]
    matrix: Float64s = np.full((len(members), width), np.inf)
    inside = np.arange(width) < counts[:, None]
    rows = np.arange(int(counts.sum())) + np.repeat(offsets[members] - (np.cumsum(counts) - counts), counts)
    matrix[inside] = value[rows]
    return matrix


def _interpolate(ordered: Float64s, counts: Int64s, quantile: float) -> Float64s:
    place = quantile * (counts - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, counts - 1)
    row = np.arange(len(counts))
    low: Float64s = ordered[row, below]
    high: Float64s = ordered[row, above]
    weight = place - below
    with np.errstate(invalid="ignore"):
        between = low + (high - low) * weight
    return np.where(low == high, low, between)  # also keeps infinities from becoming NaN


@dataclass(frozen=True, slots=True)
class Steps:
    """Rows grouped by step: ``first[i]`` is the first row of group ``i``, which starts at ``time_ms[i]``."""

    first: Int64s
    time_ms: Int64s
    offsets: Int64s  # borders of the series among the groups


def group_steps(time_ms: Int64s, offsets: Int64s, step_ms: int) -> Steps:
    """Group the rows of each series by step, aligned to multiples of the step since 1970."""
    step = time_ms // step_ms
    is_first = np.ones(len(step), np.bool_)
    is_first[1:] = np.diff(step) != 0
    is_first[offsets[:-1]] = True
    first = np.flatnonzero(is_first)
    return Steps(first, step[first] * step_ms, np.searchsorted(first, offsets))


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Mean, min, max, last and count of each step; NaN (and count 0) where a step has no sample."""

    mean: Float64s
    min: Float64s
    max: Float64s
    last: Float64s
    count: Float64s


def aggregate_samples(value: Float64s, steps: Steps) -> Aggregates:
    """The aggregates of samples; NaN is a missing sample."""
    return aggregate_aggregates(Aggregates(value, value, value, value, (~np.isnan(value)).astype(np.float64)), steps)


def aggregate_aggregates(fine: Aggregates, steps: Steps) -> Aggregates:
    """Coarser aggregates of finer ones: equal to those of the samples, except for rounding of the mean."""
    if not len(steps.first):
        none = np.empty(0)
        return Aggregates(none, none, none, none, none)
    is_there = fine.count > 0
    count = np.add.reduceat(fine.count, steps.first)
    total = np.add.reduceat(np.where(is_there, fine.mean * fine.count, 0.0), steps.first)
    row = np.maximum.reduceat(np.where(is_there, np.arange(len(is_there)), -1), steps.first)
    with np.errstate(invalid="ignore"):
        mean = total / np.where(count > 0, count, np.nan)
    return Aggregates(
        mean,
        np.fmin.reduceat(fine.min, steps.first),
        np.fmax.reduceat(fine.max, steps.first),
        np.where(row >= 0, fine.last[row], np.nan),
        count,
    )


def compute_coarse_statistics(
    fine: Aggregates, offsets: Int64s, statistics: Sequence[SeriesStatistic], *, of_counter: bool
) -> dict[SeriesStatistic, Float64s]:
    """Statistics of series that are partly available only as aggregates; every step has samples.

    Exact: min, max, mean, count, last; the increase of a counter unless it was reset within a step. Estimates: quantiles and
    standard deviation are those of the steps' means, first is the mean of the first step.
    """
    starts = offsets[:-1]
    level = fine.last if of_counter else fine.mean
    result = compute_statistics(level, offsets, statistics)
    if not len(starts):
        return result
    count = np.add.reduceat(fine.count, starts)
    exact: dict[SeriesStatistic, Float64s] = {
        SeriesStatistic.MIN: np.minimum.reduceat(fine.min, starts),
        SeriesStatistic.MAX: np.maximum.reduceat(fine.max, starts),
        SeriesStatistic.MEAN: np.add.reduceat(fine.mean * fine.count, starts) / count,
        SeriesStatistic.COUNT: count,
        SeriesStatistic.LAST: fine.last[offsets[1:] - 1],
    }
    return {statistic: exact.get(statistic, result[statistic]) for statistic in statistics}
