"""The data folder of a site: private to one user, used by one server at a time.

Owns its lock, permissions and owner. Knows the names of the entries, not their contents.
"""

import logging
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from clusterscape.errors import StoreError
from clusterscape.settings import StorageSettings
from clusterscape.store.files import hold_lock, make_folder
from clusterscape.store.records.engines import find_sqlite_file

log = logging.getLogger(__name__)

LOCK_FILE = "site.lock"
PRIVATE_UMASK = 0o077
OTHERS = 0o077
"""Permission bits of the group and of others."""

SITE_ENTRIES = (
    "metrics",
    "records.db*",
    "alerts.*",
    "life-statistics.bin*",
    "artifacts",
    "artifact-cache",
    "spool",
    "remote-write",
    "demo.json",
    LOCK_FILE,
    ".backup-*",
    ".trace-*",
    ".migration-*",
)
"""Patterns of the entries that a site writes. Other entries are never touched."""
NEUTRAL_ENTRIES = ("lost+found",)


def prepare_data_folder(storage: StorageSettings) -> None:
    """Create the data folder if missing and make it private; files that this process creates are private, too.

    Raises StoreError without changes if the folder belongs to another user, whose server could not read our files.
    """
    folder = storage.data_dir
    check_owner(folder)
    create_private_files()
    is_new = not folder.exists()
    make_folder(folder)
    if is_new and os.geteuid() == 0:
        log.warning("%s was created by root: a server that runs as another user cannot use it", folder)
    tightened = _tighten(storage)
    if tightened:
        log.warning("%s could be read by other users; %d files and folders are private now", folder, tightened)


def create_private_files() -> None:
    """Set the umask so that new files and folders are private to this user."""
    os.umask(PRIVATE_UMASK)


@contextmanager
def hold_data_folder(folder: Path, *, is_shared: bool = False) -> Iterator[None]:
    """Lock the existing ``folder`` against other servers and commands that need the server stopped.

    ``is_shared``: other processes over the same database servers may use it, too. Raises StoreBusyError.
    """
    with hold_lock(folder / LOCK_FILE, guards=folder, is_shared=is_shared):
        yield


def find_exposed_paths(storage: StorageSettings) -> list[Path]:
    """Paths that other users may read or replace: the folder and its direct entries."""
    folder = storage.data_dir
    if not folder.is_dir():
        return []
    # A folder of root with our group (a Kubernetes volume) exposes names, not contents.
    is_own = folder.stat().st_uid == os.geteuid()
    wide = [folder] if folder.stat().st_mode & (OTHERS if is_own else stat.S_IWOTH) else []
    return wide + [path for path in _site_paths(storage) if path.exists() and path.stat().st_mode & OTHERS]


def check_owner(folder: Path) -> None:
    """Raise StoreError if this user must not or cannot write to ``folder``."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    owner = existing.stat().st_uid
    is_foreign_to_root = os.geteuid() == 0 and owner != 0
    is_closed = existing == folder and not os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    if is_foreign_to_root or is_closed:
        name = _user_name(owner)
        raise StoreError(
            f"{existing} belongs to {name}, but the current user is {_user_name(os.geteuid())}",
            hint=f"Run the command as its owner: sudo -u {name} clusterscape …; or use another `storage.data_dir`.",
        )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _site_paths(storage: StorageSettings) -> list[Path]:
    """Direct entries of the data folder that belong to the site, and an SQLite file elsewhere."""
    folder = storage.data_dir
    paths = [path for path in folder.iterdir() if _is_ours(path.name)]
    records = find_sqlite_file(storage)
    if records is not None and records.parent != folder:
        paths += [records.with_name(records.name + suffix) for suffix in ("", "-wal", "-shm")]
    return paths


def _is_ours(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in SITE_ENTRIES)


def _tighten(storage: StorageSettings) -> int:
    """Remove permissions of others from this user's entries; returns the number of changes. Does not follow links."""
    folder = storage.data_dir
    entries = _site_paths(storage)
    tightened = sum(_make_private(path) for path in entries)
    if all(_is_ours(path.name) or path.name in NEUTRAL_ENTRIES for path in folder.iterdir()):
        tightened += _make_private(folder.resolve())
    if tightened:  # an upgrade: files below a private folder are protected, but copies of them would not be
        for entry in entries:
            for parent, folders, files in os.walk(entry):
                tightened += sum(_make_private(Path(parent, name)) for name in (*folders, *files))
    return tightened


def _make_private(path: Path) -> bool:
    with suppress(OSError):  # deleted meanwhile, or a link
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(descriptor)
            is_plain = stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)
            if is_plain and about.st_uid == os.geteuid() and about.st_mode & OTHERS:
                os.fchmod(descriptor, stat.S_IMODE(about.st_mode) & ~OTHERS)
                return True
        finally:
            os.close(descriptor)
    return False
