"""Sets of time intervals, as sorted arrays of disjoint [start, end) in nanoseconds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from clusterscape.model.arrays import Float64s, Int64s


@dataclass(frozen=True, slots=True)
class Times:
    """A set of disjoint, sorted, non-empty intervals."""

    starts: Int64s
    ends: Int64s

    @property
    def length_ns(self) -> int:
        """Total length of the intervals."""
        return int((self.ends - self.starts).sum())


def join_times(starts: ArrayLike, ends: ArrayLike) -> Times:
    """The union of intervals in any order; touching intervals are joined, empty ones dropped."""
    first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    is_valid = last > first
    first, last = first[is_valid], last[is_valid]
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    if not first.size:
        return Times(first, last)
    reach = np.maximum.accumulate(last)
    is_new = np.ones(first.size, bool)
    is_new[1:] = first[1:] > reach[:-1]
    at = np.flatnonzero(is_new)
    return Times(first[at], np.append(reach[at[1:] - 1], reach[-1]))


def clip_times(times: Times, start_ns: int, end_ns: int) -> Times:
    """The part within [start, end)."""
    low = np.searchsorted(times.ends, start_ns, side="right")
    high = np.searchsorted(times.starts, end_ns, side="left")
    return join_times(np.maximum(times.starts[low:high], start_ns), np.minimum(times.ends[low:high], end_ns))


def subtract_times(times: Times, removed: Times) -> Times:
    """The set difference: the part of ``times`` that is not in ``removed``."""
    if not times.starts.size or not removed.starts.size:
        return times
    edges = np.concatenate([times.starts, times.ends, removed.starts, removed.ends])
    size, removed_size = times.starts.size, removed.starts.size
    inside = np.concatenate([np.ones(size), -np.ones(size), np.zeros(2 * removed_size)])
    covered = np.concatenate([np.zeros(2 * size), np.ones(removed_size), -np.ones(removed_size)])
    order = np.argsort(edges, kind="stable")
    edges, inside, covered = edges[order], np.cumsum(inside[order]), np.cumsum(covered[order])
    is_left = (inside[:-1] > 0) & (covered[:-1] == 0)
    return join_times(edges[:-1][is_left], edges[1:][is_left])


def cover_until(times: Times, at: Int64s | Float64s) -> Float64s:
    """Nanoseconds of ``times`` before each moment ``at``."""
    if not times.starts.size:
        return np.zeros(len(at))
    before = np.concatenate([[0], np.cumsum(times.ends - times.starts)])
    place = np.searchsorted(times.starts, at, side="right") - 1
    inside = np.minimum(at, times.ends[place]) - times.starts[place]
    covered: Float64s = np.where(place >= 0, before[np.maximum(place, 0)] + inside, 0).astype(np.float64)
    return covered


BUSY_SHARE = 0.95
"""The shortest stretch with this share of the busy time is the core of the activity."""
MAX_GAP_SHARE = 0.02
"""What lies before or after the core is added as long as the gaps between are shorter than this share of it."""
USUAL_GAPS = 0.95
"""So many of the gaps in the core are usual ones; one twice as long does not end the activity."""
MIN_CUT_SHARE = 0.2
"""Idle time is only cut if it is this share of the stretch: a step is otherwise shown whole."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The active part of [low, high); ``busy_before_ns`` and ``busy_after_ns``: what is busy outside of it all the same."""

    start_ns: int
    end_ns: int
    busy_before_ns: int
    busy_after_ns: int


def find_activity(busy: Times, low_ns: int, high_ns: int) -> Activity:
    """The active part of [low, high), which is the whole of it unless the idle time around the activity is long.

    ``busy``: when any rank works. The core is the shortest stretch that holds 95 % of the busy time; its ends are then moved out
    over gaps that are short or usual in it, so that only what is isolated is cut. O(n) in the intervals.
    """
    times = clip_times(busy, low_ns, high_ns)
    if not times.starts.size:
        return Activity(low_ns, high_ns, 0, 0)
    first, last = _find_core(times)
    inside = times.starts[first + 1 : last + 1] - times.ends[first:last]
    usual_ns = float(np.quantile(inside, USUAL_GAPS)) if inside.size else 0.0
    gap_ns = max(MAX_GAP_SHARE * (times.ends[last] - times.starts[first]), 2 * usual_ns)
    while first > 0 and times.starts[first] - times.ends[first - 1] < gap_ns:
        first -= 1
    while last + 1 < times.starts.size and times.starts[last + 1] - times.ends[last] < gap_ns:
        last += 1
    start_ns, end_ns = int(times.starts[first]), int(times.ends[last])
    if (high_ns - low_ns) - (end_ns - start_ns) < MIN_CUT_SHARE * (high_ns - low_ns):
        return Activity(low_ns, high_ns, 0, 0)
    before = int((times.ends - times.starts)[:first].sum())
    after = int((times.ends - times.starts)[last + 1 :].sum())
    return Activity(start_ns, end_ns, before, after)


def _find_core(times: Times) -> tuple[int, int]:
    """Indices of the first and the last interval of the shortest stretch with the share of the busy time."""
    until = np.concatenate([[0], np.cumsum(times.ends - times.starts)])
    needed = BUSY_SHARE * until[-1]
    # For every first interval the earliest last one that is enough.
    last = np.searchsorted(until, until[:-1] + needed, side="left") - 1
    is_enough = last < times.starts.size
    length = np.where(
        is_enough, times.ends[np.minimum(last, times.starts.size - 1)] - times.starts, np.iinfo(np.int64).max
    )
    first = int(length.argmin())
    return first, int(last[first])
