"""Atomic file writes (temporary name, sync, rename, sync of the folder), errors of full disks, lock files that the kernel
releases when a process ends, and temporary folders.

All writes of the embedded store use these.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clusterscape.errors import StoreBusyError, StoreError, StoreFullError

TEMPORARY_SUFFIX = ".tmp"
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_file(path: Path, content: bytes | memoryview) -> None:
    """Write ``content`` to ``path`` atomically and durably. After a failure, the file is unchanged or absent.

    Raises StoreFullError if there is no space.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        with storage_errors(path):
            with temporary.open("wb", buffering=0) as file:
                while content:
                    content = content[file.write(content) :]
                os.fsync(file.fileno())
            temporary.rename(path)
            sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its parents durably: a file is only as durable as its folder."""
    with storage_errors(folder):
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in missing:
            sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and deletions in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_free_space(folder: Path, *, min_free_bytes: int) -> None:
    """Raise StoreFullError if the disk of ``folder`` has less than ``min_free_bytes`` free."""
    disk = os.statvfs(folder)
    free_bytes = disk.f_bavail * disk.f_frsize
    if free_bytes < min_free_bytes:
        raise _full(folder, f"{free_bytes:,} bytes are free, {min_free_bytes:,} must stay free")


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert OSError to StoreFullError or StoreError with a hint."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise _full(path, error.strerror or "no space left") from error
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}", hint="Check that the folder exists and may be written."
        ) from error


def _full(path: Path, reason: str) -> StoreFullError:
    return StoreFullError(
        f"the disk of {path} is full: {reason}",
        hint="Free space, lower `retention.raw_days`, or move `storage.data_dir`; writing then resumes by itself.",
    )


@contextmanager
def hold_lock(path: Path, *, guards: Path, is_shared: bool = False) -> Iterator[None]:
    """Hold the lock file ``path`` of the folder ``guards``; raises StoreBusyError if another process holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}", hint="Check that the folder exists and may be written."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", errors="replace").strip() or "unknown"
            raise StoreBusyError(
                f"{guards} is in use by process {holder}",
                hint=f"Stop that ClusterScape (kill {holder}), or use another `storage.data_dir`.",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)


_LOCK = ".in-use"


@contextmanager
def scratch_folder(parent: Path, kind: str) -> Iterator[Path]:
    """A temporary folder below ``parent``; also removes abandoned folders of the same ``kind``."""
    remove_abandoned(parent, kind)
    with tempfile.TemporaryDirectory(dir=parent, prefix=_prefix(kind)) as name:
        folder = Path(name)
        # The kernel releases the lock when the process ends. The file is locked before it gets its final name.
        with (folder / f"{_LOCK}.new").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            Path(lock.name).rename(folder / _LOCK)
            yield folder


def remove_abandoned(parent: Path, kind: str) -> None:
    """Remove folders of this ``kind`` whose processes were killed."""
    for folder in parent.glob(f"{_prefix(kind)}*"):
        with suppress(OSError), (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def _prefix(kind: str) -> str:
    return f".{kind}-"
