"""Free capacity over time as steps: the one profile that plans on nodes and conservative backfilling work with.

``free[k]`` of a machine or a node is free from ``times[k]`` until ``times[k + 1]``, the last of ``count`` steps without end.
Callers own the arrays and see to their room: taking something adds up to two steps. Importing this imports numba.
"""

from clusterscape.model.samples import Int64s
from clusterscape.simulate.batch.kernels import NEVER, bare, search


@bare
def split(times: Int64s, free: Int64s, count: int, time: int) -> int:
    """Make a step begin at ``time``, which is not before the first; returns how many steps there are then."""
    place = search(times, 0, count, time)
    if place < count and times[place] == time:
        return count
    for at in range(count, place, -1):
        times[at] = times[at - 1]
        free[at] = free[at - 1]
    times[place] = time
    free[place] = free[place - 1]
    return count + 1


@bare
def take(times: Int64s, free: Int64s, count: int, start: int, end: int, amount: int) -> int:
    """Take ``amount`` (negative: give back) during [start, end); returns how many steps there are then."""
    count = split(times, free, count, start)
    count = split(times, free, count, end)
    for at in range(search(times, 0, count, start), search(times, 0, count, end)):
        free[at] -= amount
    return count


@bare
def find_start(times: Int64s, free: Int64s, count: int, after: int, amount: int, duration: int) -> int:
    """The first time from ``after`` on at which ``amount`` stays free for ``duration``; NEVER where there is none."""
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


@bare
def free_at(times: Int64s, free: Int64s, count: int, time: int) -> int:
    """What is free at ``time``, which is not before the first step."""
    return int(free[search(times, 0, count, time + 1) - 1])
