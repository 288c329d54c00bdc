"""Compiled pieces that every batch simulation shares: a heap of ends, the running jobs by estimated end, reservations, bounds.

Importing this imports numba. A job is its row; times are whole seconds, sizes whole processors. Callers own all arrays.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from clusterscape.model.samples import Float64s, Int64s

Bools = NDArray[np.bool_]

NEVER = 2**62
NOT_YET = -(2**62)
"""A start or promise that was not given."""

# What the relaxation of a promise is a share of (Semantics.relaxation_base).
EXPECTED_WAIT, REMAINING_WAIT, REQUEST = 0, 1, 2

_Function = TypeVar("_Function", bound=Callable[..., object])


def bare(function: _Function) -> _Function:
    """Compile without counting references, which in loops over tuples of arrays costs three times what the work does.

    Only for functions that make no array and return none.
    """
    options = {"cache": True, "nogil": True, "_nrt": False}  # numba's stubs do not know the last one
    return cast(_Function, njit(**options)(function))  # type: ignore[call-overload]


@bare
def is_before(time_a: int, order_a: int, time_b: int, order_b: int) -> bool:
    """Earlier, or at the same time and first in order."""
    return bool(time_a < time_b or (time_a == time_b and order_a < order_b))


@bare
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


@bare
def pop(times: Int64s, jobs: Int64s, order: Int64s, size: int) -> int:
    """Take the first entry (read it at index 0 before); returns the new size."""
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


@bare
def search(ends: Int64s, low: int, high: int, end: int) -> int:
    """The first place in [low, high) whose end is not before ``end``."""
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] < end:
            low = middle + 1
        else:
            high = middle
    return low


@bare
def insert_running(ends: Int64s, jobs: Int64s, low: int, high: int, end: int, job: int) -> int:
    """Keep [low, high) sorted by estimated end; returns the new high. There must be room at ``high``."""
    place = search(ends, low, high, end + 1)
    for at in range(high, place, -1):
        ends[at] = ends[at - 1]
        jobs[at] = jobs[at - 1]
    ends[place] = end
    jobs[place] = job
    return high + 1


@bare
def remove_running(ends: Int64s, jobs: Int64s, low: int, high: int, end: int, job: int) -> int:
    """Take out ``job``, whose estimated end is ``end``; returns the new high."""
    place = search(ends, low, high, end)
    while jobs[place] != job:
        place += 1
    for at in range(place, high - 1):
        ends[at] = ends[at + 1]
        jobs[at] = jobs[at + 1]
    return high - 1


@bare
def reserve(
    wanted: int, free: int, ends: Int64s, jobs: Int64s, processors: Int64s, low: int, high: int
) -> tuple[int, int]:
    """Earliest time at which ``wanted`` processors are free by the estimates, and how many are left over then."""
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


@bare
def charge(usage: Float64s, usage_at: Int64s, half_life: float, user: int, amount: float, now: int) -> None:
    """Add processor-seconds (GPU-seconds) to a user's decayed usage; nothing is kept without a half-life."""
    if half_life > 0.0:
        usage[user] *= 0.5 ** ((now - usage_at[user]) / half_life)
        usage_at[user] = now
        usage[user] = max(0.0, usage[user] + amount)


@bare
def longest_allowed(
    start: int,
    now: int,
    submitted: int,
    requested: int,
    share: float,
    base: int,
    is_strict: bool,
) -> int:
    """The longest estimate a candidate may have to end by the promise, relaxed by ``share`` of its base.

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
