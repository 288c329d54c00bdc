"""Compiled loops of the Marey graph: nesting, merging, joining. Plain arrays in and out; importing this imports numba.

Arrays of spans are sorted by block (row), then by key or class, then by start; −1 is the null code.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from clusterscape.model.arrays import Bools, Float64s, Int64s, Uint32s

MAX_DEPTH = 64
MEDIAN_SAMPLE = 255
"""The median of a merged span is computed from an evenly spaced sample of at most this many members."""
NARROW_PIXELS = 3.0
"""Namespaces narrower than this are merged with their neighbors."""


@njit(cache=True, nogil=True)
def find_nesting(lane: Int64s, kind: Int64s, start: Int64s, end: Int64s) -> tuple[NDArray[np.uint8], Bools]:
    """Nesting depth of each span within its lane, and whether no enclosing span has the same kind.

    Spans are sorted by lane, then start, then length descending.
    """
    size = lane.size
    depth = np.zeros(size, np.uint8)
    outer = np.ones(size, np.bool_)
    ends = np.zeros(MAX_DEPTH, np.int64)
    kinds = np.zeros(MAX_DEPTH, np.int64)
    top = 0
    for i in range(size):
        if i and lane[i] != lane[i - 1]:
            top = 0
        while top and (ends[top - 1] <= start[i] or ends[top - 1] < end[i]):
            top -= 1
        depth[i] = top
        for k in range(top):
            if kinds[k] == kind[i]:
                outer[i] = False
                break
        if top < MAX_DEPTH:
            ends[top] = end[i]
            kinds[top] = kind[i]
            top += 1
    return depth, outer


@njit(cache=True, nogil=True)
def cut_runs(
    first: Int64s, last: Int64s, runs: Int64s, start: Float64s, reach: Float64s, from_ns: float, to_ns: float
) -> tuple[Int64s, Int64s]:
    """First and end index of the part of each run that can touch the window, without empty parts.

    ``first[b] … last[b]``: the runs of block b; ``runs``: their offsets; within a run ``start`` and ``reach`` (running maximum of
    the end) ascend.
    """
    count = 0
    for b in range(first.size):
        count += last[b] - first[b]
    lows, highs = np.empty(count, np.int64), np.empty(count, np.int64)
    parts = 0
    for b in range(first.size):
        for run in range(first[b], last[b]):
            low, high = runs[run], runs[run + 1]
            if start[low] > to_ns or reach[high - 1] < from_ns:
                continue
            if reach[low] < from_ns:
                low += np.searchsorted(reach[low:high], from_ns)
            if start[high - 1] > to_ns:
                high = low + np.searchsorted(start[low:high], to_ns, side="right")
            if low < high:
                lows[parts], highs[parts] = low, high
                parts += 1
    return lows[:parts].copy(), highs[:parts].copy()


@njit(cache=True, nogil=True)
def merge_spans(
    lows: Int64s,
    highs: Int64s,
    start: Float64s,
    end: Float64s,
    key: NDArray[np.int32],
    kind: NDArray[np.uint8],
    codes: NDArray[np.int32],
    outlier: Bools,
    wanted: Bools,
    from_ns: float,
    to_ns: float,
    pixel_ns: float,
    longest_ns: float,
    mode: int,
) -> tuple[Int64s, Int64s]:
    """The input spans within the window, grouped by output span, and the offset of each output span among them.

    Only inputs of the same range ``lows``–``highs`` are merged. ``mode``: 0 none, 1 by gap, 2 by namespace (the last column of
    ``codes``). In mode 1, spans with equal ``key`` are merged up to a length of ``longest_ns``; in mode 2, inputs are sorted by
    kind and start instead.
    """
    total = 0
    for b in range(lows.size):
        total += highs[b] - lows[b]
    entry = np.empty(total, np.int64)
    offsets = np.empty(total + 1, np.int64)
    inputs = outputs = 0
    last_code = codes.shape[1] - 1
    for b in range(lows.size):
        previous = -1
        begin = reach = 0.0
        for i in range(lows[b], highs[b]):
            if not wanted[kind[i]] or end[i] < from_ns or start[i] > to_ns:
                continue
            joined = False
            if previous >= 0 and mode == 1:
                is_near = start[i] - reach <= pixel_ns and end[i] - begin <= longest_ns
                joined = is_near and key[i] == key[previous]
            elif previous >= 0 and mode == 2 and not outlier[i] and not outlier[previous]:
                is_same = codes[i, last_code] == codes[previous, last_code] and codes[i, last_code] >= 0
                is_narrow = (
                    reach - begin < NARROW_PIXELS * pixel_ns
                    and end[i] - start[i] < NARROW_PIXELS * pixel_ns
                    and start[i] - reach <= pixel_ns
                )
                joined = kind[i] == kind[previous] and (is_same or is_narrow)
            if joined:
                reach = max(reach, end[i])
            else:
                offsets[outputs] = inputs
                begin, reach = start[i], end[i]
                outputs += 1
            entry[inputs] = i
            inputs += 1
            previous = i
    offsets[outputs] = inputs
    return entry[:inputs].copy(), offsets[: outputs + 1].copy()


@njit(cache=True, nogil=True)
def summarize_outputs(
    entry: Int64s,
    offsets: Int64s,
    start: Float64s,
    end: Float64s,
    early: Float64s,
    late: Float64s,
    count: NDArray[np.uint32],
    total: Float64s,
    least: Float64s,
    middle: Float64s,
    most: Float64s,
    worst: Int64s,
    wait: Float64s,
    critical: Float64s,
    slack: Float64s,
    codes: NDArray[np.int32],
    parent: NDArray[np.int32],
    level: NDArray[np.int32],
) -> tuple[Float64s, Int64s, NDArray[np.int32]]:
    """Numbers (12 columns), the longest member and the codes of every output span, from its inputs.

    Numbers: start, end, earliest, latest, count, total, least, median, most, wait, critical, slack. ``codes`` (columns: name,
    collective, phase, micro-batch, step, pass, namespace): −1 where members differ; for the namespace, the deepest common
    ancestor.
    """
    size = offsets.size - 1
    numbers = np.empty((size, 12), np.float64)
    worst_of = np.empty(size, np.int64)
    out = np.empty((size, codes.shape[1]), np.int32)
    deepest = codes.shape[1] - 1
    sample = np.empty(MEDIAN_SAMPLE, np.float64)
    for g in range(size):
        lead = entry[offsets[g]]
        for c in range(codes.shape[1]):
            out[g, c] = codes[lead, c]
        low, high, early_ns, late_ns = start[lead], end[lead], early[lead], late[lead]
        members = summed = wait_ns = critical_ns = 0.0
        least_ns, most_ns, slack_ns = least[lead], most[lead], slack[lead]
        worst_of[g] = worst[lead]
        has_wait = False
        for at in range(offsets[g], offsets[g + 1]):
            i = entry[at]
            low, high = min(low, start[i]), max(high, end[i])
            early_ns, late_ns = min(early_ns, early[i]), max(late_ns, late[i])
            members += count[i]
            summed += total[i]
            least_ns = min(least_ns, least[i])
            if most[i] > most_ns:
                most_ns = most[i]
                worst_of[g] = worst[i]
            if not np.isnan(wait[i]):
                wait_ns += wait[i]
                has_wait = True
            critical_ns += critical[i]
            if np.isnan(slack_ns) or slack[i] < slack_ns:
                slack_ns = slack[i]
            for c in range(deepest):
                if codes[i, c] != out[g, c]:
                    out[g, c] = -1
            out[g, deepest] = common_parent(codes[i, deepest], out[g, deepest], parent, level)
        numbers[g, 0], numbers[g, 1], numbers[g, 2], numbers[g, 3] = low, high, early_ns, late_ns
        numbers[g, 4], numbers[g, 5], numbers[g, 6] = members, summed, least_ns
        numbers[g, 7] = find_median(entry[offsets[g] : offsets[g + 1]], middle, sample)
        numbers[g, 8] = most_ns
        numbers[g, 9] = wait_ns if has_wait else np.nan
        numbers[g, 10], numbers[g, 11] = critical_ns, slack_ns
    return numbers, worst_of, out


@njit(cache=True, nogil=True)
def find_median(members: Int64s, middle: Float64s, sample: Float64s) -> float:
    """Median of ``middle`` over an evenly spaced sample of the members; ``sample`` is scratch space. Most outputs have 1 or 2
    members.
    """
    if members.size == 1:
        return float(middle[members[0]])
    if members.size == 2:
        return float(0.5 * (middle[members[0]] + middle[members[1]]))
    size = 0
    for at in range(0, members.size, max(1, -(-members.size // MEDIAN_SAMPLE))):
        sample[size] = middle[members[at]]
        size += 1
    return np.median(sample[:size])


@njit(cache=True, nogil=True)
def common_parent(a: int, b: int, parent: NDArray[np.int32], level: NDArray[np.int32]) -> int:
    """The deepest common ancestor of two namespaces; −1 if there is none."""
    while a != b:
        if a < 0 or b < 0:
            return -1
        if level[a] >= level[b]:
            a = parent[a]
        else:
            b = parent[b]
    return a


@njit(cache=True, nogil=True)
def join_spans(
    chosen: Int64s, following: Int64s, owner: NDArray[np.int32], start: Float64s, end: Float64s, outputs: int
) -> tuple[Uint32s, Float64s]:
    """Bands between output spans, one column per band: (from, to, count), and (from start, from end, to start, to end, largest
    skew).

    ``chosen``: input spans sorted by output; ``following``: the counterpart of each (−1: none). Each pair of outputs occurs once.
    """
    pairs = np.empty((3, chosen.size), np.uint32)
    edges = np.empty((5, chosen.size), np.float64)
    # The last band to each output. It starts at the current output if its index is at least ``first``.
    last = np.full(outputs, -1, np.int64)
    bands = first = 0
    for place in range(chosen.size):
        i, j = chosen[place], following[place]
        if j < 0:
            continue
        source, target = owner[i], owner[j]
        if source < 0 or target < 0 or source == target:
            continue
        skew = abs(start[j] - start[i])
        if bands and pairs[0, bands - 1] != source:
            first = bands
        k = last[target]
        if k >= first:
            pairs[2, k] += np.uint32(1)
            extend_band(edges, k, start[i], end[i], start[j], end[j], skew)
            continue
        pairs[0, bands], pairs[1, bands], pairs[2, bands] = source, target, 1
        edges[0, bands], edges[1, bands] = start[i], end[i]
        edges[2, bands], edges[3, bands] = start[j], end[j]
        edges[4, bands] = skew
        last[target] = bands
        bands += 1
    return pairs[:, :bands].copy(), edges[:, :bands].copy()


@njit(cache=True, nogil=True)
def join_links(
    pairs: Uint32s, edges: Float64s, entry: Int64s, owner: NDArray[np.int32], outputs: int
) -> tuple[Uint32s, Float64s]:
    """Bands between output spans from bands between their inputs (both as ``join_spans`` returns them); ``entry``: the inputs
    within the window, ascending.
    """
    # Bands are sorted by where they start: skip those before the first input and after the last.
    low = np.searchsorted(pairs[0], entry[0]) if entry.size else 0
    high = np.searchsorted(pairs[0], entry[-1], side="right") if entry.size else 0
    joined = np.empty((3, high - low), np.uint32)
    numbers = np.empty((5, high - low), np.float64)
    last = np.full(outputs, -1, np.int64)
    bands = first = 0
    for place in range(low, high):
        source, target = owner[pairs[0, place]], owner[pairs[1, place]]
        if source < 0 or target < 0 or source == target:
            continue
        if bands and joined[0, bands - 1] != source:
            first = bands
        k = last[target]
        if k >= first:
            joined[2, k] += pairs[2, place]
            extend_band(numbers, k, edges[0, place], edges[1, place], edges[2, place], edges[3, place], edges[4, place])
            continue
        joined[0, bands], joined[1, bands], joined[2, bands] = source, target, pairs[2, place]
        for c in range(5):
            numbers[c, bands] = edges[c, place]
        last[target] = bands
        bands += 1
    return joined[:, :bands].copy(), numbers[:, :bands].copy()


@njit(cache=True, nogil=True, inline="always")
def extend_band(
    edges: Float64s, band: int, from_start: float, from_end: float, to_start: float, to_end: float, skew: float
) -> None:
    """Extend an existing band by another pair of spans."""
    edges[0, band], edges[1, band] = min(edges[0, band], from_start), max(edges[1, band], from_end)
    edges[2, band], edges[3, band] = min(edges[2, band], to_start), max(edges[3, band], to_end)
    edges[4, band] = max(edges[4, band], skew)


@njit(cache=True, nogil=True)
def take_columns(values: NDArray[np.generic], rows: Int64s) -> NDArray[np.generic]:
    """The given rows of a table, transposed so that each column is contiguous."""
    columns = np.empty((values.shape[1], rows.size), values.dtype)
    for place in range(rows.size):
        for column in range(values.shape[1]):
            columns[column, place] = values[rows[place], column]
    return columns
