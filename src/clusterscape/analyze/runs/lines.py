"""Statistics over repeats and over runs that share a GPU (means with confidence intervals, fairness), and a run's metric as a
line: over seconds, steps or epochs, downsampled with its extremes, bands over repeats, and energy efficiency.

Times are Unix ms, ascending; a line is two arrays of the same length, x ascending, no NaN. Energy and work are cumulative
counters. No I/O.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tsdownsample import MinMaxDownsampler

from clusterscape.model.arrays import Float64s, Int64s

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over ``count`` repeats. ``low`` and ``high`` bound the true mean at 95 % (Student's t); null for one repeat."""

    mean: float
    low: float | None
    high: float | None
    count: int


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean with its interval; None without values. Assumes independent, roughly normal values."""
    if not values:
        return None
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean=mean, low=None, high=None, count=1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = t_quantile(count - 1) * deviation / math.sqrt(count)
    return Estimate(mean=mean, low=mean - half, high=mean + half, count=count)


def t_quantile(freedom: int) -> float:
    """Half-width of the 95 % interval in standard errors, for ``freedom`` degrees of freedom."""
    from scipy.special import stdtrit  # slow to import, and not needed for single runs

    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))


def compute_fairness(progress: Sequence[float]) -> float | None:
    """Jain's fairness index of n shares: 1 if all are equal, 1/n if one has everything; None for fewer than two or only zeros.

    Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    if len(progress) < 2 or not any(progress):
        return None
    return math.fsum(progress) ** 2 / (len(progress) * math.fsum(value * value for value in progress))


_MIN_MAX: Any = MinMaxDownsampler  # the package has no types for the constructor


class Line(NamedTuple):
    """One line."""

    x: Float64s
    y: Float64s


class Band(NamedTuple):
    """Mean of several lines at each x, the band around it, and the number of lines at x; all arrays have the same shape."""

    x: Float64s
    mean: Float64s
    low: Float64s
    high: Float64s
    lines: NDArray[np.int32]


def over_seconds(times_ms: Int64s, values: Float64s, *, zero_ms: int) -> Line:
    """The line over seconds since ``zero_ms``, the start of the run or of a phase."""
    return Line((times_ms - zero_ms) / 1000, values)


def over_steps(times_ms: Int64s, values: Float64s, step_times_ms: Int64s, steps: Float64s) -> Line:
    """The line over steps, interpolated between logged steps. Points before the first or after the last step are dropped."""
    if not len(steps):
        return Line(np.empty(0), np.empty(0))
    steps = np.maximum.accumulate(steps)  # steps repeated after a restart do not move the line back
    inside = (times_ms >= step_times_ms[0]) & (times_ms <= step_times_ms[-1])
    x = np.interp(times_ms[inside], step_times_ms, steps)
    return Line(x, values[inside])


def over_epochs(times_ms: Int64s, values: Float64s, begins_ms: Int64s, numbers: Float64s, *, end_ms: int) -> Line:
    """The line over fractional epochs: 2.5 is halfway through epoch 2. The last epoch ends at ``end_ms``."""
    if not len(begins_ms):
        return Line(np.empty(0), np.empty(0))
    edges = np.append(begins_ms, max(end_ms, int(begins_ms[-1]) + 1)).astype(np.float64)
    marks = np.append(numbers, numbers[-1] + 1)
    keep = np.append(True, np.diff(edges) > 0)
    inside = (times_ms >= edges[0]) & (times_ms <= edges[-1])
    x = np.interp(times_ms[inside], edges[keep], np.maximum.accumulate(marks[keep]))
    return Line(x, values[inside])


def cut(line: Line, *, start: float | None, end: float | None) -> Line:
    """The part of the line with x in [start, end]; None: unbounded."""
    if start is None and end is None:
        return line
    first = 0 if start is None else int(np.searchsorted(line.x, start, "left"))
    last = len(line.x) if end is None else int(np.searchsorted(line.x, end, "right"))
    return Line(line.x[first:last], line.y[first:last])


def thin(line: Line, points: int) -> Line:
    """Min-max downsampling to about ``points`` points; keeps both ends."""
    if len(line.x) <= points:
        return line
    y = np.ascontiguousarray(line.y)
    kept = _MIN_MAX().downsample(np.ascontiguousarray(line.x), y, n_out=max(2, points // 2 * 2))
    kept = np.union1d(np.asarray(kept, np.int64), [0, len(y) - 1])
    return Line(line.x[kept], line.y[kept])


def join_repeats(lines: Sequence[Line], *, points: int, band: str = "interval") -> Band:
    """Repeats of one line as a mean with a band.

    Each line is interpolated linearly at the same ``points`` values of x, and counts only from its first to its last sample.
    ``band``: ``interval`` is the 95 % confidence interval of the mean (Student's t), ``range`` minimum to maximum,
    ``deviation`` one standard deviation. The band has zero width where only one line is left. A single line is downsampled
    instead, which keeps its extremes.
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


def _deviation(table: Float64s, mean: Float64s, count: NDArray[np.int64]) -> Float64s:
    squares = np.nansum((table - mean) ** 2, axis=0)
    sample_deviation: Float64s = np.sqrt(squares / np.maximum(count - 1, 1))
    return sample_deviation


def _factors(most: int) -> Float64s:
    """Student's t quantile by number of lines, shape (most + 1,); 0 for fewer than two lines."""

    return np.array([0.0, 0.0, *(t_quantile(count - 1) for count in range(2, most + 1))])


LEAST = 1e-100  # of work and joules; smaller values count as 0
SHORTEST_WINDOW_MS = 10_000
"""Energy is sampled every five seconds; a shorter window would mainly show sampling noise."""
PARTS_OF_RUN = 50
"""The window of a long run is its duration divided by this."""


class Total(NamedTuple):
    """A total over time: joules used or work done so far."""

    times_ms: Int64s
    values: Float64s


class Efficiency(NamedTuple):
    """Work per second and watts at the end of each window, and their ratios; windows without work are left out."""

    times_ms: Int64s
    per_second: Float64s
    watts: Float64s

    @property
    def joules_per_work(self) -> Float64s:
        """Joules per unit of work."""
        return self.watts / self.per_second

    @property
    def per_second_per_watt(self) -> Float64s:
        """Units of work per joule."""
        return self.per_second / self.watts


def add_up(totals: Sequence[Total]) -> Total:
    """Sum of the totals of several GPUs at the times of the first, where all are known; handles counter resets."""
    risen = [_without_falls(total) for total in totals if len(total.times_ms) > 1]
    if not risen:
        return Total(np.empty(0, np.int64), np.empty(0))
    begin = max(int(total.times_ms[0]) for total in risen)
    end = min(int(total.times_ms[-1]) for total in risen)
    times = risen[0].times_ms[(risen[0].times_ms >= begin) & (risen[0].times_ms <= end)]
    values = np.sum([np.interp(times, total.times_ms, total.values) for total in risen], axis=0)
    return Total(times, np.asarray(values, np.float64))


def total_of_rate(times_ms: Int64s, rates: Float64s) -> Total:
    """Integrate rates to work done: each rate applies since the previous one."""
    gained = np.diff(times_ms) / 1000 * rates[1:]
    return Total(times_ms, np.concatenate([[0.0], np.cumsum(gained)]) if len(times_ms) else np.empty(0))


def compute_efficiency(energy: Total, work: Total) -> Efficiency:
    """Efficiency over windows that end at each energy reading and are within the times of both totals."""
    nothing = Efficiency(np.empty(0, np.int64), np.empty(0), np.empty(0))
    if len(energy.times_ms) < 2 or len(work.times_ms) < 2:
        return nothing
    begin = max(int(energy.times_ms[0]), int(work.times_ms[0]))
    end = min(int(energy.times_ms[-1]), int(work.times_ms[-1]))
    window = min(max(SHORTEST_WINDOW_MS, (end - begin) // PARTS_OF_RUN), (end - begin) // 2)
    ends = energy.times_ms[(energy.times_ms >= begin + window) & (energy.times_ms <= end)]
    if window <= 0 or not len(ends):
        return nothing
    begins = ends - window
    work = _without_falls(work)
    done = np.interp(ends, *work) - np.interp(begins, *work)
    joules = np.interp(ends, *energy) - np.interp(begins, *energy)
    has_values = (done > LEAST) & (joules > LEAST)
    seconds = window / 1000
    return Efficiency(ends[has_values], done[has_values] / seconds, joules[has_values] / seconds)


def _without_falls(total: Total) -> Total:
    """Remove counter resets: after a decrease, the new value is added to the previous total."""
    rises = np.diff(total.values)
    rises = np.where(rises < 0, total.values[1:], rises)
    return Total(total.times_ms, np.concatenate([[0.0], np.cumsum(rises)]))
