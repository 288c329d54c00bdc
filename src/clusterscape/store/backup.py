"""Backup of a site in one tar file: records, samples and artifacts. The server may be running; backups are verified before use.

Samples on a metrics server and artifacts in S3 are not included (use their own tools), and the file says so. The last member,
``backup.json``, lists all others with size and CRC-32: a file without it is truncated.
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
from clusterscape.store.files import make_folder, scratch_folder
from clusterscape.store.metrics.embedded.manifest import link_files
from clusterscape.store.records.dump import check_loadable, dump_rows, load_rows
from clusterscape.store.records.engines import database_errors, record_engine
from clusterscape.store.records.tables import REVISION

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
    """Contents of a backup. ``samples_elsewhere``, ``artifacts_elsewhere``: their location if not included."""

    version: str
    revision: str
    written_at: UnixMs
    members: list[BackupMember]
    rows: dict[str, int]
    samples_elsewhere: str | None = None
    artifacts_elsewhere: str | None = None


def write_backup(storage: StorageSettings, target: Path, *, at: UnixMs, progress: Progress) -> BackupContents:
    """Write everything to ``target``, which appears only when complete. The server may be running."""
    members: list[BackupMember] = []
    rows: dict[str, int] = {}
    partial: Path | None = None
    _remove_abandoned(target)
    try:
        # A unique name, readable only by this user: a backup contains password hashes.
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
        _publish(partial, target)
    except OSError as error:
        raise StoreError(
            f"cannot write the backup: {error.strerror or error}", hint="Use another path, or free space."
        ) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
    return contents


def _remove_abandoned(target: Path) -> None:
    """Remove partial files of killed backups to the same path; a running backup holds a lock on its file."""
    for path in target.parent.glob(f".{target.name}.*.part"):
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _publish(partial: Path, target: Path) -> None:
    """Rename without overwriting: another backup may have used the name meanwhile."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise StoreError(f"{target} already exists", hint="Use a new name; backups are never overwritten.") from None
    except OSError:  # a file system without links
        partial.rename(target)


def read_contents(source: Path) -> BackupContents:
    """The contents of a backup, verified. Raises StoreError if it is damaged or truncated."""
    measured: dict[str, BackupMember] = {}
    contents: BackupContents | None = None
    with _reading(source):
        for name, content in _members(source):
            if name == CONTENTS:
                contents = msgspec.json.decode(content.read(), type=BackupContents)
            else:
                measured[name] = _measure(name, content)
    if contents is None:
        raise StoreError(
            f"{source} is incomplete: {CONTENTS} is missing", hint="The file is truncated; use another backup."
        )
    for member in contents.members:
        if measured.get(member.name) != member:
            raise StoreError(
                f"{source} is damaged: {member.name} has another size or checksum", hint="Use another backup."
            )
    return contents


def restore_backup(storage: StorageSettings, source: Path, *, progress: Progress) -> BackupContents:
    """Restore a backup into an empty data folder and an empty database. The server must be stopped."""
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
        with database_errors(where):
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
    """One gzipped file of JSON lines per table, in the order of ``dump_rows``: parents before children."""
    engine = record_engine(storage)
    members = []
    try:
        with database_errors(str(engine.url.render_as_string(hide_password=True))):
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
    """Name and content of each member; read the content before the next iteration."""
    with tarfile.open(source, "r:") as tar:
        for member in tar:
            content = tar.extractfile(member)
            path = PurePosixPath(member.name)
            if content is None or path.is_absolute() or ".." in path.parts:
                raise StoreError(f"{source} contains {member.name!r}, which is not a file of a backup")
            yield member.name, content


@contextmanager
def _reading(source: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, tarfile.TarError, EOFError) as error:
        raise StoreError(
            f"cannot read {source} as a backup: {error}", hint="Use a file of `clusterscape backup`."
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
