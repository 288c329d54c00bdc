"""Single odd GPUs: the distance of each from the others in units of their spread, and its significance.

Groups of GPUs that differ together are found by ``clustering``.
"""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.diagnose.features import Features, compute_features, fits_when_shifted, row_medians
from clusterscape.model.arrays import Float64s, Int64s

MIN_GPUS = 5  # with fewer, the spread is unknown
TAIL_SHARE = 0.1  # share of GPUs on each side that the tail is fitted to …
SPARED_SHARE = 0.02  # … without the most extreme ones, which may be odd
MIN_TAIL = 24  # with fewer GPUs in the tail, both sides are folded into one
MIN_SIDE = 3
LEAST_TAIL = 0.15
MAX_LAG = 40  # samples
MAX_SHIFTED = 16  # odd GPUs that are tested for a lag
# Order in which features describe an odd GPU: a lag also causes dips, and everything changes the shape, so these come last.
FEATURE_ORDER = {"peaks": 1, "dips": 1, "unrest": 1, "shape": 2}


@dataclass(frozen=True, slots=True)
class OddGpu:
    """``column`` of the values; ``distance`` from the others in their spreads; ``p_value`` corrected for all GPUs and features.

    ``features``: the significant features, most specific first, each with its distance (negative: below the others).
    """

    column: int
    distance: float
    p_value: float
    features: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class OddGpus:
    """``ranked``: columns of all tested GPUs, oddest first; ``odd``: those with ``p_value`` ≤ ``significance``, in that order.

    ``note``: why GPUs could not be tested, else None.
    """

    ranked: Int64s
    odd: tuple[OddGpu, ...]
    significance: float
    note: str | None


def find_odd_gpus(
    values: Float64s, *, columns: Int64s | None = None, significance: float = 0.01, quantum: float | None = None
) -> OddGpus:
    """Rank GPUs by their distance from the rest, and select those that are significantly far.

    Parameters
    ----------
    values : (T × GPU), NaN where missing, rows sorted by time.
    columns : GPUs to compare among each other (a cluster); None for all.
    significance : family-wise error rate: probability of reporting any GPU if none is odd.
    quantum : resolution of the metric; None: estimated from ``values`` (see ``compute_features``).

    The tail of each feature is fitted to the GPUs themselves (``compute_log_tail``), so that the test is conservative for
    long-tailed distributions; p-values are Bonferroni-corrected. Needs at least 5 GPUs.
    """
    columns = np.arange(values.shape[1]) if columns is None else columns
    if columns.size < MIN_GPUS or values.shape[0] < 2:
        note = f"{columns.size} GPUs with {values.shape[0]} samples are too few to find an odd GPU."
        return OddGpus(columns[:0], (), significance, note)
    features = compute_features(values[:, columns], quantum=quantum)
    distances = _standardize(features)
    log_p = np.stack([_log_two_sided(distances[:, k]) for k in range(distances.shape[1])], axis=1)
    tests = np.log(float(log_p.size))
    least = log_p.min(axis=1)
    order = np.lexsort((np.arange(columns.size), -np.abs(distances).max(axis=1), least))
    odd: list[OddGpu] = []
    for row in order:
        corrected = min(0.0, float(least[row] + tests))
        if corrected > np.log(significance):
            break
        is_lagging = len(odd) < MAX_SHIFTED and fits_when_shifted(values[:, columns], int(row), max_lag=MAX_LAG)
        significant = _order_features(features.names, log_p[row], np.log(significance) - tests, is_lagging=is_lagging)
        gpu_features = tuple((features.names[k], float(distances[row, k])) for k in significant)
        odd.append(
            OddGpu(int(columns[row]), float(np.abs(distances[row]).max()), float(np.exp(corrected)), gpu_features)
        )
    return OddGpus(columns[order], tuple(odd), significance, None)


def _order_features(names: tuple[str, ...], log_p: Float64s, bound: float, *, is_lagging: bool) -> list[int]:
    """Features below ``bound``, most specific first. A lag comes first: it also causes dips, peaks and a different end."""
    ordered = [int(k) for k in np.argsort(log_p) if log_p[k] <= bound]
    ordered.sort(key=lambda k: FEATURE_ORDER.get(names[k], 0))
    lag = names.index("lag")
    return [lag, *(k for k in ordered if k != lag)] if is_lagging else ordered


def _standardize(features: Features) -> Float64s:
    """(GPU × feature) distances from the median in robust spreads (1.4826 · MAD, at least the floor); 0 if unknown."""
    values = features.values
    center = row_medians(np.ascontiguousarray(values.T))
    deviation = np.abs(values - center)
    spread = np.maximum(1.4826 * row_medians(np.ascontiguousarray(deviation.T)), features.floors)
    out = np.divide(values - center, spread, out=np.zeros(values.shape), where=spread > 0)
    return np.nan_to_num(out)


def _log_two_sided(distance: Float64s) -> Float64s:
    """Log of the two-sided p-value of each GPU, given the others."""
    tail = round(TAIL_SHARE * distance.size)
    if tail < MIN_TAIL:
        return compute_log_tail(np.abs(distance), distance.size)
    above, below = compute_log_tail(distance, tail), compute_log_tail(-distance, tail)
    log_p: Float64s = np.minimum(np.minimum(above, below) + np.log(2.0), 0.0)
    return log_p


def compute_log_tail(distance: Float64s, tail: int) -> Float64s:
    """Log P(a GPU is at least this far out), from an exponential tail fitted to the ``tail`` outermost GPUs.

    The outermost 2 % (at least one) may be odd: they are censored (type II) at the next value. Since the scale is estimated, the
    predictive distribution of another GPU is Pareto: (1 + y/k)^−k for y scales and k uncensored values. Excesses over a high
    threshold are exponential for every light tail (Pickands, Balkema, de Haan); for a Gaussian this is conservative.
    """
    size = distance.size
    ordered = np.sort(distance)[::-1]
    censored = max(1, round(SPARED_SHARE * size))
    start = 0.0 if tail >= size else float(ordered[tail])
    kept = ordered[censored:tail] - start
    uncensored = kept.size
    if uncensored < MIN_SIDE:
        return np.zeros(size)
    scale = (float(kept.sum()) + censored * float(kept[0])) / uncensored
    share = min(tail / size, 1.0)
    # In units of the spread: a thinner tail is an artifact of rounding, and would make one spread significant.
    scale = max(scale, LEAST_TAIL)
    excess = np.maximum(distance - start, 0.0) / scale
    log_p = np.log(share) - uncensored * np.log1p(excess / uncensored)
    return np.where(distance > start, log_p, 0.0)
