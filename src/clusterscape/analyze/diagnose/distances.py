"""How far the courses of two GPUs are apart: Euclidean or by correlation, tolerant of gaps and of a lag."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from clusterscape.analyze.diagnose.samples import Flags, Floats, Grid, Ints

BLOCK_ROWS = 512  # of the GPUs that are multiplied with all others at once: bounds memory


class Shape(StrEnum):
    """What two courses are compared by."""

    EUCLIDEAN = "euclidean"  # level and form
    CORRELATION = "correlation"  # form alone


@dataclass(frozen=True, slots=True)
class TimelineDistances:
    """``condensed`` distances, NaN for the ``missing_pairs`` that have too few common points to compare.

    ``constant`` are the GPUs whose value never changes; they have no correlation (see ``compute_timeline_distances``).
    """

    condensed: Floats
    missing_pairs: int
    constant: Ints


def compute_timeline_distances(
    grid: Grid, shape: Shape = Shape.EUCLIDEAN, *, max_lag: int = 0, min_overlap: float = 0.25
) -> TimelineDistances:
    """Distances of all pairs of columns of ``grid.values`` (T × GPU, NaN where missing).

    Only points that both GPUs have are compared, and the result is scaled up to all T points; a pair with fewer than
    ``min_overlap`` · T (at least 2) of them is missing. With ``max_lag`` > 0 (in grid steps) one of the two may be shifted
    against the other by up to that many steps, and the nearest fit counts: the least distance, the largest correlation.

    Without gaps and lag equal to ``scipy.spatial.distance.pdist`` with "euclidean" or "correlation" to 1e-9. Where SciPy
    has no answer, a constant GPU is 1 from every other (its course says nothing about theirs) and 0 from a constant one.
    """
    from clusterscape.analyze.diagnose import kernels

    if max_lag < 0 or not 0 <= min_overlap <= 1:
        raise ValueError("max_lag must not be negative, and min_overlap lies between 0 and 1")
    rows = np.ascontiguousarray(grid.values.T)
    count, points = rows.shape
    constant = _find_constant(rows)
    if count < 2:
        return TimelineDistances(np.empty(0), 0, constant)
    needed = max(2, math.ceil(min_overlap * points))
    max_lag = min(max_lag, max(points - needed, 0))
    if shape is Shape.EUCLIDEAN and max_lag == 0:
        condensed: Floats = kernels.euclidean(rows, needed)
    else:
        condensed = _compare_by_products(rows, shape, max_lag, needed, constant)
    return TimelineDistances(condensed, int(np.isnan(condensed).sum()), constant)


def _find_constant(rows: Floats) -> Ints:
    is_known = ~np.isnan(rows)
    high = np.where(is_known, rows, -np.inf).max(axis=1, initial=-np.inf)
    low = np.where(is_known, rows, np.inf).min(axis=1, initial=np.inf)
    return np.flatnonzero(high == low)


def _compare_by_products(rows: Floats, shape: Shape, max_lag: int, needed: int, constant: Ints) -> Floats:
    """All pairs at all lags as matrix products, a block of rows at a time."""
    count = rows.shape[0]
    is_known: Flags = ~np.isnan(rows)
    known = is_known.astype(np.float64)
    filled = _center(rows, is_known, per_row=shape is Shape.CORRELATION)
    is_complete = bool(is_known.all())
    is_constant = np.zeros(count, np.bool_)
    is_constant[constant] = True
    pieces = []
    for low in range(0, count, BLOCK_ROWS):
        block = slice(low, min(low + BLOCK_ROWS, count))
        best = np.full((block.stop - low, count - low), np.nan)
        for lag in range(-max_lag, max_lag + 1):
            sums = _Sums.compute(filled, known, block, lag, is_complete=is_complete)
            distance = sums.correlation() if shape is Shape.CORRELATION else sums.euclidean(rows.shape[1])
            np.fmin(best, np.where(sums.both < needed, np.nan, distance), out=best)
        if shape is Shape.CORRELATION:
            best = _judge_constant(best, is_constant[block], is_constant[low:])
        pieces += [best[i, i + 1 :] for i in range(block.stop - low)]
    return np.concatenate(pieces)


def _center(rows: Floats, is_known: Flags, *, per_row: bool) -> Floats:
    """Zero where missing; around the mean (of all, or of each row and in units of its spread), against cancellation."""
    counts = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    filled = np.where(is_known, rows, 0.0)
    mean = filled.sum(axis=1, keepdims=True) / counts if per_row else filled.sum() / counts.sum()
    filled = np.where(is_known, rows - mean, 0.0)
    if per_row:
        spread = np.sqrt((filled**2).sum(axis=1, keepdims=True) / counts)
        filled = np.divide(filled, spread, out=filled, where=spread > 0)
    return filled


def _judge_constant(distance: Floats, block: Flags, others: Flags) -> Floats:
    is_missing = np.isnan(distance) & ~(block[:, None] | others[None, :])
    judged = np.where(block[:, None] | others[None, :], 1.0, distance)
    judged[block[:, None] & others[None, :]] = 0.0
    judged[is_missing] = np.nan
    return judged


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over the points that both of a pair have, for a block of rows (first) and all rows from it on (second)."""

    both: Floats
    first: Floats
    second: Floats
    first_squared: Floats
    second_squared: Floats
    product: Floats

    @classmethod
    def compute(cls, filled: Floats, known: Floats, block: slice, lag: int, *, is_complete: bool) -> "_Sums":
        points = filled.shape[1]
        early, late = slice(max(lag, 0), points + min(lag, 0)), slice(max(-lag, 0), points - max(lag, 0))
        x, y = filled[block, early], filled[block.start :, late]
        if is_complete:
            both = np.full((1, 1), float(x.shape[1]))
            first, second = x.sum(axis=1)[:, None], y.sum(axis=1)[None, :]
            first_squared, second_squared = (x**2).sum(axis=1)[:, None], (y**2).sum(axis=1)[None, :]
        else:
            x_known, y_known = known[block, early], known[block.start :, late].T
            both = x_known @ y_known
            first, second = x @ y_known, x_known @ y.T
            first_squared, second_squared = x**2 @ y_known, x_known @ (y**2).T
        return cls(both, first, second, first_squared, second_squared, x @ y.T)

    def euclidean(self, points: int) -> Floats:
        """Scaled up to ``points``."""
        squared = np.maximum(self.first_squared + self.second_squared - 2.0 * self.product, 0.0)
        return np.sqrt(squared * points / np.maximum(self.both, 1.0))

    def correlation(self) -> Floats:
        """1 − Pearson's r; NaN where one of the two does not change within the common points."""
        covariance = self.both * self.product - self.first * self.second
        first = np.maximum(self.both * self.first_squared - self.first**2, 0.0)
        second = np.maximum(self.both * self.second_squared - self.second**2, 0.0)
        scale = np.sqrt(first * second)
        # Values are around 0 with spread 1, so that this bound is relative to rounding.
        r = np.divide(covariance, scale, out=np.full(covariance.shape, np.nan), where=scale > 1e-9 * self.both)
        distance: Floats = 1.0 - np.clip(r, -1.0, 1.0)
        return distance
