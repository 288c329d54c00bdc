"""Compiled statistics of trailing windows: exact, read where the rings are; only medians copy a row's samples.

A window is the last ``counts`` samples of a row, oldest first. It lies in the ring in two pieces at most: one up to the ring's
end, one from the ring's beginning.
"""

import numpy as np
from numba import njit

from clusterscape.analyze.stats.exact_kernels import INCREASE, MAX, MEAN, MIN, NOW, SLOPE, STD, SUMMARIES
from clusterscape.analyze.stats.kernels import COUNT, GAP_INTERVALS, HOUR_MS, Uint32s, is_beyond
from clusterscape.analyze.stats.selection_kernels import select_linear, sort_few
from clusterscape.model.samples import Float64s, Int64s

SPARE = 4
"""So many samples on either side of a percentile are put into its bracket: some leave the window before it is read again."""

FEW = 32


@njit(cache=True, nogil=True)
def _find_pieces(m: Float64s, count: int, capacity: int) -> tuple[int, int, int]:
    """Where the first piece begins and ends, and where the second one, which begins at 0, ends."""
    first = (int(m[COUNT]) - count) % capacity
    stop = min(first + count, capacity)
    return first, stop, count - (stop - first)


@njit(cache=True, nogil=True)
def summarize_windows(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, ring_time: Uint32s
) -> Float64s:
    """(SUMMARIES, rows): what ``exact_kernels.summarize`` finds, in one pass; NaN where a window is empty.

    Sums are taken from the window's first sample. That sample itself deviates from the mean by √count standard deviations at
    most, so no more than count² roundings are lost to cancellation; equal samples give exactly 0.
    """
    found = np.full((SUMMARIES, len(rows)), np.nan)
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
                # Times in rings are counted round a clock of 2³² ms.
                off, off_ms = value - origin, float(np.uint32(times[k] - origin_ms))
                least, most = min(least, value), max(most, value)
                total += off
                squares += off * off
                total_ms += off_ms
                squares_ms += off_ms * off_ms
                products += off * off_ms
                grown += value - before if value >= before else value
                before = value
        found[MIN, i], found[MAX, i], found[MEAN, i] = least, most, origin + total / count
        found[STD, i] = np.sqrt(max(squares - total * total / count, 0.0) / count)
        found[NOW, i], found[INCREASE, i] = before, grown
        spread_ms = squares_ms - total_ms * total_ms / count
        if count > 1:
            found[SLOPE, i] = (products - total * total_ms / count) / spread_ms * HOUR_MS
    return found


@njit(cache=True, nogil=True)
def _pick(first: Float64s, second: Float64s, low: float, high: float, picked: Float64s) -> tuple[int, int]:
    """How many samples of both pieces are less than ``low``, and how many are ``low`` to ``high``: those are put into ``picked``.

    Without branches: no processor can guess which samples they are.
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
def _select_anew(
    first: Float64s, second: Float64s, below: int, weight: float, bracket: Float64s, scratch: Float64s
) -> float:
    """A percentile from a copy of all samples, and the bracket round it."""
    count = len(first) + len(second)
    scratch[: len(first)] = first
    scratch[len(first) : count] = second
    found = float(select_linear(scratch, 0, count, below, weight))
    bracket[0] = select_linear(scratch, 0, count, max(below - SPARE, 0), 0.0)
    bracket[1] = select_linear(scratch, 0, count, min(below + 1 + SPARE, count - 1), 0.0)
    return found


@njit(cache=True, nogil=True)
def find_window_percentiles(
    rows: Int64s, counts: Int64s, moments: Float64s, ring_value: Float64s, ranks: Float64s, brackets: Float64s
) -> Float64s:
    """(ranks, rows): linear percentiles (numpy's default) of each window, ``ranks`` 0–1; NaN where a window is empty.

    ``brackets`` (ranks, rows, 2) are hints for the next call, when few samples will have come and gone: two samples between
    which the percentile lies and few others. NaN where there is none; a wrong one costs time and nothing else.
    """
    capacity = ring_value.shape[1]
    found = np.full((len(ranks), len(rows)), np.nan)
    scratch = np.empty(capacity + 1)  # one more: what is not picked is written, too
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
                found[r, i] = _select_anew(first, second, below, weight, bracket, scratch)
            elif bracket[0] == bracket[1]:
                found[r, i] = bracket[0]
            elif picked > FEW:  # many equal ones: the bracket cannot be narrower
                found[r, i] = select_linear(scratch, 0, picked, place, weight)
            else:
                sort_few(scratch, picked)
                found[r, i] = scratch[place]
                if weight > 0.0:
                    found[r, i] += (scratch[place + 1] - scratch[place]) * weight
                bracket[0], bracket[1] = scratch[max(place - SPARE, 0)], scratch[min(place + 1 + SPARE, picked - 1)]
    return found


@njit(cache=True, nogil=True)
def _measure_interval(times: Uint32s, first: int, stop: int, rest: int, scratch: Float64s) -> float:
    """Median pause between the samples of one window; 0 where there are not two."""
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
    """Share of each window's samples beyond the row's threshold; NaN where there is no sample or no threshold."""
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
    """Seconds of each window's longest unbroken run beyond the row's threshold; NaN where there is no sample or no threshold.

    A run's last sample counts for the usual pause between samples.
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
