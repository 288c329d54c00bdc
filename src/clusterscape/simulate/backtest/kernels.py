"""Plays sampled futures of one queue with the pieces of the batch engine. Importing this imports numba.

Running jobs are put first, as arriving now: the machine holds them all, so they start now with what is left of them.
"""

import numpy as np
from numba import njit

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.batch.indexed_kernels import (
    ARRIVED,
    ENDING,
    Books,
    Rows,
    Rules,
    enqueue,
    open_books,
    schedule,
    take_end,
)
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, Bools, bare


@bare
def play(rows: Rows, rules: Rules, books: Books, first: int, wanted: Bools, out: Float64s) -> None:
    """Until every wanted job has started. ``first``: the row of the first waiting job. Nothing is in ``books`` yet."""
    count, state = rows.submit.size, books.state
    left = 0
    for place in range(wanted.size):
        left += 1 if wanted[place] else 0
    while left > 0 and (state[ARRIVED] < count or state[ENDING] > 0):
        end = books.end_times[0] if state[ENDING] > 0 else NEVER
        arrival = rows.submit[state[ARRIVED]] if state[ARRIVED] < count else NEVER
        now = min(end, arrival)
        while state[ENDING] > 0 and books.end_times[0] == now:
            take_end(now, rows, books)
        while state[ARRIVED] < count and rows.submit[state[ARRIVED]] == now:
            enqueue(state[ARRIVED], rows, books)
            state[ARRIVED] += 1
        schedule(now, rows, rules, books)
        left = 0
        for place in range(wanted.size):
            if wanted[place] and books.starts[first + place] == NOT_YET:
                left += 1
                break
    for place in range(wanted.size):
        if books.starts[first + place] != NOT_YET:
            out[place] = books.starts[first + place]


@njit(cache=True, nogil=True)
def play_futures(
    rules: Rules,
    running_size: Int64s,
    running_limit: Int64s,
    waiting_size: Int64s,
    waiting_limit: Int64s,
    remaining: Int64s,
    runs: Int64s,
    offsets: Int64s,
    arrival_at: Int64s,
    arrival_size: Int64s,
    arrival_run: Int64s,
    arrival_limit: Int64s,
    wanted: Bools,
    out: Float64s,
) -> None:
    """Starts of the waiting jobs in every future, into the rows of ``out``."""
    held, queued = running_size.size, waiting_size.size
    here = held + queued
    for future in range(remaining.shape[0]):
        begin, end = offsets[future], offsets[future + 1]
        count = here + end - begin
        submit = np.zeros(count, np.int64)
        run = np.empty(count, np.int64)
        estimate = np.empty(count, np.int64)
        size = np.empty(count, np.int64)
        run[:held] = remaining[future]
        run[held:here] = runs[future]
        run[here:] = arrival_run[begin:end]
        estimate[:held] = running_limit
        estimate[held:here] = waiting_limit
        estimate[here:] = arrival_limit[begin:end]
        size[:held] = running_size
        size[held:here] = waiting_size
        size[here:] = arrival_size[begin:end]
        submit[here:] = arrival_at[begin:end]
        for job in range(count):
            estimate[job] = max(estimate[job], run[job])
        order = np.arange(count)
        rows = Rows(submit, run, estimate, estimate, size, order, order, order)
        books = open_books(count, rules.total, rules.backfills)
        play(rows, rules, books, held, wanted, out[future])
