"""Single odd GPUs: how far each is from the others in units of their own spread, and whether chance would do as much.

Groups of GPUs that differ together are the business of ``clustering``.
"""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.diagnose.features import Features, compute_features, fits_when_shifted, row_medians
from clusterscape.analyze.diagnose.samples import Floats, Ints

MIN_GPUS = 5  # fewer have no spread to be judged against
TAIL_SHARE = 0.1  # of the GPUs, on each side: what the tail is fitted to …
SPARED_SHARE = 0.02  # … without the outermost of these, which may be odd
MIN_TAIL = 24  # fewer GPUs in the tail: both sides are folded into one, from the middle on
MIN_SIDE = 3
LEAST_TAIL = 0.15
MAX_LAG = 40  # samples
MOST_SHIFTED = 16  # odd GPUs that are tried at other lags
# What a GPU is said to be odd by: a lag also makes dips, and everything changes the shape, so these come after.
VAGUENESS = {"peaks": 1, "dips": 1, "unrest": 1, "shape": 2}


@dataclass(frozen=True, slots=True)
class OddGpu:
    """``column`` of the values; ``distance`` from the others in their spreads; ``p_value`` corrected for all GPUs and features.

    ``features`` that are significant, most telling first, each with its distance (negative: below the others).
    """

    column: int
    distance: float
    p_value: float
    features: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class OddGpus:
    """``ranked``: every judged GPU's column, oddest first; ``odd``: those with ``p_value`` ≤ ``significance``, as ranked.

    ``note`` says why nothing could be judged, where so.
    """

    ranked: Ints
    odd: tuple[OddGpu, ...]
    significance: float
    note: str | None


def find_odd_gpus(
    values: Floats, *, columns: Ints | None = None, significance: float = 0.05, quantum: float | None = None
) -> OddGpus:
    """Rank GPUs by how far they are from the rest, and say which are further than chance explains.

    Parameters
    ----------
    values : (T × GPU), NaN where missing, rows in order of time.
    columns : GPUs to compare among each other (a cluster); None for all.
    significance : chance of naming any GPU when none is odd (family-wise, over all GPUs and features).
    quantum : the least difference that the metric can show; None: found from ``values`` (see ``compute_features``).

    Each feature's tail is fitted to the GPUs themselves (``compute_log_tail``), so that a spread with long tails makes it
    cautious; p-values are corrected by Bonferroni. With fewer than 5 GPUs nothing is judged.
    """
    columns = np.arange(values.shape[1]) if columns is None else columns
    if columns.size < MIN_GPUS or values.shape[0] < 2:
        note = f"{columns.size} GPUs with {values.shape[0]} samples are too few to call one of them odd."
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
        is_lagging = len(odd) < MOST_SHIFTED and fits_when_shifted(values[:, columns], int(row), max_lag=MAX_LAG)
        telling = _find_telling(features.names, log_p[row], np.log(significance) - tests, is_lagging=is_lagging)
        named = tuple((features.names[k], float(distances[row, k])) for k in telling)
        odd.append(OddGpu(int(columns[row]), float(np.abs(distances[row]).max()), float(np.exp(corrected)), named))
    return OddGpus(columns[order], tuple(odd), significance, None)


def _find_telling(names: tuple[str, ...], log_p: Floats, bound: float, *, is_lagging: bool) -> list[int]:
    """Features below ``bound``, most telling first. A lag makes dips and peaks, and moves the end: it explains the others."""
    telling = [int(k) for k in np.argsort(log_p) if log_p[k] <= bound]
    telling.sort(key=lambda k: VAGUENESS.get(names[k], 0))
    lag = names.index("lag")
    return [lag, *(k for k in telling if k != lag)] if is_lagging else telling


def _standardize(features: Features) -> Floats:
    """(GPU × feature) around the median, in robust spreads (of the nearer half) but not below the floor; 0 where unknown."""
    values = features.values
    center = row_medians(np.ascontiguousarray(values.T))
    deviation = np.abs(values - center)
    spread = np.maximum(1.4826 * row_medians(np.ascontiguousarray(deviation.T)), features.floors)
    out = np.divide(values - center, spread, out=np.zeros(values.shape), where=spread > 0)
    return np.nan_to_num(out)


def _log_two_sided(distance: Floats) -> Floats:
    """Log of the chance that one of the GPUs would be so far out on its side, given the others."""
    tail = round(TAIL_SHARE * distance.size)
    if tail < MIN_TAIL:
        return compute_log_tail(np.abs(distance), distance.size)
    above, below = compute_log_tail(distance, tail), compute_log_tail(-distance, tail)
    log_p: Floats = np.minimum(np.minimum(above, below) + np.log(2.0), 0.0)
    return log_p


def compute_log_tail(distance: Floats, tail: int) -> Floats:
    """Log P(a GPU is at least this far out), from an exponential tail fitted to the ``tail`` outermost GPUs.

    The outermost 2 % (at least one) may be odd: they count as "beyond the next" only (type-II censoring). The scale is
    uncertain, and the predictive distribution of a further GPU is then Pareto: (1 + y/k)^−k for y scales and k free values.
    Excesses over a high threshold are exponential for every light tail (Pickands, Balkema, de Haan); for a Gaussian this
    errs on the side of silence.
    """
    size = distance.size
    ordered = np.sort(distance)[::-1]
    spared = max(1, round(SPARED_SHARE * size))
    start = 0.0 if tail >= size else float(ordered[tail])
    kept = ordered[spared:tail] - start
    free = kept.size
    if free < MIN_SIDE:
        return np.zeros(size)
    scale = (float(kept.sum()) + spared * float(kept[0])) / free
    share = min(tail / size, 1.0)
    # In units of the spread: a tail thinner than this is an accident of rounding. One spread must not be enough.
    scale = max(scale, LEAST_TAIL)
    excess = np.maximum(distance - start, 0.0) / scale
    log_p = np.log(share) - free * np.log1p(excess / free)
    return np.where(distance > start, log_p, 0.0)
