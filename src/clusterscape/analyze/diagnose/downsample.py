"""Lines with no more points than a screen can show, and yet every extreme: least and largest value of each pixel column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from tsdownsample import MinMaxDownsampler

from clusterscape.analyze.diagnose.samples import Floats, Ints

_MIN_MAX: Any = MinMaxDownsampler  # its package has types for the class, but not for its making
GAP_STEPS = 3.0  # without a sample for so many usual steps, the line is broken


@dataclass(frozen=True, slots=True)
class Lines:
    """Points of many lines in one go: line i has those from ``offsets[i]`` to ``offsets[i + 1]``.

    A NaN in ``values`` breaks the line: there was a gap.
    """

    times_ms: Ints
    values: Floats
    offsets: Ints


def downsample(times_ms: Ints, values: Floats, *, pixels: int) -> Lines:
    """Lines of all columns of ``values`` (T × GPU, NaN where missing) for a picture ``pixels`` wide.

    Each line's time is cut into ``pixels`` equal buckets; of each the least and the largest value are kept, so at most
    2 · ``pixels`` points, besides one NaN per gap that falls between kept points (a missing sample, or a time without any of
    more than 3 usual steps). ``times_ms`` must be strictly increasing.
    """
    if pixels < 1:
        raise ValueError("a picture is at least one pixel wide")
    usual_ms = float(np.median(np.diff(times_ms))) if times_ms.size > 1 else 0.0
    lines = [_downsample_one(times_ms, column, 2 * pixels, usual_ms) for column in np.ascontiguousarray(values.T)]
    offsets = np.concatenate([[0], np.cumsum([times.size for times, _ in lines], dtype=np.int64)]).astype(np.int64)
    if not lines:
        return Lines(times_ms[:0], np.empty(0), offsets)
    return Lines(np.concatenate([line[0] for line in lines]), np.concatenate([line[1] for line in lines]), offsets)


def _downsample_one(times_ms: Ints, column: Floats, most: int, usual_ms: float) -> tuple[Ints, Floats]:
    is_known = ~np.isnan(column)
    rows = np.flatnonzero(is_known)
    if rows.size == 0:
        return times_ms[:0], column[:0]
    times, values = times_ms[rows], column[rows]
    # A step between known samples is a gap if samples in between are missing, or it is long.
    is_gap_before = np.zeros(rows.size, np.bool_)
    is_gap_before[1:] = (np.diff(rows) > 1) | (np.diff(times) > GAP_STEPS * usual_ms)
    if rows.size > most:
        kept = np.asarray(_MIN_MAX().downsample(times, values, n_out=most), np.int64)
        # The outermost moments are kept too: the line shall reach from end to end.
        kept = np.union1d(kept, [0, rows.size - 1])
        gaps = np.concatenate([[0], np.cumsum(is_gap_before)])
        is_gap_before = np.concatenate([[False], gaps[kept[1:] + 1] > gaps[kept[:-1] + 1]])
        times, values = times[kept], values[kept]
    at = np.flatnonzero(is_gap_before)
    middle = times[at - 1] + (times[at] - times[at - 1]) // 2
    return np.insert(times, at, middle), np.insert(values, at, np.nan)
