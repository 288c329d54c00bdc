"""Compiled planning: free GPUs of each node over time, a row of times and a row of counts. Importing this imports numba."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from clusterscape.model.samples import Int64s
from clusterscape.simulate.batch.kernels import NEVER
from clusterscape.simulate.profile_kernels import find_start, free_at, take

Bools = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def take_if_room(times: Int64s, free: Int64s, counts: Int64s, node: int, start: int, end: int, gpus: int) -> None:
    """Take GPUs of a node during [start, end). A node with too many changes to follow is left out of the plan."""
    if counts[node] + 2 <= times.shape[1]:
        counts[node] = take(times[node], free[node], counts[node], start, end, gpus)
    else:
        free[node, : counts[node]] = 0


@njit(cache=True, nogil=True)
def plan_all(
    now: int,
    gpus: Int64s,
    models: Int64s,
    taken: Int64s,
    loses: Bools,
    asked: Int64s,
    members: Int64s,
    ends: Int64s,
    first: Int64s,
    start: Int64s,
    chosen: Int64s,
    most_steps: int,
) -> None:
    """Fill ``start`` and ``chosen``. ``asked``: rows of pool, models, nodes, GPUs, limit, ready time, class, hold, probe.

    Each class of jobs has its own view of the nodes: those of class c are rows [c × nodes, (c + 1) × nodes) of the profile.
    ``taken``: a row per node of a view, GPUs, begin, end. ``loses[d, c]``: what a job of class c gets is gone for class d.
    """
    count, classes = gpus.size, loses.shape[0]
    times = np.zeros((classes * count, most_steps), np.int64)
    free = np.zeros((classes * count, most_steps), np.int64)
    counts = np.ones(classes * count, np.int64)
    for view in range(classes):
        times[view * count : (view + 1) * count, 0] = now
        free[view * count : (view + 1) * count, 0] = gpus
    for at in range(taken.shape[0]):
        if taken[at, 3] > now:
            take_if_room(times, free, counts, taken[at, 0], max(now, taken[at, 2]), taken[at, 3], taken[at, 1])
    ready = np.empty(count, np.int64)
    for job in range(asked.shape[0]):
        pool, view = asked[job, 0], asked[job, 6]
        here = members[ends[pool] : ends[pool + 1]]
        rows = slice(view * count, (view + 1) * count)
        after = max(now, asked[job, 5])
        begin = find_start_on_nodes(
            asked[job], here, models, times[rows], free[rows], counts[rows], ready, after, most_steps
        )
        if begin == NEVER:
            continue
        start[job] = begin
        if asked[job, 8]:
            continue  # only asked about: it takes nothing
        settle(asked[job], begin, here, times, free, counts, ready, loses, chosen[first[job] :])


@njit(cache=True, nogil=True)
def find_start_on_nodes(
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
            ready[node] = find_start(times[node], free[node], counts[node], begin, gpus, limit)
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
    loses: Bools,
    chosen: Int64s,
) -> None:
    """Give a job the fullest of the nodes that are ready at its start."""
    needed, gpus, own, hold = asked[2], asked[3], asked[6], asked[7]
    count = ready.size
    for at in range(needed):
        best, least = -1, NEVER
        for node in here:
            if ready[node] == begin:
                row = own * count + node
                left = free_at(times[row], free[row], counts[row], begin)
                if left < least:
                    best, least = node, left
        chosen[at] = best
        ready[best] = NEVER
        for view in range(loses.shape[0]):
            if loses[view, own]:
                take_if_room(times, free, counts, view * count + best, begin, begin + hold, gpus)
