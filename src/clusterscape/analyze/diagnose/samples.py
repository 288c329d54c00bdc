"""Prepares samples: sorts and deduplicates times, resamples series to one grid of bounded length, and downsamples lines to the
resolution of a screen. Notes report repairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from tsdownsample import MinMaxDownsampler

from clusterscape.model.arrays import Float64s, Int64s


@dataclass(frozen=True, slots=True)
class OrderedSamples:
    """``times_ms`` (T), strictly increasing; ``metrics`` (T × GPU), NaN where missing; ``notes`` report repairs."""

    times_ms: Int64s
    metrics: Mapping[str, Float64s]
    notes: tuple[str, ...]

    @property
    def step_ms(self) -> float:
        """Median milliseconds between samples; 0 with fewer than two."""
        return float(np.median(np.diff(self.times_ms))) if self.times_ms.size > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Series on an even grid: ``times_ms`` (T, middle of each step) and ``values`` (T × GPU), NaN in empty steps."""

    times_ms: Float64s
    values: Float64s
    step_ms: float


def order_samples(times_ms: ArrayLike, metrics: Mapping[str, ArrayLike]) -> OrderedSamples:
    """Sort by time and merge samples of the same time.

    Parameters
    ----------
    times_ms : (T,) instants in any order.
    metrics : name → (T × GPU), all of the same shape; NaN (or ±∞) is missing.

    Of samples with the same time, the last value of each GPU counts. Times out of order (the clock was set back) are sorted, with
    a note.
    """
    times = np.asarray(times_ms, np.int64)
    arrays = {name: _as_table(name, values, times.size) for name, values in metrics.items()}
    if len({array.shape for array in arrays.values()}) > 1:
        raise ValueError("all metrics must have the same (time × GPU) shape")
    notes = []
    backwards = int(np.count_nonzero(np.diff(times) < 0))
    if backwards:
        notes.append(f"The clock was set back {_format_times(backwards)}; samples are sorted by time.")
        order = np.argsort(times, kind="stable")
        times, arrays = times[order], {name: array[order] for name, array in arrays.items()}
    is_first = np.ones(times.size, np.bool_)
    is_first[1:] = np.diff(times) > 0
    repeats = int(times.size - np.count_nonzero(is_first))
    if repeats:
        notes.append(
            f"{repeats} {'sample has' if repeats == 1 else 'samples have'} a duplicate time; the last value counts."
        )
        starts = np.flatnonzero(is_first)
        arrays = {name: _merge_repeats(array, starts) for name, array in arrays.items()}
        times = times[is_first]
    return OrderedSamples(times, arrays, tuple(notes))


def _as_table(name: str, values: ArrayLike, times: int) -> Float64s:
    table = np.array(values, np.float64)
    if table.ndim != 2 or table.shape[0] != times:
        raise ValueError(f"{name}: expected ({times} times × GPUs), got shape {table.shape}")
    table[~np.isfinite(table)] = np.nan
    return table


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _merge_repeats(table: Float64s, starts: Int64s) -> Float64s:
    """Merge the rows from each start to the next into one: the last value that is not missing."""
    last_known = np.where(np.isnan(table), -1, np.arange(table.shape[0])[:, None])
    last = np.maximum.reduceat(last_known, starts, axis=0)
    merged = np.take_along_axis(table, np.maximum(last, 0), axis=0)
    merged[last < 0] = np.nan
    return merged


def resample(times_ms: Int64s, values: Float64s, *, max_points: int = 512, bridged_steps: int = 0) -> Grid:
    """Means over at most ``max_points`` even steps, never finer than the samples themselves.

    A step without samples of a GPU is NaN, but gaps of up to ``bridged_steps`` are filled: linearly interpolated, at the ends by
    the nearest value. ``times_ms`` must be strictly increasing.
    """
    grid = _average_steps(times_ms, values, max_points)
    _bridge(grid.values, bridged_steps)
    return grid


def _bridge(values: Float64s, most: int) -> None:
    """Fill short gaps in place; shortest first, so that each has values on both sides."""
    for row in range(min(most, len(values) - 1), 0, -1):
        values[row - 1] = np.where(np.isnan(values[row - 1]), values[row], values[row - 1])
        values[-row] = np.where(np.isnan(values[-row]), values[-row - 1], values[-row])
    for length in range(1, most + 1):
        if not np.isnan(values).any() or len(values) < length + 2:
            return
        before, after = values[: -length - 1], values[length + 1 :]
        is_gap = ~np.isnan(before) & ~np.isnan(after)
        for offset in range(1, length + 1):
            is_gap &= np.isnan(values[offset : offset + len(before)])
        rows, columns = np.nonzero(is_gap)
        for offset in range(1, length + 1):
            share = offset / (length + 1)
            start, stop = values[rows, columns], values[rows + length + 1, columns]
            values[rows + offset, columns] = (1.0 - share) * start + share * stop


def _average_steps(times_ms: Int64s, values: Float64s, max_points: int) -> Grid:
    if times_ms.size <= 1:
        return Grid(times_ms.astype(np.float64), values.copy(), 0.0)
    span_ms = float(times_ms[-1] - times_ms[0])
    usual_ms = float(np.median(np.diff(times_ms)))
    points = int(min(max_points, round(span_ms / usual_ms) + 1))
    step_ms = span_ms / max(points - 1, 1)
    if points == times_ms.size and np.abs(np.diff(times_ms) - step_ms).max() < 0.5 * step_ms:
        return Grid(times_ms.astype(np.float64), values.copy(), step_ms)
    bucket = np.minimum(np.rint((times_ms - times_ms[0]) / step_ms).astype(np.int64), points - 1)
    is_first = np.ones(bucket.size, np.bool_)
    is_first[1:] = np.diff(bucket) > 0
    starts = np.flatnonzero(is_first)
    is_known = ~np.isnan(values)
    sums = np.add.reduceat(np.where(is_known, values, 0.0), starts, axis=0)
    counts = np.add.reduceat(is_known.astype(np.int64), starts, axis=0)
    out = np.full((points, values.shape[1]), np.nan)
    out[bucket[is_first]] = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return Grid(times_ms[0] + step_ms * np.arange(points), out, step_ms)


_MIN_MAX: Any = MinMaxDownsampler  # the package has no types for the constructor
GAP_STEPS = 3.0  # usual steps without a sample after which the line is broken


@dataclass(frozen=True, slots=True)
class Lines:
    """Points of many lines in flat arrays: line i has the points ``offsets[i] : offsets[i + 1]``.

    A NaN in ``values`` marks a gap and breaks the line.
    """

    times_ms: Int64s
    values: Float64s
    offsets: Int64s


def downsample(times_ms: Int64s, values: Float64s, *, pixels: int) -> Lines:
    """Lines of all columns of ``values`` (T × GPU, NaN where missing) for a chart ``pixels`` wide.

    Min-max downsampling: the minimum and maximum of each of ``pixels`` equal buckets are kept, so at most 2 · ``pixels`` points,
    plus one NaN per gap between kept points (a missing sample, or more than 3 usual steps without any). ``times_ms`` must be
    strictly increasing.
    """
    if pixels < 1:
        raise ValueError("pixels must be at least 1")
    usual_ms = float(np.median(np.diff(times_ms))) if times_ms.size > 1 else 0.0
    lines = [_downsample_line(times_ms, column, 2 * pixels, usual_ms) for column in np.ascontiguousarray(values.T)]
    offsets = np.concatenate([[0], np.cumsum([times.size for times, _ in lines], dtype=np.int64)]).astype(np.int64)
    if not lines:
        return Lines(times_ms[:0], np.empty(0), offsets)
    return Lines(np.concatenate([line[0] for line in lines]), np.concatenate([line[1] for line in lines]), offsets)


def _downsample_line(times_ms: Int64s, column: Float64s, most: int, usual_ms: float) -> tuple[Int64s, Float64s]:
    is_known = ~np.isnan(column)
    rows = np.flatnonzero(is_known)
    if rows.size == 0:
        return times_ms[:0], column[:0]
    times, values = times_ms[rows], column[rows]
    # There is a gap between two samples if samples in between are missing, or the step is long.
    is_gap_before = np.zeros(rows.size, np.bool_)
    is_gap_before[1:] = (np.diff(rows) > 1) | (np.diff(times) > GAP_STEPS * usual_ms)
    if rows.size > most:
        kept = np.asarray(_MIN_MAX().downsample(times, values, n_out=most), np.int64)
        # Keep the first and last sample, so that the line covers the whole time.
        kept = np.union1d(kept, [0, rows.size - 1])
        gaps = np.concatenate([[0], np.cumsum(is_gap_before)])
        is_gap_before = np.concatenate([[False], gaps[kept[1:] + 1] > gaps[kept[:-1] + 1]])
        times, values = times[kept], values[kept]
    at = np.flatnonzero(is_gap_before)
    middle = times[at - 1] + (times[at] - times[at - 1]) // 2
    return np.insert(times, at, middle), np.insert(values, at, np.nan)
