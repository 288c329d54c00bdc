"""Where the tracker keeps things: runs, locks of devices, states of plans, all below the user's state folder."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

RUN_VARIABLE = "CLUSTERSCAPE_RUN"
"""Tells a script's processes their run: ``<clock anchor>:<folder>``."""

LOCK_FILE = "lock"
"""In a run's folder; held while the run goes on."""


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_STATE_HOME/clusterscape``, by default ``~/.local/state/clusterscape``."""
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local/state") / "clusterscape"


def runs_folder(state: Path) -> Path:
    """One folder for each run."""
    return state / "runs"


def make_run_folder(state: Path) -> Path:
    """A folder for a new run. Runs hold environments and commands: the state folder is for its user alone."""
    folder = runs_folder(state) / new_run_id()
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700)
    about = state.stat()
    if about.st_uid == os.geteuid() and about.st_mode & 0o077:  # made by an older version
        state.chmod(0o700)
    return folder


def make_private_folder(folder: Path) -> None:
    """Make ``folder`` and what is missing above it, for this user alone, whatever the umask."""
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def notices_file(state: Path) -> Path:
    """For which servers the user was shown what runs record."""
    return state / "notices.json"


def host_folder(state: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """What the runs of this user on this host share while they go on: in memory where the system offers it."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "clusterscape" if runtime and os.access(runtime, os.W_OK) else state / "host"


def new_run_id() -> str:
    """Sorts by time: ``20261115-130501-3f9a1c``."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
