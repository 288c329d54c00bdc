"""Compiled loops that look up and refill rings, the last samples of each row as they came; ``window_kernels`` reads them."""

import numpy as np
from numba import njit

from clusterscape.analyze.stats.kernels import COUNT, INTERVAL_MS, LAST_MS, RING_FROM, RING_TIMES, Bools, Uint32s
from clusterscape.model.samples import Float64s, Int64s

GUESSES = 3


@njit(cache=True, nogil=True)
def _count_recent(m: Float64s, ring_time: Uint32s, after_ms: int) -> int:
    """How many samples of one row's ring are later than ``after_ms``: newest first, their ages ascend.

    Looked for where it would be if samples came evenly, then by halves: each place that is looked at is far away in memory.
    """
    capacity, last_ms = len(ring_time), np.int64(m[LAST_MS])
    newest, span_ms = (int(m[COUNT]) - 1) % capacity, last_ms - after_ms
    low, high = 0, min(int(m[COUNT] - m[RING_FROM]), capacity)
    if span_ms <= 0:
        return 0
    guess, guesses = int(span_ms / max(m[INTERVAL_MS], 1.0)), GUESSES
    while low < high:
        middle = (low + high) // 2
        if guesses > 0:
            middle = min(max(guess, low), high - 1)
            guesses -= 1
        place = newest - middle if newest >= middle else newest - middle + capacity
        if (last_ms - np.int64(ring_time[place])) & (RING_TIMES - 1) < span_ms:
            low = guess = middle + 1
        else:
            high, guess = middle, middle - 1
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
