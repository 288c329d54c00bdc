"""Compiled loops of wait forecasts: simple guesses from past waits, quantiles of censored errors, and the choice of estimates.

Importing this imports numba; `wait_guesses.py` and `wait_choice.py` own all arrays and explain the method. Waits are in seconds;
"scaled" is log(wait + SOFTEN_S).
"""

import numpy as np
from numba import njit

from clusterscape.analyze.jobs.wait_intervals import SOFTEN_S
from clusterscape.model.arrays import Bools, Float64s, Int64s

WINDOW = 400
"""Newest forecasts of a context that count."""

FEWEST = 60
"""A context with fewer known waits uses the wider one."""

FEWEST_AT_ALL = 20
"""With fewer known waits in all, forecasts stay as simulated."""


@njit(cache=True, nogil=True)
def find_middle(waits: Float64s) -> float:
    """The midpoint of the shortest half of the waits, which minimizes the median absolute error (Rousseeuw 1984)."""
    ordered = np.sort(waits)
    half = ordered.size // 2 + 1
    begin, shortest = 0, np.inf
    for place in range(ordered.size - half + 1):
        width = ordered[place + half - 1] - ordered[place]
        if width < shortest:
            shortest, begin = width, place
    return float((ordered[begin] + ordered[begin + half - 1]) / 2.0)


@njit(cache=True, nogil=True)
def group_rows(groups: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """Rows by group, in their order, and the offsets of the groups."""
    offsets = np.zeros(count + 1, np.int64)
    for group in groups:
        offsets[group + 1] += 1
    for group in range(count):
        offsets[group + 1] += offsets[group]
    rows, place = np.empty(groups.size, np.int64), offsets[:-1].copy()
    for row in range(groups.size):
        rows[place[groups[row]]] = row
        place[groups[row]] += 1
    return rows, offsets


@njit(cache=True, nogil=True)
def guess_from_past(
    start: Float64s,
    wait: Float64s,
    cell: Int64s,
    queue: Int64s,
    pace: Float64s,
    cells: int,
    queues: int,
    at: Float64s,
    at_cell: Int64s,
    at_queue: Int64s,
    fewest: int,
    recent: int,
    most: int,
    out: Float64s,
) -> None:
    """Guesses from the waits that were over by ``at``; past rows are sorted by ``start``.

    Columns of ``out``: last wait of the queue, median, median of the cell, median of its ``recent`` newest, middle of the newest
    ``most``, the same of the cell, median pace of the ``recent`` newest. NaN if no wait was over.
    """
    by_cell, cell_offsets = group_rows(cell, cells)
    by_queue, queue_offsets = group_rows(queue, queues)
    cell_start, cell_wait, queue_start = start[by_cell], wait[by_cell], start[by_queue]
    known_before, median, middle, recent_pace = -1, np.nan, np.nan, np.nan
    cell_known = np.full(cells, -1, np.int64)
    cell_guesses = np.empty((cells, 3))
    for row in range(at.size):
        over = np.searchsorted(start, at[row], side="right")
        if over == 0:
            out[row, :] = np.nan
            continue
        if over != known_before:
            median = np.median(wait[:over])
            middle = find_middle(wait[max(0, over - most) : over])
            recent_pace = np.median(pace[max(0, over - recent) : over])
            known_before = over
        begin = queue_offsets[at_queue[row]]
        place = begin + np.searchsorted(queue_start[begin : queue_offsets[at_queue[row] + 1]], at[row], side="right")
        out[row, 0] = wait[by_queue[place - 1]] if place > begin else wait[over - 1]
        out[row, 1] = median
        out[row, 4] = middle
        out[row, 6] = recent_pace
        group = at_cell[row]
        begin = cell_offsets[group]
        inside = np.searchsorted(cell_start[begin : cell_offsets[group + 1]], at[row], side="right")
        if inside < fewest:
            out[row, 2] = median
            out[row, 3] = np.median(wait[max(0, over - recent) : over])
            out[row, 5] = middle
            continue
        if inside != cell_known[group]:
            waits = cell_wait[begin : begin + inside]
            cell_guesses[group, 0] = np.median(waits)
            cell_guesses[group, 1] = np.median(waits[max(0, inside - recent) :])
            cell_guesses[group, 2] = find_middle(waits[max(0, inside - most) :])
            cell_known[group] = inside
        out[row, 2], out[row, 3], out[row, 5] = cell_guesses[group]


@njit(cache=True, nogil=True)
def find_censored_quantiles(
    values: Float64s, is_known: Bools, weights: Float64s, levels: Float64s, out: Float64s
) -> None:
    """Weighted Kaplan–Meier quantiles: a value that is not known is at least as large as given.

    ``levels`` ascend; beyond the last known value the largest value is used.
    """
    order = np.argsort(values)
    risk = weights.sum()
    nothing = 1e-12 * risk
    surviving, level, place = 1.0, 0, 0
    while place < order.size and level < levels.size:
        value = values[order[place]]
        leaving = events = 0.0
        while place < order.size and not values[order[place]] > value:
            row = order[place]
            leaving += weights[row]
            if is_known[row]:
                events += weights[row]
            place += 1
        if events > 0.0:
            surviving *= max(0.0, 1.0 - events / risk)
        risk -= leaving
        if risk < nothing and events > 0.0:
            surviving = 0.0
        while level < levels.size and 1.0 - surviving >= levels[level] - 1e-12:
            out[level] = value
            level += 1
    for rest in range(level, levels.size):
        out[rest] = values[order[-1]]


@njit(cache=True, nogil=True)
def interpolate(table: Float64s, grid: Float64s, level: float) -> float:
    """The quantile at ``level`` of a table at ``grid``; constant beyond its ends."""
    if level <= grid[0]:
        return float(table[0])
    if level >= grid[-1]:
        return float(table[-1])
    high = np.searchsorted(grid, level)
    share = (level - grid[high - 1]) / (grid[high] - grid[high - 1])
    return float(table[high - 1] + share * (table[high] - table[high - 1]))


@njit(cache=True, nogil=True)
def weigh(now: float, rows: Int64s, made: Float64s, wait: Float64s, forget: float) -> tuple[Bools, Float64s]:
    """Whether each wait is over at ``now``, and its weight; ``rows``: newest first."""
    is_known, weights, weight = np.empty(rows.size, np.bool_), np.empty(rows.size), 1.0
    for place in range(rows.size):
        is_known[place] = made[rows[place]] + wait[rows[place]] <= now
        weights[place] = weight
        weight *= forget
    return is_known, weights


@njit(cache=True, nogil=True)
def choose_point(now: float, rows: Int64s, made: Float64s, wait: Float64s, points: Float64s, forget: float) -> int:
    """The point with the smallest median error among the forecasts ``rows`` (newest first) at ``now``."""
    is_known, weights = weigh(now, rows, made, wait, forget)
    errors, half, median = np.empty(rows.size), np.array([0.5]), np.empty(1)
    point, least = 0, np.inf
    for candidate in range(points.shape[1]):
        for place in range(rows.size):
            row = rows[place]
            if is_known[place]:
                errors[place] = abs(wait[row] - points[row, candidate])
            else:
                errors[place] = max(0.0, now - made[row] - points[row, candidate])
        find_censored_quantiles(errors, is_known, weights, half, median)
        if median[0] < least:
            least, point = median[0], candidate
    return point


@njit(cache=True, nogil=True)
def choose_base(
    now: float,
    rows: Int64s,
    made: Float64s,
    wait: Float64s,
    centers: Float64s,
    scales: Float64s,
    ends: Float64s,
    grid: Float64s,
    forget: float,
    tables: Float64s,
) -> int:
    """The base with the smallest interval score (Gneiting & Raftery 2007) among the forecasts ``rows`` (newest first) at ``now``.

    ``ends``: scaled 90 % interval of each base when it was made. Sets ``tables``: quantiles at ``grid`` of its scaled errors.
    """
    is_known, weights = weigh(now, rows, made, wait, forget)
    errors = np.empty(rows.size)
    base, least = 0, np.inf
    for candidate in range(centers.shape[1]):
        total = 0.0
        for place in range(rows.size):
            row = rows[place]
            scaled = np.log((wait[row] if is_known[place] else now - made[row]) + SOFTEN_S)
            errors[place] = (scaled - centers[row, candidate]) / scales[row, candidate]
            low, high = ends[row, candidate]
            if high > low:
                missed = max(0.0, scaled - high) + (max(0.0, low - scaled) if is_known[place] else 0.0)
                total += weights[place] * (high - low + 20.0 * missed)
        find_censored_quantiles(errors, is_known, weights, grid, tables[candidate])
        if total < least:
            least, base = total, candidate
    return base


@njit(cache=True, nogil=True)
def gather_context(
    now: float, chain: Int64s, lists: Int64s, counts: Int64s, made: Float64s, wait: Float64s, window: int, fewest: int
) -> Int64s:
    """The newest forecasts of the first context of ``chain`` with enough known waits, newest first; empty if none has."""
    for depth in range(chain.size):
        context = chain[depth]
        count = min(window, counts[context])
        rows = np.empty(count, np.int64)
        over = 0
        for place in range(count):
            row = lists[context, counts[context] - 1 - place]
            rows[place] = row
            if made[row] + wait[row] <= now:
                over += 1
        if over >= (FEWEST_AT_ALL if depth == chain.size - 1 else fewest):
            return rows
    return np.empty(0, np.int64)


@njit(cache=True, nogil=True)
def bound_rate(rate: float) -> float:
    """A miss rate in [−1, 1], so that a burst of outcomes is over after some hundred others."""
    return min(max(rate, -1.0), 1.0)


@njit(cache=True, nogil=True)
def predict_wait(
    raw: Float64s,
    centers: Float64s,
    scales: Float64s,
    shifted: Int64s,
    point: int,
    base: int,
    tables: Float64s,
    grid: Float64s,
    rates: Float64s,
    points: Float64s,
    ends: Float64s,
    reported: Float64s,
) -> None:
    """One forecast: fills all its ``points`` (raw guesses, then shifted ones), the scaled 90 % ``ends`` of each base, and the
    quantiles ``reported``, outermost interval first, then the point, in seconds. ``rates``: miss rate of each interval.
    """
    least = np.log(SOFTEN_S)
    for place in range(raw.size):
        points[place] = raw[place]
    for place in range(shifted.size):
        at = shifted[place]
        middle = centers[at] + scales[at] * interpolate(tables[at], grid, 0.5)
        points[raw.size + place] = max(np.exp(middle) - SOFTEN_S, 0.0)
    for at in range(centers.size):
        ends[at, 0] = max(centers[at] + scales[at] * interpolate(tables[at], grid, 0.05), least)
        ends[at, 1] = max(centers[at] + scales[at] * interpolate(tables[at], grid, 0.95), least)
    levels, middle_place = reported.size, reported.size // 2
    reported[middle_place] = points[point]
    for place in range(middle_place - 1, -1, -1):
        # A negative miss rate widens the interval beyond the largest errors seen, by the factor e^−rate on each side.
        beyond = min(rates[place], 0.0)
        low = centers[base] + scales[base] * interpolate(tables[base], grid, rates[place] / 2.0) + beyond
        high = centers[base] + scales[base] * interpolate(tables[base], grid, 1.0 - rates[place] / 2.0) - beyond
        low, high = np.exp(low) - SOFTEN_S, np.exp(high) - SOFTEN_S
        # Intervals are nested and contain the point.
        reported[place] = min(max(low, 0.0), reported[place + 1])
        reported[levels - 1 - place] = max(high, reported[levels - 2 - place])


@njit(cache=True, nogil=True)
def walk(
    now_s: float,
    made: Float64s,
    wait: Float64s,
    raw: Float64s,
    centers: Float64s,
    scales: Float64s,
    shifted: Int64s,
    chains: Int64s,
    decides: Bools,
    grid: Float64s,
    targets: Float64s,
    step: float,
    forget: float,
    reported: Float64s,
    points: Float64s,
    choices: Int64s,
    rates: Float64s,
    lists: Int64s,
    counts: Int64s,
    ends: Float64s,
) -> None:
    """Every forecast in the order of ``made``, each from what was known then; ``wait``: infinite if the job has not started.

    ``decides``: forecasts whose outcomes count. Sets ``reported`` (NaN if too few waits were known), ``points``, ``choices``
    (point, base; −1: too few) and, as they are at ``now_s``, the miss ``rates`` of the intervals and the context
    ``lists`` with their ``counts``.
    """
    count, bases, intervals = made.size, centers.shape[1], targets.size
    known_at = made + wait
    order = np.argsort(known_at)
    tables = np.empty((bases, grid.size))
    is_judged = np.zeros((count, intervals), np.bool_)
    is_open = np.zeros(count, np.bool_)
    # Misses expected of the forecasts that are not judged yet, less the target; and the rates without them.
    expected, pending, judged_rates = np.zeros((count, intervals)), np.zeros(intervals), rates.copy()
    settled = first_open = 0
    for row in range(count + 1):
        now = made[row] if row < count else now_s
        while settled < count and known_at[order[settled]] <= now:
            past = order[settled]
            settled += 1
            is_open[past] = False
            if choices[past, 1] < 0 or not decides[past]:
                continue
            for place in range(intervals):
                if not is_judged[past, place]:
                    # Times are whole seconds: an interval holds up to one second outside it.
                    is_inside = (
                        reported[past, place] - 1.0 <= wait[past] <= reported[past, reported.shape[1] - 1 - place] + 1.0
                    )
                    missed = 0.0 if is_inside else 1.0
                    judged_rates[place] = bound_rate(judged_rates[place] + step * (targets[place] - missed))
                    pending[place] -= expected[past, place]
        while first_open < row and not is_open[first_open]:
            first_open += 1
        for past in range(first_open, row):
            # A job that still waits past the end of its interval has missed it, although its wait is not known.
            if is_open[past] and choices[past, 1] >= 0 and decides[past]:
                for place in range(intervals):
                    end = reported[past, reported.shape[1] - 1 - place]
                    if not is_judged[past, place] and now - made[past] > end + 1.0:
                        is_judged[past, place] = True
                        judged_rates[place] = bound_rate(judged_rates[place] + step * (targets[place] - 1.0))
                        pending[place] -= expected[past, place]
        for place in range(intervals):
            rates[place] = bound_rate(judged_rates[place] - step * pending[place])
        if row == count:
            break
        is_open[row] = True
        rows = gather_context(now, chains[row], lists, counts, made, wait, WINDOW, FEWEST)
        choices[row] = -1
        reported[row] = np.nan
        if rows.size == 0:
            points[row, : raw.shape[1]] = raw[row]
            for place in range(shifted.size):
                points[row, raw.shape[1] + place] = max(np.exp(centers[row, shifted[place]]) - SOFTEN_S, 0.0)
            ends[row] = 0.0
        else:
            wider = gather_context(now, chains[row, 1:], lists, counts, made, wait, WINDOW, FEWEST)
            point = choose_point(now, wider, made, wait, points, forget)
            base = choose_base(now, rows, made, wait, centers, scales, ends, grid, forget, tables)
            predict_wait(
                raw[row], centers[row], scales[row], shifted, point, base, tables, grid, rates, points[row], ends[row],
                reported[row],
            )  # fmt: skip
            choices[row, 0], choices[row, 1] = point, base
            if decides[row]:
                for place in range(intervals):
                    expected[row, place] = max(rates[place], 0.0) - targets[place]
                    pending[place] += expected[row, place]
        if not decides[row]:
            continue
        for depth in range(chains.shape[1]):
            context = chains[row, depth]
            lists[context, counts[context]] = row
            counts[context] += 1


@njit(cache=True, nogil=True)
def choose_cells(
    now: float,
    chains: Int64s,
    lists: Int64s,
    counts: Int64s,
    made: Float64s,
    wait: Float64s,
    points: Float64s,
    centers: Float64s,
    scales: Float64s,
    ends: Float64s,
    grid: Float64s,
    forget: float,
    chosen: Int64s,
    tables: Float64s,
) -> None:
    """The choice of each cell at ``now``, after ``walk``.

    Sets ``chosen`` (cell × point and base; −1: too few waits are known) and ``tables``.
    """
    for cell in range(chains.shape[0]):
        rows = gather_context(now, chains[cell], lists, counts, made, wait, WINDOW, FEWEST)
        if rows.size:
            wider = gather_context(now, chains[cell, 1:], lists, counts, made, wait, WINDOW, FEWEST)
            chosen[cell, 0] = choose_point(now, wider, made, wait, points, forget)
            chosen[cell, 1] = choose_base(now, rows, made, wait, centers, scales, ends, grid, forget, tables[cell])


@njit(cache=True, nogil=True)
def predict_all(
    raw: Float64s,
    centers: Float64s,
    scales: Float64s,
    shifted: Int64s,
    cells: Int64s,
    points: Int64s,
    bases: Int64s,
    tables: Float64s,
    grid: Float64s,
    rates: Float64s,
    reported: Float64s,
) -> None:
    """Forecasts of many jobs by the choice of their cells: sets ``reported``, seconds."""
    own_points, ends = np.empty(raw.shape[1] + shifted.size), np.empty((centers.shape[1], 2))
    for row in range(raw.shape[0]):
        cell = cells[row]
        predict_wait(
            raw[row], centers[row], scales[row], shifted, points[cell], bases[cell], tables[cell], grid, rates, own_points,
            ends, reported[row],
        )  # fmt: skip
