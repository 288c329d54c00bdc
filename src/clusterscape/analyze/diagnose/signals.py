"""Patterns of one course over time, each with its error: even dips, one lasting change, steady growth, counters' increase."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clusterscape.analyze.diagnose.samples import Floats, Ints

CONFIDENCE = 0.95
Z = 1.96
CHANGE_LIKELIHOOD = 7.35  # 95 % of the likelihood ratio of a place of change: −2 log(1 − √0.95) (Hansen 2000)


@dataclass(frozen=True, slots=True)
class Dips:
    """Dips at even times: ``period_s`` ± ``period_error_s`` (95 %), ``depth`` (low, high: quartiles) below ``usual``.

    ``share`` is what is lost: the area of the dips, relative to the usual level over the whole time.
    """

    starts: Ints
    period_s: float
    period_error_s: float
    usual: float
    depth: float
    depth_low: float
    depth_high: float
    share: float


@dataclass(frozen=True, slots=True)
class Change:
    """The course has mean ``before`` up to ``row`` and ``after`` from there on; the place is between ``low`` and ``high``."""

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
    times_s: Floats, course: Floats, *, min_depth: float, min_dips: int, max_irregularity: float
) -> Dips | None:
    """Dips of at least ``min_depth`` (relative to the usual level) that come at even times; None where they do not.

    The usual level is the upper quartile. The period is the slope of the dips' times over their number (missed ones
    skipped), with its standard error; the autocorrelation at that period must be positive as well.
    """
    is_known = np.isfinite(course)
    if is_known.sum() < 4 * min_dips:
        return None
    times_s, course = times_s[is_known], course[is_known]
    usual = float(np.quantile(course, 0.75))
    noise = 1.4826 * float(np.median(np.abs(course[course >= np.median(course)] - usual)))
    is_low = course < usual - max(min_depth * abs(usual), 3.0 * noise)
    starts = np.flatnonzero(is_low & ~np.concatenate([[False], is_low[:-1]]))
    starts = starts[starts > 0]  # a course that begins low is starting up, not dipping
    if starts.size < min_dips or is_low.mean() > 0.5:
        return None
    gaps = np.diff(times_s[starts])
    period = float(np.median(gaps))
    number = np.concatenate([[0], np.cumsum(np.maximum(np.rint(gaps / period), 1))])
    slope, error, residual = _fit_line(number, times_s[starts])
    step = float(np.median(np.diff(times_s)))
    if residual > max(max_irregularity * slope, step) or _autocorrelation(course, round(slope / step)) <= 0.1:
        return None
    stops = np.append(starts[1:], course.size)
    floors = np.array([course[a:b][is_low[a:b]].min() for a, b in zip(starts, stops, strict=True)])
    low, middle, high = np.quantile(usual - floors, [0.25, 0.5, 0.75])
    share = float(np.where(is_low, usual - course, 0.0).sum() / (abs(usual) * course.size))
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


def _fit_line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Slope, its standard error and the standard deviation of the residuals."""
    centered = x - x.mean()
    weight = float((centered**2).sum())
    slope = float((centered * y).sum() / weight)
    residual = y - y.mean() - slope * centered
    deviation = float(np.sqrt((residual**2).sum() / max(x.size - 2, 1)))
    return slope, deviation / weight**0.5, deviation


def _autocorrelation(course: Floats, lag: int) -> float:
    """The largest within a tenth of the lag: samples and periods seldom fit exactly."""
    centered = course - course.mean()
    total = float(centered @ centered)
    slack = max(1, lag // 10)
    lags = [k for k in range(lag - slack, lag + slack + 1) if 0 < k < course.size]
    return max((float(centered[k:] @ centered[:-k]) / total for k in lags), default=0.0) if total > 0 else 0.0


def find_change(course: Floats, *, min_rows: int = 3) -> Change | None:
    """The one lasting change of the mean that explains the course best; None for fewer than 2 · ``min_rows`` values.

    The interval holds all places whose likelihood is within 95 % of the best one (profile likelihood, with the noise's
    correlation from row to row taken into account).
    """
    rows = np.flatnonzero(np.isfinite(course))
    values = course[rows]
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
    memory = float(np.clip(residual[1:] @ residual[:-1] / max(float(residual @ residual), 1e-300), 0.0, 0.95))
    within = np.flatnonzero((error - error[best]) / variance * (1 - memory) / (1 + memory) <= CHANGE_LIKELIHOOD)
    low, high = int(cut[within[0]]), int(cut[within[-1]])
    return Change(
        int(rows[place]),
        int(rows[max(low - 1, 0)]),
        int(rows[min(high, size - 1)]),
        float(before[best]),
        float(after[best]),
    )


def fit_growth(times_s: Floats, course: Floats, *, max_points: int = 300) -> Growth | None:
    """Robust growth of a course; None for fewer than 5 values. Long courses are cut into medians of even pieces."""
    from scipy.stats import kendalltau, theilslopes  # takes long to import

    is_known = np.isfinite(course)
    times, values = times_s[is_known], course[is_known]
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


def sum_increases(counter: Floats) -> Floats:
    """Increase of each column (T × GPU) of a counter over the time; after a reset it counts from 0 again. Missing skipped."""
    out = np.zeros(counter.shape[1])
    for column in range(counter.shape[1]):
        values = counter[:, column]
        values = values[np.isfinite(values)]
        steps = np.diff(values)
        out[column] = float(np.where(steps >= 0, steps, values[1:]).sum())
    return out
