"""What /proc tells of a process: who started it, what it runs, since when. Knows nothing of GPUs."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from clusterscape.model import UnixMs

_PROC = Path("/proc")
_MAX_COMMAND_CHARS = 200
_START_TICKS_FIELD = 19  # of /proc/PID/stat, counted from the state, which follows the command in brackets


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this machine; what /proc does not tell (another PID namespace, already gone) is None."""

    pid: int
    command: str | None = None
    user: str | None = None
    started_at: UnixMs | None = None


def read_process(pid: int, proc: Path = _PROC) -> Process:
    """What is known of process ``pid``."""
    folder = proc / str(pid)
    return Process(
        pid=pid, command=_find_command(folder), user=_find_user(folder), started_at=_find_start(folder, proc)
    )


def _find_command(folder: Path) -> str | None:
    """The command line, or in brackets the name of a process that has none."""
    try:
        words = [word.decode("utf-8", "replace") for word in (folder / "cmdline").read_bytes().split(b"\0") if word]
        if not words:
            return f"[{(folder / 'comm').read_text('utf-8', 'replace').strip()}]"
    except OSError:
        return None
    words[0] = words[0].rpartition("/")[2]
    return " ".join(words)[:_MAX_COMMAND_CHARS]


def _find_user(folder: Path) -> str | None:
    """The user's name, or the number where this machine knows no name for it."""
    try:
        uid = folder.stat().st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _find_start(folder: Path, proc: Path) -> UnixMs | None:
    try:
        after_command = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        ticks = int(after_command[_START_TICKS_FIELD])
        boot_s = next(int(line.split()[1]) for line in (proc / "stat").read_text().splitlines() if line[:5] == "btime")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return UnixMs(boot_s * 1000 + ticks * 1000 // os.sysconf("SC_CLK_TCK"))
