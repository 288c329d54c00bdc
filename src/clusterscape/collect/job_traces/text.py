"""Reads lines of a possibly compressed file, in blocks of whole lines of a few megabytes at most. UTF-16 (PowerShell) becomes
UTF-8.

Counts faults of the file itself: bytes that are not UTF-8, a truncated or damaged end. Raises TooLargeError if it decompresses
to more than ``UploadLimits`` allow, before that is in memory.
"""

import bz2
import codecs
import csv
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

from clusterscape.collect.unpacking import UnpackedSize, check_is_file
from clusterscape.errors import SourceError, TooLargeError
from clusterscape.settings.limits import UploadLimits

BLOCK_BYTES = 4 * 2**20
STEP_BYTES = 2**18
NEW_LINE = b"\n"
EXAMPLES = 5
"""Line numbers that are kept per reason."""
MAX_WINDOW_BYTES = 2**27
"""Memory limit of a decompressor: enough for ``xz -9`` and ``zstd --long``."""

SAMPLE_BYTES = 512
MIN_UTF16_BYTES = 16

_COMPRESSED = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zst"}
"""The first bytes of compressed files. Suffixes are not trusted: browsers unpack files without renaming them."""


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A job trace file. ``limits`` is None for local files, which commands read."""

    path: Path
    limits: UploadLimits | None = None

    def __str__(self) -> str:
        return str(self.path)

    def check_rows(self, rows: int, columns: int = 1) -> None:
        """Raise TooLargeError if there are too many rows, columns or cells."""
        limits = self.limits
        if limits is None:
            return
        if rows > limits.job_trace_rows:
            raise self._too_large(f"more than {limits.job_trace_rows:,} rows", "job_trace_rows", "Split it by time.")
        if columns > limits.job_trace_columns:
            excess = f"{columns:,} columns, more than {limits.job_trace_columns:,}"
            raise self._too_large(excess, "job_trace_columns", "Keep only those that describe jobs.")
        if rows * columns > limits.job_trace_cells:
            excess = f"more than {limits.job_trace_cells:,} cells (rows × columns)"
            raise self._too_large(excess, "job_trace_cells", "Split it by time, or keep fewer columns.")

    def check_length(self, size: int, subject: str) -> None:
        """Raise TooLargeError if a line, or a job in JSON, is too long."""
        if self.limits is not None and size > self.limits.job_trace_line_bytes:
            most = self.limits.job_trace_line_bytes
            raise self._too_large(f"{subject} of more than {most:,} bytes", "job_trace_line_bytes")

    def _too_large(self, excess: str, setting: str, hint: str = "") -> TooLargeError:
        return TooLargeError(f"{self} has {excess}", setting=f"limits.uploads.{setting}", hint=hint)


@dataclass
class FileFaults:
    """Faults of the file's bytes."""

    undecodable_lines: list[int] = field(default_factory=list)
    undecodable: int = 0
    is_cut_off: bool = False
    damage: str | None = None
    """Why the part after the last row that was read is lost, if the compression is not the reason."""
    unused_share: float = 0.0
    """Of the text, after such damage."""


@contextmanager
def open_bytes(source: TraceSource) -> Iterator[IO[bytes]]:
    """Open a file and decompress it: gz, bz2, xz, zst or none."""
    try:
        check_is_file(source.path)
        with source.path.open("rb") as raw:
            yield cast("IO[bytes]", _BoundedStream(_open_decompressed(raw), raw, source))
    except EOFError as error:
        raise SourceError(f"cannot decompress {source}: {error}", hint="Is the copy complete?") from error
    except OSError as error:
        raise SourceError(f"cannot read {source}: {error.strerror or error}") from error


def _open_decompressed(raw: io.BufferedReader) -> io.BufferedIOBase:
    start = raw.peek(max(map(len, _COMPRESSED)))
    match next((kind for first, kind in _COMPRESSED.items() if start.startswith(first)), None):
        case "gz":
            return gzip.GzipFile(fileobj=raw)
        case "bz2":
            return bz2.BZ2File(raw)
        case "xz":
            return io.BufferedReader(_Xz(raw))
        case "zst":
            decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
            return cast("io.BufferedIOBase", decompressor.stream_reader(raw, read_across_frames=True))
    return raw


class _BoundedStream:
    """A stream that limits how many bytes are read from it."""

    def __init__(self, stream: io.BufferedIOBase, raw: BinaryIO, source: TraceSource) -> None:
        self._stream = stream
        self._decoder: codecs.IncrementalDecoder | None = None
        self._is_begun = self._is_classic_mac = False
        limits = source.limits
        self._size = None
        if limits is not None:
            most, setting = limits.job_trace_unpacked_bytes, "limits.uploads.job_trace_unpacked_bytes"
            self._size = UnpackedSize(str(source), most, setting=setting, ratio=limits.decompression_ratio)
        self._raw = raw

    def read1(self, size: int) -> bytes:
        """Read up to ``size`` bytes; empty at the end. Raises EOFError where compressed data ends too early or is damaged."""
        while True:
            try:
                part = self._stream.read1(size)
            except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError) as error:
                # Damage found by gzip and bz2 is an OSError without a number.
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                raise EOFError(str(error)) from error
            if self._size is not None:
                self._size.add(len(part), packed_bytes=self._raw.tell())
            if not self._is_begun:
                self._is_begun = True
                self._decoder = _find_decoder(part)
                self._is_classic_mac = b"\r" in part and NEW_LINE not in part
            if self._decoder is None:
                return part.replace(b"\r", NEW_LINE) if self._is_classic_mac else part
            text = self._decoder.decode(part, final=not part)
            if text or not part:
                return text.removeprefix("\ufeff").encode("utf-8", "replace")

    def read(self, size: int) -> bytes:
        """Read ``size`` bytes; fewer at the end."""
        parts = []
        while size > 0 and (part := self.read1(min(size, STEP_BYTES))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _find_decoder(start: bytes) -> codecs.IncrementalDecoder | None:
    """A decoder of UTF-16 if the file starts with its byte-order mark, or with ASCII in two bytes per letter."""
    encoding = None
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16-le" if start.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    elif len(start) >= MIN_UTF16_BYTES:
        even, odd = start[:SAMPLE_BYTES:2], start[1:SAMPLE_BYTES:2]
        encoding = "utf-16-le" if not any(odd) and all(even) else "utf-16-be" if not any(even) and all(odd) else None
    return codecs.getincrementaldecoder(encoding)("replace") if encoding else None


class _Xz(io.RawIOBase):
    """Decompresses xz with a memory limit (MAX_WINDOW_BYTES), which ``lzma.LZMAFile`` does not support."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._decompressor: lzma.LZMADecompressor | None = None
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # its type is not public
        while True:
            if self._decompressor is None or self._decompressor.eof:
                remaining = self._waiting if self._decompressor is None else self._decompressor.unused_data
                remaining = (remaining or self._raw.read(STEP_BYTES)).lstrip(b"\0")  # streams may be padded
                if not remaining:
                    return 0
                self._decompressor, self._waiting = lzma.LZMADecompressor(memlimit=MAX_WINDOW_BYTES), remaining
            elif self._decompressor.needs_input:
                self._waiting = self._raw.read(STEP_BYTES)
                if not self._waiting:
                    raise EOFError("the stream is truncated")
            part = self._decompressor.decompress(self._waiting, len(buffer))
            self._waiting = b""
            if part:
                buffer[: len(part)] = part
                return len(part)


def read_start(source: TraceSource, size: int = 65_536) -> str:
    """The first characters, to detect the format; fewer if the file is truncated before that."""
    start = b""
    with open_bytes(source) as stream:
        try:
            while len(start) < size and (part := cast("_BoundedStream", stream).read1(STEP_BYTES)):
                start += part
        except EOFError:
            if not start:
                raise
    return start[:size].decode("utf-8-sig", "replace")


def find_heading(start: str, separator: str = ",") -> list[str]:
    """The headings in the first line that is not empty."""
    first = next((line for line in start.split("\n") if line.strip()), "")
    return [heading.strip() for heading in split_line(first.rstrip("\r"), separator)]


def split_line(line: str, separator: str) -> list[str]:
    """The fields of a line; none if its quotes cannot be read."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # such as a field of more than 131,072 characters: the line is dropped for its number of fields
        return []


def iter_blocks(source: TraceSource, faults: FileFaults) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, lines without line ends), block by block. Lines are numbered from 1."""
    partial_line, number = b"", 1
    with open_bytes(source) as stream:
        while True:
            block = read_block(stream, faults)
            if not block:
                break
            block = partial_line + block
            cut = block.rfind(b"\n") + 1
            block, partial_line = block[:cut], block[cut:]
            source.check_length(len(partial_line), f"a line {number + block.count(NEW_LINE):,}")
            if block:
                lines = _decode(source, block, number, faults)
                yield number, lines
                number += len(lines)
    if partial_line:
        yield number, _decode(source, partial_line, number, faults)


def read_block(stream: IO[bytes], faults: FileFaults, most: int | None = None) -> bytes:
    """Read the next bytes in small steps, so that the part before a truncation is not lost."""
    parts, size = [], 0
    most = BLOCK_BYTES if most is None else most
    while size < most:
        try:
            part = cast("_BoundedStream", stream).read1(min(most - size, STEP_BYTES))
        except EOFError:
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
        return [_decode_line(line, number + index, faults) for index, line in enumerate(raw)]
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
