"""Compiled loops over jobs: features from a group's earlier jobs, repeated jobs, quantiles of a forest. Importing this imports
numba; callers own all arrays.
"""

import numpy as np
from numba import njit

from clusterscape.model.arrays import Float64s, Int64s

RECENT = 20
"""Number of most recent jobs of a group that are used."""

PER_GROUP = 12
"""Columns that ``describe_groups`` writes per group: count, last, second last, median, p10, p90, share completed, age of the last
end; of the jobs that ran longer than ``elapsed``: share, median, median of run ÷ request, last run ÷ request."""


@njit(cache=True, nogil=True)
def find_first_after(ends: Float64s, low: int, high: int, at: float) -> int:
    """The first index in [low, high) whose end is after ``at``."""
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def interpolate_quantile(ordered: Float64s, count: int, share: float) -> float:
    """The quantile of the first ``count`` sorted values, linearly interpolated."""
    place = share * (count - 1)
    low = int(place)
    high = min(low + 1, count - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


@njit(cache=True, nogil=True)
def sort_first(values: Float64s, count: int) -> None:
    """Insertion sort of the first ``count`` values: at most RECENT."""
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
    """Statistics of the jobs of each job's group (``codes``) that ended before ``at``; NaN if there are none.

    Groups are contiguous between ``offsets``, each sorted by end. ``out`` has PER_GROUP columns. Times are in seconds.
    """
    runs = np.empty(RECENT)
    survivor_runs = np.empty(RECENT)
    survivor_ratios = np.empty(RECENT)
    for row in range(codes.size):
        out[row, :] = np.nan
        out[row, 0] = 0.0
        code = codes[row]
        if code < 0:
            continue
        begin = offsets[code]
        end = find_first_after(ends, begin, offsets[code + 1], at[row])
        if end == begin:
            continue
        first = max(begin, end - RECENT)
        count = end - first
        log_elapsed = np.log(elapsed[row]) if elapsed[row] > 0.0 else -np.inf
        survivors, completed_count = 0, 0.0
        for place in range(first, end):
            runs[place - first] = log_runs[place]
            completed_count += completed[place]
            if log_runs[place] > log_elapsed:
                survivor_runs[survivors] = log_runs[place]
                survivor_ratios[survivors] = log_ratios[place]
                survivors += 1
        sort_first(runs, count)
        out[row, 0] = np.log1p(end - begin)
        out[row, 1] = log_runs[end - 1]
        if count > 1:
            out[row, 2] = log_runs[end - 2]
        out[row, 3] = interpolate_quantile(runs, count, 0.5)
        out[row, 4] = interpolate_quantile(runs, count, 0.1)
        out[row, 5] = interpolate_quantile(runs, count, 0.9)
        out[row, 6] = completed_count / count
        out[row, 7] = np.log1p(at[row] - ends[end - 1])
        out[row, 8] = survivors / count
        if survivors > 0:
            out[row, 11] = survivor_ratios[survivors - 1]
            sort_first(survivor_runs, survivors)
            sort_first(survivor_ratios, survivors)
            out[row, 9] = interpolate_quantile(survivor_runs, survivors, 0.5)
            out[row, 10] = interpolate_quantile(survivor_ratios, survivors, 0.5)


@njit(cache=True, nogil=True)
def choose_predictors(
    accuracy: Float64s,
    made: Float64s,
    ended: Float64s,
    user: Int64s,
    memory: int,
    user_forget: float,
    weight: float,
    chosen: Int64s,
) -> None:
    """The predictor of each job with the highest mean accuracy (job × predictor) on jobs that had ended when it was ``made``.

    The mean is of the user's jobs, each with ``user_forget`` of the weight of the next newer one, and ``weight`` times that of
    the ``memory`` newest of all. ``user`` numbers users from 0. The first predictor is chosen before any job has ended.
    """
    count, predictors = accuracy.shape
    by_end, by_made = np.argsort(ended), np.argsort(made)
    of_user, jobs_of_user = np.zeros((user.max() + 1, predictors)), np.zeros(user.max() + 1)
    of_all, over = np.zeros(predictors), 0
    for job in by_made:
        while over < count and ended[by_end[over]] <= made[job]:
            past = by_end[over]
            of_user[user[past]] = of_user[user[past]] * user_forget + accuracy[past]
            jobs_of_user[user[past]] = jobs_of_user[user[past]] * user_forget + 1.0
            of_all += accuracy[past]
            if over >= memory:
                of_all -= accuracy[by_end[over - memory]]
            over += 1
        best, most = 0, -1.0
        for place in range(predictors):
            score = 0.0 if over == 0 else weight * of_all[place] / min(over, memory)
            score = (score + of_user[user[job], place]) / (weight + jobs_of_user[user[job]])
            if score > most + 1e-12:
                best, most = place, score
        chosen[job] = best


@njit(cache=True, nogil=True)
def group_repeats(kind: Int64s, run_s: Float64s, tolerance: float) -> Int64s:
    """The group of each job. Jobs are sorted by ``kind`` (user and size) and by submission within it.

    A job joins the first group of its kind whose mean run time so far is within ``tolerance`` of its own, else it starts a new
    group.
    """
    group = np.empty(len(kind), np.int64)
    means = np.empty(len(kind), np.float64)
    sizes = np.zeros(len(kind), np.int64)
    first = 0
    count = 0
    for job in range(len(kind)):
        if job > 0 and kind[job] != kind[job - 1]:
            first = count
        place = count
        for other in range(first, count):
            if abs(run_s[job] - means[other]) <= tolerance * means[other]:
                place = other
                break
        if place == count:
            means[place] = run_s[job]
            count += 1
        sizes[place] += 1
        means[place] += (run_s[job] - means[place]) / sizes[place]
        group[job] = place
    return group


MIN_SURVIVING_SHARE = 1e-3
"""A job that has run longer than all but this share of similar jobs gets the distribution of the last bin."""


@njit(cache=True, nogil=True)
def condition_quantiles(
    leaves: Float64s,
    leaf_of: Int64s,
    edges: Float64s,
    request: Float64s,
    elapsed: Float64s,
    levels: Float64s,
    out: Float64s,
) -> None:
    """Quantiles of the run time at ``levels``, given that it exceeds ``elapsed``; one row per job, in seconds.

    ``leaves``: shares by tree, leaf and bin; ``leaf_of``: leaf by job and tree; ``edges``: of the bins of log(run ÷ request).
    """
    bins, trees = edges.size - 1, leaf_of.shape[1]
    shares = np.empty(bins)
    for row in range(leaf_of.shape[0]):
        shares[:] = 0.0
        for tree in range(trees):
            leaf = leaf_of[row, tree]
            for at in range(bins):
                shares[at] += leaves[tree, leaf, at]
        floor = np.log(elapsed[row] / request[row]) if elapsed[row] > 0.0 else edges[0]
        total = 0.0
        for at in range(bins):
            if edges[at + 1] <= floor:
                shares[at] = 0.0
            elif edges[at] < floor:
                shares[at] *= (edges[at + 1] - floor) / (edges[at + 1] - edges[at])
            total += shares[at]
        if total < MIN_SURVIVING_SHARE * trees:
            for place in range(levels.size):
                out[row, place] = elapsed[row] * (1.0 + 0.2 * levels[place]) + 1.0
            continue
        at, below = 0, 0.0
        for place in range(levels.size):
            target = levels[place] * total
            while at < bins - 1 and below + shares[at] < target:
                below += shares[at]
                at += 1
            low = max(edges[at], floor)
            part = (target - below) / shares[at] if shares[at] > 0.0 else 1.0
            out[row, place] = np.exp(low + min(max(part, 0.0), 1.0) * (edges[at + 1] - low)) * request[row]
            if elapsed[row] > 0.0:
                out[row, place] = max(out[row, place], elapsed[row] + 1.0)
