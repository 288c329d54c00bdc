"""Conservative backfilling: every waiting job holds a reservation in a profile of free processors. Importing this imports numba.

One scheduling pass costs (waiting jobs) × (steps of the profile): for queues of hundreds, not of ten thousands of jobs.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from clusterscape.model.arrays import Int64s
from clusterscape.simulate.batch.indexed_kernels import FREE, HIGH, LOW, QUEUED, BatchBooks, BatchRows, BatchRules
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, find_start, njit_without_refcount, take_capacity
from clusterscape.simulate.batch.listed_kernels import Lists, advance, drop_started, launch


class Profile(NamedTuple):
    """Free processors over time, see `kernels.py`; ``size[0]``: number of steps."""

    times: Int64s
    free: Int64s
    size: Int64s


@njit(cache=True, nogil=True)
def open_profile(count: int, total: int) -> Profile:
    """A profile with room for the running and waiting jobs, two steps each."""
    room = 2 * (count + min(count, total)) + 8
    return Profile(np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(1, np.int64))


@njit_without_refcount
def take_processors(profile: Profile, start: int, end: int, processors: int) -> None:
    """Reserve processors (negative: release) from ``start`` until ``end``."""
    profile.size[0] = take_capacity(profile.times, profile.free, profile.size[0], start, end, processors)


@njit_without_refcount
def fill_profile(now: int, total: int, rows: BatchRows, books: BatchBooks, profile: Profile) -> None:
    """Fill the profile with the running jobs by their estimates, from ``now`` on."""
    state = books.state
    free = total
    for at in range(state[LOW], state[HIGH]):
        if books.run_ends[at] > now:
            free -= rows.processors[books.run_jobs[at]]
    profile.times[0], profile.free[0] = now, free
    size = 1
    for at in range(state[LOW], state[HIGH]):
        if books.run_ends[at] <= now:
            continue
        free += rows.processors[books.run_jobs[at]]
        if profile.times[size - 1] == books.run_ends[at]:
            profile.free[size - 1] = free
        else:
            profile.times[size], profile.free[size] = books.run_ends[at], free
            size += 1
    profile.size[0] = size


@njit_without_refcount
def schedule_conservative(
    now: int, rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists, planned: Int64s, profile: Profile
) -> None:
    """One scheduling pass: each job in order gets the earliest start that delays no job before it.

    With fixed promises the other jobs keep their planned starts, so that no start ever moves back (compression).
    """
    queued = books.state[QUEUED]
    fill_profile(now, rules.total, rows, books, profile)
    if rules.is_fixed:
        for at in range(queued):
            job = lists.queue[at]
            if planned[job] >= now:
                take_processors(profile, planned[job], planned[job] + rows.estimate[job], rows.processors[job])
    has_started = False
    for at in range(queued):
        job = lists.queue[at]
        size, lasts = rows.processors[job], rows.estimate[job]
        if rules.is_fixed and planned[job] >= now:
            take_processors(profile, planned[job], planned[job] + lasts, -size)
        start = find_start(profile.times, profile.free, profile.size[0], now, size, lasts)
        take_processors(profile, start, start + lasts, size)
        planned[job] = start
        if start == now and size <= books.state[FREE]:
            launch(job, now, rows, books, lists)
            has_started = True
        elif books.promises[job] == NOT_YET:
            books.promises[job] = start
    if has_started:
        drop_started(books, lists)


@njit(cache=True, nogil=True)
def simulate_conservative(
    rows: BatchRows, rules: BatchRules, books: BatchBooks, lists: Lists, progress: Int64s
) -> None:
    """Run the whole simulation with a queue order that never changes."""
    planned = np.full(rows.submit.size, NOT_YET)
    profile = open_profile(rows.submit.size, rules.total)
    now = advance(rows, rules, books, lists)
    while now != NEVER and (progress.size < 2 or progress[1] == 0):
        progress[0] += 1
        if books.state[QUEUED] > 0:
            schedule_conservative(now, rows, rules, books, lists, planned, profile)
        now = advance(rows, rules, books, lists)


@njit_without_refcount
def step_conservative(
    now: int,
    rows: BatchRows,
    rules: BatchRules,
    books: BatchBooks,
    lists: Lists,
    planned: Int64s,
    profile: Profile,
    progress: Int64s,
) -> int:
    """Schedule the ordered queue (unless ``now`` is NOT_YET), then advance to the next time at which its order matters."""
    if now != NOT_YET:
        schedule_conservative(now, rows, rules, books, lists, planned, profile)
    while True:
        now = advance(rows, rules, books, lists)
        progress[0] += 1
        if now == NEVER or books.state[QUEUED] > 1:
            return now
        if books.state[QUEUED] == 1:
            schedule_conservative(now, rows, rules, books, lists, planned, profile)
