"""Patterns of one time series, each with its error: periodic dips, a change point, steady growth, increase of counters."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clusterscape.model.arrays import Float64s, Int64s

CONFIDENCE = 0.95
Z = 1.96
CHANGE_LIKELIHOOD = 7.35  # 95 % quantile of the likelihood ratio of a change point: −2 log(1 − √0.95) (Hansen 2000)


@dataclass(frozen=True, slots=True)
class Dips:
    """Periodic dips: ``period_s`` ± ``period_error_s`` (95 %), ``depth`` (low, high: quartiles) below ``usual``.

    ``share``: the loss, as the area of the dips relative to the usual level over the whole time.
    """

    starts: Int64s
    period_s: float
    period_error_s: float
    usual: float
    depth: float
    depth_low: float
    depth_high: float
    share: float


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The mean is ``before`` up to ``row`` and ``after`` from there on; ``low`` … ``high``: 95 % interval of ``row``."""

    row: int
    low: int
    high: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Growth:
    """Theil–Sen slope per second with its interval, Kendall's tau, and the fitted value at the end."""

    per_s: float
    low_per_s: float
    high_per_s: float
    trend: float
    last: float


def find_dips(
    times_s: Float64s, series: Float64s, *, min_depth: float, min_dips: int, max_irregularity: float
) -> Dips | None:
    """Periodic dips of at least ``min_depth`` relative to the usual level; None if there are none.

    The usual level is the upper quartile. The period is the slope of the dips' times over their index (allowing for missed dips),
    with its standard error; the autocorrelation at that period must also be positive.
    """
    is_known = np.isfinite(series)
    if is_known.sum() < 4 * min_dips:
        return None
    times_s, series = times_s[is_known], series[is_known]
    usual = float(np.quantile(series, 0.75))
    noise = 1.4826 * float(np.median(np.abs(series[series >= np.median(series)] - usual)))
    is_low = series < usual - max(min_depth * abs(usual), 3.0 * noise)
    starts = np.flatnonzero(is_low & ~np.concatenate([[False], is_low[:-1]]))
    starts = starts[starts > 0]  # a series that starts low is warming up, not dipping
    if starts.size < min_dips or is_low.mean() > 0.5:
        return None
    gaps = np.diff(times_s[starts])
    period = float(np.median(gaps))
    number = np.concatenate([[0], np.cumsum(np.maximum(np.rint(gaps / period), 1))])
    slope, error, residual = _fit_line(number, times_s[starts])
    step = float(np.median(np.diff(times_s)))
    if residual > max(max_irregularity * slope, step) or _autocorrelation(series, round(slope / step)) <= 0.1:
        return None
    stops = np.append(starts[1:], series.size)
    floors = np.array([series[a:b][is_low[a:b]].min() for a, b in zip(starts, stops, strict=True)])
    low, middle, high = np.quantile(usual - floors, [0.25, 0.5, 0.75])
    share = float(np.where(is_low, usual - series, 0.0).sum() / (abs(usual) * series.size))
    return Dips(
        starts,
        slope,
        Z * max(error, step / 12**0.5 / starts.size),
        usual,
        float(middle),
        float(low),
        float(high),
        share,
    )


def _fit_line(x: Float64s, y: Float64s) -> tuple[float, float, float]:
    """Slope, its standard error and the standard deviation of the residuals."""
    centered = x - x.mean()
    weight = float((centered**2).sum())
    slope = float((centered * y).sum() / weight)
    residual = y - y.mean() - slope * centered
    deviation = float(np.sqrt((residual**2).sum() / max(x.size - 2, 1)))
    return slope, deviation / weight**0.5, deviation


def _autocorrelation(series: Float64s, lag: int) -> float:
    """The largest autocorrelation within ±10% of the lag, since periods are rarely whole multiples of the step."""
    centered = series - series.mean()
    total = float(centered @ centered)
    slack = max(1, lag // 10)
    lags = [k for k in range(lag - slack, lag + slack + 1) if 0 < k < series.size]
    return max((float(centered[k:] @ centered[:-k]) / total for k in lags), default=0.0) if total > 0 else 0.0


def find_change_point(series: Float64s, *, min_rows: int = 3) -> ChangePoint | None:
    """The change point of the mean that explains the series best; None for fewer than 2 · ``min_rows`` values.

    The interval is the 95 % profile-likelihood interval, corrected for the autocorrelation of the noise.
    """
    rows = np.flatnonzero(np.isfinite(series))
    values = series[rows]
    size = values.size
    if size < 2 * min_rows:
        return None
    cut = np.arange(min_rows, size - min_rows + 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    before, after = sums[cut - 1] / cut, (sums[-1] - sums[cut - 1]) / (size - cut)
    error = squares[-1] - cut * before**2 - (size - cut) * after**2
    best = int(error.argmin())
    place = int(cut[best])
    residual = values - np.where(np.arange(size) < place, before[best], after[best])
    variance = max(float(residual @ residual) / size, 1e-12 * max(float(values @ values) / size, 1e-300))
    autocorrelation = float(np.clip(residual[1:] @ residual[:-1] / max(float(residual @ residual), 1e-300), 0.0, 0.95))
    within = np.flatnonzero(
        (error - error[best]) / variance * (1 - autocorrelation) / (1 + autocorrelation) <= CHANGE_LIKELIHOOD
    )
    low, high = int(cut[within[0]]), int(cut[within[-1]])
    return ChangePoint(
        int(rows[place]),
        int(rows[max(low - 1, 0)]),
        int(rows[min(high, size - 1)]),
        float(before[best]),
        float(after[best]),
    )


def fit_growth(times_s: Float64s, series: Float64s, *, max_points: int = 300) -> Growth | None:
    """Robust growth of a series; None for fewer than 5 values. Long series are reduced to medians of even pieces."""
    from scipy.stats import kendalltau, theilslopes  # slow to import

    is_known = np.isfinite(series)
    times, values = times_s[is_known], series[is_known]
    if values.size < 5:
        return None
    pieces = min(max_points, values.size)
    bounds = np.linspace(0, values.size, pieces + 1).astype(np.int64)
    x = np.array([np.median(times[a:b]) for a, b in pairwise(bounds)])
    y = np.array([np.median(values[a:b]) for a, b in pairwise(bounds)])
    if np.ptp(y) == 0:
        return Growth(0.0, 0.0, 0.0, 0.0, float(y[-1]))
    slope, intercept, low, high = theilslopes(y, x, alpha=CONFIDENCE)
    trend = float(kendalltau(x, y).statistic)
    return Growth(float(slope), float(low), float(high), trend, float(intercept + slope * times[-1]))


def sum_increases(counter: Float64s) -> Float64s:
    """Total increase of each column of a counter (T × GPU), like PromQL ``increase``: handles resets, ignores missing values."""
    out = np.zeros(counter.shape[1])
    for column in range(counter.shape[1]):
        values = counter[:, column]
        values = values[np.isfinite(values)]
        steps = np.diff(values)
        out[column] = float(np.where(steps >= 0, steps, values[1:]).sum())
    return out
