"""What a user's former jobs say about one more, compiled. Importing this imports numba. Callers own all arrays."""

import numpy as np
from numba import njit

from clusterscape.model.samples import Float64s, Int64s

RECENT = 20
"""How many of the former jobs of a group are looked at."""

PER_GROUP = 12
"""Columns that ``describe_groups`` writes per group: count, last, the one before, median, tenth, ninetieth, share completed, age
of the last end; of those that outlived ``elapsed``: share, median, middle of run ÷ request, last run ÷ request."""


@njit(cache=True, nogil=True)
def count_until(ends: Float64s, low: int, high: int, at: float) -> int:
    """The first place in [low, high) that ended after ``at``."""
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def pick(ordered: Float64s, count: int, share: float) -> float:
    """The quantile of the first ``count`` sorted values, linear between neighbors."""
    place = share * (count - 1)
    low = int(place)
    high = min(low + 1, count - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


@njit(cache=True, nogil=True)
def sort_first(values: Float64s, count: int) -> None:
    """Insertion sort: there are at most RECENT."""
    for at in range(1, count):
        value = values[at]
        place = at
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@njit(cache=True, nogil=True)
def describe_groups(
    offsets: Int64s,
    ends: Float64s,
    log_runs: Float64s,
    log_ratios: Float64s,
    completed: Float64s,
    codes: Int64s,
    at: Float64s,
    elapsed: Float64s,
    out: Float64s,
) -> None:
    """For each asked job what the group of ``codes`` did before ``at``; NaN where it did nothing.

    Groups lie one after the other between ``offsets``, each by end. ``out`` has PER_GROUP columns. Times are seconds.
    """
    runs = np.empty(RECENT)
    alive = np.empty(RECENT)
    ratios = np.empty(RECENT)
    for row in range(codes.size):
        out[row, :] = np.nan
        out[row, 0] = 0.0
        code = codes[row]
        if code < 0:
            continue
        begin = offsets[code]
        end = count_until(ends, begin, offsets[code + 1], at[row])
        if end == begin:
            continue
        first = max(begin, end - RECENT)
        known = end - first
        log_elapsed = np.log(elapsed[row]) if elapsed[row] > 0.0 else -np.inf
        survivors, passed = 0, 0.0
        for place in range(first, end):
            runs[place - first] = log_runs[place]
            passed += completed[place]
            if log_runs[place] > log_elapsed:
                alive[survivors] = log_runs[place]
                ratios[survivors] = log_ratios[place]
                survivors += 1
        sort_first(runs, known)
        out[row, 0] = np.log1p(end - begin)
        out[row, 1] = log_runs[end - 1]
        if known > 1:
            out[row, 2] = log_runs[end - 2]
        out[row, 3] = pick(runs, known, 0.5)
        out[row, 4] = pick(runs, known, 0.1)
        out[row, 5] = pick(runs, known, 0.9)
        out[row, 6] = passed / known
        out[row, 7] = np.log1p(at[row] - ends[end - 1])
        out[row, 8] = survivors / known
        if survivors > 0:
            out[row, 11] = ratios[survivors - 1]
            sort_first(alive, survivors)
            sort_first(ratios, survivors)
            out[row, 9] = pick(alive, survivors, 0.5)
            out[row, 10] = pick(ratios, survivors, 0.5)
