"""Features that describe how a GPU differs from the others of its run, each relative to the others at the same times."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clusterscape.analyze.diagnose.distances import compute_histograms
from clusterscape.model.arrays import Float64s, Int64s

MAX_VALUES = 1 << 22  # per metric; longer series are reduced to the mean, minimum and maximum of even steps
SHAPE_BINS = 64
BLOCKS = 24  # of the series, for slow changes
TAIL_RATIO = 0.01
TINY = 1e-12
LEAST_LAG = 1.0  # samples; an event falls into one of two neighboring samples by chance
QUANTUM_VALUES, QUANTUM_TOLERANCE = 20_000, 1e-6


@dataclass(frozen=True, slots=True)
class Features:
    """``values`` (GPU × feature, NaN: unknown) in the order of ``names``; ``floors``: smaller differences do not matter."""

    names: tuple[str, ...]
    values: Float64s
    floors: Float64s


def compute_features(values: Float64s, *, quantum: float | None = None) -> Features:
    """Features of every column of ``values`` (T × GPU; NaN where missing; rows sorted by time, roughly evenly spaced).

    ``quantum``: the resolution of the metric (``find_quantum`` of the original samples if ``values`` are means of them); None:
    estimated from ``values``. Differences below one quantum, or one sample of lag, are ignored.

    All but "silence" and "shape" describe the residual from the median of all GPUs at the same time, in the metric's unit:
    level (median), drift (slope over the whole time), step (largest lasting change), late (end compared with before), unrest
    (log of the clipped mean deviation), peaks and dips (mean of the most extreme 1%), lag (in samples, positive if behind),
    shape (Jensen–Shannon distance to all others), silence (share of missing samples).
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
    peaks = high - _extend_extremes(row_medians(high), np.fmax)[:, None] - level
    dips = _extend_extremes(row_medians(low), np.fmin)[:, None] + level - low
    columns: dict[str, tuple[Float64s, float]] = {
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


def find_quantum(values: Float64s) -> float:
    """The resolution of a metric: the smallest difference between two values, such as 1% for whole percents."""
    present = values[~np.isnan(values)]
    if present.size == 0:
        return 0.0
    chosen = present[:: max(1, present.size // QUANTUM_VALUES)]
    span = float(chosen.max() - chosen.min())
    if span <= 0.0:
        return 0.0
    # Values that differ only by rounding count as equal.
    different = np.unique(np.rint(chosen / (QUANTUM_TOLERANCE * span)))
    return float(np.diff(different).min()) * QUANTUM_TOLERANCE * span


def _usual_deviation(centered: Float64s) -> Float64s:
    """Mean absolute deviation of each column, clipped at three times the overall mean: peaks and dips are separate features.

    Not the median, which would jump between steps for quantized values.
    """
    deviation = np.abs(centered)
    present = deviation[~np.isnan(deviation)]
    if present.size == 0:
        return np.zeros(centered.shape[1])
    usual = float(np.mean(present[:: max(1, present.size // QUANTUM_VALUES)]))
    counts = np.maximum((~np.isnan(deviation)).sum(axis=0), 1)
    means: Float64s = np.where(np.isnan(deviation), 0.0, np.minimum(deviation, 3.0 * usual)).sum(axis=0) / counts
    return means


def _extend_extremes(series: Float64s, extreme: np.ufunc) -> Float64s:
    """The extreme of each value and its two neighbors, to tolerate a shift of one sample."""
    out = series.copy()
    out[1:] = extreme(out[1:], series[:-1])
    out[:-1] = extreme(out[:-1], series[1:])
    return out


def _shorten(values: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Mean, minimum and maximum of even steps; the samples themselves if there are few enough."""
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


def row_medians(table: Float64s) -> Float64s:
    """The median of each row without missing values; NaN for an empty row."""
    return _sorted_quantile(np.sort(table, axis=1), 0.5)


def _column_medians(table: Float64s) -> Float64s:
    return row_medians(np.ascontiguousarray(table.T))


def _sorted_quantile(rows: Float64s, quantile: float) -> Float64s:
    """Linear quantile of sorted rows with NaN at the end; NaN for rows without a value. Much faster than nanquantile."""
    counts = np.count_nonzero(~np.isnan(rows), axis=1)
    position = quantile * np.maximum(counts - 1, 0)
    before = np.floor(position).astype(np.int64)
    after = np.minimum(before + 1, np.maximum(counts - 1, 0))
    low = np.take_along_axis(rows, before[:, None], axis=1)[:, 0]
    high = np.take_along_axis(rows, after[:, None], axis=1)[:, 0]
    between: Float64s = low + (position - before) * (high - low)
    return between


def compute_pooled_scale(values: Float64s) -> float:
    """Range from the 2nd to the 98th percentile of all samples."""
    present = values[~np.isnan(values)]
    if present.size == 0:
        return 0.0
    low, high = np.quantile(present[:: max(1, present.size // 100_000)], [0.02, 0.98])
    return float(high - low)


def _block_medians(residual: Float64s) -> Float64s:
    """Medians of blocks of rows (blocks × GPU)."""
    bounds = np.linspace(0, len(residual), min(BLOCKS, len(residual)) + 1).astype(np.int64)
    return np.stack([_column_medians(residual[a:b]) for a, b in pairwise(bounds)])


def _slope(blocks: Float64s) -> Float64s:
    """Least-squares slope of the block medians, as the change over the whole time."""
    is_known = ~np.isnan(blocks)
    time = np.linspace(-0.5, 0.5, len(blocks))[:, None] if len(blocks) > 1 else np.zeros((1, 1))
    counts = np.maximum(is_known.sum(axis=0), 1)
    time = np.where(is_known, time, 0.0)
    time = np.where(is_known, time - time.sum(axis=0) / counts, 0.0)
    weight = (time**2).sum(axis=0)
    covariance = (time * np.where(is_known, blocks, 0.0)).sum(axis=0)
    slope: Float64s = np.divide(covariance, weight, out=np.zeros(blocks.shape[1]), where=weight > 0)
    return slope


def _largest_step(blocks: Float64s) -> Float64s:
    """The signed change of the mean at the most significant cut into before and after (CUSUM)."""
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
    largest: Float64s = np.take_along_axis(weighted, np.abs(weighted).argmax(axis=0)[None, :], axis=0)[0]
    return largest


def _late_change(blocks: Float64s) -> Float64s:
    """The last block with values, compared with the median of the blocks before."""
    if len(blocks) < 3:
        return np.zeros(blocks.shape[1])
    is_known = ~np.isnan(blocks)
    last = len(blocks) - 1 - is_known[::-1].argmax(axis=0)
    end = np.take_along_axis(blocks, last[None, :], axis=0)[0]
    earlier = np.where(np.arange(len(blocks))[:, None] < last, blocks, np.nan)
    change: Float64s = np.nan_to_num(end - _column_medians(earlier))
    return change


def _tail_mean(excess: Float64s) -> Float64s:
    """Mean of the largest 1% (at least 3 values) of each column."""
    count = min(max(3, round(TAIL_RATIO * len(excess))), len(excess))
    largest = np.partition(np.where(np.isnan(excess), -np.inf, excess), len(excess) - count, axis=0)[-count:]
    is_known = np.isfinite(largest)
    mean: Float64s = np.where(is_known, largest, 0.0).sum(axis=0) / np.maximum(is_known.sum(axis=0), 1)
    return mean


def _lag(centered: Float64s, reference: Float64s) -> Float64s:
    """Lag in samples, positive if behind: a small shift τ adds −τ · (slope of the reference) to the residual."""
    slope = np.gradient(reference) if reference.size > 1 else np.zeros(reference.size)
    is_known = ~np.isnan(centered) & ~np.isnan(slope)[:, None]
    weight = np.where(is_known, np.nan_to_num(slope)[:, None] ** 2, 0.0).sum(axis=0)
    product = np.where(is_known, centered * slope[:, None], 0.0).sum(axis=0)
    lag: Float64s = np.divide(-product, weight, out=np.zeros(weight.size), where=weight > 0)
    return lag


def _shape(values: Float64s) -> Float64s:
    """Jensen–Shannon distance between a GPU's samples and the samples of all GPUs."""
    counts = compute_histograms(values, bins=SHAPE_BINS).counts.astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    own = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    return _jensen_shannon_to(own, own.mean(axis=0))


def _shift_distance(values: Float64s, quantum: float) -> float:
    """Jensen–Shannon distance of all samples from themselves shifted by one quantum: the effect of rounding alone."""
    present = values[~np.isnan(values)]
    if present.size == 0 or quantum <= 0.0:
        return 0.0
    chosen = present[:: max(1, present.size // QUANTUM_VALUES)]
    both = np.stack([chosen, np.minimum(chosen + quantum, chosen.max())], axis=1)
    counts = compute_histograms(both, bins=SHAPE_BINS).counts / chosen.size
    return float(_jensen_shannon_to(counts[:1], counts[1])[0])


def _jensen_shannon_to(own: Float64s, everyone: Float64s) -> Float64s:
    middle = (own + everyone) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(own > 0, own * np.log(own / middle), 0.0)
        right = np.where(everyone > 0, everyone * np.log(everyone / middle), 0.0)
    divergence = 0.5 * (left.sum(axis=1) + right.sum(axis=1))
    distance: Float64s = np.sqrt(np.maximum(divergence, 0.0))
    return distance


def find_lag(values: Float64s, column: int, others: Int64s, *, max_lag: int) -> int:
    """Lag of ``column`` behind the median of ``others`` in samples, at most ±``max_lag``, by the largest correlation."""
    reference = row_medians(values[:, others])
    own = values[:, column]
    is_known = ~(np.isnan(reference) | np.isnan(own))
    x = np.where(is_known, own - own[is_known].mean(), 0.0) if is_known.any() else np.zeros(own.size)
    y = np.where(is_known, reference - reference[is_known].mean(), 0.0) if is_known.any() else np.zeros(own.size)
    max_lag = min(max_lag, own.size - 1)
    lags = range(-max_lag, max_lag + 1)
    products = [float(x[max(lag, 0) : x.size + min(lag, 0)] @ y[max(-lag, 0) : y.size - max(lag, 0)]) for lag in lags]
    return lags[int(np.argmax(products))]


def fits_when_shifted(values: Float64s, column: int, *, max_lag: int) -> bool:
    """Whether a GPU behaves like the others with a lag of at least two samples: shifted back, its difference is halved."""
    others = np.delete(np.arange(values.shape[1]), column)
    lag = find_lag(values, column, others, max_lag=max_lag)
    if abs(lag) < 2:
        return False
    reference, own = row_medians(values[:, others]), values[:, column]
    late, early = slice(max(lag, 0), own.size + min(lag, 0)), slice(max(-lag, 0), own.size - max(lag, 0))
    return bool(
        _difference_variance(own[late], reference[early]) < 0.5 * _difference_variance(own[late], reference[late])
    )


def _difference_variance(own: Float64s, reference: Float64s) -> float:
    difference = own - reference
    present = difference[~np.isnan(difference)]
    return float(present.var()) if present.size else 0.0
