"""A run's metric as a line: over seconds, steps or epochs, thinned without losing its extremes, and bands over repeats.

Arrays in, arrays out. Times are Unix ms, ascending; a line is two arrays of the same length, x ascending, no NaN.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tsdownsample import MinMaxDownsampler

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_MIN_MAX: Any = MinMaxDownsampler  # its package has types for the class, but not for its making


class Line(NamedTuple):
    """One line."""

    x: Floats
    y: Floats


class Band(NamedTuple):
    """Mean of several lines at the same x, the band around it, and how many lines reach there."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    lines: NDArray[np.int32]


def over_seconds(times_ms: Ints, values: Floats, *, zero_ms: int) -> Line:
    """Seconds since ``zero_ms``: the run's start, or the begin of a phase."""
    return Line((times_ms - zero_ms) / 1000, values)


def over_steps(times_ms: Ints, values: Floats, step_times_ms: Ints, steps: Floats) -> Line:
    """At the step that was under way: that of the same moment, or in between by time. Outside all steps nothing is drawn."""
    if not len(steps):
        return Line(np.empty(0), np.empty(0))
    steps = np.maximum.accumulate(steps)  # a step told again after a restart stays where the line was
    inside = (times_ms >= step_times_ms[0]) & (times_ms <= step_times_ms[-1])
    x = np.interp(times_ms[inside], step_times_ms, steps)
    return Line(x, values[inside])


def over_epochs(times_ms: Ints, values: Floats, begins_ms: Ints, numbers: Floats, *, end_ms: int) -> Line:
    """Epoch and the part of it that had passed: 2.5 is halfway through epoch 2. The last epoch ends at ``end_ms``."""
    if not len(begins_ms):
        return Line(np.empty(0), np.empty(0))
    edges = np.append(begins_ms, max(end_ms, int(begins_ms[-1]) + 1)).astype(np.float64)
    marks = np.append(numbers, numbers[-1] + 1)
    keep = np.append(True, np.diff(edges) > 0)
    inside = (times_ms >= edges[0]) & (times_ms <= edges[-1])
    x = np.interp(times_ms[inside], edges[keep], np.maximum.accumulate(marks[keep]))
    return Line(x, values[inside])


def cut(line: Line, *, start: float | None, end: float | None) -> Line:
    """Only x in [start, end]."""
    if start is None and end is None:
        return line
    first = 0 if start is None else int(np.searchsorted(line.x, start, "left"))
    last = len(line.x) if end is None else int(np.searchsorted(line.x, end, "right"))
    return Line(line.x[first:last], line.y[first:last])


def thin(line: Line, points: int) -> Line:
    """At most about ``points`` points: of equal parts of the x axis the lowest and the highest each, and both ends."""
    if len(line.x) <= points:
        return line
    y = np.ascontiguousarray(line.y)
    kept = _MIN_MAX().downsample(np.ascontiguousarray(line.x), y, n_out=max(2, points // 2 * 2))
    kept = np.union1d(np.asarray(kept, np.int64), [0, len(y) - 1])
    return Line(line.x[kept], line.y[kept])


def join_repeats(lines: Sequence[Line], *, points: int, band: str = "interval") -> Band:
    """Repeats of one line as a mean with a band.

    Each line is brought to the same ``points`` places by straight lines between its samples, and counts only from its first to
    its last. ``band``: ``interval`` is the 95 % confidence interval of the mean (Student's t), ``range`` lowest to highest,
    ``deviation`` one standard deviation. Where one line alone is left the band is as narrow as the line; one that was alone from
    the beginning is thinned instead, so that its extremes stay.
    """
    drawn = [line for line in lines if len(line.x)]
    if not drawn:
        empty = np.empty(0)
        return Band(empty, empty, empty, empty, np.empty(0, np.int32))
    if len(drawn) == 1:
        x, y = thin(drawn[0], points)
        return Band(x, y, y, y, np.ones(len(x), np.int32))
    begin, end = min(line.x[0] for line in drawn), max(line.x[-1] for line in drawn)
    x = np.linspace(begin, end, points if end > begin else 1)
    table = np.stack([np.interp(x, line.x, line.y, left=np.nan, right=np.nan) for line in drawn])
    reached = np.isfinite(table)
    count = reached.sum(0)
    x, table, count = x[count > 0], table[:, count > 0], count[count > 0]
    mean = np.nanmean(table, axis=0)
    if band == "range":
        return Band(x, mean, np.nanmin(table, axis=0), np.nanmax(table, axis=0), count.astype(np.int32))
    half = _deviation(table, mean, count)
    if band == "interval":
        half *= _factors(len(drawn))[count] / np.sqrt(count)
    return Band(x, mean, mean - half, mean + half, count.astype(np.int32))


def _deviation(table: Floats, mean: Floats, count: NDArray[np.int64]) -> Floats:
    squares = np.nansum((table - mean) ** 2, axis=0)
    found: Floats = np.sqrt(squares / np.maximum(count - 1, 1))
    return found


def _factors(most: int) -> Floats:
    """Student's t by the number of lines."""
    from clusterscape.analyze.runs.estimates import t_quantile

    return np.array([0.0, 0.0, *(t_quantile(count - 1) for count in range(2, most + 1))])
