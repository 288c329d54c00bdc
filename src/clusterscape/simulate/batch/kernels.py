"""Compiled functions that all simulations share: a heap of ends, running jobs by estimated end, reservations, and profiles of
free capacity over time, which plans on nodes and conservative backfilling use.

Importing this imports numba. A job is its row; times are whole seconds, sizes whole processors. Callers own all arrays.

In a profile, ``free[k]`` of a machine or node is free from ``times[k]`` until ``times[k + 1]``; the last of ``count`` steps has
no end. Callers provide enough room in the arrays: a reservation adds up to two steps.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numba import njit

from clusterscape.model.arrays import Float64s, Int64s

NEVER = 2**62
NOT_YET = -(2**62)
"""A start or promise that does not exist yet."""

# The base of a relaxation (Semantics.relaxation_base).
EXPECTED_WAIT, REMAINING_WAIT, REQUEST = 0, 1, 2

_Function = TypeVar("_Function", bound=Callable[..., object])


def njit_without_refcount(function: _Function) -> _Function:
    """Compile without reference counting, which in loops over tuples of arrays costs three times as much as the work.

    Only for functions that neither create nor return arrays.
    """
    options = {"cache": True, "nogil": True, "_nrt": False}  # numba's stubs lack the last option
    return cast(_Function, njit(**options)(function))  # type: ignore[call-overload]


@njit_without_refcount
def is_before(time_a: int, order_a: int, time_b: int, order_b: int) -> bool:
    """Whether (time, order) a comes before b."""
    return bool(time_a < time_b or (time_a == time_b and order_a < order_b))


@njit_without_refcount
def push(times: Int64s, jobs: Int64s, order: Int64s, size: int, time: int, job: int) -> int:
    """Add (time, job) to a heap ordered by time, then by ``order`` of the job; returns the new size."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if not is_before(time, order[job], times[parent], order[jobs[parent]]):
            break
        times[place] = times[parent]
        jobs[place] = jobs[parent]
        place = parent
    times[place] = time
    jobs[place] = job
    return size + 1


@njit_without_refcount
def pop(times: Int64s, jobs: Int64s, order: Int64s, size: int) -> int:
    """Remove the first entry (read it at index 0 before); returns the new size."""
    size -= 1
    time, job = times[size], jobs[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        right = child + 1
        if right < size and is_before(times[right], order[jobs[right]], times[child], order[jobs[child]]):
            child = right
        if not is_before(times[child], order[jobs[child]], time, order[job]):
            break
        times[place] = times[child]
        jobs[place] = jobs[child]
        place = child
    times[place] = time
    jobs[place] = job
    return size


@njit_without_refcount
def search(ends: Int64s, low: int, high: int, end: int) -> int:
    """The first index in [low, high) whose end is not before ``end``."""
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] < end:
            low = middle + 1
        else:
            high = middle
    return low


@njit_without_refcount
def insert_running(ends: Int64s, jobs: Int64s, low: int, high: int, end: int, job: int) -> int:
    """Insert a job into [low, high), sorted by estimated end; returns the new high. There must be room at ``high``."""
    place = search(ends, low, high, end + 1)
    for at in range(high, place, -1):
        ends[at] = ends[at - 1]
        jobs[at] = jobs[at - 1]
    ends[place] = end
    jobs[place] = job
    return high + 1


@njit_without_refcount
def remove_running(ends: Int64s, jobs: Int64s, low: int, high: int, end: int, job: int) -> int:
    """Remove ``job``, whose estimated end is ``end``; returns the new high."""
    place = search(ends, low, high, end)
    while jobs[place] != job:
        place += 1
    for at in range(place, high - 1):
        ends[at] = ends[at + 1]
        jobs[at] = jobs[at + 1]
    return high - 1


@njit_without_refcount
def reserve(
    wanted: int, free: int, ends: Int64s, jobs: Int64s, processors: Int64s, low: int, high: int
) -> tuple[int, int]:
    """Earliest time at which ``wanted`` processors are free by the estimates, and the number of extra processors then."""
    at = low
    start = NOT_YET
    while at < high and free < wanted:
        start = ends[at]
        free += processors[jobs[at]]
        at += 1
    while at < high and ends[at] == start:
        free += processors[jobs[at]]
        at += 1
    return start, free - wanted


@njit_without_refcount
def charge(usage: Float64s, usage_at: Int64s, half_life: float, user: int, amount: float, now: int) -> None:
    """Add processor-seconds (GPU-seconds) to a user's decayed usage; does nothing without a half-life."""
    if half_life > 0.0:
        usage[user] *= 0.5 ** ((now - usage_at[user]) / half_life)
        usage_at[user] = now
        usage[user] = max(0.0, usage[user] + amount)


@njit_without_refcount
def longest_allowed(
    start: int,
    now: int,
    submitted: int,
    requested: int,
    share: float,
    base: int,
    is_strict: bool,
) -> int:
    """The longest estimate of a candidate that ends by the promise, relaxed by ``share`` of its base.

    ``submitted`` and ``requested`` are the head's. Whole seconds; strict means ending before the bound, not at it.
    """
    if share == 0.0:
        bound = start - now
        return bound - 1 if is_strict else bound
    slack = requested
    if base == EXPECTED_WAIT:
        slack = start - submitted
    elif base == REMAINING_WAIT:
        slack = start - now
    relaxed = (start - now) + share * max(slack, 0)
    return int(np.ceil(relaxed)) - 1 if is_strict else int(np.floor(relaxed))


@njit_without_refcount
def split_profile(times: Int64s, free: Int64s, count: int, time: int) -> int:
    """Add a step at ``time``, which is not before the first; returns the new number of steps."""
    place = search(times, 0, count, time)
    if place < count and times[place] == time:
        return count
    for at in range(count, place, -1):
        times[at] = times[at - 1]
        free[at] = free[at - 1]
    times[place] = time
    free[place] = free[place - 1]
    return count + 1


@njit_without_refcount
def take_capacity(times: Int64s, free: Int64s, count: int, start: int, end: int, amount: int) -> int:
    """Reserve ``amount`` (negative: release) during [start, end); returns the new number of steps."""
    count = split_profile(times, free, count, start)
    count = split_profile(times, free, count, end)
    for at in range(search(times, 0, count, start), search(times, 0, count, end)):
        free[at] -= amount
    return count


@njit_without_refcount
def find_start(times: Int64s, free: Int64s, count: int, after: int, amount: int, duration: int) -> int:
    """The first time from ``after`` on at which ``amount`` stays free for ``duration``; NEVER if there is none."""
    at = 0
    while at + 1 < count and times[at + 1] <= after:
        at += 1
    start = NEVER
    while at < count and (start == NEVER or times[at] < start + duration):
        if free[at] < amount:
            start = NEVER
        elif start == NEVER:
            start = max(times[at], after)
        at += 1
    return start


@njit_without_refcount
def free_at(times: Int64s, free: Int64s, count: int, time: int) -> int:
    """The free amount at ``time``, which is not before the first step."""
    return int(free[search(times, 0, count, time + 1) - 1])
