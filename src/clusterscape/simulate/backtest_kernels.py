"""Simulates sampled futures of one queue with the kernels of the batch engine. Importing this imports numba.

Running jobs come first, as if they arrived now: they all fit, so they start now with their remaining time.
"""

import numpy as np
from numba import njit

from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.simulate.batch.indexed_kernels import (
    ARRIVED,
    ENDING,
    BatchBooks,
    BatchRows,
    BatchRules,
    enqueue,
    open_books,
    process_end,
    schedule,
)
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, njit_without_refcount


@njit_without_refcount
def simulate_future(
    rows: BatchRows, rules: BatchRules, books: BatchBooks, first: int, wanted: Bools, out: Float64s
) -> None:
    """Simulate until every wanted job has started. ``first``: the row of the first waiting job. ``books`` must be empty."""
    count, state = rows.submit.size, books.state
    left = 0
    for place in range(wanted.size):
        left += 1 if wanted[place] else 0
    while left > 0 and (state[ARRIVED] < count or state[ENDING] > 0):
        end = books.end_times[0] if state[ENDING] > 0 else NEVER
        arrival = rows.submit[state[ARRIVED]] if state[ARRIVED] < count else NEVER
        now = min(end, arrival)
        while state[ENDING] > 0 and books.end_times[0] == now:
            process_end(now, rows, books)
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
def simulate_futures(
    rules: BatchRules,
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
    """Write the starts of the waiting jobs in every future into the rows of ``out``."""
    running, queued = running_size.size, waiting_size.size
    present = running + queued
    for future in range(remaining.shape[0]):
        begin, end = offsets[future], offsets[future + 1]
        count = present + end - begin
        submit = np.zeros(count, np.int64)
        run = np.empty(count, np.int64)
        estimate = np.empty(count, np.int64)
        size = np.empty(count, np.int64)
        run[:running] = remaining[future]
        run[running:present] = runs[future]
        run[present:] = arrival_run[begin:end]
        estimate[:running] = running_limit
        estimate[running:present] = waiting_limit
        estimate[present:] = arrival_limit[begin:end]
        size[:running] = running_size
        size[running:present] = waiting_size
        size[present:] = arrival_size[begin:end]
        submit[present:] = arrival_at[begin:end]
        for job in range(count):
            estimate[job] = max(estimate[job], run[job])
        order = np.arange(count)
        rows = BatchRows(submit, run, estimate, estimate, size, order, order, order)
        books = open_books(count, rules.total, rules.backfills)
        simulate_future(rows, rules, books, running, wanted, out[future])
