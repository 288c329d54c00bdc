"""Compiled inner loops of the diagnosis: histograms, pairwise distances, silhouettes, densities, and moments and
distances of two metrics. Plain arrays in and out.

Importing this loads numba; other modules import it inside functions to keep startup fast.
"""

import math
from typing import Any

import numpy as np
from numba import njit, prange, types
from numba.extending import intrinsic

from clusterscape.model.arrays import Float64s, Int64s, Uint64s

LN2 = math.log(2.0)
MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
ONE_LESS_SQRT_HALF_BITS = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
EXPONENT_SHIFT = np.uint64(52)
# An integer below 2^52 in the mantissa of 2^52 is exactly that float: the only conversion that AVX2 can vectorize.
MAGIC_BITS = np.uint64(0x4330000000000000)
MAGIC_AND_BIAS = 4503599627370496.0 + 1023.0
LANES = 8  # bins in a block: one iteration of the vectorized loop
# Below this divergence the error of the logarithm (4e-12) is visible in the root; such pairs are recomputed term by term.
NEAR_DIVERGENCE = 1e-5
NO_BLOCK, FIRST_BLOCK = np.uint64(0), np.uint64(1)


def _type_bits(_typing_context: Any, _value: Any) -> Any:
    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), build


def _type_float_of(_typing_context: Any, _bits: Any) -> Any:
    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.uint64), build


def _type_trailing_zeros(_typing_context: Any, _word: Any) -> Any:
    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), build


# Number of trailing zero bits (64 for 0).
_trailing_zeros: Any = intrinsic(_type_trailing_zeros)
# Reinterpret a float64 as its bits and back; compiles to no instruction.
_bits: Any = intrinsic(_type_bits)
_float_of: Any = intrinsic(_type_float_of)


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _log2(x: float) -> float:
    """Binary logarithm of a normal positive float, to 4e-12; finite garbage for 0. Branchless, so that it can be vectorized.

    x = 2^e · m with √½ ≤ m < √2; log m = 2 atanh s, s = (m−1)/(m+1), by a Chebyshev fit in s² (|s| ≤ 0.172).
    """
    shifted = _bits(x) + ONE_LESS_SQRT_HALF_BITS
    exponent = _float_of((shifted >> EXPONENT_SHIFT) | MAGIC_BITS) - MAGIC_AND_BIAS
    mantissa = _float_of((shifted & MANTISSA) + SQRT_HALF_BITS)
    s: float = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = 0.41167299234216176 + z * 0.3407251976060954
    series = 0.5770835802263269 + z * series
    series = 0.9617966733679714 + z * series
    logarithm: float = exponent + s * (2.8853900817900637 + z * series)
    return logarithm


@njit(cache=True, nogil=True)
def _near_divergence(p: Float64s, q: Float64s) -> float:
    """Twice the divergence of two nearly equal distributions, term by term as in SciPy."""
    total = 0.0
    for k in range(p.size):
        middle = 0.5 * (p[k] + q[k])
        if p[k] > 0.0:
            total += p[k] * math.log(p[k] / middle)
        if q[k] > 0.0:
            total += q[k] * math.log(q[k] / middle)
    return max(total, 0.0)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _sum_pair_terms(flat: Float64s, p: np.int64, q: np.int64, count: np.int64) -> float:
    """Σ (p+q) log2(p+q) over ``count`` bins that start at ``p`` and ``q`` in the flattened rows."""
    total = 0.0
    for k in range(count):
        both = flat[np.uint64(p + k)] + flat[np.uint64(q + k)]
        total += both * _log2(both)
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _compute_divergence(flat: Float64s, own: Float64s, filled: Uint64s, i: np.int64, j: np.int64) -> float:
    """Jensen–Shannon divergence of two rows of ``jensen_shannon``.

    In a block that only one of them fills, the terms of the pair and of the row cancel: only runs of blocks that both fill are
    summed.
    """
    width = (own.shape[1] - 1) * LANES
    js = 2.0 * LN2
    for word in range(filled.shape[1]):
        common = filled[i, word] & filled[j, word]
        while common != NO_BLOCK:
            first = _trailing_zeros(common)
            length = _trailing_zeros(~(common >> first))
            common &= common + (FIRST_BLOCK << first)
            low = 64 * word + np.int64(first)
            high = low + np.int64(length)
            js += own[i, high] - own[i, low] + own[j, high] - own[j, low]
            js -= LN2 * _sum_pair_terms(flat, i * width + low * LANES, j * width + low * LANES, (high - low) * LANES)
    return 0.5 * js


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_jensen_shannon_row(p: Float64s, own: Float64s, filled: Uint64s, i: np.int64, out: Float64s) -> None:
    """Write the distances of row ``i`` to all later rows into the condensed ``out``."""
    rows = np.int64(p.shape[0])
    flat = p.reshape(-1)
    start = i * rows - i * (i + 1) // 2 - i - 1
    for j in range(i + 1, rows):
        js = _compute_divergence(flat, own, filled, i, np.int64(j))
        if js < NEAR_DIVERGENCE:
            js = 0.5 * _near_divergence(p[i], p[j])
        out[start + j] = math.sqrt(js)


@njit(cache=True, nogil=True, parallel=True)
def _sum_own_terms(p: Float64s) -> tuple[Float64s, Uint64s]:
    """Cumulative Σ p log p of each row by block of bins, and a bit mask of the blocks with weight."""
    rows, blocks = p.shape[0], p.shape[1] // LANES
    own = np.zeros((rows, blocks + 1))
    filled = np.zeros((rows, blocks // 64 + 1), np.uint64)
    for i in prange(rows):
        for block in range(blocks):
            total, has_weight = 0.0, False
            for k in range(block * LANES, (block + 1) * LANES):
                if p[i, k] > 0.0:
                    total += p[i, k] * math.log(p[i, k])
                    has_weight = True
            own[i, block + 1] = own[i, block] + total
            if has_weight:
                filled[i, block // 64] |= FIRST_BLOCK << np.uint64(block % 64)
    return own, filled


@njit(cache=True, nogil=True, parallel=True)
def jensen_shannon(p: Float64s) -> Float64s:
    """Condensed distances of the rows of ``p``, each of which sums to 1; its columns are a multiple of ``LANES``.

    JS = ½ [Σ p log p + Σ q log q − Σ (p+q) log(p+q)] + log 2: only the last sum depends on the pair.
    """
    rows = np.int64(p.shape[0])
    own, filled = _sum_own_terms(p)
    out = np.empty(rows * (rows - 1) // 2)
    # Row i has rows − 1 − i pairs; together with its mirror row always rows − 1, which balances the threads.
    for half in prange((rows + 1) // 2):
        first = np.int64(half)
        _fill_jensen_shannon_row(p, own, filled, first, out)
        mirror = rows - 1 - first
        if mirror != first:
            _fill_jensen_shannon_row(p, own, filled, mirror, out)
    return out


@njit(cache=True, nogil=True, parallel=True)
def histograms(rows: Float64s, edges: Float64s) -> Int64s:
    """Counts (rows × bins) over equal bins; NaN is ignored, values outside count in the first or last bin."""
    bins = edges.size - 1
    low, scale = edges[0], bins / (edges[bins] - edges[0])
    out = np.zeros((rows.shape[0], bins), np.int64)
    for i in prange(rows.shape[0]):
        for value in rows[i]:
            if value == value:
                position = min(max((value - low) * scale, 0.0), bins - 1.0)
                k = np.int64(position)
                # Rounding may be off by one bin; the edges decide, as in numpy.histogram.
                if k > 0 and value < edges[k]:
                    k -= 1
                elif k < bins - 1 and value >= edges[k + 1]:
                    k += 1
                out[i, k] += 1
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _fill_euclidean_row(rows: Float64s, needed: int, i: np.int64, out: Float64s) -> None:
    """Distances of row ``i`` to all later rows over the points that both have, scaled up to all points."""
    count, points = np.int64(rows.shape[0]), rows.shape[1]
    start = i * count - i * (i + 1) // 2 - i - 1
    for j in range(i + 1, count):
        total, both = 0.0, 0
        for k in range(points):
            difference = rows[i, k] - rows[j, k]
            is_known = difference == difference
            total += difference * difference if is_known else 0.0
            both += 1 if is_known else 0
        out[start + j] = math.sqrt(total * points / both) if both >= needed else np.nan


@njit(cache=True, nogil=True, parallel=True)
def euclidean(rows: Float64s, needed: int) -> Float64s:
    """Condensed distances; NaN for pairs with fewer than ``needed`` (≥ 1) common points."""
    count = np.int64(rows.shape[0])
    out = np.empty(count * (count - 1) // 2)
    for half in prange((count + 1) // 2):
        first = np.int64(half)
        _fill_euclidean_row(rows, needed, first, out)
        mirror = count - 1 - first
        if mirror != first:
            _fill_euclidean_row(rows, needed, mirror, out)
    return out


@njit(cache=True, nogil=True)
def compare_clusters(condensed: Float64s, labels: Int64s, clusters: int) -> tuple[Float64s, Float64s, Float64s]:
    """For each row: sum of distances to the members of each cluster, distance to the nearest of its own and of any other."""
    count = labels.size
    sums = np.zeros((count, clusters))
    nearest_own, nearest_other = np.full(count, np.inf), np.full(count, np.inf)
    at = 0
    for i in range(count):
        for j in range(i + 1, count):
            distance = condensed[at]
            at += 1
            sums[i, labels[j]] += distance
            sums[j, labels[i]] += distance
            nearest = nearest_own if labels[i] == labels[j] else nearest_other
            nearest[i] = min(nearest[i], distance)
            nearest[j] = min(nearest[j], distance)
    return sums, nearest_own, nearest_other


@njit(cache=True, nogil=True)
def cut(tree: Float64s, count: int) -> Int64s:
    """The cluster of each leaf after undoing the last ``count`` − 1 merges of SciPy's linkage matrix; arbitrary numbers."""
    leaves = tree.shape[0] + 1
    parent = np.arange(2 * leaves - 1)
    for merge in range(leaves - count):
        parent[np.int64(tree[merge, 0])] = leaves + merge
        parent[np.int64(tree[merge, 1])] = leaves + merge
    for node in range(2 * leaves - 2, -1, -1):
        parent[node] = parent[parent[node]]
    return parent[:leaves]


@njit(cache=True, nogil=True)
def label_by_size(flat: Int64s) -> Int64s:
    """Arbitrary cluster numbers (< 2 · GPUs) as labels from 0: by decreasing size, equal sizes by first member."""
    places = np.full(flat.max() + 1, -1)
    sizes = np.zeros(flat.size, np.int64)
    labels = np.empty(flat.size, np.int64)
    clusters = 0
    for k in range(flat.size):
        if places[flat[k]] < 0:
            places[flat[k]] = clusters
            clusters += 1
        labels[k] = places[flat[k]]
        sizes[labels[k]] += 1
    # Places are in the order of first members; the stable sort keeps it for equal sizes.
    ranks = np.empty(clusters, np.int64)
    ranks[np.argsort(-sizes[:clusters], kind="mergesort")] = np.arange(clusters)
    return ranks[labels]


@njit(cache=True, nogil=True)
def density(x: Float64s, y: Float64s, x_edges: Float64s, y_edges: Float64s) -> Int64s:
    """Counts (y bins × x bins) over equal bins; points with NaN or outside are ignored."""
    columns, lines = x_edges.size - 1, y_edges.size - 1
    x_low, x_high, y_low, y_high = x_edges[0], x_edges[columns], y_edges[0], y_edges[lines]
    x_scale, y_scale = columns / (x_high - x_low), lines / (y_high - y_low)
    out = np.zeros((lines, columns), np.int64)
    for k in range(x.size):
        if x_low <= x[k] <= x_high and y_low <= y[k] <= y_high:
            # The upper edge belongs to the last bin.
            column = int(min((x[k] - x_low) * x_scale, columns - 1.0))
            line = int(min((y[k] - y_low) * y_scale, lines - 1.0))
            out[line, column] += 1
    return out


Moments = tuple[int, Float64s, Float64s]

CONCENTRATED = 10  # starts that are iterated to convergence
MAX_STEPS = 50
SINGULAR = 1e-12  # determinant, for points with spread 1


@njit(cache=True, nogil=True)
def sum_moments(x: Float64s, y: Float64s) -> Moments:
    """Number of points with both values, their mean (2,) and population covariance (2 × 2)."""
    return _moments_where(x, y, np.zeros(2), np.zeros((2, 2)), np.inf)


@njit(cache=True, nogil=True)
def sum_inner_moments(x: Float64s, y: Float64s, center: Float64s, inverse: Float64s, bound: float) -> Moments:
    """Like ``sum_moments``, of the points with a squared distance to ``center`` below ``bound``."""
    return _moments_where(x, y, center, inverse, bound)


@njit(cache=True, nogil=True)
def _moments_where(x: Float64s, y: Float64s, center: Float64s, inverse: Float64s, bound: float) -> Moments:
    a, b, c = inverse[0, 0], inverse[0, 1] + inverse[1, 0], inverse[1, 1]
    mean, covariance = np.zeros(2), np.zeros((2, 2))
    count = 0
    # Sums of squares around a rough center avoid cancellation.
    x_near, y_near = 0.0, 0.0
    for k in range(x.size):
        if x[k] == x[k] and y[k] == y[k]:
            x_near, y_near = x[k], y[k]
            break
    xs, ys, xx, xy, yy = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(x.size):
        dx, dy = x[k] - center[0], y[k] - center[1]
        # With a missing value (NaN) the comparison is false.
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
def measure_distances(x: Float64s, y: Float64s, center: Float64s, inverse: Float64s) -> Float64s:
    """Squared Mahalanobis distances; NaN if a value is missing."""
    a, b, c = inverse[0, 0], inverse[0, 1] + inverse[1, 0], inverse[1, 1]
    out = np.empty(x.size)
    for k in range(x.size):
        dx, dy = x[k] - center[0], y[k] - center[1]
        out[k] = a * dx * dx + b * dx * dy + c * dy * dy
    return out


@njit(cache=True, nogil=True)
def find_bounds(values: Float64s) -> tuple[float, float]:
    """Minimum and maximum; (inf, −inf) if all values are missing."""
    low, high = np.inf, -np.inf
    for value in values:
        low, high = min(low, value) if value == value else low, max(high, value) if value == value else high
    return low, high


@njit(cache=True, nogil=True)
def _moments_of(points: Float64s, chosen: Int64s) -> tuple[Float64s, Float64s]:
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
def _determinant(covariance: Float64s) -> float:
    determinant: float = covariance[0, 0] * covariance[1, 1] - covariance[0, 1] * covariance[1, 0]
    return determinant


@njit(cache=True, nogil=True)
def _nearest(points: Float64s, mean: Float64s, covariance: Float64s, count: int) -> Int64s:
    """The ``count`` points nearest to ``mean``; ties are broken by order."""
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
def _start(points: Float64s, draw: Int64s) -> tuple[Float64s, Float64s]:
    """Moments of the first three drawn points, or of more if these are collinear."""
    mean, covariance = _moments_of(points, draw[:3])
    for size in range(4, draw.size + 1):
        if _determinant(covariance) > SINGULAR:
            break
        mean, covariance = _moments_of(points, draw[:size])
    return mean, covariance


@njit(cache=True, nogil=True)
def find_densest_half(points: Float64s, draws: Int64s) -> tuple[Float64s, Float64s, float]:
    """Mean, covariance and its determinant of the densest half of ``points`` (N × 2, spread about 1).

    FastMCD (Rousseeuw and Van Driessen 1999): two concentration steps from each of ``draws`` (starts × indices); the best ones
    are iterated to convergence. Determinant 0: half of the points lie on one line.
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
        for _ in range(MAX_STEPS):
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
