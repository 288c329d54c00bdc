"""Parses a piece of a run's file: complete frames, checked against the schema and the limits before anything is applied.
Converts its samples to batches of bounded size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.errors import QueryError, TooLargeError
from clusterscape.model import Names, SampleBatch
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.run_events import RunEvent, RunEventError, decode_run_event
from clusterscape.model.run_frames import (
    NO_STEP,
    SAMPLE_BYTES,
    Frame,
    FrameKind,
    SampleColumns,
    TooManySamplesError,
    decode_samples,
    iter_frames,
)
from clusterscape.settings.limits import RunLimits

_OTHER_VERSION = (
    "The tracker may have another version: install the server's version of ClusterScape on the tracked host."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Contents of the frames of a piece. ``end``: where the next piece starts; ``bytes``: uncompressed size of the new frames."""

    events: Sequence[RunEvent]
    samples: Sequence[SampleColumns]
    end: int
    bytes: int


def read_piece(data: bytes, file: str, offset: int, *, stored_to: int, limits: RunLimits) -> Piece:
    """Parse the complete frames of ``data``, which starts at ``offset`` of ``file``, except those that end before ``stored_to``.

    If there are more frames or samples than the limits of a piece, it ends early, and the sender continues from there.
    """
    events: list[RunEvent] = []
    samples: list[SampleColumns] = []
    budget = _Budget(limits)
    end, unpacked, begin = offset, 0, offset
    for frame in iter_frames(data):
        if offset + frame.end > stored_to:
            where = f"{file}: the frame at byte {begin}"
            if frame.kind == FrameKind.EVENT:
                event = _read_event(frame, where, limits)
                if not budget.has_room():
                    break
                events.append(event)
                unpacked += len(frame.payload)
            else:
                columns = _read_samples(frame, where, limits)
                if not budget.has_room(len(columns.value)):
                    break
                samples.append(columns)
                unpacked += SAMPLE_BYTES * len(columns.value)
        begin = end = offset + frame.end
    if end == offset and data:
        raise QueryError(f"{file} has no frame at byte {offset}", hint="Check that it is a spool file of ClusterScape.")
    return Piece(events=events, samples=samples, end=end, bytes=unpacked)


def _read_event(frame: Frame, where: str, limits: RunLimits) -> RunEvent:
    if len(frame.payload) > limits.event_bytes:
        raise TooLargeError(
            f"{where} is an event of {len(frame.payload):,} bytes, the limit is {limits.event_bytes:,}",
            setting="limits.runs.event_bytes",
        )
    try:
        return decode_run_event(frame.payload)
    except RunEventError as error:
        raise QueryError(f"{where} is not an event of a run: {error}", hint=_OTHER_VERSION) from None


def _read_samples(frame: Frame, where: str, limits: RunLimits) -> SampleColumns:
    if frame.kind != FrameKind.SAMPLES:
        raise QueryError(
            f"{where} has the unknown kind {frame.kind}", hint="The tracker may have a newer version than the server."
        )
    try:
        return decode_samples(frame.payload, most=limits.frame_samples)
    except TooManySamplesError:
        raise TooLargeError(
            f"{where} has more than {limits.frame_samples:,} samples", setting="limits.runs.frame_samples"
        ) from None
    except ValueError as error:
        raise QueryError(f"{where} has no valid samples: {error}", hint="Check that ClusterScape wrote it.") from None


class _Budget:
    """Remaining frames and samples of a piece. The first frame of samples always fits."""

    def __init__(self, limits: RunLimits) -> None:
        self._frames = limits.piece_frames
        self._samples = limits.piece_samples
        self._has_samples = False

    def has_room(self, samples: int = 0) -> bool:
        """Count another frame if it fits; returns whether it does."""
        if self._frames < 1 or (self._has_samples and samples > self._samples):
            return False
        self._frames -= 1
        self._samples -= samples
        self._has_samples = self._has_samples or samples > 0
        return True


STEP_METRIC = "step"
MOST_VALUE = 1e100
"""Larger values count as infinite, because sums and products of them would overflow."""
MOST_STEP = 2**53
"""Larger steps cannot be stored exactly as float64."""
_MOST_CELLS = 1_000_000
"""Limit of rows × metrics of one batch: the store uses dense columns."""


@dataclass(frozen=True, slots=True)
class RunSamples:
    """Samples of defined series in order of arrival. ``series`` are indices of ``names``: (metric, unit)."""

    names: Sequence[tuple[str, str]]
    series: Int64s
    time_ms: Int64s
    step: Int64s  # NO_STEP if none was given
    value: Float64s
    is_finite: NDArray[np.bool_]  # only these are stored; steps of the others still count
    left_out: int = 0

    @property
    def not_finite(self) -> int:
        """Number of NaN and infinite values."""
        return len(self.value) - int(self.is_finite.sum())


def select_samples(
    frames: Sequence[SampleColumns], series: Mapping[int, tuple[str, str]], *, begin_ms: int, end_ms: int
) -> RunSamples:
    """Samples of defined series in [begin, end]; ``series``: (metric, unit) by code."""
    code = np.concatenate([np.frombuffer(frame.code, np.uint32) for frame in frames])
    value = np.concatenate([np.frombuffer(frame.value, np.float64) for frame in frames])
    step = np.concatenate([np.frombuffer(frame.step, np.int64) for frame in frames])
    time_ms = np.concatenate([np.frombuffer(frame.time_us, np.int64) for frame in frames]) // 1000
    codes = np.array(sorted(series), np.int64)
    place = np.searchsorted(codes, code)
    is_defined = np.zeros(len(code), np.bool_)
    if len(codes):
        place = np.minimum(place, len(codes) - 1)
        is_defined = codes[place] == code
    keep = is_defined & (time_ms >= begin_ms) & (time_ms <= end_ms)
    return RunSamples(
        [series[number] for number in codes.tolist()],
        place[keep],
        time_ms[keep],
        np.where(np.abs(step) <= MOST_STEP, step, NO_STEP)[keep],  # |NO_STEP| overflows to itself, and stays
        value[keep],
        np.abs(value[keep]) <= MOST_VALUE,
        left_out=len(code) - int(keep.sum()),
    )


def batch_of(samples: RunSamples, *, step_unit: str) -> SampleBatch:
    """The batch to store. Steps become samples of the metric ``step`` at the same times.

    If a series has several samples in one millisecond, later ones are shifted to the next free milliseconds.
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


def _spread(series: Int64s, time_ms: Int64s) -> Int64s:
    """Shift times so that they increase strictly within each series."""
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
    """Split a batch by metric into parts that are small as dense columns.

    n samples of m metrics without common times result in √(n·m / most_cells) parts.
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
    """Number of distinct (unit, time)."""
    start = int(batch.time_ms.min())
    span = int(batch.time_ms.max()) - start + 1
    return len(np.unique(batch.unit.astype(np.int64) * span + (batch.time_ms - start)))


def _take(batch: SampleBatch, keep: NDArray[np.bool_]) -> SampleBatch:
    return SampleBatch(
        batch.units, batch.metrics, batch.unit[keep], batch.metric[keep], batch.time_ms[keep], batch.value[keep]
    )
