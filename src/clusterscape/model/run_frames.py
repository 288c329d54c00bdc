"""The file format of a tracked run: frames in append-only files, the same on disk and on the wire.

A file is a sequence of frames; each is a header (magic, kind, length, CRC-32 of the payload) and a payload. An event is a
JSON object. Samples are columns (code, time in µs, step, value), deflated; ``series`` events earlier in the same file define
the codes. A truncated last frame is ignored without an error. Standard library
only, for any Python that scripts run on: tracked scripts load this file by its path (``track/mlflow/recording.py``).
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

MAGIC = 0x5343  # "CS", little-endian
HEAD = struct.Struct("<HBxII")
MOST_PAYLOAD_BYTES = 64 * 2**20
NO_STEP = -(2**63)
SAMPLE_BYTES = 28
"""Size of one sample, uncompressed."""
MOST_SAMPLES = MOST_PAYLOAD_BYTES // SAMPLE_BYTES


class TooManySamplesError(ValueError):
    """A frame contains more samples than its reader accepts."""


class FrameKind(IntEnum):
    """The type of a payload."""

    EVENT = 1
    SAMPLES = 2


class SampleScope(str, Enum):  # noqa: UP042 – StrEnum needs Python 3.11
    """What a value was measured of."""

    RUN = "run"  # logged by the script itself
    TREE = "tree"  # the run's processes together
    PROCESS = "process"  # the run's processes on one GPU
    DEVICE = "device"  # a whole GPU or processor package, including other users' load
    MIG = "mig"  # a MIG instance
    HOST = "host"

    __str__ = str.__str__


class SampleMethod(str, Enum):  # noqa: UP042 – StrEnum needs Python 3.11
    """How a value was obtained."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    UNAVAILABLE = "unavailable"  # the series has no samples; its reason is given

    __str__ = str.__str__


class Frame(NamedTuple):
    """One complete frame; ``end`` is the offset after it."""

    kind: int
    payload: bytes
    end: int


class SampleColumns(NamedTuple):
    """Samples of one frame; all columns have the same length. ``step`` is NO_STEP if none was given."""

    code: array[int]
    time_us: array[int]
    step: array[int]
    value: array[float]


def encode_event(event: Mapping[str, object], *, min_payload_bytes: int = 0) -> bytes:
    """A frame with one event, padded to a minimum size. Numbers that JSON cannot represent (NaN, ±inf) become strings."""
    text = json.dumps(_plain(event), ensure_ascii=False, separators=(",", ":"), default=str)
    return _frame(FrameKind.EVENT, text.encode("utf-8", "replace").ljust(min_payload_bytes))


def encode_samples(code: Sequence[int], time_us: Sequence[int], step: Sequence[int], value: Sequence[float]) -> bytes:
    """A frame with samples; the columns have the same length."""
    columns = (array("I", code), array("q", time_us), array("q", step), array("d", value))
    if sys.byteorder == "big":
        for column in columns:
            column.byteswap()
    raw = b"".join([struct.pack("<I", len(value)), *(column.tobytes() for column in columns)])
    return _frame(FrameKind.SAMPLES, zlib.compress(raw, 1))


def decode_event(payload: bytes) -> dict[str, object]:
    """Parse an event; raises ValueError if it is not one."""
    event = json.loads(payload)
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise ValueError("not an event")
    return event


def decode_samples(payload: bytes, *, most: int = MOST_SAMPLES) -> SampleColumns:
    """Parse the columns; raises ValueError if they are invalid or more than ``most``, without decompressing more than that."""
    try:
        raw = zlib.decompressobj().decompress(payload, 4 + most * SAMPLE_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(raw) < 4:
        raise ValueError("samples are truncated")
    (count,) = struct.unpack_from("<I", raw)
    if count > most:
        raise TooManySamplesError(f"more than {most} samples")
    columns: list[array[int]] = []
    start = 4
    for kind, width in (("I", 4), ("q", 8), ("q", 8)):
        columns.append(_column(kind, raw[start : start + width * count], count))
        start += width * count
    value: array[float] = array("d")
    _fill(value, raw[start:], count)
    return SampleColumns(columns[0], columns[1], columns[2], value)


def iter_frames(data: bytes | memoryview, start: int = 0) -> Iterator[Frame]:
    """Yield the complete frames from ``start`` on; stops at a truncated or damaged one."""
    view = memoryview(data)
    while start + HEAD.size <= len(view):
        magic, kind, length, checksum = HEAD.unpack_from(view, start)
        end = start + HEAD.size + length
        if magic != MAGIC or length > MOST_PAYLOAD_BYTES or end > len(view):
            return
        payload = bytes(view[start + HEAD.size : end])
        if zlib.crc32(payload) != checksum:
            return
        yield Frame(kind, payload, end)
        start = end


def _frame(kind: FrameKind, payload: bytes) -> bytes:
    return HEAD.pack(MAGIC, kind, len(payload), zlib.crc32(payload)) + payload


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if value - value == 0.0 else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def _column(kind: str, raw: bytes, count: int) -> array[int]:
    column: array[int] = array(kind)
    _fill(column, raw, count)
    return column


def _fill(column: array[int] | array[float], raw: bytes, count: int) -> None:
    if len(raw) != count * column.itemsize:
        raise ValueError("columns differ in length")
    column.frombytes(raw)
    if sys.byteorder == "big":
        column.byteswap()
