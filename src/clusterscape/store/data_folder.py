"""The data folder of a site: private to one user, used by one server at a time.

Owns its lock, its permissions and whose it is. Does not know what the stores keep in it, only under which names.
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
from clusterscape.store.locks import hold_lock
from clusterscape.store.metrics.embedded.files import make_folder
from clusterscape.store.records.engines import find_sqlite_file

log = logging.getLogger(__name__)

LOCK_FILE = "site.lock"
PRIVATE_UMASK = 0o077
OTHERS = 0o077
"""Permissions of the group and of everybody."""

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
"""Patterns of what a site writes into its data folder. Everything else there is somebody else's and is not touched."""
NEUTRAL_ENTRIES = ("lost+found",)


def prepare_data_folder(storage: StorageSettings) -> None:
    """Make the data folder where it is missing, and private where it is not; files that this process creates are private, too.

    Raises StoreError, having changed nothing, where the folder belongs to another user: files of this one would lock that
    user's server out.
    """
    folder = storage.data_dir
    check_owner(folder)
    create_private_files()
    is_new = not folder.exists()
    make_folder(folder)
    if is_new and os.geteuid() == 0:
        log.warning("%s was made by root: a server that runs as another user cannot use it", folder)
    tightened = _tighten(storage)
    if tightened:
        log.warning("%s could be read by other users; %d files and folders are private now", folder, tightened)


def create_private_files() -> None:
    """From now on files and folders that this process creates are for its user alone."""
    os.umask(PRIVATE_UMASK)


@contextmanager
def hold_data_folder(folder: Path, *, is_shared: bool = False) -> Iterator[None]:
    """Keep other servers, and commands that need the site stopped, out of ``folder``, which exists.

    ``is_shared``: other processes over the same database servers may use it, too. Raises StoreBusyError.
    """
    with hold_lock(folder / LOCK_FILE, guards=folder, is_shared=is_shared):
        yield


def find_wide(storage: StorageSettings) -> list[Path]:
    """What of a site other users may read, or could replace: the folder itself and what lies directly in it."""
    folder = storage.data_dir
    if not folder.is_dir():
        return []
    # A folder of root's with a group for us (a Kubernetes volume) shows names, no contents.
    is_own = folder.stat().st_uid == os.geteuid()
    wide = [folder] if folder.stat().st_mode & (OTHERS if is_own else stat.S_IWOTH) else []
    return wide + [path for path in _site_paths(storage) if path.exists() and path.stat().st_mode & OTHERS]


def check_owner(folder: Path) -> None:
    """Raise StoreError where this user must not, or cannot, write to ``folder``."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    owner = existing.stat().st_uid
    is_strange_to_root = os.geteuid() == 0 and owner != 0
    is_closed = existing == folder and not os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    if is_strange_to_root or is_closed:
        name = _user_name(owner)
        raise StoreError(
            f"{existing} belongs to {name}, and this is {_user_name(os.geteuid())}",
            hint=f"Run the command as its owner: sudo -u {name} clusterscape …; or choose another `storage.data_dir`.",
        )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _site_paths(storage: StorageSettings) -> list[Path]:
    """What the site keeps directly in its data folder, and an SQLite file elsewhere."""
    folder = storage.data_dir
    paths = [path for path in folder.iterdir() if _is_ours(path.name)]
    records = find_sqlite_file(storage)
    if records is not None and records.parent != folder:
        paths += [records.with_name(records.name + suffix) for suffix in ("", "-wal", "-shm")]
    return paths


def _is_ours(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in SITE_ENTRIES)


def _tighten(storage: StorageSettings) -> int:
    """Take permissions of others away from what this user owns; how often. Links are not followed."""
    folder = storage.data_dir
    entries = _site_paths(storage)
    tightened = sum(_make_private(path) for path in entries)
    if all(_is_ours(path.name) or path.name in NEUTRAL_ENTRIES for path in folder.iterdir()):
        tightened += _make_private(folder.resolve())
    if tightened:  # an upgrade: below a private folder nothing is open, but copies of it would be
        for entry in entries:
            for parent, folders, files in os.walk(entry):
                tightened += sum(_make_private(Path(parent, name)) for name in (*folders, *files))
    return tightened


def _make_private(path: Path) -> bool:
    with suppress(OSError):  # vanished meanwhile, or a link
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
