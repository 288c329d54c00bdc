"""Child processes of a server: their priority, their memory with that of their own children, and how they are ended."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess  # slow to import

NICE = 10
"""Requests have priority."""
_PROC = Path("/proc")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def read_tree_bytes(pid: int) -> int:
    """Resident memory of a process and its descendants; 0 if it has ended or is unknown."""
    return sum(map(_read_resident_bytes, iter_tree(pid)))


def iter_tree(pid: int) -> Iterator[int]:
    """The process and its descendants."""
    yield pid
    with suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from iter_tree(int(child))


def find_machine_memory() -> int:
    """Memory of the machine, or the container's limit, in bytes."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # `max`: no limit
        return min(physical, int(_GROUP_LIMIT.read_text()))
    return physical


def _read_resident_bytes(pid: int) -> int:
    with suppress(OSError, IndexError):
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def kill_tree(process: "BaseProcess") -> None:
    """Kill a child process and its descendants, which would outlive it, and wait for its end."""
    if process.is_alive() and process.pid is not None:
        for pid in reversed(list(iter_tree(process.pid))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.join()
