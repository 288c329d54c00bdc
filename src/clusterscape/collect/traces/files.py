"""Finds trace files in folders and archives, reads their bytes, and assigns ranks: the rank in the file, else the one in its
name, else its position. A truncated file is read up to the truncation.
"""

import codecs
import re
import sys
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from isal import isal_zlib

from clusterscape.collect.unpacking import UnpackedSize, check_is_file
from clusterscape.errors import SourceError, TooLargeError

if TYPE_CHECKING:
    from clusterscape.settings.limits import UploadLimits  # importing it takes a third of a worker's start-up time


TRACE_ENDINGS = (".json", ".json.gz", ".parquet", ".sqlite")
ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz")
ARCHIVE_ERRORS = (tarfile.TarError, EOFError, zlib.error)
_PIECE_BYTES = 1 << 12
_MAX_LENGTH = sys.maxsize - 1
MAX_DIGITS = 18  # of a number in a name
MAX_RANK_DIGITS = 9
_MARKS = {
    codecs.BOM_UTF8: "",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, with whose mark it begins
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_GZIP = 31  # wbits of zlib: with a gzip header, the largest window
_Damaged: type[Exception] = isal_zlib.IsalError  # type: ignore[assignment]  # its type stubs declare an instance, not a class


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file, or one member of a tar archive. ``limits`` is None for files of the user's own machine."""

    path: Path
    member: str | None = None
    size_bytes: int = 0
    limits: "UploadLimits | None" = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The name that may contain the rank."""
        return self.member or str(self.path)

    def new_size_limit(self) -> UnpackedSize:
        """A counter that limits the decompressed size of the file."""
        limits = self.limits
        most, ratio = (
            (sys.maxsize, 1e9) if limits is None else (limits.trace_file_unpacked_bytes, limits.decompression_ratio)
        )
        return UnpackedSize(self.title, most, setting="limits.uploads.trace_file_unpacked_bytes", ratio=ratio)

    @property
    def title(self) -> str:
        """The short name that messages show."""
        return Path(self.name).name


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes of a file; ``cut`` is the reason why they are incomplete, if they are."""

    data: bytes
    cut: str | None = None


def find_trace_files(paths: Sequence[Path], limits: "UploadLimits | None" = None) -> list[TraceFile]:
    """All trace files under the paths, in natural order of their names. Raises ``SourceError`` if there are none."""
    max_files = sys.maxsize if limits is None else limits.trace_files
    files: dict[tuple[Path, str | None], TraceFile] = {}
    for path in paths:
        try:
            check_is_file(path)
        except FileNotFoundError:
            hint = "Give a trace file, a folder or a tar archive."
            raise SourceError(f"no such file or folder: {path}", hint=hint) from None
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}", hint="Is the path complete?") from error
        for file in _files_of(path):
            files.setdefault((file.path, file.member), replace(file, limits=limits))
            if len(files) > max_files:
                raise TooLargeError(
                    f"the trace has more than {max_files:,} files", setting="limits.uploads.trace_files"
                )
    if not files:
        names = ", ".join(str(path) for path in paths)
        raise SourceError(
            f"no traces in {names}", hint=f"Trace files end in {', '.join(TRACE_ENDINGS + ARCHIVE_ENDINGS)}."
        )
    return sorted(files.values(), key=lambda file: natural_key(file.name))


def natural_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sorts rank2 before rank10."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdecimal(), int(part[:MAX_DIGITS]) if part.isdecimal() else 0, part) for part in parts)


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
            raise SourceError(f"cannot read the archive {path}: {error}", hint="Is the copy complete?") from error
    else:
        yield TraceFile(path, None, path.stat().st_size)


def read_content(file: TraceFile) -> Content:
    """Read and decompress a file; text becomes UTF-8. A truncated gzip stream is decompressed up to the truncation."""
    raw = _read_raw(file)
    if raw[:2] != b"\x1f\x8b":
        return Content(to_utf8(raw))
    try:
        return Content(to_utf8(_decompress(raw, file.new_size_limit())))
    except (EOFError, _Damaged):
        data = to_utf8(_decompress_partially(raw, file.new_size_limit()))
        return Content(data, "its gzip stream is truncated or damaged")


def to_utf8(data: bytes) -> bytes:
    """Text that starts with a byte-order mark as UTF-8 without one; all other bytes as they are."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode() if encoding else data[len(mark) :]
    return data


def _read_raw(file: TraceFile) -> bytes:
    """Read a file without decompressing it. The size is checked first: a sparse archive member can claim terabytes."""
    if file.member is None:
        size = file.path.stat().st_size
        file.new_size_limit().add(size, packed_bytes=size)
        return file.path.read_bytes()
    with tarfile.open(file.path) as archive:
        opened = archive.extractfile(file.member)
        if opened is None:
            return b""
        file.new_size_limit().add(archive.getmember(file.member).size, packed_bytes=file.path.stat().st_size)
        return opened.read()


def _decompress(raw: bytes, size: UnpackedSize) -> bytes:
    """Decompress all members of a gzip file, twice as fast as zlib."""
    parts: list[bytes] = []
    packed_bytes = len(raw)
    while raw:
        decompressor = isal_zlib.decompressobj(wbits=_GZIP)
        # One byte more than allowed, so that an oversized file is detected.
        parts.append(decompressor.decompress(raw, min(size.most_left(packed_bytes), _MAX_LENGTH) + 1))
        size.add(len(parts[-1]), packed_bytes=packed_bytes)
        if not decompressor.eof:
            raise EOFError
        raw = decompressor.unused_data.lstrip(b"\0")  # files may be padded
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decompress_partially(raw: bytes, size: UnpackedSize) -> bytes:
    decompressor = zlib.decompressobj(wbits=_GZIP)
    parts: list[bytes] = []
    # Small pieces, because the piece that contains the damage is lost.
    with suppress(zlib.error):
        for offset in range(0, len(raw), _PIECE_BYTES):
            parts.append(decompressor.decompress(raw[offset : offset + _PIECE_BYTES]))
            size.add(len(parts[-1]), packed_bytes=len(raw))
    return b"".join(parts)


_NAMED = re.compile(r"(?:rank|worker|device|npu|gpu|proc|process)[-_.=]?(\d+)", re.IGNORECASE)
_SHORT = re.compile(r"(?:^|[-_./])r(\d+)(?=[-_./]|$)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


def find_rank_in_name(name: str) -> int | None:
    """The number after "rank", "worker" and similar words, in the innermost part of the path that has one."""
    for part in reversed(PurePath(name).parts):
        for pattern in (_NAMED, _SHORT):
            numbers = [number for number in pattern.findall(part) if len(number) <= MAX_RANK_DIGITS]
            if numbers:
                return int(numbers[-1])
    return None


def find_varying_number(names: Sequence[str]) -> list[int] | None:
    """If the names differ only in one number, return these numbers."""
    titles = [PurePath(name).name for name in names]
    numbers = [[int(number[:MAX_DIGITS]) for number in _NUMBER.findall(title)] for title in titles]
    if len(titles) < 2 or len({_NUMBER.sub("#", title) for title in titles}) > 1:
        return None
    varying = [column for column in zip(*numbers, strict=True) if len(set(column)) == len(titles)]
    small = [column for column in varying if max(column) < 4 * len(titles)]
    return list(small[0]) if small else None


def assign_ranks(names: Sequence[str], stated: Sequence[int | None]) -> tuple[list[int], list[str]]:
    """Assign a rank to each file; returns the ranks and notes.

    If several files state the same rank but their names have different ones (copies), the names decide.
    """
    notes: list[str] = []
    name_ranks = [find_rank_in_name(name) for name in names]
    if None in name_ranks or len(set(name_ranks)) < len(name_ranks):
        varying = find_varying_number(names)
        name_ranks = list(varying) if varying else name_ranks
    are_names_distinct = None not in name_ranks and len(set(name_ranks)) == len(name_ranks)
    duplicates = [rank for rank, times in Counter(stated).items() if rank is not None and times > 1]
    if duplicates and are_names_distinct and set(name_ranks) != set(stated):
        notes.append(
            f"{len(names)} files state rank {', '.join(map(str, sorted(duplicates)))} more than once; "
            "the number in which their names differ is used as the rank."
        )
        stated = [None] * len(names)
    ranks: list[int] = []
    guessed = []
    used_ranks = {rank for rank in stated if rank is not None}
    for position, (stated_rank, name_rank) in enumerate(zip(stated, name_ranks, strict=True)):
        rank = stated_rank if stated_rank is not None else name_rank
        if rank is None:
            rank = next(
                free for free in range(position, position + len(names) + len(used_ranks) + 1) if free not in used_ranks
            )
            guessed.append(PurePath(names[position]).name)
            used_ranks.add(rank)
        ranks.append(rank)
    if guessed:
        titles = ", ".join(guessed[:3]) + (" …" if len(guessed) > 3 else "")
        notes.append(f"Neither the trace nor the name gives the rank of {titles}: numbered in name order.")
    elif any(stated_rank is None for stated_rank in stated) and not duplicates:
        notes.append("Some traces do not state their rank: it is taken from the file names.")
    return ranks, notes
