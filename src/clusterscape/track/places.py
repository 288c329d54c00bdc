"""Folders and files of the tracker below the user's state folder: runs, device locks, states of plans."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

RUN_VARIABLE = "CLUSTERSCAPE_RUN"
"""Variable that passes the run to a script's processes: ``<clock anchor>:<folder>``."""

LOCK_FILE = "lock"
"""Lock file in a run's folder, locked while the run is active."""


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_STATE_HOME/clusterscape``, by default ``~/.local/state/clusterscape``."""
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local/state") / "clusterscape"


def runs_folder(state: Path) -> Path:
    """The folder that contains one folder per run."""
    return state / "runs"


def make_run_folder(state: Path) -> Path:
    """A folder for a new run. Runs contain environments and commands, so only the user can read the state folder."""
    folder = runs_folder(state) / new_run_id()
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700)
    about = state.stat()
    if about.st_uid == os.geteuid() and about.st_mode & 0o077:  # made by an older version
        state.chmod(0o700)
    return folder


def make_private_folder(folder: Path) -> None:
    """Create ``folder`` and missing parents, accessible only to this user regardless of the umask."""
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def notices_file(state: Path) -> Path:
    """The file of servers for which the recording notice was shown."""
    return state / "notices.json"


def host_folder(state: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that active runs of this user on this host share, in memory if possible."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "clusterscape" if runtime and os.access(runtime, os.W_OK) else state / "host"


def new_run_id() -> str:
    """Sorts by time: ``20261115-130501-3f9a1c``."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
