"""Conservative backfilling: every waiting job holds a reservation in a profile of free processors. Importing this imports numba.

A look at the queue costs (waiting jobs) × (steps of the profile): meant for queues of hundreds, not of ten thousands.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from clusterscape.model.samples import Int64s
from clusterscape.simulate.batch.indexed_kernels import FREE, HIGH, LOW, QUEUED, Books, Rows, Rules
from clusterscape.simulate.batch.kernels import NEVER, NOT_YET, bare
from clusterscape.simulate.batch.listed_kernels import Lists, advance, drop_started, launch
from clusterscape.simulate.profile_kernels import find_start, take


class Profile(NamedTuple):
    """Free processors over time, see `profile_kernels.py`; ``size[0]`` steps."""

    times: Int64s
    free: Int64s
    size: Int64s


@njit(cache=True, nogil=True)
def open_profile(count: int, total: int) -> Profile:
    """Room for the running and the waiting jobs, two steps each."""
    room = 2 * (count + min(count, total)) + 8
    return Profile(np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(1, np.int64))


@bare
def take_processors(profile: Profile, start: int, end: int, processors: int) -> None:
    """Take processors (negative: give back) from ``start`` until ``end``."""
    profile.size[0] = take(profile.times, profile.free, profile.size[0], start, end, processors)


@bare
def draw_profile(now: int, total: int, rows: Rows, books: Books, profile: Profile) -> None:
    """The profile of the running jobs by their estimates, from ``now`` on."""
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


@bare
def schedule_conservative(
    now: int, rows: Rows, rules: Rules, books: Books, lists: Lists, planned: Int64s, profile: Profile
) -> None:
    """One look at the queue: each job in order gets the earliest start that delays nobody before it.

    With fixed promises the others keep their plans meanwhile, so that no plan ever moves back (compression).
    """
    queued = books.state[QUEUED]
    draw_profile(now, rules.total, rows, books, profile)
    if rules.is_fixed:
        for at in range(queued):
            job = lists.queue[at]
            if planned[job] >= now:
                take_processors(profile, planned[job], planned[job] + rows.estimate[job], rows.processors[job])
    is_any = False
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
            is_any = True
        elif books.promises[job] == NOT_YET:
            books.promises[job] = start
    if is_any:
        drop_started(books, lists)


@njit(cache=True, nogil=True)
def simulate_conservative(rows: Rows, rules: Rules, books: Books, lists: Lists, progress: Int64s) -> None:
    """The whole simulation, where the order of the queue never changes."""
    planned = np.full(rows.submit.size, NOT_YET)
    profile = open_profile(rows.submit.size, rules.total)
    now = advance(rows, rules, books, lists)
    while now != NEVER and (progress.size < 2 or progress[1] == 0):
        progress[0] += 1
        if books.state[QUEUED] > 0:
            schedule_conservative(now, rows, rules, books, lists, planned, profile)
        now = advance(rows, rules, books, lists)


@bare
def step_conservative(
    now: int,
    rows: Rows,
    rules: Rules,
    books: Books,
    lists: Lists,
    planned: Int64s,
    profile: Profile,
    progress: Int64s,
) -> int:
    """Look at the queue as it is ordered (not at NOT_YET), then go on to the next time at which its order matters."""
    if now != NOT_YET:
        schedule_conservative(now, rows, rules, books, lists, planned, profile)
    while True:
        now = advance(rows, rules, books, lists)
        progress[0] += 1
        if now == NEVER or books.state[QUEUED] > 1:
            return now
        if books.state[QUEUED] == 1:
            schedule_conservative(now, rows, rules, books, lists, planned, profile)
