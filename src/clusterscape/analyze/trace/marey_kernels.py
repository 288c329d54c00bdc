"""Compiled loops of the Marey graph: nesting, merging, joining. Plain arrays in and out; importing this imports numba.

Arrays of spans are ordered by block (row), then by key or class, then by start; −1 stands for null among codes.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Wholes = NDArray[np.uint32]
Flags = NDArray[np.bool_]

MAX_DEPTH = 64
MEDIAN_SAMPLE = 255
"""A merged span's median is that of an even sample of so many members."""
NARROW_PIXELS = 3.0
"""Namespaces narrower than this are merged with their neighbors."""


@njit(cache=True, nogil=True)
def find_nesting(lane: Ints, kind: Ints, start: Ints, end: Ints) -> tuple[NDArray[np.uint8], Flags]:
    """How many spans of the same lane are around each, and whether none of its own kind is.

    Ordered by lane, start, and the longer first.
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
    first: Ints, last: Ints, runs: Ints, start: Floats, reach: Floats, from_ns: float, to_ns: float
) -> tuple[Ints, Ints]:
    """The part of each run that can touch the window: where it begins and ends, empty parts left out.

    Runs ``first[b] … last[b]`` of every wanted block; ``runs`` are their offsets; within a run ``start`` and ``reach`` (the
    latest end so far) ascend.
    """
    count = 0
    for b in range(first.size):
        count += last[b] - first[b]
    lows, highs = np.empty(count, np.int64), np.empty(count, np.int64)
    found = 0
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
                lows[found], highs[found] = low, high
                found += 1
    return lows[:found].copy(), highs[:found].copy()


@njit(cache=True, nogil=True)
def merge_spans(
    lows: Ints,
    highs: Ints,
    start: Floats,
    end: Floats,
    key: NDArray[np.int32],
    kind: NDArray[np.uint8],
    codes: NDArray[np.int32],
    outlier: Flags,
    wanted: Flags,
    from_ns: float,
    to_ns: float,
    pixel_ns: float,
    longest_ns: float,
    mode: int,
) -> tuple[Ints, Ints]:
    """The input spans that are in the picture, one output span after another, and where each output span begins among them.

    Only inputs of the same range ``lows``–``highs`` are merged. ``mode``: 0 none, 1 by gap, 2 by namespace (the last of
    ``codes``). ``key`` stands for what may be merged by gap, up to ``longest_ns``; in mode 2 inputs are ordered by kind and start
    instead.
    """
    total = 0
    for b in range(lows.size):
        total += highs[b] - lows[b]
    entry = np.empty(total, np.int64)
    offsets = np.empty(total + 1, np.int64)
    seen = found = 0
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
                offsets[found] = seen
                begin, reach = start[i], end[i]
                found += 1
            entry[seen] = i
            seen += 1
            previous = i
    offsets[found] = seen
    return entry[:seen].copy(), offsets[: found + 1].copy()


@njit(cache=True, nogil=True)
def sum_up(
    entry: Ints,
    offsets: Ints,
    start: Floats,
    end: Floats,
    early: Floats,
    late: Floats,
    count: NDArray[np.uint32],
    total: Floats,
    least: Floats,
    middle: Floats,
    most: Floats,
    worst: Ints,
    wait: Floats,
    critical: Floats,
    slack: Floats,
    codes: NDArray[np.int32],
    parent: NDArray[np.int32],
    level: NDArray[np.int32],
) -> tuple[Floats, Ints, NDArray[np.int32]]:
    """Numbers (12 columns), the worst member and codes of every output span, from its inputs.

    Numbers: start, end, earliest, latest, count, total, least, median, most, wait, critical, slack. ``codes`` (columns: name,
    collective, phase, micro-batch, step, pass, namespace): −1 where members differ; for the namespace the deepest common one.
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
def find_median(members: Ints, middle: Floats, sample: Floats) -> float:
    """Of an even sample of the members, for which ``sample`` has room; most output spans have one or two."""
    if members.size == 1:
        return float(middle[members[0]])
    if members.size == 2:
        return float(0.5 * (middle[members[0]] + middle[members[1]]))
    taken = 0
    for at in range(0, members.size, max(1, -(-members.size // MEDIAN_SAMPLE))):
        sample[taken] = middle[members[at]]
        taken += 1
    return np.median(sample[:taken])


@njit(cache=True, nogil=True)
def common_parent(one: int, other: int, parent: NDArray[np.int32], level: NDArray[np.int32]) -> int:
    """The deepest namespace that holds both; −1 where there is none."""
    while one != other:
        if one < 0 or other < 0:
            return -1
        if level[one] >= level[other]:
            one = parent[one]
        else:
            other = parent[other]
    return one


@njit(cache=True, nogil=True)
def join_spans(
    chosen: Ints, following: Ints, owner: NDArray[np.int32], start: Floats, end: Floats, outputs: int
) -> tuple[Wholes, Floats]:
    """Bands between output spans, a column each: from, to, count; and from start, from end, to start, to end, largest skew.

    ``chosen`` are input spans in the order of their outputs, ``following`` the counterpart of each (−1: none). A pair of
    outputs comes once.
    """
    pairs = np.empty((3, chosen.size), np.uint32)
    edges = np.empty((5, chosen.size), np.float64)
    # The last band to each output: one of the same output as this where it comes after that output's first.
    last = np.full(outputs, -1, np.int64)
    found = first = 0
    for place in range(chosen.size):
        i, j = chosen[place], following[place]
        if j < 0:
            continue
        one, other = owner[i], owner[j]
        if one < 0 or other < 0 or one == other:
            continue
        skew = abs(start[j] - start[i])
        if found and pairs[0, found - 1] != one:
            first = found
        k = last[other]
        if k >= first:
            pairs[2, k] += np.uint32(1)
            widen(edges, k, start[i], end[i], start[j], end[j], skew)
            continue
        pairs[0, found], pairs[1, found], pairs[2, found] = one, other, 1
        edges[0, found], edges[1, found] = start[i], end[i]
        edges[2, found], edges[3, found] = start[j], end[j]
        edges[4, found] = skew
        last[other] = found
        found += 1
    return pairs[:, :found].copy(), edges[:, :found].copy()


@njit(cache=True, nogil=True)
def join_links(
    pairs: Wholes, edges: Floats, entry: Ints, owner: NDArray[np.int32], outputs: int
) -> tuple[Wholes, Floats]:
    """Bands between output spans from bands between their inputs (both as ``join_spans`` gives them); ``entry`` are the inputs
    in the picture, ascending.
    """
    # Bands come in the order of what they start at: those before the first input and behind the last one are none of ours.
    low = np.searchsorted(pairs[0], entry[0]) if entry.size else 0
    high = np.searchsorted(pairs[0], entry[-1], side="right") if entry.size else 0
    joined = np.empty((3, high - low), np.uint32)
    numbers = np.empty((5, high - low), np.float64)
    last = np.full(outputs, -1, np.int64)
    found = first = 0
    for place in range(low, high):
        one, other = owner[pairs[0, place]], owner[pairs[1, place]]
        if one < 0 or other < 0 or one == other:
            continue
        if found and joined[0, found - 1] != one:
            first = found
        k = last[other]
        if k >= first:
            joined[2, k] += pairs[2, place]
            widen(numbers, k, edges[0, place], edges[1, place], edges[2, place], edges[3, place], edges[4, place])
            continue
        joined[0, found], joined[1, found], joined[2, found] = one, other, pairs[2, place]
        for c in range(5):
            numbers[c, found] = edges[c, place]
        last[other] = found
        found += 1
    return joined[:, :found].copy(), numbers[:, :found].copy()


@njit(cache=True, nogil=True, inline="always")
def widen(
    edges: Floats, band: int, from_start: float, from_end: float, to_start: float, to_end: float, skew: float
) -> None:
    """Another pair of spans in a band that is already there."""
    edges[0, band], edges[1, band] = min(edges[0, band], from_start), max(edges[1, band], from_end)
    edges[2, band], edges[3, band] = min(edges[2, band], to_start), max(edges[3, band], to_end)
    edges[4, band] = max(edges[4, band], skew)


@njit(cache=True, nogil=True)
def take_columns(values: NDArray[np.generic], rows: Ints) -> NDArray[np.generic]:
    """Columns of a table, each in one piece, of the given rows."""
    taken = np.empty((values.shape[1], rows.size), values.dtype)
    for place in range(rows.size):
        for column in range(values.shape[1]):
            taken[column, place] = values[rows[place], column]
    return taken
