"""Memory of a process with all its children, and of the machine. Linux only: elsewhere nothing is known, and nothing bounded."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def read_tree_bytes(pid: int) -> int:
    """Resident memory of a process and its descendants; 0 where it is gone or cannot be known."""
    return sum(map(_read_resident_bytes, iter_tree(pid)))


def iter_tree(pid: int) -> Iterator[int]:
    """The process and its descendants."""
    yield pid
    with suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from iter_tree(int(child))


def find_machine_memory() -> int:
    """Bytes that this machine, or the container this runs in, has."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # `max`: no limit
        return min(physical, int(_GROUP_LIMIT.read_text()))
    return physical


def _read_resident_bytes(pid: int) -> int:
    with suppress(OSError, IndexError):
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
