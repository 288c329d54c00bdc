"""Compiled planning with profiles of free GPUs of each node over time. Importing this imports numba."""

import numpy as np
from numba import njit

from clusterscape.model.arrays import Bools, Int64s
from clusterscape.simulate.batch.kernels import NEVER, find_start, free_at, take_capacity


@njit(cache=True, nogil=True)
def take_if_room(times: Int64s, free: Int64s, counts: Int64s, node: int, start: int, end: int, gpus: int) -> None:
    """Reserve GPUs of a node during [start, end). A node with too many changes is excluded from the plan."""
    if counts[node] + 2 <= times.shape[1]:
        counts[node] = take_capacity(times[node], free[node], counts[node], start, end, gpus)
    else:
        free[node, : counts[node]] = 0


@njit(cache=True, nogil=True)
def plan_all(
    now: int,
    gpus: Int64s,
    models: Int64s,
    occupied: Int64s,
    loses: Bools,
    requests: Int64s,
    members: Int64s,
    ends: Int64s,
    first: Int64s,
    start: Int64s,
    chosen: Int64s,
    most_steps: int,
) -> None:
    """Fill ``start`` and ``chosen``. ``requests``: rows of pool, models, nodes, GPUs, limit, ready time, class, hold, probe.

    Each class of jobs has its own profile of the nodes: class c has rows [c × nodes, (c + 1) × nodes).
    ``occupied``: rows of profile row, GPUs, start, end. ``loses[d, c]``: see `plan_starts`.
    """
    count, classes = gpus.size, loses.shape[0]
    times = np.zeros((classes * count, most_steps), np.int64)
    free = np.zeros((classes * count, most_steps), np.int64)
    counts = np.ones(classes * count, np.int64)
    for view in range(classes):
        times[view * count : (view + 1) * count, 0] = now
        free[view * count : (view + 1) * count, 0] = gpus
    for at in range(occupied.shape[0]):
        if occupied[at, 3] > now:
            take_if_room(
                times, free, counts, occupied[at, 0], max(now, occupied[at, 2]), occupied[at, 3], occupied[at, 1]
            )
    ready = np.empty(count, np.int64)
    for job in range(requests.shape[0]):
        pool, view = requests[job, 0], requests[job, 6]
        members_of_pool = members[ends[pool] : ends[pool + 1]]
        rows = slice(view * count, (view + 1) * count)
        after = max(now, requests[job, 5])
        begin = find_start_on_nodes(
            requests[job], members_of_pool, models, times[rows], free[rows], counts[rows], ready, after, most_steps
        )
        if begin == NEVER:
            continue
        start[job] = begin
        if requests[job, 8]:
            continue  # a probe takes no GPUs
        place_job(requests[job], begin, members_of_pool, times, free, counts, ready, loses, chosen[first[job] :])


@njit(cache=True, nogil=True)
def find_start_on_nodes(
    request: Int64s,
    members_of_pool: Int64s,
    models: Int64s,
    times: Int64s,
    free: Int64s,
    counts: Int64s,
    ready: Int64s,
    after: int,
    most_steps: int,
) -> int:
    """The earliest time at which enough nodes are free for the whole limit; writes to ``ready`` from when each node is."""
    allowed_models, needed, gpus, limit = request[1], request[2], request[3], request[4]
    if needed > members_of_pool.size:
        return NEVER
    begin = after
    while True:
        good = 0
        soonest = np.full(needed, NEVER, np.int64)  # the ``needed`` smallest, rising
        for node in members_of_pool:
            ready[node] = NEVER
            if (allowed_models >> models[node]) & 1 == 0 or counts[node] + 2 > most_steps:
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
        # Too few nodes are ready at once: try again when the last of the soonest is ready; others may be busy again by then.
        if soonest[needed - 1] == NEVER:
            return NEVER
        begin = soonest[needed - 1]


@njit(cache=True, nogil=True)
def place_job(
    request: Int64s,
    begin: int,
    members_of_pool: Int64s,
    times: Int64s,
    free: Int64s,
    counts: Int64s,
    ready: Int64s,
    loses: Bools,
    chosen: Int64s,
) -> None:
    """Place a job on the fullest nodes that are ready at its start."""
    needed, gpus, own_class, hold = request[2], request[3], request[6], request[7]
    count = ready.size
    for at in range(needed):
        best, least = -1, NEVER
        for node in members_of_pool:
            if ready[node] == begin:
                row = own_class * count + node
                left = free_at(times[row], free[row], counts[row], begin)
                if left < least:
                    best, least = node, left
        chosen[at] = best
        ready[best] = NEVER
        for view in range(loses.shape[0]):
            if loses[view, own_class]:
                take_if_room(times, free, counts, view * count + best, begin, begin + hold, gpus)
