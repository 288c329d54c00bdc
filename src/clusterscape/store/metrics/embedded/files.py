"""Files that are whole or absent: temporary name, sync, rename, sync of the folder; and what a full disk means.

Owns every write of the embedded store to the disk. Does not know what the bytes mean.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterscape.errors import StoreError, StoreFullError

TEMPORARY_SUFFIX = ".tmp"
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_file(path: Path, content: bytes | memoryview) -> None:
    """Put ``content`` durably under ``path``. Where that fails, the file is as it was before, or absent.

    Raises StoreFullError where there is no space.
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
    """Make ``folder`` and what is missing above it, durably: a file in a folder is only as durable as the folder."""
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


def need_space(folder: Path, *, min_free_bytes: int) -> None:
    """Raise StoreFullError where the device of ``folder`` has less than ``min_free_bytes`` free."""
    disk = os.statvfs(folder)
    free_bytes = disk.f_bavail * disk.f_frsize
    if free_bytes < min_free_bytes:
        raise _full(folder, f"{free_bytes:,} bytes are free, {min_free_bytes:,} must stay free")


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors into StoreFullError or StoreError with a hint."""
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
        hint="Free space there, lower `retention.raw_days`, or move `storage.data_dir`; writing goes on by itself then.",
    )
