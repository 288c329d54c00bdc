"""Reads a piece of a run's file: whole frames, checked against the schema and the limits, before any of it is applied. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusterscape.errors import QueryError, TooLargeError
from clusterscape.model.run_events import RunEvent, RunEventError, decode_run_event
from clusterscape.model.run_frames import (
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
    "A tracker of another version may have sent it: "
    "install the server's version of ClusterScape where runs are tracked."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What the frames of a piece hold. ``end``: where the next piece begins; ``bytes``: of the new frames, unpacked."""

    events: Sequence[RunEvent]
    samples: Sequence[SampleColumns]
    end: int
    bytes: int


def read_piece(data: bytes, file: str, offset: int, *, stored_to: int, limits: RunLimits) -> Piece:
    """The whole frames of ``data``, which begins at ``offset`` of ``file``, without those that end before ``stored_to``.

    Where a piece holds more frames or samples than are taken at once, it ends before them: the sender goes on from there.
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
        raise QueryError(f"{file} holds no frame at {offset}", hint="Is it a spool file of ClusterScape?")
    return Piece(events=events, samples=samples, end=end, bytes=unpacked)


def _read_event(frame: Frame, where: str, limits: RunLimits) -> RunEvent:
    if len(frame.payload) > limits.event_bytes:
        raise TooLargeError(
            f"{where} is an event of {len(frame.payload):,} bytes, and at most {limits.event_bytes:,} are accepted",
            setting="limits.runs.event_bytes",
        )
    try:
        return decode_run_event(frame.payload)
    except RunEventError as error:
        raise QueryError(f"{where} is not an event of a run: {error}", hint=_OTHER_VERSION) from None


def _read_samples(frame: Frame, where: str, limits: RunLimits) -> SampleColumns:
    if frame.kind != FrameKind.SAMPLES:
        raise QueryError(f"{where} is of the unknown kind {frame.kind}", hint="Was it sent by a later version?")
    try:
        return decode_samples(frame.payload, most=limits.frame_samples)
    except TooManySamplesError:
        raise TooLargeError(
            f"{where} holds more than {limits.frame_samples:,} samples", setting="limits.runs.frame_samples"
        ) from None
    except ValueError as error:
        raise QueryError(f"{where} holds no samples: {error}", hint="Was it written by ClusterScape?") from None


class _Budget:
    """What one piece may still bring. The first frame of samples always fits."""

    def __init__(self, limits: RunLimits) -> None:
        self._frames = limits.piece_frames
        self._samples = limits.piece_samples
        self._has_samples = False

    def has_room(self, samples: int = 0) -> bool:
        """Whether one more frame fits."""
        if self._frames < 1 or (self._has_samples and samples > self._samples):
            return False
        self._frames -= 1
        self._samples -= samples
        self._has_samples = self._has_samples or samples > 0
        return True
