"""Compiled planning: free GPUs of each node as steps over time. Importing this imports numba."""

import numpy as np
from numba import njit

from clusterscape.model.samples import Int64s

NEVER = 2**62


@njit(cache=True, nogil=True)
def cut(times: Int64s, free: Int64s, count: int, at: int) -> int:
    """Make a step begin at ``at``; returns how many steps there are then. The caller has seen to the room for it."""
    place = count
    while place > 0 and times[place - 1] > at:
        place -= 1
    if place > 0 and times[place - 1] == at:
        return count
    for other in range(count, place, -1):
        times[other], free[other] = times[other - 1], free[other - 1]
    times[place] = at
    free[place] = free[place - 1]
    return count + 1


@njit(cache=True, nogil=True)
def take(times: Int64s, free: Int64s, count: int, start: int, end: int, gpus: int) -> int:
    """Take GPUs during [start, end); returns how many steps there are then."""
    count = cut(times, free, count, start)
    count = cut(times, free, count, end)
    for place in range(count):
        if start <= times[place] < end:
            free[place] -= gpus
    return count


@njit(cache=True, nogil=True)
def earliest(times: Int64s, free: Int64s, count: int, after: int, gpus: int, limit: int) -> int:
    """The first time from ``after`` on at which that many GPUs stay free for the limit; NEVER where there is none."""
    begin = NEVER
    for place in range(count):
        if place + 1 < count and times[place + 1] <= after:
            continue
        if begin != NEVER and times[place] >= begin + limit:
            return begin
        if free[place] < gpus:
            begin = NEVER
        elif begin == NEVER:
            begin = max(times[place], after)
    return begin


@njit(cache=True, nogil=True)
def free_at(times: Int64s, free: Int64s, count: int, at: int) -> int:
    """Free GPUs of a node at a time."""
    place = count - 1
    while place > 0 and times[place] > at:
        place -= 1
    return int(free[place])


@njit(cache=True, nogil=True)
def plan_all(
    now: int,
    gpus: Int64s,
    models: Int64s,
    held_node: Int64s,
    held_gpus: Int64s,
    held_end: Int64s,
    asked: Int64s,
    members: Int64s,
    ends: Int64s,
    first: Int64s,
    start: Int64s,
    chosen: Int64s,
    most_steps: int,
) -> None:
    """Fill ``start`` and ``chosen``. ``asked``: a row per job of pool, models, nodes, GPUs, limit, ready time."""
    times = np.zeros((gpus.size, most_steps), np.int64)
    free = np.zeros((gpus.size, most_steps), np.int64)
    counts = np.ones(gpus.size, np.int64)
    times[:, 0], free[:, 0] = now, gpus
    for at in range(held_node.size):
        node = held_node[at]
        if counts[node] + 2 <= most_steps and held_end[at] > now:
            counts[node] = take(times[node], free[node], counts[node], now, held_end[at], held_gpus[at])
        elif held_end[at] > now:
            free[node, : counts[node]] = 0  # too many on one node to follow: it is left out
    ready = np.empty(gpus.size, np.int64)
    for job in range(asked.shape[0]):
        pool = asked[job, 0]
        here = members[ends[pool] : ends[pool + 1]]
        begin = find_start(asked[job], here, models, times, free, counts, ready, max(now, asked[job, 5]), most_steps)
        if begin == NEVER:
            continue
        start[job] = begin
        settle(asked[job], begin, here, times, free, counts, ready, chosen[first[job] :])


@njit(cache=True, nogil=True)
def find_start(
    asked: Int64s,
    here: Int64s,
    models: Int64s,
    times: Int64s,
    free: Int64s,
    counts: Int64s,
    ready: Int64s,
    after: int,
    most_steps: int,
) -> int:
    """The earliest time at which enough nodes are free for the whole limit; ``ready`` tells then from when each is."""
    wanted, needed, gpus, limit = asked[1], asked[2], asked[3], asked[4]
    if needed > here.size:
        return NEVER
    begin = after
    while True:
        good = 0
        soonest = np.full(needed, NEVER, np.int64)  # the ``needed`` smallest, rising
        for node in here:
            ready[node] = NEVER
            if (wanted >> models[node]) & 1 == 0 or counts[node] + 2 > most_steps:
                continue
            ready[node] = earliest(times[node], free[node], counts[node], begin, gpus, limit)
            good += ready[node] == begin
            if ready[node] < soonest[needed - 1]:
                place = needed - 1
                while place > 0 and soonest[place - 1] > ready[node]:
                    soonest[place] = soonest[place - 1]
                    place -= 1
                soonest[place] = ready[node]
        if good >= needed:
            return begin
        # Fewer are ready at once: at the earliest when the last of the soonest is, and then some may not be any more.
        if soonest[needed - 1] == NEVER:
            return NEVER
        begin = soonest[needed - 1]


@njit(cache=True, nogil=True)
def settle(
    asked: Int64s,
    begin: int,
    here: Int64s,
    times: Int64s,
    free: Int64s,
    counts: Int64s,
    ready: Int64s,
    chosen: Int64s,
) -> None:
    """Give a job the fullest of the nodes that are ready at its start."""
    needed, gpus, limit = asked[2], asked[3], asked[4]
    for at in range(needed):
        best, least = -1, NEVER
        for node in here:
            if ready[node] == begin:
                left = free_at(times[node], free[node], counts[node], begin)
                if left < least:
                    best, least = node, left
        chosen[at] = best
        ready[best] = NEVER
        counts[best] = take(times[best], free[best], counts[best], begin, begin + limit, gpus)
