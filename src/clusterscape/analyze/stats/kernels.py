"""Compiled loops of the sketch, which update moments, bins, rings and runs from samples. Importing this imports numba.

One row is one life. Callers check shapes; only results are allocated. Statistics without samples are NaN.
"""

import numpy as np
from numba import njit

from clusterscape.analyze.stats.contract import EQUAL_WITHIN
from clusterscape.model.arrays import Bools, Float64s, Int64s, Uint32s
from clusterscape.model.durations import HOUR_MS

# Columns of the moments, float64; times are Unix ms (exact in float64), hours (``_H``) since the row's first sample.
COUNT, MIN, MAX, MEAN, M2, FIRST_MS, LAST_MS, FIRST, LAST = 0, 1, 2, 3, 4, 5, 6, 7, 8
MEAN_H, M2_H, CO, INCREASE, INTERVAL_MS, RING_FROM = (
    9,
    10,
    11,
    12,
    13,
    14,
)  # RING_FROM: first sample in the ring
MOMENTS = 15

# Columns of a run tracker. The length of a run is its last minus its first time, in ms; NaN without runs.
HITS, RUN_FROM_MS, LONGEST_MS, HEAD_MS = 0, 1, 2, 3
RUNS = 4

GAP_INTERVALS = 4.0
"""A gap longer than this many scrape intervals breaks a run."""

SAME_INTERVAL = 1.25
INTERVAL_STEP = 1.05
RING_TIMES = 2**32


@njit(cache=True, nogil=True)
def is_beyond(value: float, threshold: float, above: bool) -> bool:
    """Whether ``value`` is above (or below) ``threshold``; False if equal within EQUAL_WITHIN or if the threshold is NaN."""
    margin = abs(threshold) * EQUAL_WITHIN
    if above:
        return bool(value > threshold + margin)
    return bool(value < threshold - margin)


@njit(cache=True, nogil=True)
def bin_of(value: float, width: float, count: int, least: float, octave: float) -> int:
    """The bin of a value, 0 ≤ bin < ``count``: logarithmic from ``least`` if ``octave`` > 0, else linear with ``width``."""
    if octave > 0.0:
        if value < least:
            return 0
        place = 1 + int(np.log2(value / least) / octave)
    else:
        place = int(np.rint(max(value, 0.0) / width)) if value < width * count else count - 1
    return min(place, count - 1)


@njit(cache=True, nogil=True)
def middle_of(place: int, width: float, least: float, octave: float) -> float:
    """The value that represents the samples of bin ``place``; see ``bin_of``."""
    if octave > 0.0:
        return float(least * 2.0 ** ((place - 0.5) * octave)) if place else 0.0
    return float(place * width)


@njit(cache=True, nogil=True)
def _follow_interval(before_ms: float, gap_ms: float) -> float:
    """Update the usual time between samples by one gap, in ms (frugal streaming median, Ma, Muthukrishnan, Sandler 2014)."""
    if before_ms == 0.0:
        return gap_ms
    if gap_ms > before_ms * SAME_INTERVAL:
        return before_ms * INTERVAL_STEP
    if gap_ms * SAME_INTERVAL < before_ms:
        return before_ms / INTERVAL_STEP
    return before_ms + 0.05 * (gap_ms - before_ms)


@njit(cache=True, nogil=True)
def _add_moments(m: Float64s, at_ms: float, value: float) -> None:
    """Add a later sample to the moments of one row, shape (MOMENTS,) (Welford 1962, with the co-moment of time for the slope)."""
    count = m[COUNT] + 1.0
    if count == 1.0:
        m[:] = 0.0
        m[MIN] = m[MAX] = m[FIRST] = value
        m[FIRST_MS] = at_ms
    else:
        m[MIN], m[MAX] = min(m[MIN], value), max(m[MAX], value)
        m[INCREASE] += value - m[LAST] if value >= m[LAST] else value
        m[INTERVAL_MS] = _follow_interval(m[INTERVAL_MS], at_ms - m[LAST_MS])
    hours = (at_ms - m[FIRST_MS]) / HOUR_MS
    from_mean, from_mean_h = value - m[MEAN], hours - m[MEAN_H]
    m[MEAN] += from_mean / count
    m[MEAN_H] += from_mean_h / count
    m[M2] += from_mean * (value - m[MEAN])
    m[M2_H] += from_mean_h * (hours - m[MEAN_H])
    m[CO] += from_mean_h * (value - m[MEAN])
    m[COUNT], m[LAST], m[LAST_MS] = count, value, at_ms


@njit(cache=True, nogil=True)
def _add_run(run: Float64s, at_ms: float, last_ms: float, usual_ms: float, is_first: bool, hit: bool) -> None:
    """Add a later sample to a run tracker, shape (RUNS,). ``last_ms``: previous sample; ``usual_ms``: usual interval."""
    if not hit:
        run[RUN_FROM_MS] = np.nan
        return
    run[HITS] += 1.0
    is_gap = usual_ms > 0.0 and at_ms - last_ms > GAP_INTERVALS * usual_ms
    if is_first or np.isnan(run[RUN_FROM_MS]) or is_gap:
        run[RUN_FROM_MS] = at_ms
    elif not np.isnan(run[HEAD_MS]) and run[HEAD_MS] == last_ms:
        run[HEAD_MS] = at_ms
    if is_first:
        run[HEAD_MS] = at_ms
    span = at_ms - run[RUN_FROM_MS]
    if np.isnan(run[LONGEST_MS]) or span > run[LONGEST_MS]:
        run[LONGEST_MS] = span


@njit(cache=True, nogil=True)
def add_samples(
    rows: Int64s, time_ms: Int64s, value: Float64s,
    moments: Float64s, histogram: Uint32s, width: Float64s, least: float, octave: float,
    ring_value: Float64s, ring_time: Uint32s,
    runs: Float64s, threshold: Float64s, is_above: Bools,
) -> int:  # fmt: skip
    """Add samples, given in time order, to their rows, except those not later than a row's last; returns how many were added.

    ``moments`` (rows, MOMENTS), ``histogram`` (rows, bins), ``width`` (rows,), rings (rows, capacity), ``runs`` (trackers,
    rows, RUNS), ``threshold`` (trackers, rows), ``is_above`` (trackers,).
    """
    counted = 0
    bins, capacity, trackers = histogram.shape[1], ring_value.shape[1], runs.shape[0]
    for i in range(len(rows)):
        row, at_ms, sample = rows[i], float(time_ms[i]), value[i]
        m = moments[row]
        if m[COUNT] > 0.0 and at_ms <= m[LAST_MS]:
            continue
        last_ms, usual_ms, is_first = m[LAST_MS], m[INTERVAL_MS], m[COUNT] == 0.0
        if not is_first and at_ms - last_ms >= RING_TIMES // capacity:
            m[RING_FROM] = m[COUNT]  # ring times are modulo 2³² ms: all samples of a ring must be within 49 days
        place = int(m[COUNT]) % capacity
        _add_moments(m, at_ms, sample)
        if bins:
            histogram[row, bin_of(sample, width[row], bins, least, octave)] += 1
        ring_value[row, place] = sample
        ring_time[row, place] = time_ms[i] & (RING_TIMES - 1)
        for t in range(trackers):
            hit = is_beyond(sample, threshold[t, row], is_above[t])
            _add_run(runs[t, row], at_ms, last_ms, usual_ms, is_first, hit)
        counted += 1
    return counted


@njit(cache=True, nogil=True)
def find_percentiles(
    rows: Int64s, moments: Float64s, histogram: Uint32s, width: Float64s, least: float, octave: float, ranks: Float64s
) -> Float64s:
    """Percentiles of many rows, in one pass over each row's bins; in the metric's unit, NaN without samples.

    ``ranks`` are 0–1 and ascending. Returns shape (ranks, rows). Interpolates between the bins of the two samples that
    numpy's linear percentile interpolates between; for the error see ``bins.error_bound``.
    """
    bins = histogram.shape[1]
    percentiles = np.full((len(ranks), len(rows)), np.nan)
    for i in range(len(rows)):
        row = rows[i]
        m = moments[row]
        count = int(m[COUNT])
        if count == 0 or bins == 0:
            continue
        place = 0
        cumulative = int(histogram[row, 0])  # samples in bins up to and including ``place``
        for r in range(len(ranks)):
            exact = ranks[r] * (count - 1)
            below = int(exact)
            while cumulative <= below and place < bins - 1:
                place += 1
                cumulative += int(histogram[row, place])
            low = m[MAX] if place == bins - 1 else middle_of(place, width[row], least, octave)
            low = m[MIN] if below == 0 else (m[MAX] if below == count - 1 else min(max(low, m[MIN]), m[MAX]))
            high = low
            if exact > below:
                place_high, seen_high = place, cumulative
                while seen_high <= below + 1 and place_high < bins - 1:
                    place_high += 1
                    seen_high += int(histogram[row, place_high])
                high = m[MAX] if place_high == bins - 1 else middle_of(place_high, width[row], least, octave)
                high = m[MAX] if below + 1 == count - 1 else min(max(high, m[MIN]), m[MAX])
            percentiles[r, i] = low + (high - low) * (exact - below)
    return percentiles


@njit(cache=True, nogil=True)
def find_shares(
    rows: Int64s, moments: Float64s, histogram: Uint32s, width: Float64s, least: float, octave: float,
    threshold: Float64s, above: bool,
) -> Float64s:  # fmt: skip
    """Share of samples beyond each row's threshold, 0–1, shape (rows,); NaN without samples or threshold.

    Samples in the threshold's bin count as equal to it.
    """
    bins = histogram.shape[1]
    shares = np.full(len(rows), np.nan)
    for i in range(len(rows)):
        row = rows[i]
        m = moments[row]
        if m[COUNT] == 0.0 or np.isnan(threshold[i]):
            continue
        if is_beyond(m[MIN], threshold[i], above) and is_beyond(m[MAX], threshold[i], above):
            shares[i] = 1.0
            continue
        if not is_beyond(m[MIN], threshold[i], above) and not is_beyond(m[MAX], threshold[i], above):
            shares[i] = 0.0
            continue
        if bins == 0:
            continue
        own = bin_of(threshold[i], width[row], bins, least, octave)
        beyond = 0
        for place in range(own + 1, bins) if above else range(own):
            beyond += int(histogram[row, place])
        shares[i] = beyond / m[COUNT]
    return shares


@njit(cache=True, nogil=True)
def merge_rows(
    rows: Int64s, source_rows: Int64s,
    moments: Float64s, ring_value: Float64s, ring_time: Uint32s, runs: Float64s,
    moments_b: Float64s, ring_value_b: Float64s, ring_time_b: Uint32s, runs_b: Float64s,
) -> None:  # fmt: skip
    """Add the later samples of rows ``source_rows`` of sketch b to ``rows`` (moments: Chan, Golub, LeVeque 1979)."""
    capacity = ring_value.shape[1]
    for i in range(len(rows)):
        a, b = moments[rows[i]], moments_b[source_rows[i]]
        if b[COUNT] == 0.0:
            continue
        for t in range(runs.shape[0]):
            _merge_runs(runs[t, rows[i]], runs_b[t, source_rows[i]], a, b)
        before, later = int(a[COUNT]), int(b[COUNT])
        kept = min(later, capacity)
        for k in range(kept):
            source, target = (later - kept + k) % capacity, (before + later - kept + k) % capacity
            ring_value[rows[i], target] = ring_value_b[source_rows[i], source]
            ring_time[rows[i], target] = ring_time_b[source_rows[i], source]
        _merge_moments(a, b, RING_TIMES // capacity)


@njit(cache=True, nogil=True)
def _merge_moments(a: Float64s, b: Float64s, ring_gap_ms: int) -> None:
    if a[COUNT] == 0.0:
        a[:] = b
        return
    if b[RING_FROM] > 0.0 or b[FIRST_MS] - a[LAST_MS] >= ring_gap_ms:
        a[RING_FROM] = a[COUNT] + b[RING_FROM]
    count = a[COUNT] + b[COUNT]
    share = b[COUNT] / count
    apart = b[MEAN] - a[MEAN]
    apart_h = b[MEAN_H] + (b[FIRST_MS] - a[FIRST_MS]) / HOUR_MS - a[MEAN_H]
    a[M2] += b[M2] + apart * apart * a[COUNT] * share
    a[M2_H] += b[M2_H] + apart_h * apart_h * a[COUNT] * share
    a[CO] += b[CO] + apart * apart_h * a[COUNT] * share
    a[MEAN] += apart * share
    a[MEAN_H] += apart_h * share
    a[INCREASE] += b[INCREASE] + (b[FIRST] - a[LAST] if b[FIRST] >= a[LAST] else b[FIRST])
    if b[COUNT] > a[COUNT] or a[INTERVAL_MS] == 0.0:
        a[INTERVAL_MS] = b[INTERVAL_MS] if b[INTERVAL_MS] > 0.0 else b[FIRST_MS] - a[LAST_MS]
    a[MIN], a[MAX] = min(a[MIN], b[MIN]), max(a[MAX], b[MAX])
    a[LAST], a[LAST_MS], a[COUNT] = b[LAST], b[LAST_MS], count


@njit(cache=True, nogil=True)
def _merge_runs(run: Float64s, later: Float64s, a: Float64s, b: Float64s) -> None:
    """Merge run trackers. ``a`` and ``b`` are the moments of both parts before they are merged."""
    if a[COUNT] == 0.0:
        run[:] = later
        return
    usual = max(a[INTERVAL_MS], b[INTERVAL_MS])
    gap = b[FIRST_MS] - a[LAST_MS]
    joins = not np.isnan(run[RUN_FROM_MS]) and not np.isnan(later[HEAD_MS])
    joins = joins and (usual == 0.0 or gap <= GAP_INTERVALS * usual)
    run[HITS] += later[HITS]
    longest = later[LONGEST_MS]
    if np.isnan(longest) or (not np.isnan(run[LONGEST_MS]) and run[LONGEST_MS] > longest):
        longest = run[LONGEST_MS]
    from_ms = later[RUN_FROM_MS]
    if joins:
        longest = max(longest, later[HEAD_MS] - run[RUN_FROM_MS])
        if run[HEAD_MS] == a[LAST_MS]:
            run[HEAD_MS] = later[HEAD_MS]
        if from_ms == b[FIRST_MS]:
            from_ms = run[RUN_FROM_MS]
    run[LONGEST_MS], run[RUN_FROM_MS] = longest, from_ms
