"""Compiled loops over samples kept as pieces of flat arrays: row ``i`` has samples ``start[i]:stop[i]``, in time order;
and selection of the sample that sorting would put at a place, without sorting. Importing this imports numba.
"""

import numpy as np
from numba import njit

from clusterscape.analyze.stats.kernels import GAP_INTERVALS, is_beyond
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.durations import HOUR_MS


@njit(cache=True, nogil=True)
def _select(values: Float64s, low: int, high: int, place: int) -> None:
    """Quickselect: reorder ``values[low:high]`` so that ``place`` has the value that sorting would put there.

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
def sort_few(values: Float64s, count: int) -> None:
    """Insertion sort of ``values[:count]``: fastest for about a dozen values."""
    for i in range(1, count):
        value, place = values[i], i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


# Columns of ``summarize``.
MIN, MAX, MEAN, STD, NOW, SLOPE, INCREASE = 0, 1, 2, 3, 4, 5, 6
SUMMARIES = 7


@njit(cache=True, nogil=True)
def find_pieces(time_ms: Int64s, offsets: Int64s, after_ms: Int64s, until_ms: Int64s) -> tuple[Int64s, Int64s]:
    """Start and end of each row's samples with ``after < time ≤ until``."""
    rows = len(offsets) - 1
    start, stop = np.empty(rows, np.int64), np.empty(rows, np.int64)
    for i in range(rows):
        times = time_ms[offsets[i] : offsets[i + 1]]
        start[i] = offsets[i] + np.searchsorted(times, after_ms[i], side="right")
        stop[i] = max(start[i], offsets[i] + np.searchsorted(times, until_ms[i], side="right"))
    return start, stop


@njit(cache=True, nogil=True)
def summarize(time_ms: Int64s, value: Float64s, start: Int64s, stop: Int64s) -> Float64s:
    """(rows, SUMMARIES): everything that needs neither order nor threshold; NaN where a row has no samples."""
    out = np.full((len(start), SUMMARIES), np.nan)
    for i in range(len(start)):
        if start[i] == stop[i]:
            continue
        samples = value[start[i] : stop[i]]
        count = len(samples)
        mean, grown = samples.mean(), 0.0
        hours = (time_ms[start[i] : stop[i]] - time_ms[start[i]]) / HOUR_MS
        mean_h = hours.mean()
        squares = squares_h = products = 0.0
        for k in range(count):
            off, off_h = samples[k] - mean, hours[k] - mean_h
            squares += off * off
            squares_h += off_h * off_h
            products += off * off_h
            if k:
                grown += samples[k] - samples[k - 1] if samples[k] >= samples[k - 1] else samples[k]
        out[i, MIN], out[i, MAX], out[i, MEAN] = samples.min(), samples.max(), mean
        out[i, STD], out[i, NOW], out[i, INCREASE] = np.sqrt(squares / count), samples[-1], grown
        if squares_h > 0.0:
            out[i, SLOPE] = products / squares_h
    return out


@njit(cache=True, nogil=True)
def find_percentile(value: Float64s, start: Int64s, stop: Int64s, rank: float) -> Float64s:
    """Linear percentile (numpy's default) of each row, ``rank`` 0–1; NaN where a row is empty. O(samples)."""
    out = np.full(len(start), np.nan)
    if not len(start):
        return out
    scratch = np.empty((stop - start).max(), np.float64)
    for i in range(len(start)):
        count = stop[i] - start[i]
        if count:
            for k in range(count):
                scratch[k] = value[start[i] + k]
            exact = rank * (count - 1)
            below = int(exact)
            out[i] = select_linear(scratch, 0, count, below, exact - below)
    return out


@njit(cache=True, nogil=True)
def find_sides(
    time_ms: Int64s, value: Float64s, start: Int64s, stop: Int64s,
    interval_ms: Float64s, threshold: Float64s, above: bool,
) -> tuple[Float64s, Float64s]:  # fmt: skip
    """Share of each row's samples beyond its threshold, and seconds of its longest unbroken run there.

    ``interval_ms``: the usual time between a row's samples; the last sample of a run lasts that long.
    """
    shares, longest_s = np.full(len(start), np.nan), np.full(len(start), np.nan)
    for i in range(len(start)):
        if start[i] == stop[i] or np.isnan(threshold[i]):
            continue
        times = time_ms[start[i] : stop[i]]
        hits, longest_ms, from_ms = 0, -1, -1
        for k in range(len(times)):
            if not is_beyond(value[start[i] + k], threshold[i], above):
                from_ms = -1
                continue
            hits += 1
            if from_ms < 0 or times[k] - times[k - 1] > GAP_INTERVALS * interval_ms[i]:
                from_ms = times[k]
            longest_ms = max(longest_ms, times[k] - from_ms)
        shares[i] = hits / len(times)
        longest_s[i] = (longest_ms + interval_ms[i]) / 1000.0 if longest_ms >= 0 else 0.0
    return shares, longest_s
