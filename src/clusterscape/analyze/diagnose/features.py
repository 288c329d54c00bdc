"""Numbers in which a GPU can differ from the others of its run, each compared with what the others did at the same times."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clusterscape.analyze.diagnose.distributions import compute_histograms
from clusterscape.analyze.diagnose.samples import Floats, Ints

MAX_VALUES = 1 << 22  # of a metric: longer courses are cut into steps, of which mean, least and largest value are kept
SHAPE_BINS = 64
BLOCKS = 24  # of the course, for slow changes
TAIL_RATIO = 0.01
TINY = 1e-12
LEAST_LAG = 1.0  # samples: which of two neighboring samples an event falls into is chance
QUANTUM_VALUES, QUANTUM_TOLERANCE = 20_000, 1e-6


@dataclass(frozen=True, slots=True)
class Features:
    """``values`` (GPU × feature, NaN: unknown) in the order of ``names``; ``floors`` are differences too small to matter."""

    names: tuple[str, ...]
    values: Floats
    floors: Floats


def compute_features(values: Floats, *, quantum: float | None = None) -> Features:
    """Features of every column of ``values`` (T × GPU; NaN where missing; rows in order of time, roughly even).

    ``quantum`` is the least difference that the metric can show (``find_quantum`` of the samples themselves, if these are
    means of them); None: found from ``values``. Nothing below one quantum, or one sample of lag, is a difference.

    All but "silence" and "shape" are about the residual against the median of all GPUs at the same time, in the metric's
    unit: level (median), drift (slope over the whole time), step (largest lasting change), late (end against before),
    unrest (log of the mean deviation, without its outermost), peaks and dips (mean of the outermost hundredth), lag (in
    samples, positive when behind), shape (Jensen–Shannon distance to all others), silence (share of samples missing).
    """
    is_missing = np.isnan(values)
    mean, low, high = _shorten(values)
    reference = row_medians(mean)
    residual = mean - reference[:, None]
    blocks = _block_medians(residual)
    scale = compute_pooled_scale(values)
    quantum = find_quantum(values) if quantum is None else quantum
    least = max(0.01 * scale, quantum)
    level = _column_medians(residual)
    centered = residual - level
    unrest = _usual_deviation(centered)
    usual_unrest = float(np.nanmedian(unrest)) if np.isfinite(unrest).any() else 0.0
    peaks = high - _spread_out(row_medians(high), np.fmax)[:, None] - level
    dips = _spread_out(row_medians(low), np.fmin)[:, None] + level - low
    columns: dict[str, tuple[Floats, float]] = {
        "level": (level, least),
        "drift": (_slope(blocks), least),
        "step": (_largest_step(blocks), least),
        "late": (_late_change(blocks), least),
        "unrest": (np.log(unrest + least + TINY), max(0.05, quantum / (usual_unrest + least + TINY))),
        "peaks": (_tail_mean(peaks), max(0.02 * scale, quantum)),
        "dips": (_tail_mean(dips), max(0.02 * scale, quantum)),
        "lag": (_lag(centered, reference), LEAST_LAG),
        "shape": (_shape(values), max(0.02, _shift_distance(values, quantum))),
        "silence": (is_missing.mean(axis=0), 0.01),
    }
    table = np.stack([column for column, _ in columns.values()], axis=1)
    table[is_missing.all(axis=0), :-1] = np.nan
    return Features(tuple(columns), table, np.array([floor for _, floor in columns.values()]))


def find_quantum(values: Floats) -> float:
    """The least difference between two values of a metric that is told in steps, such as whole percents; else next to 0."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return 0.0
    chosen = known[:: max(1, known.size // QUANTUM_VALUES)]
    span = float(chosen.max() - chosen.min())
    if span <= 0.0:
        return 0.0
    # What differs by rounding alone is the same value.
    different = np.unique(np.rint(chosen / (QUANTUM_TOLERANCE * span)))
    return float(np.diff(different).min()) * QUANTUM_TOLERANCE * span


def _usual_deviation(centered: Floats) -> Floats:
    """Mean deviation of each column, each counting for at most three usual ones of all: peaks and dips are told apart.

    Not the median: of values in steps that would be one step or the next.
    """
    deviation = np.abs(centered)
    known = deviation[~np.isnan(deviation)]
    if known.size == 0:
        return np.zeros(centered.shape[1])
    usual = float(np.mean(known[:: max(1, known.size // QUANTUM_VALUES)]))
    counts = np.maximum((~np.isnan(deviation)).sum(axis=0), 1)
    means: Floats = np.where(np.isnan(deviation), 0.0, np.minimum(deviation, 3.0 * usual)).sum(axis=0) / counts
    return means


def _spread_out(course: Floats, extreme: np.ufunc) -> Floats:
    """The extreme of each value and its two neighbors: one sample early or late is no difference."""
    out = course.copy()
    out[1:] = extreme(out[1:], course[:-1])
    out[:-1] = extreme(out[:-1], course[1:])
    return out


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
    counts = compute_histograms(values, bins=SHAPE_BINS).counts.astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    own = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    return _jensen_shannon_to(own, own.mean(axis=0))


def _shift_distance(values: Floats, quantum: float) -> float:
    """How far all samples together are from themselves, one quantum higher: what rounding alone does to a shape."""
    known = values[~np.isnan(values)]
    if known.size == 0 or quantum <= 0.0:
        return 0.0
    chosen = known[:: max(1, known.size // QUANTUM_VALUES)]
    both = np.stack([chosen, np.minimum(chosen + quantum, chosen.max())], axis=1)
    counts = compute_histograms(both, bins=SHAPE_BINS).counts / chosen.size
    return float(_jensen_shannon_to(counts[:1], counts[1])[0])


def _jensen_shannon_to(own: Floats, everyone: Floats) -> Floats:
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


def fits_when_shifted(values: Floats, column: int, *, max_lag: int) -> bool:
    """Whether a GPU does what the others do, two samples early or late or more: shifted back, half of its difference is gone."""
    others = np.delete(np.arange(values.shape[1]), column)
    lag = find_lag(values, column, others, max_lag=max_lag)
    if abs(lag) < 2:
        return False
    reference, own = row_medians(values[:, others]), values[:, column]
    late, early = slice(max(lag, 0), own.size + min(lag, 0)), slice(max(-lag, 0), own.size - max(lag, 0))
    return bool(_unlikeness(own[late], reference[early]) < 0.5 * _unlikeness(own[late], reference[late]))


def _unlikeness(own: Floats, reference: Floats) -> float:
    difference = own - reference
    known = difference[~np.isnan(difference)]
    return float(known.var()) if known.size else 0.0
