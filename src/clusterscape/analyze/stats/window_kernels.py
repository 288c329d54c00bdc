"""Compiled loops over rings, the last samples of each row: count, refill, and exact statistics of trailing windows, without
copying them. Importing this imports numba.

A window is the last ``counts`` samples of a row, oldest first. It has at most two contiguous pieces in the ring: one up to the
ring's end, one from its beginning. ``rows`` and ``counts`` have the same shape; results are NaN for empty windows.
"""

import numpy as np
from numba import njit

from clusterscape.analyze.stats.exact_kernels import (
    INCREASE,
    MAX,
    MEAN,
    MIN,
    NOW,
    SLOPE,
    STD,
    SUMMARIES,
    select_linear,
    sort_few,
)
from clusterscape.analyze.stats.kernels import (
    COUNT,
    GAP_INTERVALS,
    INTERVAL_MS,
    LAST_MS,
    RING_FROM,
    RING_TIMES,
    is_beyond,
)
from clusterscape.model.arrays import Bools, Float64s, Int64s, Uint32s
from clusterscape.model.durations import HOUR_MS

GUESSES = 3


@njit(cache=True, nogil=True)
def _count_recent(m: Float64s, ring_time: Uint32s, after_ms: int) -> int:
    """Number of samples of one ring later than ``after_ms``, Unix ms.

    Interpolation search for GUESSES steps, then binary search: each probe is a cache miss.
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
    """Number of samples after ``after_ms`` (Unix ms) in each ring, and whether they are all samples of the row since then."""
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
    """Fill lost rings with samples that their rows have already counted, given in time order."""
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


SPARE = 4
"""Samples on each side of a percentile in its bracket: some leave the window before the next call."""

FEW = 32


@njit(cache=True, nogil=True)
def _find_pieces(m: Float64s, count: int, capacity: int) -> tuple[int, int, int]:
    """Start and end of the first piece, and end of the second one, which starts at 0."""
    first = (int(m[COUNT]) - count) % capacity
    stop = min(first + count, capacity)
    return first, stop, count - (stop - first)


@njit(cache=True, nogil=True)
def summarize_windows(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, ring_time: Uint32s
) -> Float64s:
    """The same as ``exact_kernels.summarize``, in one pass, shape (SUMMARIES, rows); NaN for empty windows, slopes per hour.

    Sums are relative to the window's first sample, which deviates from the mean by at most √count standard deviations, so
    cancellation amplifies rounding errors at most by count²; equal samples give exactly 0.
    """
    results = np.full((SUMMARIES, len(rows)), np.nan)
    for i in range(len(rows)):
        count = counts[i]
        if count == 0:
            continue
        m, values, times = moments[rows[i]], ring_value[rows[i]], ring_time[rows[i]]
        first, stop, rest = _find_pieces(m, count, len(values))
        origin, origin_ms = values[first], times[first]
        least = most = before = origin
        total = squares = total_ms = squares_ms = products = grown = 0.0
        for piece in range(2):
            for k in range(first if piece == 0 else 0, stop if piece == 0 else rest):
                value = values[k]
                # Times in rings are modulo 2³² ms.
                off, off_ms = value - origin, float(np.uint32(times[k] - origin_ms))
                least, most = min(least, value), max(most, value)
                total += off
                squares += off * off
                total_ms += off_ms
                squares_ms += off_ms * off_ms
                products += off * off_ms
                grown += value - before if value >= before else value
                before = value
        results[MIN, i], results[MAX, i], results[MEAN, i] = least, most, origin + total / count
        results[STD, i] = np.sqrt(max(squares - total * total / count, 0.0) / count)
        results[NOW, i], results[INCREASE, i] = before, grown
        spread_ms = squares_ms - total_ms * total_ms / count
        if count > 1:
            results[SLOPE, i] = (products - total * total_ms / count) / spread_ms * HOUR_MS
    return results


@njit(cache=True, nogil=True)
def _pick(first: Float64s, second: Float64s, low: float, high: float, picked: Float64s) -> tuple[int, int]:
    """Number of samples of both pieces below ``low`` and in [low, high]; the latter are copied to ``picked``.

    Branch-free, because the branches would be unpredictable.
    """
    less = count = 0
    for piece in (first, second):
        for k in range(len(piece)):
            value = piece[k]
            picked[count] = value
            less += value < low
            count += (value >= low) & (value <= high)
    return less, count


@njit(cache=True, nogil=True)
def _select_from_all(
    first: Float64s, second: Float64s, below: int, weight: float, bracket: Float64s, scratch: Float64s
) -> float:
    """A percentile from a copy of all samples; also updates the bracket around it."""
    count = len(first) + len(second)
    scratch[: len(first)] = first
    scratch[len(first) : count] = second
    percentile = float(select_linear(scratch, 0, count, below, weight))
    bracket[0] = select_linear(scratch, 0, count, max(below - SPARE, 0), 0.0)
    bracket[1] = select_linear(scratch, 0, count, min(below + 1 + SPARE, count - 1), 0.0)
    return percentile


@njit(cache=True, nogil=True)
def find_window_percentiles(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, ranks: Float64s, brackets: Float64s
) -> Float64s:
    """Linear percentiles (numpy's default) of each window, shape (ranks, rows); ``ranks`` 0–1; NaN for empty windows.

    ``brackets``, shape (ranks, rows, 2), are hints for the next call, when few samples will have changed: a lower and an upper
    bound of the percentile with few samples between them; NaN if unknown. A wrong bracket costs only time.
    """
    capacity = ring_value.shape[1]
    results = np.full((len(ranks), len(rows)), np.nan)
    scratch = np.empty(capacity + 1)  # one more, because values that are not picked are also written
    for i in range(len(rows)):
        count = counts[i]
        if count == 0:
            continue
        start, stop, rest = _find_pieces(moments[rows[i]], count, capacity)
        first, second = ring_value[rows[i], start:stop], ring_value[rows[i], :rest]
        for r in range(len(ranks)):
            exact, bracket = ranks[r] * (count - 1), brackets[r, i]
            below = int(exact)
            weight = exact - below
            less, picked = _pick(first, second, bracket[0], bracket[1], scratch)
            place = below - less
            if place < 0 or place + (weight > 0.0) >= picked:
                results[r, i] = _select_from_all(first, second, below, weight, bracket, scratch)
            elif bracket[0] == bracket[1]:
                results[r, i] = bracket[0]
            elif picked > FEW:  # many equal values: the bracket cannot be narrower
                results[r, i] = select_linear(scratch, 0, picked, place, weight)
            else:
                sort_few(scratch, picked)
                results[r, i] = scratch[place]
                if weight > 0.0:
                    results[r, i] += (scratch[place + 1] - scratch[place]) * weight
                bracket[0], bracket[1] = scratch[max(place - SPARE, 0)], scratch[min(place + 1 + SPARE, picked - 1)]
    return results


@njit(cache=True, nogil=True)
def _measure_interval(times: Uint32s, first: int, stop: int, rest: int, scratch: Float64s) -> float:
    """Median time between the samples of one window, in ms; 0 with fewer than two samples."""
    pauses, before = 0, times[first]
    for piece in range(2):
        for k in range(first + 1 if piece == 0 else 0, stop if piece == 0 else rest):
            scratch[pauses] = float(np.uint32(times[k] - before))
            before = times[k]
            pauses += 1
    if pauses == 0:
        return 0.0
    exact = 0.5 * (pauses - 1)
    return float(select_linear(scratch, 0, pauses, int(exact), exact - int(exact)))


@njit(cache=True, nogil=True)
def find_window_shares(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, threshold: Float64s, above: bool
) -> Float64s:
    """Share of each window's samples beyond the row's threshold, 0–1, shape (rows,); NaN without samples or threshold."""
    shares = np.full(len(rows), np.nan)
    for i in range(len(rows)):
        if counts[i] == 0 or np.isnan(threshold[i]):
            continue
        values, hits = ring_value[rows[i]], 0
        first, stop, rest = _find_pieces(moments[rows[i]], counts[i], len(values))
        for piece in range(2):
            for k in range(first if piece == 0 else 0, stop if piece == 0 else rest):
                hits += is_beyond(values[k], threshold[i], above)
        shares[i] = hits / counts[i]
    return shares


@njit(cache=True, nogil=True)
def find_window_runs(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, ring_time: Uint32s,
    threshold: Float64s, above: bool,
) -> Float64s:  # fmt: skip
    """Seconds of each window's longest run beyond the row's threshold, shape (rows,); NaN without samples or threshold.

    The last sample of a run counts for the median time between samples.
    """
    longest_s = np.full(len(rows), np.nan)
    scratch = np.empty(ring_value.shape[1])
    for i in range(len(rows)):
        if counts[i] == 0 or np.isnan(threshold[i]):
            continue
        values, times = ring_value[rows[i]], ring_time[rows[i]]
        first, stop, rest = _find_pieces(moments[rows[i]], counts[i], len(values))
        interval_ms = _measure_interval(times, first, stop, rest, scratch)
        longest_ms, run_ms, before = -1.0, -1.0, times[first]
        for piece in range(2):
            for k in range(first if piece == 0 else 0, stop if piece == 0 else rest):
                pause_ms = float(np.uint32(times[k] - before))
                before = times[k]
                if not is_beyond(values[k], threshold[i], above):
                    run_ms = -1.0
                    continue
                is_new = run_ms < 0.0 or pause_ms > GAP_INTERVALS * interval_ms
                run_ms = 0.0 if is_new else run_ms + pause_ms
                longest_ms = max(longest_ms, run_ms)
        longest_s[i] = (longest_ms + interval_ms) / 1000.0 if longest_ms >= 0.0 else 0.0
    return longest_s
