"""Compiled inner loops of the diagnosis: histograms, pairwise distances, silhouettes, densities. Plain arrays in and out.

Importing this loads numba; the modules that use it import it inside their functions, so that a program starts fast.
"""

import math
from typing import Any

import numpy as np
from numba import njit, prange, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

LN2 = math.log(2.0)
MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
ONE_LESS_SQRT_HALF_BITS = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
EXPONENT_SHIFT = np.uint64(52)
# An integer below 2^52 put into the mantissa of 2^52 is that float exactly: the only conversion AVX2 can vectorise.
MAGIC_BITS = np.uint64(0x4330000000000000)
MAGIC_AND_BIAS = 4503599627370496.0 + 1023.0
LANES = 8  # bins in a block: what one turn of the vectorised loop takes
# Below this divergence the logarithm's error (4e-12) would show in the root; such pairs are computed again, term by term.
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


# How many of the lowest bits are 0 (64 for 0).
_trailing_zeros: Any = intrinsic(_type_trailing_zeros)
# The bits of a float64 as an unsigned integer, and the float64 that has these bits: no instruction at all.
_bits: Any = intrinsic(_type_bits)
_float_of: Any = intrinsic(_type_float_of)


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _log2(x: float) -> float:
    """Binary logarithm of a normal positive float, to 4e-12; finite rubbish for 0. Without branches, so that it vectorises.

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
def _near_divergence(p: Floats, q: Floats) -> float:
    """Twice the divergence of two distributions that are nearly equal, term by term as SciPy does."""
    total = 0.0
    for k in range(p.size):
        middle = 0.5 * (p[k] + q[k])
        if p[k] > 0.0:
            total += p[k] * math.log(p[k] / middle)
        if q[k] > 0.0:
            total += q[k] * math.log(q[k] / middle)
    return max(total, 0.0)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _sum_pair_terms(flat: Floats, p: np.int64, q: np.int64, count: np.int64) -> float:
    """Σ (p+q) log2(p+q) of ``count`` bins that begin at ``p`` and ``q`` of all rows."""
    total = 0.0
    for k in range(count):
        both = flat[np.uint64(p + k)] + flat[np.uint64(q + k)]
        total += both * _log2(both)
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _compute_divergence(flat: Floats, own: Floats, filled: Words, i: np.int64, j: np.int64) -> float:
    """Jensen–Shannon divergence of two rows of ``jensen_shannon``.

    In a block that only one of them fills, what the pair adds and what the row has of its own cancel: only the runs of
    blocks that both fill are summed.
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
def _fill_jensen_shannon_row(p: Floats, own: Floats, filled: Words, i: np.int64, out: Floats) -> None:
    """Distances of row ``i`` to all later rows, into their places of the condensed ``out``."""
    rows = np.int64(p.shape[0])
    flat = p.reshape(-1)
    start = i * rows - i * (i + 1) // 2 - i - 1
    for j in range(i + 1, rows):
        js = _compute_divergence(flat, own, filled, i, np.int64(j))
        if js < NEAR_DIVERGENCE:
            js = 0.5 * _near_divergence(p[i], p[j])
        out[start + j] = math.sqrt(js)


@njit(cache=True, nogil=True, parallel=True)
def _sum_own_terms(p: Floats) -> tuple[Floats, Words]:
    """Σ p log p of each row up to each block of bins, and the blocks that have weight, a bit for each."""
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
def jensen_shannon(p: Floats) -> Floats:
    """Condensed distances of the rows of ``p``, each of which sums to 1; its columns are a multiple of ``LANES``.

    JS = ½ [Σ p log p + Σ q log q − Σ (p+q) log(p+q)] + log 2: only the last sum is left for the pair.
    """
    rows = np.int64(p.shape[0])
    own, filled = _sum_own_terms(p)
    out = np.empty(rows * (rows - 1) // 2)
    # Row i has rows − 1 − i pairs; together with its mirror always rows − 1, so that threads get equal work.
    for half in prange((rows + 1) // 2):
        first = np.int64(half)
        _fill_jensen_shannon_row(p, own, filled, first, out)
        mirror = rows - 1 - first
        if mirror != first:
            _fill_jensen_shannon_row(p, own, filled, mirror, out)
    return out


@njit(cache=True, nogil=True, parallel=True)
def histograms(rows: Floats, edges: Floats) -> Ints:
    """Counts (rows × bins) over equal bins; NaN is left out, what lies outside goes into the first or the last bin."""
    bins = edges.size - 1
    low, scale = edges[0], bins / (edges[bins] - edges[0])
    out = np.zeros((rows.shape[0], bins), np.int64)
    for i in prange(rows.shape[0]):
        for value in rows[i]:
            if value == value:
                position = min(max((value - low) * scale, 0.0), bins - 1.0)
                k = np.int64(position)
                # Rounding may put a value one bin off; the edges decide, as in numpy.histogram.
                if k > 0 and value < edges[k]:
                    k -= 1
                elif k < bins - 1 and value >= edges[k + 1]:
                    k += 1
                out[i, k] += 1
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _fill_euclidean_row(rows: Floats, needed: int, i: np.int64, out: Floats) -> None:
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
def euclidean(rows: Floats, needed: int) -> Floats:
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
def compare_clusters(condensed: Floats, labels: Ints, clusters: int) -> tuple[Floats, Floats, Floats]:
    """Of each row: the sum of distances to the members of each cluster, the nearest of its own and the nearest of any other."""
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
def cut(tree: Floats, count: int) -> Ints:
    """The cluster of each leaf when the last ``count`` − 1 merges of SciPy's linkage matrix are undone; any numbers."""
    leaves = tree.shape[0] + 1
    parent = np.arange(2 * leaves - 1)
    for merge in range(leaves - count):
        parent[np.int64(tree[merge, 0])] = leaves + merge
        parent[np.int64(tree[merge, 1])] = leaves + merge
    for node in range(2 * leaves - 2, -1, -1):
        parent[node] = parent[parent[node]]
    return parent[:leaves]


@njit(cache=True, nogil=True)
def label_by_size(flat: Ints) -> Ints:
    """Numbers of clusters, none above twice their members, as labels: by falling size, equal sizes by their first member."""
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
    # Places count first members already: a stable order keeps them where sizes are equal.
    ranks = np.empty(clusters, np.int64)
    ranks[np.argsort(-sizes[:clusters], kind="mergesort")] = np.arange(clusters)
    return ranks[labels]


@njit(cache=True, nogil=True)
def density(x: Floats, y: Floats, x_edges: Floats, y_edges: Floats) -> Ints:
    """Counts (y bins × x bins) over equal bins; points with NaN or outside are left out."""
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
