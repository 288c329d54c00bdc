"""Compiled loops over rings, the last samples of each row as they came, and the selection that percentiles are found by."""

import numpy as np
from numba import njit

from clusterscape.analyze.stats.kernels import COUNT, LAST_MS, RING_FROM, RING_TIMES, Bools, Uint32s
from clusterscape.model.samples import Float64s, Int64s


@njit(cache=True, nogil=True)
def _count_recent(m: Float64s, ring_time: Uint32s, after_ms: int) -> int:
    """How many samples of one row's ring are later than ``after_ms``: newest first, their ages ascend."""
    capacity, last_ms = len(ring_time), np.int64(m[LAST_MS])
    newest, span_ms = (int(m[COUNT]) - 1) % capacity, last_ms - after_ms
    low, high = 0, min(int(m[COUNT] - m[RING_FROM]), capacity)
    if span_ms <= 0:
        return 0
    while low < high:
        middle = (low + high) // 2
        place = newest - middle if newest >= middle else newest - middle + capacity
        if (last_ms - np.int64(ring_time[place])) & (RING_TIMES - 1) < span_ms:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def count_recent(rows: Int64s, moments: Float64s, ring_time: Uint32s, after_ms: Int64s) -> tuple[Int64s, Bools]:
    """How many samples after ``after_ms`` each ring has, and whether those are all that the row counted since then."""
    capacity = ring_time.shape[1]
    counts, are_all = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    for i in range(len(rows)):
        m = moments[rows[i]]
        counts[i] = _count_recent(m, ring_time[rows[i]], after_ms[i])
        there = min(int(m[COUNT] - m[RING_FROM]), capacity)
        are_all[i] = counts[i] < there or counts[i] == int(m[COUNT]) or m[LAST_MS] <= after_ms[i]
    return counts, are_all


@njit(cache=True, nogil=True)
def unroll_rings(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, ring_time: Uint32s
) -> tuple[Int64s, Float64s, Int64s]:
    """Times, values and row borders of the last ``counts`` samples of each ring, oldest first."""
    capacity = ring_value.shape[1]
    offsets = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        offsets[i + 1] = offsets[i] + counts[i]
    time_ms, value = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.float64)
    for i in range(len(rows)):
        row, last_ms = rows[i], np.int64(moments[rows[i], LAST_MS])
        place = (int(moments[row, COUNT]) - counts[i]) % capacity
        for out in range(offsets[i], offsets[i + 1]):
            age_ms = (last_ms - np.int64(ring_time[row, place])) & (RING_TIMES - 1)
            time_ms[out], value[out] = last_ms - age_ms, ring_value[row, place]
            place = place + 1 if place + 1 < capacity else 0
    return time_ms, value, offsets


@njit(cache=True, nogil=True)
def find_recent_percentiles(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, ranks: Float64s
) -> Float64s:
    """(ranks, rows): exact linear percentiles of the last ``counts`` samples of each ring. ``ranks`` are 0–1 and ascending."""
    capacity = ring_value.shape[1]
    found = np.full((len(ranks), len(rows)), np.nan)
    scratch = np.empty(capacity, np.float64)
    for i in range(len(rows)):
        count = counts[i]
        if count == 0:
            continue
        first = (int(moments[rows[i], COUNT]) - count) % capacity
        ahead = min(count, capacity - first)
        for k in range(ahead):
            scratch[k] = ring_value[rows[i], first + k]
        for k in range(ahead, count):
            scratch[k] = ring_value[rows[i], k - ahead]
        below = 0
        for r in range(len(ranks)):
            exact, placed = ranks[r] * (count - 1), below
            below = int(exact)
            found[r, i] = select_linear(scratch, placed, count, below, exact - below)
    return found


@njit(cache=True, nogil=True)
def _select(values: Float64s, low: int, high: int, place: int) -> None:
    """Reorder ``values[low:high]`` so that what stands at ``place`` is what sorting would put there, with no greater before it.

    Quickselect that moves elements without branches, as their order is anyone's guess, and sets equal ones aside, as idle and
    busy GPUs show the same number all the time.
    """
    while high - low > 1:
        pivot = values[(low + high) // 2]
        less = low
        for k in range(low, high):
            value = values[k]
            values[k] = values[less]
            values[less] = value
            less += value < pivot
        if place < less:
            high = less
            continue
        equal = less
        for k in range(less, high):
            value = values[k]
            values[k] = values[equal]
            values[equal] = value
            equal += value == pivot
        if place < equal:
            return
        low = equal


@njit(cache=True, nogil=True)
def select_linear(values: Float64s, low: int, count: int, below: int, weight: float) -> float:
    """What lies ``weight`` of the way from the sample that sorting would put at ``below`` to the next; reorders ``values``.

    What stands before ``low`` is in its place already, from an earlier call.
    """
    _select(values, low, count, below)
    if weight == 0.0:
        return float(values[below])
    above = values[below + 1]
    for k in range(below + 2, count):
        above = min(above, values[k])
    return float(values[below] + (above - values[below]) * weight)


@njit(cache=True, nogil=True)
def refill_rings(
    rows: Int64s, time_ms: Int64s, value: Float64s, moments: Float64s, ring_value: Float64s, ring_time: Uint32s
) -> None:
    """Put samples that rows have counted already, given in time order, back into rings that were lost."""
    capacity = ring_value.shape[1]
    for i in range(len(rows) - 1, -1, -1):
        m = moments[rows[i]]
        held = int(m[COUNT] - m[RING_FROM])
        if time_ms[i] > m[LAST_MS] or held >= capacity or m[RING_FROM] < 1.0:
            continue
        place = (int(m[COUNT]) - 1 - held) % capacity
        ring_value[rows[i], place] = value[i]
        ring_time[rows[i], place] = time_ms[i] & (RING_TIMES - 1)
        m[RING_FROM] -= 1.0
