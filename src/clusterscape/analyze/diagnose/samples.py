"""Samples put in order: times sorted and without repeats, series on one grid of bounded length. Says what it had to mend."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OrderedSamples:
    """``times_ms`` strictly increasing (T); ``metrics`` of (T × GPU), NaN where missing; ``notes`` say what was mended."""

    times_ms: Ints
    metrics: Mapping[str, Floats]
    notes: tuple[str, ...]

    @property
    def step_ms(self) -> float:
        """The usual time between samples; 0 where there are fewer than two."""
        return float(np.median(np.diff(self.times_ms))) if self.times_ms.size > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Series on an even grid: ``times_ms`` (T, middle of each step) and ``values`` (T × GPU), NaN where a step is empty."""

    times_ms: Floats
    values: Floats
    step_ms: float


def order_samples(times_ms: ArrayLike, metrics: Mapping[str, ArrayLike]) -> OrderedSamples:
    """Sort by time and merge samples of the same time.

    Parameters
    ----------
    times_ms : (T,) instants in any order.
    metrics : name → (T × GPU), all of the same shape; NaN (or ±∞) is missing.

    Of samples with the same time the last that has a value counts, for each GPU by itself. A clock that was set back gives
    times out of order: they are sorted, and said.
    """
    times = np.asarray(times_ms, np.int64)
    arrays = {name: _as_table(name, values, times.size) for name, values in metrics.items()}
    if len({array.shape for array in arrays.values()}) > 1:
        raise ValueError("all metrics must be of the same (time × GPU) shape")
    notes = []
    backwards = int(np.count_nonzero(np.diff(times) < 0))
    if backwards:
        notes.append(f"The clock was set back {_times(backwards)}; samples are shown in the order of their times.")
        order = np.argsort(times, kind="stable")
        times, arrays = times[order], {name: array[order] for name, array in arrays.items()}
    is_first = np.ones(times.size, np.bool_)
    is_first[1:] = np.diff(times) > 0
    repeats = int(times.size - np.count_nonzero(is_first))
    if repeats:
        notes.append(
            f"{repeats} {'sample has' if repeats == 1 else 'samples have'} the time of another; the last counts."
        )
        starts = np.flatnonzero(is_first)
        arrays = {name: _merge_repeats(array, starts) for name, array in arrays.items()}
        times = times[is_first]
    return OrderedSamples(times, arrays, tuple(notes))


def _as_table(name: str, values: ArrayLike, times: int) -> Floats:
    table = np.array(values, np.float64)
    if table.ndim != 2 or table.shape[0] != times:
        raise ValueError(f"{name}: expected ({times} times × GPUs), got shape {table.shape}")
    table[~np.isfinite(table)] = np.nan
    return table


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _merge_repeats(table: Floats, starts: Ints) -> Floats:
    """Rows from each start to the next become one: the last value that is there."""
    last_known = np.where(np.isnan(table), -1, np.arange(table.shape[0])[:, None])
    last = np.maximum.reduceat(last_known, starts, axis=0)
    merged = np.take_along_axis(table, np.maximum(last, 0), axis=0)
    merged[last < 0] = np.nan
    return merged


def resample(times_ms: Ints, values: Floats, *, max_points: int = 512, bridged_steps: int = 0) -> Grid:
    """Means over even steps, at most ``max_points`` of them and never finer than the samples themselves.

    A step without a sample of a GPU is NaN there, but up to ``bridged_steps`` of them in a row are filled: by the line
    between the two around them, at the ends by the nearest. ``times_ms`` must be strictly increasing.
    """
    grid = _average_steps(times_ms, values, max_points)
    _bridge(grid.values, bridged_steps)
    return grid


def _bridge(values: Floats, most: int) -> None:
    """Fill short gaps in place: shortest first, so that each is bounded by known values on both sides."""
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


def _average_steps(times_ms: Ints, values: Floats, max_points: int) -> Grid:
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
