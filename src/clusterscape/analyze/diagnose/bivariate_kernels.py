"""Compiled loops over millions of points of two metrics: moments, distances, the densest half. Plain arrays in and out.

Importing this loads numba; ``bivariate`` imports it inside its functions, so that a program starts fast.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Moments = tuple[int, Floats, Floats]

CONCENTRATED = 10  # starts that are followed to their end
MOST_STEPS = 50
SINGULAR = 1e-12  # determinant, of points with spread 1


@njit(cache=True, nogil=True)
def sum_moments(x: Floats, y: Floats) -> Moments:
    """How many points have both values, their mean (2,) and covariance (2 × 2, of all: divided by their number)."""
    return _moments_where(x, y, np.zeros(2), np.zeros((2, 2)), np.inf)


@njit(cache=True, nogil=True)
def sum_inner_moments(x: Floats, y: Floats, center: Floats, inverse: Floats, bound: float) -> Moments:
    """The same of points nearer to ``center`` than ``bound``, in squared distance."""
    return _moments_where(x, y, center, inverse, bound)


@njit(cache=True, nogil=True)
def _moments_where(x: Floats, y: Floats, center: Floats, inverse: Floats, bound: float) -> Moments:
    a, b, c = inverse[0, 0], inverse[0, 1] + inverse[1, 0], inverse[1, 1]
    mean, covariance = np.zeros(2), np.zeros((2, 2))
    count = 0
    # A rough middle first: sums of squares around it lose no digits.
    x_near, y_near = 0.0, 0.0
    for k in range(x.size):
        if x[k] == x[k] and y[k] == y[k]:
            x_near, y_near = x[k], y[k]
            break
    xs, ys, xx, xy, yy = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(x.size):
        dx, dy = x[k] - center[0], y[k] - center[1]
        # A missing value makes the comparison false.
        if a * dx * dx + b * dx * dy + c * dy * dy < bound:
            u, v = x[k] - x_near, y[k] - y_near
            count += 1
            xs += u
            ys += v
            xx += u * u
            xy += u * v
            yy += v * v
    if count == 0:
        return 0, mean, covariance
    u, v = xs / count, ys / count
    mean[0], mean[1] = x_near + u, y_near + v
    covariance[0, 0], covariance[1, 1] = max(xx / count - u * u, 0.0), max(yy / count - v * v, 0.0)
    covariance[0, 1] = covariance[1, 0] = xy / count - u * v
    return count, mean, covariance


@njit(cache=True, nogil=True, fastmath={"contract"})
def measure_distances(x: Floats, y: Floats, center: Floats, inverse: Floats) -> Floats:
    """Squared distances; NaN where a value is missing."""
    a, b, c = inverse[0, 0], inverse[0, 1] + inverse[1, 0], inverse[1, 1]
    out = np.empty(x.size)
    for k in range(x.size):
        dx, dy = x[k] - center[0], y[k] - center[1]
        out[k] = a * dx * dx + b * dx * dy + c * dy * dy
    return out


@njit(cache=True, nogil=True)
def find_bounds(values: Floats) -> tuple[float, float]:
    """Least and largest value; (inf, −inf) where all are missing."""
    low, high = np.inf, -np.inf
    for value in values:
        low, high = min(low, value) if value == value else low, max(high, value) if value == value else high
    return low, high


@njit(cache=True, nogil=True)
def _moments_of(points: Floats, chosen: Ints) -> tuple[Floats, Floats]:
    mean, covariance = np.zeros(2), np.zeros((2, 2))
    for k in chosen:
        mean += points[k]
    mean /= chosen.size
    for k in chosen:
        dx, dy = points[k, 0] - mean[0], points[k, 1] - mean[1]
        covariance[0, 0] += dx * dx
        covariance[0, 1] += dx * dy
        covariance[1, 1] += dy * dy
    covariance[1, 0] = covariance[0, 1]
    covariance /= chosen.size
    return mean, covariance


@njit(cache=True, nogil=True)
def _determinant(covariance: Floats) -> float:
    determinant: float = covariance[0, 0] * covariance[1, 1] - covariance[0, 1] * covariance[1, 0]
    return determinant


@njit(cache=True, nogil=True)
def _nearest(points: Floats, mean: Floats, covariance: Floats, count: int) -> Ints:
    """The ``count`` points nearest to ``mean``; of equally far ones the first."""
    determinant = _determinant(covariance)
    a, b, c = covariance[1, 1] / determinant, -2.0 * covariance[0, 1] / determinant, covariance[0, 0] / determinant
    distances = np.empty(len(points))
    for k in range(len(points)):
        dx, dy = points[k, 0] - mean[0], points[k, 1] - mean[1]
        distances[k] = a * dx * dx + b * dx * dy + c * dy * dy
    limit = np.partition(distances, count - 1)[count - 1]
    chosen = np.empty(count, np.int64)
    inside = 0
    for k in range(len(points)):
        if distances[k] < limit:
            chosen[inside] = k
            inside += 1
    for k in range(len(points)):
        if inside == count:
            break
        if distances[k] == limit:
            chosen[inside] = k
            inside += 1
    return chosen


@njit(cache=True, nogil=True)
def _start(points: Floats, draw: Ints) -> tuple[Floats, Floats]:
    """Moments of the first three points drawn, and of more where these lie on one line."""
    mean, covariance = _moments_of(points, draw[:3])
    for size in range(4, draw.size + 1):
        if _determinant(covariance) > SINGULAR:
            break
        mean, covariance = _moments_of(points, draw[:size])
    return mean, covariance


@njit(cache=True, nogil=True)
def find_densest_half(points: Floats, draws: Ints) -> tuple[Floats, Floats, float]:
    """Mean, covariance and its determinant of the half of ``points`` (N × 2, spread about 1) that lies most densely.

    FastMCD (Rousseeuw and Van Driessen 1999): each of ``draws`` (starts × indices) takes two concentration steps, the best
    are followed to their end. Determinant 0: half of the points lie on one line.
    """
    half = (len(points) + 3) // 2
    starts = len(draws)
    determinants = np.full(starts, np.inf)
    means, covariances = np.zeros((starts, 2)), np.zeros((starts, 2, 2))
    for start in range(starts):
        mean, covariance = _start(points, draws[start])
        for _ in range(2):
            if _determinant(covariance) > SINGULAR:
                mean, covariance = _moments_of(points, _nearest(points, mean, covariance, half))
        determinants[start], means[start], covariances[start] = _determinant(covariance), mean, covariance
    best = np.argsort(determinants)[:CONCENTRATED]
    winner = best[0]
    for start in best:
        for _ in range(MOST_STEPS):
            if determinants[start] <= SINGULAR:
                break
            chosen = _nearest(points, means[start], covariances[start], half)
            mean, covariance = _moments_of(points, chosen)
            if _determinant(covariance) >= determinants[start]:
                break
            determinants[start], means[start], covariances[start] = _determinant(covariance), mean, covariance
        if determinants[start] < determinants[winner]:
            winner = start
    return means[winner], covariances[winner], determinants[winner]
