"""Samples of a piece on their way to the store: which of them count, and their steps, in batches of bounded size. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.model import Names, SampleBatch
from clusterscape.model.run_frames import NO_STEP, SampleColumns

STEP_METRIC = "step"
MOST_VALUE = 1e100
"""Larger numbers count as infinite: sums and products of them would be."""
MOST_STEP = 2**53
"""Larger ones are not whole numbers any more where they are kept."""
_MOST_CELLS = 1_000_000
"""The store keeps samples as dense columns: rows × names of one batch."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RunSamples:
    """Samples of known series in the order they came. ``series`` are places in ``names``: (metric, unit)."""

    names: Sequence[tuple[str, str]]
    series: Ints
    time_ms: Ints
    step: Ints  # NO_STEP where none was given
    value: Floats
    is_finite: NDArray[np.bool_]  # the store holds no others; their steps count all the same
    left_out: int = 0

    @property
    def not_finite(self) -> int:
        """How many are NaN or infinite."""
        return len(self.value) - int(self.is_finite.sum())


def select_samples(
    frames: Sequence[SampleColumns], series: Mapping[int, tuple[str, str]], *, begin_ms: int, end_ms: int
) -> RunSamples:
    """Samples of the named series in [begin, end]; ``series``: what each code stands for."""
    code = np.concatenate([np.frombuffer(frame.code, np.uint32) for frame in frames])
    value = np.concatenate([np.frombuffer(frame.value, np.float64) for frame in frames])
    step = np.concatenate([np.frombuffer(frame.step, np.int64) for frame in frames])
    time_ms = np.concatenate([np.frombuffer(frame.time_us, np.int64) for frame in frames]) // 1000
    known = np.array(sorted(series), np.int64)
    place = np.searchsorted(known, code)
    is_known = np.zeros(len(code), np.bool_)
    if len(known):
        place = np.minimum(place, len(known) - 1)
        is_known = known[place] == code
    keep = is_known & (time_ms >= begin_ms) & (time_ms <= end_ms)
    return RunSamples(
        [series[number] for number in known.tolist()],
        place[keep],
        time_ms[keep],
        np.where(np.abs(step) <= MOST_STEP, step, NO_STEP)[keep],  # |NO_STEP| overflows to itself, and stays
        value[keep],
        np.abs(value[keep]) <= MOST_VALUE,
        left_out=len(code) - int(keep.sum()),
    )


def batch_of(samples: RunSamples, *, step_unit: str) -> SampleBatch:
    """For the store. Steps become samples of ``step`` at the same times.

    Of several samples of a series in one millisecond, later ones move to the next free ones.
    """
    units, metrics = Names(), Names()
    unit_of = np.array([units.code(unit) for _, unit in samples.names], np.int32)
    metric_of = np.array([metrics.code(name) for name, _ in samples.names], np.int32)
    time_ms = _spread(samples.series, samples.time_ms)
    has_step = np.flatnonzero(samples.step != NO_STEP)
    _, first = np.unique(time_ms[has_step], return_index=True)
    steps = has_step[first]
    keep = samples.is_finite
    series = samples.series[keep]
    return SampleBatch(
        units=units,
        metrics=metrics,
        unit=np.concatenate([unit_of[series], np.full(len(steps), units.code(step_unit), np.int32)]),
        metric=np.concatenate([metric_of[series], np.full(len(steps), metrics.code(STEP_METRIC), np.int32)]),
        time_ms=np.concatenate([time_ms[keep], time_ms[steps]]),
        value=np.concatenate([samples.value[keep], samples.step[steps].astype(np.float64)]),
    )


def _spread(series: Ints, time_ms: Ints) -> Ints:
    """Times that rise strictly within each series."""
    if not len(series):
        return time_ms
    order = np.lexsort((np.arange(len(series)), series))
    sorted_series, sorted_time = series[order], time_ms[order]
    starts = np.flatnonzero(np.r_[True, sorted_series[1:] != sorted_series[:-1]])
    place = np.arange(len(series)) - np.repeat(starts, np.diff(np.r_[starts, len(series)]))
    moved = sorted_time - place
    for begin, end in zip(starts.tolist(), np.r_[starts[1:], len(series)].tolist(), strict=True):
        moved[begin:end] = np.maximum.accumulate(moved[begin:end])
    spread = np.empty_like(time_ms)
    spread[order] = moved + place
    return spread


def split_dense(batch: SampleBatch, *, most_cells: int = _MOST_CELLS) -> list[SampleBatch]:
    """Parts that stay small as dense columns, however many names come at however many times.

    Split by names: of n samples of m names that have no time in common, √(n·m / most_cells) parts are made.
    """
    if not len(batch):
        return []
    waiting = [batch]
    parts: list[SampleBatch] = []
    while waiting:
        part = waiting.pop()
        names = np.unique(part.metric)
        if len(names) == 1 or len(names) * _count_rows(part) <= most_cells:
            parts.append(part)
            continue
        is_low = part.metric < names[len(names) // 2]
        waiting += [_take(part, ~is_low), _take(part, is_low)]
    return parts


def _count_rows(batch: SampleBatch) -> int:
    """Distinct (unit, time)."""
    start = int(batch.time_ms.min())
    span = int(batch.time_ms.max()) - start + 1
    return len(np.unique(batch.unit.astype(np.int64) * span + (batch.time_ms - start)))


def _take(batch: SampleBatch, keep: NDArray[np.bool_]) -> SampleBatch:
    return SampleBatch(
        batch.units, batch.metrics, batch.unit[keep], batch.metric[keep], batch.time_ms[keep], batch.value[keep]
    )
