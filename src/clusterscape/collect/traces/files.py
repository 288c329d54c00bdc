"""Finds trace files in folders and archives and gets their bytes. A file cut short gives what was there before the cut."""

import re
import sys
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isal import isal_zlib

from clusterscape.collect.unpacking import UnpackedSize
from clusterscape.errors import SourceError, TooLargeError

if TYPE_CHECKING:
    from clusterscape.settings.limits import UploadLimits  # a third of the time that a worker takes to start

TRACE_ENDINGS = (".json", ".json.gz", ".parquet", ".sqlite")
ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz")
ARCHIVE_ERRORS = (tarfile.TarError, EOFError, zlib.error)
_PIECE_BYTES = 1 << 12
_MOST_LENGTH = sys.maxsize - 1
MOST_DIGITS = 18  # of a number in a name
_GZIP = 31  # wbits of zlib: with a gzip header, the largest window
_Damaged: type[Exception] = isal_zlib.IsalError  # type: ignore[assignment]  # its types call the class an exception


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file, or one member of a tar archive. ``limits`` is None for files of the user's own machine."""

    path: Path
    member: str | None = None
    size_bytes: int = 0
    limits: "UploadLimits | None" = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The name that may tell the rank."""
        return self.member or str(self.path)

    def measure(self) -> UnpackedSize:
        """Counts what is decompressed of it."""
        limits = self.limits
        most, ratio = (
            (sys.maxsize, 1e9) if limits is None else (limits.trace_file_unpacked_bytes, limits.unpacked_ratio)
        )
        return UnpackedSize(self.title, most, setting="limits.uploads.trace_file_unpacked_bytes", ratio=ratio)

    @property
    def title(self) -> str:
        """For people: short, yet different for different files."""
        return Path(self.name).name


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes of a file; ``cut`` says in words why there may have been more."""

    data: bytes
    cut: str | None = None


def find_trace_files(paths: Sequence[Path], limits: "UploadLimits | None" = None) -> list[TraceFile]:
    """All trace files under the paths, by name with numbers in order. Raises ``SourceError`` where there is none."""
    most = sys.maxsize if limits is None else limits.trace_files
    found: dict[tuple[Path, str | None], TraceFile] = {}
    for path in paths:
        if not path.exists():
            raise SourceError(
                f"there is no file or folder {path}", hint="Name a trace file, a folder or a tar archive."
            )
        for file in _files_of(path):
            found.setdefault((file.path, file.member), replace(file, limits=limits))
            if len(found) > most:
                raise TooLargeError(f"the trace has more than {most:,} files", setting="limits.uploads.trace_files")
    if not found:
        names = ", ".join(str(path) for path in paths)
        raise SourceError(f"no traces in {names}", hint=f"Traces end in {', '.join(TRACE_ENDINGS + ARCHIVE_ENDINGS)}.")
    return sorted(found.values(), key=lambda file: natural_key(file.name))


def natural_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sorts rank2 before rank10."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdecimal(), int(part[:MOST_DIGITS]) if part.isdecimal() else 0, part) for part in parts)


def _files_of(path: Path) -> Iterator[TraceFile]:
    if path.is_dir():
        for inner in sorted(path.rglob("*")):
            if inner.is_file() and inner.name.endswith(TRACE_ENDINGS + ARCHIVE_ENDINGS):
                yield from _files_of(inner)
    elif path.name.endswith(ARCHIVE_ENDINGS):
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and member.name.endswith(TRACE_ENDINGS):
                        yield TraceFile(path, member.name, member.size)
        except ARCHIVE_ERRORS as error:
            raise SourceError(f"{path} is no readable archive: {error}", hint="Was it copied whole?") from error
    else:
        yield TraceFile(path, None, path.stat().st_size)


def read_content(file: TraceFile) -> Content:
    """The file's bytes, unpacked. A truncated gzip stream gives what could be unpacked."""
    raw = _read_raw(file)
    if raw[:2] != b"\x1f\x8b":
        return Content(raw)
    try:
        return Content(_unpack(raw, file.measure()))
    except (EOFError, _Damaged):
        return Content(_unpack_what_is_there(raw, file.measure()), "its gzip stream is cut short or damaged")


def _read_raw(file: TraceFile) -> bytes:
    """The file as it lies there. Sizes are looked at first: a sparse member of an archive says terabytes in a few bytes."""
    if file.member is None:
        size = file.path.stat().st_size
        file.measure().add(size, packed_bytes=size)
        return file.path.read_bytes()
    with tarfile.open(file.path) as archive:
        opened = archive.extractfile(file.member)
        if opened is None:
            return b""
        file.measure().add(archive.getmember(file.member).size, packed_bytes=file.path.stat().st_size)
        return opened.read()


def _unpack(raw: bytes, size: UnpackedSize) -> bytes:
    """All members of a gzip file, in half the time that zlib takes."""
    parts: list[bytes] = []
    packed_bytes = len(raw)
    while raw:
        unpacker = isal_zlib.decompressobj(wbits=_GZIP)
        # One byte more than allowed, so that what is too large is noticed.
        parts.append(unpacker.decompress(raw, min(size.most_left(packed_bytes), _MOST_LENGTH) + 1))
        size.add(len(parts[-1]), packed_bytes=packed_bytes)
        if not unpacker.eof:
            raise EOFError
        raw = unpacker.unused_data.lstrip(b"\0")  # files may be padded
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unpack_what_is_there(raw: bytes, size: UnpackedSize) -> bytes:
    unpacker = zlib.decompressobj(wbits=_GZIP)
    parts: list[bytes] = []
    # What came before the damage is kept; small pieces, for the piece it lies in is lost.
    with suppress(zlib.error):
        for at in range(0, len(raw), _PIECE_BYTES):
            parts.append(unpacker.decompress(raw[at : at + _PIECE_BYTES]))
            size.add(len(parts[-1]), packed_bytes=len(raw))
    return b"".join(parts)
