"""Numbers in which a GPU can differ from the others of its run, each compared with what the others did at the same times."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clusterscape.analyze.diagnose.distributions import compute_histograms
from clusterscape.analyze.diagnose.samples import Floats, Ints

MAX_VALUES = 1 << 22  # of a metric: longer courses are cut into steps, of which mean, least and largest value are kept
BLOCKS = 24  # of the course, for slow changes
TAIL_RATIO = 0.01
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Features:
    """``values`` (GPU × feature, NaN: unknown) in the order of ``names``; ``floors`` are differences too small to matter."""

    names: tuple[str, ...]
    values: Floats
    floors: Floats


def compute_features(values: Floats) -> Features:
    """Features of every column of ``values`` (T × GPU; NaN where missing; rows in order of time, roughly even).

    All but "silence" and "shape" are about the residual against the median of all GPUs at the same time, in the metric's
    unit: level (median), drift (slope over the whole time), step (largest lasting change), late (end against before),
    unrest (log of the median deviation), peaks and dips (mean of the outermost hundredth), lag (in samples, positive when
    behind), shape (Jensen–Shannon distance to all others), silence (share of samples missing).
    """
    is_missing = np.isnan(values)
    mean, low, high = _shorten(values)
    reference = row_medians(mean)
    residual = mean - reference[:, None]
    blocks = _block_medians(residual)
    scale = compute_pooled_scale(values)
    level = _column_medians(residual)
    centered = residual - level
    unrest = _column_medians(np.abs(centered))
    columns: dict[str, tuple[Floats, float]] = {
        "level": (level, 0.01 * scale),
        "drift": (_slope(blocks), 0.01 * scale),
        "step": (_largest_step(blocks), 0.01 * scale),
        "late": (_late_change(blocks), 0.01 * scale),
        "unrest": (np.log(unrest + 0.01 * scale + TINY), 0.05),
        "peaks": (_tail_mean(high - row_medians(high)[:, None] - level), 0.02 * scale),
        "dips": (_tail_mean(row_medians(low)[:, None] + level - low), 0.02 * scale),
        "lag": (_lag(centered, reference), 0.05),
        "shape": (_shape(values), 0.02),
        "silence": (is_missing.mean(axis=0), 0.01),
    }
    table = np.stack([column for column, _ in columns.values()], axis=1)
    table[is_missing.all(axis=0), :-1] = np.nan
    return Features(tuple(columns), table, np.array([floor for _, floor in columns.values()]))


def _shorten(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, least and largest value of even steps; the samples themselves where they are few enough."""
    points = max(MAX_VALUES // max(values.shape[1], 1), 256)
    if values.shape[0] <= points:
        return values, values, values
    per_step = -(-values.shape[0] // points)
    starts = np.arange(0, values.shape[0], per_step)
    is_known = ~np.isnan(values)
    counts = np.add.reduceat(is_known.astype(np.int64), starts, axis=0)
    sums = np.add.reduceat(np.where(is_known, values, 0.0), starts, axis=0)
    mean = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return mean, np.fmin.reduceat(values, starts, axis=0), np.fmax.reduceat(values, starts, axis=0)


def row_medians(table: Floats) -> Floats:
    """The median of each row's known values; NaN for a row without any."""
    return _sorted_quantile(np.sort(table, axis=1), 0.5)


def _column_medians(table: Floats) -> Floats:
    return row_medians(np.ascontiguousarray(table.T))


def _sorted_quantile(rows: Floats, quantile: float) -> Floats:
    """Linear quantile of sorted rows, their NaN at the end; NaN for rows without a value. (nanquantile is far slower.)"""
    counts = np.count_nonzero(~np.isnan(rows), axis=1)
    position = quantile * np.maximum(counts - 1, 0)
    before = np.floor(position).astype(np.int64)
    after = np.minimum(before + 1, np.maximum(counts - 1, 0))
    low = np.take_along_axis(rows, before[:, None], axis=1)[:, 0]
    high = np.take_along_axis(rows, after[:, None], axis=1)[:, 0]
    between: Floats = low + (position - before) * (high - low)
    return between


def compute_pooled_scale(values: Floats) -> float:
    """Between the 2nd and the 98th percentile of all samples."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return 0.0
    low, high = np.quantile(known[:: max(1, known.size // 100_000)], [0.02, 0.98])
    return float(high - low)


def _block_medians(residual: Floats) -> Floats:
    """(blocks × GPU)."""
    bounds = np.linspace(0, len(residual), min(BLOCKS, len(residual)) + 1).astype(np.int64)
    return np.stack([_column_medians(residual[a:b]) for a, b in pairwise(bounds)])


def _slope(blocks: Floats) -> Floats:
    """Least squares over block medians, as the change over the whole time."""
    is_known = ~np.isnan(blocks)
    time = np.linspace(-0.5, 0.5, len(blocks))[:, None] if len(blocks) > 1 else np.zeros((1, 1))
    counts = np.maximum(is_known.sum(axis=0), 1)
    time = np.where(is_known, time, 0.0)
    time = np.where(is_known, time - time.sum(axis=0) / counts, 0.0)
    weight = (time**2).sum(axis=0)
    covariance = (time * np.where(is_known, blocks, 0.0)).sum(axis=0)
    slope: Floats = np.divide(covariance, weight, out=np.zeros(blocks.shape[1]), where=weight > 0)
    return slope


def _largest_step(blocks: Floats) -> Floats:
    """Of all cuts into before and after, the change of the mean where it is most significant (CUSUM), signed."""
    is_known = ~np.isnan(blocks)
    filled = np.where(is_known, blocks, 0.0)
    before, total = np.cumsum(is_known, axis=0)[:-1], is_known.sum(axis=0)
    after = total - before
    sums = np.cumsum(filled, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = (sums[-1] - sums[:-1]) / after - sums[:-1] / before
        weighted = np.where((before > 0) & (after > 0), change * np.sqrt(before * after / np.maximum(total, 1)), 0.0)
    if weighted.size == 0:
        return np.zeros(blocks.shape[1])
    largest: Floats = np.take_along_axis(weighted, np.abs(weighted).argmax(axis=0)[None, :], axis=0)[0]
    return largest


def _late_change(blocks: Floats) -> Floats:
    """The last known block against the median of those before."""
    if len(blocks) < 3:
        return np.zeros(blocks.shape[1])
    is_known = ~np.isnan(blocks)
    last = len(blocks) - 1 - is_known[::-1].argmax(axis=0)
    end = np.take_along_axis(blocks, last[None, :], axis=0)[0]
    earlier = np.where(np.arange(len(blocks))[:, None] < last, blocks, np.nan)
    change: Floats = np.nan_to_num(end - _column_medians(earlier))
    return change


def _tail_mean(excess: Floats) -> Floats:
    """Mean of the largest hundredth (at least 3) of each column."""
    count = min(max(3, round(TAIL_RATIO * len(excess))), len(excess))
    largest = np.partition(np.where(np.isnan(excess), -np.inf, excess), len(excess) - count, axis=0)[-count:]
    is_known = np.isfinite(largest)
    mean: Floats = np.where(is_known, largest, 0.0).sum(axis=0) / np.maximum(is_known.sum(axis=0), 1)
    return mean


def _lag(centered: Floats, reference: Floats) -> Floats:
    """How many samples behind: a small shift τ adds −τ · (slope of the reference) to the residual."""
    slope = np.gradient(reference) if reference.size > 1 else np.zeros(reference.size)
    is_known = ~np.isnan(centered) & ~np.isnan(slope)[:, None]
    weight = np.where(is_known, np.nan_to_num(slope)[:, None] ** 2, 0.0).sum(axis=0)
    product = np.where(is_known, centered * slope[:, None], 0.0).sum(axis=0)
    lag: Floats = np.divide(-product, weight, out=np.zeros(weight.size), where=weight > 0)
    return lag


def _shape(values: Floats) -> Floats:
    """Jensen–Shannon distance between a GPU's samples and those of all GPUs together."""
    counts = compute_histograms(values, bins=64).counts.astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    own = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    everyone = own.mean(axis=0)
    middle = (own + everyone) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(own > 0, own * np.log(own / middle), 0.0)
        right = np.where(everyone > 0, everyone * np.log(everyone / middle), 0.0)
    divergence = 0.5 * (left.sum(axis=1) + right.sum(axis=1))
    distance: Floats = np.sqrt(np.maximum(divergence, 0.0))
    return distance


def find_lag(values: Floats, column: int, others: Ints, *, max_lag: int) -> int:
    """By how many samples ``column`` is behind the median of ``others``, at most ``max_lag``: the largest correlation."""
    reference = row_medians(values[:, others])
    own = values[:, column]
    is_known = ~(np.isnan(reference) | np.isnan(own))
    x = np.where(is_known, own - own[is_known].mean(), 0.0) if is_known.any() else np.zeros(own.size)
    y = np.where(is_known, reference - reference[is_known].mean(), 0.0) if is_known.any() else np.zeros(own.size)
    max_lag = min(max_lag, own.size - 1)
    lags = range(-max_lag, max_lag + 1)
    products = [float(x[max(lag, 0) : x.size + min(lag, 0)] @ y[max(-lag, 0) : y.size - max(lag, 0)]) for lag in lags]
    return lags[int(np.argmax(products))]
