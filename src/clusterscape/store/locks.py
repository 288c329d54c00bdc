"""Lock files, held by one process or shared by several. The kernel releases them however a process ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterscape.errors import StoreBusyError, StoreError


@contextmanager
def hold_lock(path: Path, *, guards: Path, is_shared: bool = False) -> Iterator[None]:
    """Hold the lock file ``path`` of the folder ``guards``; raises StoreBusyError where another process has it."""
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
                hint=f"Stop that ClusterScape (kill {holder}), or give this one another `storage.data_dir`.",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)
