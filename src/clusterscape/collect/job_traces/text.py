"""Lines of a possibly compressed file, in blocks of whole lines that never hold more than a few megabytes.

Counts what is wrong with the file as such: bytes that are not UTF-8, a compressed stream that breaks off.
"""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

import zstandard

from clusterscape.errors import SourceError

BLOCK_BYTES = 16 * 2**20
STEP_BYTES = 2**18
EXAMPLES = 5
"""So many line numbers are kept per reason."""


@dataclass
class FileFaults:
    """What was wrong with the bytes."""

    undecodable_lines: list[int] = field(default_factory=list)
    undecodable: int = 0
    is_cut_off: bool = False


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The plain bytes of a file, by its suffix: gz, bz2, xz, zst or none."""
    try:
        with path.open("rb") as raw:
            if path.suffix == ".zst":
                with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as plain:
                    yield cast("IO[bytes]", plain)
            elif path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    yield cast("IO[bytes]", unzipped)
            elif path.suffix == ".bz2":
                with bz2.BZ2File(raw) as unpacked:
                    yield cast("IO[bytes]", unpacked)
            elif path.suffix == ".xz":
                with lzma.LZMAFile(raw) as unpacked_xz:
                    yield cast("IO[bytes]", unpacked_xz)
            else:
                yield raw
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from error


def read_start(path: Path, size: int = 65_536) -> str:
    """The first characters, for finding out the format."""
    with open_bytes(path) as stream:
        try:
            return stream.read(size).decode("utf-8-sig", "replace")
        except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            raise SourceError(f"{path} is not what its suffix says: {error}") from error


def iter_blocks(path: Path, faults: FileFaults) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines without their ends), block by block. Lines are numbered from 1."""
    rest, number = b"", 1
    with open_bytes(path) as stream:
        while True:
            block = _read_block(cast("BufferedReader", stream), faults)
            if not block:
                break
            block = rest + block
            cut = block.rfind(b"\n") + 1
            block, rest = block[:cut], block[cut:]
            if block:
                lines = _decode(block, number, faults)
                yield number, lines
                number += len(lines)
    if rest:
        yield number, _decode(rest, number, faults)


def _read_block(stream: BufferedReader, faults: FileFaults) -> bytes:
    """The next bytes, in small steps: what came before a stream breaks off is not lost with it."""
    parts, size = [], 0
    while size < BLOCK_BYTES:
        try:
            part = stream.read1(STEP_BYTES)
        except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError):
            faults.is_cut_off = True
            break
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _decode(block: bytes, number: int, faults: FileFaults) -> list[str]:
    if number == 1:
        block = block.removeprefix(b"\xef\xbb\xbf")
    raw = block.split(b"\n")
    if raw[-1] == b"":
        raw.pop()
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
