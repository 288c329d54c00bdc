"""Sets of time, as sorted arrays of disjoint [start, end) in nanoseconds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Times:
    """Disjoint, sorted, none of them empty."""

    starts: Ints
    ends: Ints

    @property
    def length_ns(self) -> int:
        """Their total length."""
        return int((self.ends - self.starts).sum())


def join_times(starts: ArrayLike, ends: ArrayLike) -> Times:
    """The union of intervals in any order; touching ones become one, empty ones vanish."""
    first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    wanted = last > first
    first, last = first[wanted], last[wanted]
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
    """What lies in [start, end)."""
    low = np.searchsorted(times.ends, start_ns, side="right")
    high = np.searchsorted(times.starts, end_ns, side="left")
    return join_times(np.maximum(times.starts[low:high], start_ns), np.minimum(times.ends[low:high], end_ns))


def subtract_times(times: Times, taken: Times) -> Times:
    """What lies in the first and not in the second."""
    if not times.starts.size or not taken.starts.size:
        return times
    edges = np.concatenate([times.starts, times.ends, taken.starts, taken.ends])
    size, other = times.starts.size, taken.starts.size
    inside = np.concatenate([np.ones(size), -np.ones(size), np.zeros(2 * other)])
    covered = np.concatenate([np.zeros(2 * size), np.ones(other), -np.ones(other)])
    order = np.argsort(edges, kind="stable")
    edges, inside, covered = edges[order], np.cumsum(inside[order]), np.cumsum(covered[order])
    free = (inside[:-1] > 0) & (covered[:-1] == 0)
    return join_times(edges[:-1][free], edges[1:][free])


def cover_until(times: Times, at: Ints | Floats) -> Floats:
    """How much of ``times`` lies before each moment, nanoseconds."""
    if not times.starts.size:
        return np.zeros(len(at))
    before = np.concatenate([[0], np.cumsum(times.ends - times.starts)])
    place = np.searchsorted(times.starts, at, side="right") - 1
    inside = np.minimum(at, times.ends[place]) - times.starts[place]
    covered: Floats = np.where(place >= 0, before[np.maximum(place, 0)] + inside, 0).astype(np.float64)
    return covered
