"""Lines of a possibly compressed file, in blocks of whole lines that never hold more than a few megabytes.

Counts what is wrong with the file as such: bytes that are not UTF-8, a compressed stream that breaks off. Raises TooLargeError
where it decompresses to more than ``UploadLimits`` allow, before that is held in memory.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from clusterscape.collect.unpacking import UnpackedSize
from clusterscape.errors import SourceError, TooLargeError
from clusterscape.settings.limits import UploadLimits

BLOCK_BYTES = 4 * 2**20
STEP_BYTES = 2**18
NEW_LINE = b"\n"
EXAMPLES = 5
"""So many line numbers are kept per reason."""
MOST_WINDOW_BYTES = 2**27
"""Memory that a compressed file may ask of its decompressor: what ``xz -9`` and ``zstd --long`` need."""

_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A file of jobs. ``limits`` is None for files of the user's own machine, which commands read."""

    path: Path
    limits: UploadLimits | None = None

    def __str__(self) -> str:
        return str(self.path)

    def check_rows(self, rows: int, columns: int = 1) -> None:
        """Raise TooLargeError where so many rows, of so many columns, are too many."""
        limits = self.limits
        if limits is None:
            return
        if rows > limits.job_trace_rows:
            raise self._too_large(f"more than {limits.job_trace_rows:,} rows", "job_trace_rows", "Split it by time.")
        if columns > limits.job_trace_columns:
            what = f"{columns:,} columns, more than {limits.job_trace_columns:,}"
            raise self._too_large(what, "job_trace_columns", "Keep only those that describe jobs.")
        if rows * columns > limits.job_trace_cells:
            what = f"more than {limits.job_trace_cells:,} cells (rows × columns)"
            raise self._too_large(what, "job_trace_cells", "Split it by time, or keep fewer columns.")

    def check_length(self, size: int, what: str) -> None:
        """Raise TooLargeError where a line, or one job of JSON, is too long."""
        if self.limits is not None and size > self.limits.job_trace_line_bytes:
            most = self.limits.job_trace_line_bytes
            raise self._too_large(f"{what} of more than {most:,} bytes", "job_trace_line_bytes")

    def _too_large(self, what: str, setting: str, hint: str = "") -> TooLargeError:
        return TooLargeError(f"{self} has {what}", setting=f"limits.uploads.{setting}", hint=hint)


@dataclass
class FileFaults:
    """What was wrong with the bytes."""

    undecodable_lines: list[int] = field(default_factory=list)
    undecodable: int = 0
    is_cut_off: bool = False


@contextmanager
def open_bytes(source: TraceSource) -> Iterator[IO[bytes]]:
    """The plain bytes of a file, by its suffix: gz, bz2, xz, zst or none."""
    try:
        with source.path.open("rb") as raw:
            yield cast("IO[bytes]", _Bounded(_unpack(source.path.suffix, raw), raw, source))
    except OSError as error:
        raise SourceError(f"{source} cannot be read: {error.strerror or error}") from error
    except _DAMAGED as error:
        raise SourceError(f"{source} is not what its suffix says, or damaged: {error}") from error


def _unpack(suffix: str, raw: BinaryIO) -> io.BufferedIOBase:
    if suffix == ".zst":
        packed = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW_BYTES)
        return cast("io.BufferedIOBase", packed.stream_reader(raw, read_across_frames=True))
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if suffix == ".bz2":
        return bz2.BZ2File(raw)
    if suffix == ".xz":
        return io.BufferedReader(_Xz(raw))
    return cast("io.BufferedIOBase", raw)


class _Bounded:
    """A stream that counts what is read of it."""

    def __init__(self, stream: io.BufferedIOBase, raw: BinaryIO, source: TraceSource) -> None:
        self._stream = stream
        limits = source.limits
        self._size = None
        if limits is not None:
            most, setting = limits.job_trace_unpacked_bytes, "limits.uploads.job_trace_unpacked_bytes"
            self._size = UnpackedSize(str(source), most, setting=setting, ratio=limits.unpacked_ratio)
        self._raw = raw

    def read1(self, size: int) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        part = self._stream.read1(size)
        if self._size is not None:
            self._size.add(len(part), packed_bytes=self._raw.tell())
        return part

    def read(self, size: int) -> bytes:
        """``size`` bytes; fewer at the end."""
        parts = []
        while size > 0 and (part := self.read1(min(size, STEP_BYTES))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class _Xz(io.RawIOBase):
    """Decompresses xz within MOST_WINDOW_BYTES, which the standard library's file object does not bound."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._unpacker: lzma.LZMADecompressor | None = None
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # its type is not public
        while True:
            if self._unpacker is None or self._unpacker.eof:
                rest = self._waiting if self._unpacker is None else self._unpacker.unused_data
                rest = (rest or self._raw.read(STEP_BYTES)).lstrip(b"\0")  # streams may be padded
                if not rest:
                    return 0
                self._unpacker, self._waiting = lzma.LZMADecompressor(memlimit=MOST_WINDOW_BYTES), rest
            elif self._unpacker.needs_input:
                self._waiting = self._raw.read(STEP_BYTES)
                if not self._waiting:
                    raise EOFError("the stream breaks off")
            part = self._unpacker.decompress(self._waiting, len(buffer))
            self._waiting = b""
            if part:
                buffer[: len(part)] = part
                return len(part)


def read_start(source: TraceSource, size: int = 65_536) -> str:
    """The first characters, for finding out the format."""
    with open_bytes(source) as stream:
        return stream.read(size).decode("utf-8-sig", "replace")


def iter_blocks(source: TraceSource, faults: FileFaults) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines without their ends), block by block. Lines are numbered from 1."""
    rest, number = b"", 1
    with open_bytes(source) as stream:
        while True:
            block = _read_block(stream, faults)
            if not block:
                break
            block = rest + block
            cut = block.rfind(b"\n") + 1
            block, rest = block[:cut], block[cut:]
            source.check_length(len(rest), f"a line {number + block.count(NEW_LINE):,}")
            if block:
                lines = _decode(source, block, number, faults)
                yield number, lines
                number += len(lines)
    if rest:
        yield number, _decode(source, rest, number, faults)


def _read_block(stream: IO[bytes], faults: FileFaults) -> bytes:
    """The next bytes, in small steps: what came before a stream breaks off is not lost with it."""
    parts, size = [], 0
    while size < BLOCK_BYTES:
        try:
            part = cast("_Bounded", stream).read1(STEP_BYTES)
        except _DAMAGED:
            faults.is_cut_off = True
            break
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _decode(source: TraceSource, block: bytes, number: int, faults: FileFaults) -> list[str]:
    source.check_rows(number - 1 + block.count(NEW_LINE))
    if number == 1:
        block = block.removeprefix(b"\xef\xbb\xbf")
    raw = block.split(b"\n")
    if raw[-1] == b"":
        raw.pop()
    longest = max(map(len, raw), default=0)
    source.check_length(longest, f"a line between {number:,} and {number + len(raw):,}")
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        return [_decode_line(line, number + place, faults) for place, line in enumerate(raw)]
    lines = text.split("\n")
    return [line.rstrip("\r") for line in lines[: len(raw)]]


def _decode_line(line: bytes, number: int, faults: FileFaults) -> str:
    try:
        return line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        faults.undecodable += 1
        if len(faults.undecodable_lines) < EXAMPLES:
            faults.undecodable_lines.append(number)
        return line.decode("latin-1").rstrip("\r")
