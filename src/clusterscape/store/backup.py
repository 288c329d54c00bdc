"""A whole site in one tar file: records, samples, artifacts; written beside a running server, checked before it is trusted.

Samples on a server and artifacts in S3 are not taken along (their own tools do that), and the file says so. The last member,
``backup.json``, names every other with its size and CRC-32: a file without it was cut short.
"""

import fcntl
import gzip
import io
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from clusterscape import __version__
from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.settings import StorageSettings
from clusterscape.store.data_folder import hold_data_folder
from clusterscape.store.metrics.embedded.copying import link_files
from clusterscape.store.metrics.embedded.files import make_folder
from clusterscape.store.records.dump import check_loadable, dump_rows, load_rows
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.faults import explained
from clusterscape.store.records.tables import REVISION
from clusterscape.store.scratch import scratch_folder

CONTENTS = "backup.json"
METRICS, ARTIFACTS, RECORDS = "metrics", "artifacts", "records"
CHUNK = 1 << 20

Progress = Callable[[str], None]


class BackupMember(msgspec.Struct, frozen=True):
    """One file of a backup."""

    name: str
    size: int
    crc32: int


class BackupContents(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds. ``samples_elsewhere``, ``artifacts_elsewhere``: where they are, where they are not in it."""

    version: str
    revision: str
    written_at: UnixMs
    members: list[BackupMember]
    rows: dict[str, int]
    samples_elsewhere: str | None = None
    artifacts_elsewhere: str | None = None


def write_backup(storage: StorageSettings, target: Path, *, at: UnixMs, progress: Progress) -> BackupContents:
    """Write everything to ``target``, which appears under its name only when it is whole. A server may be running."""
    members: list[BackupMember] = []
    rows: dict[str, int] = {}
    partial: Path | None = None
    _remove_abandoned(target)
    try:
        # A name of its own, and for this user alone: a backup holds password hashes.
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        partial = Path(name)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with (
            scratch_folder(storage.data_dir, "backup") as staging,
            open(descriptor, "wb") as file,  # noqa: PTH123 – a descriptor
            tarfile.open(fileobj=file, mode="w") as tar,
        ):
            if storage.metrics == "embedded":
                progress("samples")
                linked = staging / METRICS
                link_files(storage.data_dir / METRICS, linked)
                members += [
                    _add_file(tar, path, f"{METRICS}/{path.relative_to(linked).as_posix()}") for path in _files(linked)
                ]
            progress("records")
            members += _add_records(tar, storage, staging, rows)
            progress("artifacts")
            folder = storage.data_dir / ARTIFACTS
            members += [
                _add_file(tar, path, f"{ARTIFACTS}/{path.relative_to(folder).as_posix()}") for path in _files(folder)
            ]
            contents = BackupContents(
                version=__version__,
                revision=REVISION,
                written_at=at,
                members=members,
                rows=rows,
                samples_elsewhere=None if storage.metrics == "embedded" else storage.metrics,
                artifacts_elsewhere=None if storage.artifacts == "folder" else storage.artifacts,
            )
            _add_bytes(tar, CONTENTS, msgspec.json.encode(contents))
        _name_finally(partial, target)
    except OSError as error:
        raise StoreError(
            f"the backup cannot be written: {error.strerror or error}", hint="Give another path, or free space there."
        ) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
    return contents


def _remove_abandoned(target: Path) -> None:
    """Remove what backups to the same path left that were killed; one that still writes holds a lock on its file."""
    for path in target.parent.glob(f".{target.name}.*.part"):
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _name_finally(partial: Path, target: Path) -> None:
    """Never over a file that is there: another backup may have taken the name meanwhile."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise StoreError(f"{target} is already there", hint="Give a new name; a backup is never overwritten.") from None
    except OSError:  # a file system without links
        partial.rename(target)


def read_contents(source: Path) -> BackupContents:
    """What a backup says it holds, every byte checked. Raises StoreError where it is damaged or cut short."""
    found: dict[str, BackupMember] = {}
    contents: BackupContents | None = None
    with _reading(source):
        for name, content in _members(source):
            if name == CONTENTS:
                contents = msgspec.json.decode(content.read(), type=BackupContents)
            else:
                found[name] = _measure(name, content)
    if contents is None:
        raise StoreError(
            f"{source} is no whole backup: {CONTENTS} is missing", hint="It was cut short; use another one."
        )
    for member in contents.members:
        if found.get(member.name) != member:
            raise StoreError(f"{source} is damaged: {member.name} is not what was written", hint="Use another backup.")
    return contents


def restore_backup(storage: StorageSettings, source: Path, *, progress: Progress) -> BackupContents:
    """Bring a backup into an empty data folder and an empty database; nothing is overwritten. Needs the server stopped."""
    progress("checking")
    contents = read_contents(source)
    check_loadable(contents.revision)
    make_folder(storage.data_dir)
    with hold_data_folder(storage.data_dir):
        _restore_all(storage, source, progress)
    return contents


def _restore_all(storage: StorageSettings, source: Path, progress: Progress) -> None:
    for part in (METRICS, ARTIFACTS):
        if (storage.data_dir / part).exists() and any((storage.data_dir / part).iterdir()):
            raise StoreError(
                f"{storage.data_dir / part} is not empty",
                hint="Restore into an empty `storage.data_dir`; move this one away first. Nothing was changed.",
            )
    progress("records")
    engine = record_engine(storage)
    where = str(engine.url.render_as_string(hide_password=True))
    try:
        with explained(where):
            load_rows(engine, _dumped_rows(source), where=where)
    finally:
        engine.dispose()
    progress("files")
    for name, content in _members(source):
        if name.startswith((f"{METRICS}/", f"{ARTIFACTS}/")):
            target = storage.data_dir / PurePosixPath(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                while chunk := content.read(CHUNK):
                    file.write(chunk)


def _add_records(
    tar: tarfile.TarFile, storage: StorageSettings, staging: Path, rows: dict[str, int]
) -> list[BackupMember]:
    """One gzipped file of JSON lines a table, in the order of ``dump_rows``: parents before children."""
    engine = record_engine(storage)
    members = []
    try:
        with explained(str(engine.url.render_as_string(hide_password=True))):
            for table, pieces in groupby(dump_rows(engine), key=itemgetter(0)):
                path = staging / f"{table}.jsonl.gz"
                with gzip.open(path, "wb", compresslevel=5) as file:
                    for _, lines in pieces:
                        file.write(lines)
                        rows[table] = rows.get(table, 0) + lines.count(b"\n")
                members.append(_add_file(tar, path, f"{RECORDS}/{path.name}"))
    finally:
        engine.dispose()
    return members


def _dumped_rows(source: Path) -> Iterator[tuple[str, bytes]]:
    for name, content in _members(source):
        if name.startswith(f"{RECORDS}/"):
            table = PurePosixPath(name).name.removesuffix(".jsonl.gz")
            with gzip.open(content) as lines:
                while piece := lines.readlines(16 * CHUNK):
                    yield table, b"".join(piece)


def _members(source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each member, to be read before the next one is asked for."""
    with tarfile.open(source, "r:") as tar:
        for member in tar:
            content = tar.extractfile(member)
            path = PurePosixPath(member.name)
            if content is None or path.is_absolute() or ".." in path.parts:
                raise StoreError(f"{source} holds {member.name!r}, which is no file of a backup")
            yield member.name, content


@contextmanager
def _reading(source: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, tarfile.TarError, EOFError) as error:
        raise StoreError(
            f"{source} cannot be read as a backup: {error}", hint="Give a file of `clusterscape backup`."
        ) from error


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _add_file(tar: tarfile.TarFile, path: Path, name: str) -> BackupMember:
    with path.open("rb") as file:
        member = _measure(name, file)
        file.seek(0)
        about = tarfile.TarInfo(name)
        about.size = member.size
        about.mtime = int(path.stat().st_mtime)
        tar.addfile(about, file)
    return member


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size = len(content)
    tar.addfile(about, io.BytesIO(content))


def _measure(name: str, content: IO[bytes]) -> BackupMember:
    size, crc = 0, 0
    while chunk := content.read(CHUNK):
        size += len(chunk)
        crc = zlib.crc32(chunk, crc)
    return BackupMember(name, size, crc)
