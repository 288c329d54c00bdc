"""Distances between GPUs: by the time series of a metric (Euclidean or correlation, tolerant of gaps and lag), or by its
distribution (histograms over shared bins).
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from clusterscape.analyze.diagnose.samples import Grid
from clusterscape.model.arrays import Bools, Float64s, Int64s


@dataclass(frozen=True, slots=True)
class Histograms:
    """``edges`` (bins + 1) are shared by all GPUs; ``counts`` (GPU × bins); ``empty``: GPUs without samples."""

    edges: Float64s
    counts: Int64s
    empty: Int64s


def compute_histograms(values: Float64s, *, bins: int = 100, domain: tuple[float, float] | None = None) -> Histograms:
    """Histograms of every GPU over the same equal bins.

    Parameters
    ----------
    values : (T × GPU), NaN where missing; missing samples are ignored.
    domain : (low, high) of the bins; None: the minimum and maximum of all GPUs. Values outside count in the first or last bin, so
        that no sample is lost. A domain of width 0 is extended by ½ on both sides (as numpy does).

    With ``domain=None`` equal to ``numpy.histogram(column, bins, range=(min, max))`` of each column.
    """
    from clusterscape.analyze.diagnose import kernels

    if bins < 1:
        raise ValueError("a histogram needs at least one bin")
    is_known = ~np.isnan(values)
    if domain is None:
        domain = (float(np.nanmin(values)), float(np.nanmax(values))) if is_known.any() else (0.0, 1.0)
    low, high = domain
    if not low < high:
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, bins + 1)
    counts = kernels.histograms(np.ascontiguousarray(values.T), edges)
    return Histograms(edges, counts, np.flatnonzero(~is_known.any(axis=0)))


def compute_sampling_noise(counts: Int64s) -> float:
    """The Jensen–Shannon distance to expect by chance between two GPUs with the same distribution.

    √((B − 1) / 4N) for N samples (the median of the GPUs) over B occupied bins: JS ≈ χ² / 8 with variance 2/N per bin.
    """
    totals = counts.sum(axis=1)
    occupied = int((counts.sum(axis=0) > 0).sum())
    usual = float(np.median(totals[totals > 0])) if (totals > 0).any() else 0.0
    return ((max(occupied, 1) - 1) / (4.0 * usual)) ** 0.5 if usual else 0.0


def compute_jensen_shannon(weights: Float64s | Int64s) -> Float64s:
    """Jensen–Shannon distance (root of the divergence, natural logarithm) of all pairs of rows, condensed.

    Parameters
    ----------
    weights : (GPU × bins), ≥ 0; each row is normalized. A row without weight has no distribution: its distances are NaN.

    Equal to ``scipy.spatial.distance.pdist(weights, "jensenshannon")`` to 1e-9. Lin, Divergence measures based on the
    Shannon entropy (1991); Endres and Schindelin (2003) for the root being a metric.
    """
    from clusterscape.analyze.diagnose import kernels

    count, bins = weights.shape
    if count < 2:
        return np.empty(0)
    totals = weights.sum(axis=1, dtype=np.float64)
    # The order of bins does not matter; grouping rarely filled bins allows whole blocks to be skipped.
    order = np.argsort(-np.count_nonzero(weights, axis=0), kind="stable")
    padded = np.zeros((count, -(-bins // kernels.LANES) * kernels.LANES))
    np.divide(weights[:, order], totals[:, None], out=padded[:, :bins], where=totals[:, None] > 0)
    condensed: Float64s = kernels.jensen_shannon(padded)
    is_empty = totals == 0
    if is_empty.any():
        first, second = np.triu_indices(count, 1)
        condensed[is_empty[first] | is_empty[second]] = np.nan
    return condensed


BLOCK_ROWS = 512  # GPUs that are compared with all others at once; bounds memory


class Shape(StrEnum):
    """What two time series are compared by."""

    EUCLIDEAN = "euclidean"  # level and shape
    CORRELATION = "correlation"  # shape only


@dataclass(frozen=True, slots=True)
class TimelineDistances:
    """``condensed`` distances, NaN for the ``missing_pairs`` with too few common points.

    ``constant``: GPUs whose value never changes; they have no correlation (see ``compute_timeline_distances``).
    """

    condensed: Float64s
    missing_pairs: int
    constant: Int64s


def compute_timeline_distances(
    grid: Grid, shape: Shape = Shape.EUCLIDEAN, *, max_lag: int = 0, min_overlap: float = 0.25
) -> TimelineDistances:
    """Distances of all pairs of columns of ``grid.values`` (T × GPU, NaN where missing).

    Only points that both GPUs have are compared, and the result is scaled up to all T points; a pair with fewer than
    ``min_overlap`` · T (at least 2) of them is missing. With ``max_lag`` > 0 (in grid steps), one of the two may be shifted
    against the other by up to that many steps; the best fit counts: the smallest distance, the largest correlation.

    Without gaps and lag equal to ``scipy.spatial.distance.pdist`` with "euclidean" or "correlation" to 1e-9. Where SciPy
    returns NaN, the distance of a constant GPU is 1 from every varying GPU and 0 from another constant one.
    """
    from clusterscape.analyze.diagnose import kernels

    if max_lag < 0 or not 0 <= min_overlap <= 1:
        raise ValueError("max_lag must not be negative, and min_overlap must be between 0 and 1")
    rows = np.ascontiguousarray(grid.values.T)
    count, points = rows.shape
    constant = _find_constant(rows)
    if count < 2:
        return TimelineDistances(np.empty(0), 0, constant)
    needed = max(2, math.ceil(min_overlap * points))
    max_lag = min(max_lag, max(points - needed, 0))
    if shape is Shape.EUCLIDEAN and max_lag == 0:
        condensed: Float64s = kernels.euclidean(rows, needed)
    else:
        condensed = _compare_by_products(rows, shape, max_lag, needed, constant)
    return TimelineDistances(condensed, int(np.isnan(condensed).sum()), constant)


def _find_constant(rows: Float64s) -> Int64s:
    is_known = ~np.isnan(rows)
    high = np.where(is_known, rows, -np.inf).max(axis=1, initial=-np.inf)
    low = np.where(is_known, rows, np.inf).min(axis=1, initial=np.inf)
    return np.flatnonzero(high == low)


def _compare_by_products(rows: Float64s, shape: Shape, max_lag: int, needed: int, constant: Int64s) -> Float64s:
    """Distances of all pairs at all lags by matrix products, one block of rows at a time."""
    count = rows.shape[0]
    is_known: Bools = ~np.isnan(rows)
    mask = is_known.astype(np.float64)
    filled = _center(rows, is_known, per_row=shape is Shape.CORRELATION)
    is_complete = bool(is_known.all())
    is_constant = np.zeros(count, np.bool_)
    is_constant[constant] = True
    pieces = []
    for low in range(0, count, BLOCK_ROWS):
        block = slice(low, min(low + BLOCK_ROWS, count))
        best = np.full((block.stop - low, count - low), np.nan)
        for lag in range(-max_lag, max_lag + 1):
            sums = _Sums.compute(filled, mask, block, lag, is_complete=is_complete)
            distance = sums.correlation() if shape is Shape.CORRELATION else sums.euclidean(rows.shape[1])
            np.fmin(best, np.where(sums.both < needed, np.nan, distance), out=best)
        if shape is Shape.CORRELATION:
            best = _set_constant_distances(best, is_constant[block], is_constant[low:])
        pieces += [best[i, i + 1 :] for i in range(block.stop - low)]
    return np.concatenate(pieces)


def _center(rows: Float64s, is_known: Bools, *, per_row: bool) -> Float64s:
    """Center values (by the overall mean, or standardize each row) to avoid cancellation; missing values become 0."""
    counts = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    filled = np.where(is_known, rows, 0.0)
    mean = filled.sum(axis=1, keepdims=True) / counts if per_row else filled.sum() / counts.sum()
    filled = np.where(is_known, rows - mean, 0.0)
    if per_row:
        spread = np.sqrt((filled**2).sum(axis=1, keepdims=True) / counts)
        filled = np.divide(filled, spread, out=filled, where=spread > 0)
    return filled


def _set_constant_distances(distance: Float64s, block: Bools, others: Bools) -> Float64s:
    is_missing = np.isnan(distance) & ~(block[:, None] | others[None, :])
    judged = np.where(block[:, None] | others[None, :], 1.0, distance)
    judged[block[:, None] & others[None, :]] = 0.0
    judged[is_missing] = np.nan
    return judged


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over the common points of each pair, for a block of rows (first) and all rows from its start on (second)."""

    both: Float64s
    first: Float64s
    second: Float64s
    first_squared: Float64s
    second_squared: Float64s
    product: Float64s

    @classmethod
    def compute(cls, filled: Float64s, mask: Float64s, block: slice, lag: int, *, is_complete: bool) -> "_Sums":
        points = filled.shape[1]
        early, late = slice(max(lag, 0), points + min(lag, 0)), slice(max(-lag, 0), points - max(lag, 0))
        x, y = filled[block, early], filled[block.start :, late]
        if is_complete:
            both = np.full((1, 1), float(x.shape[1]))
            first, second = x.sum(axis=1)[:, None], y.sum(axis=1)[None, :]
            first_squared, second_squared = (x**2).sum(axis=1)[:, None], (y**2).sum(axis=1)[None, :]
        else:
            x_known, y_known = mask[block, early], mask[block.start :, late].T
            both = x_known @ y_known
            first, second = x @ y_known, x_known @ y.T
            first_squared, second_squared = x**2 @ y_known, x_known @ (y**2).T
        return cls(both, first, second, first_squared, second_squared, x @ y.T)

    def euclidean(self, points: int) -> Float64s:
        """Euclidean distance, scaled up to ``points``."""
        squared = np.maximum(self.first_squared + self.second_squared - 2.0 * self.product, 0.0)
        return np.sqrt(squared * points / np.maximum(self.both, 1.0))

    def correlation(self) -> Float64s:
        """1 − Pearson's r; NaN if one of the two is constant within the common points."""
        covariance = self.both * self.product - self.first * self.second
        first = np.maximum(self.both * self.first_squared - self.first**2, 0.0)
        second = np.maximum(self.both * self.second_squared - self.second**2, 0.0)
        scale = np.sqrt(first * second)
        # Values have mean 0 and spread 1, so this bound is relative to the rounding error.
        r = np.divide(covariance, scale, out=np.full(covariance.shape, np.nan), where=scale > 1e-9 * self.both)
        distance: Float64s = 1.0 - np.clip(r, -1.0, 1.0)
        return distance
