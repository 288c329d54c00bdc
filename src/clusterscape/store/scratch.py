"""Folders for what is only half done, below the data folder. What a killed process left there the next one removes."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = ".in-use"


@contextmanager
def scratch_folder(parent: Path, kind: str) -> Iterator[Path]:
    """An empty folder below ``parent``, removed at the end; so are those of its ``kind`` that nobody is at any more."""
    remove_abandoned(parent, kind)
    with tempfile.TemporaryDirectory(dir=parent, prefix=_prefix(kind)) as name:
        folder = Path(name)
        # The kernel lets go of the lock when the process ends, however it ends. Whoever finds the file finds it locked.
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
