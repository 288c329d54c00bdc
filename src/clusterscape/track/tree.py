"""The processes of a run as /proc tells them: who belongs to it, what they use, and how they are all ended."""

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ZOMBIE = "Z"


class ProcessStat(NamedTuple):
    """What /proc/PID/stat tells. ``cpu_ticks`` includes children that ended and were waited for."""

    pid: int
    parent: int
    session: int
    state: str
    cpu_ticks: int
    threads: int
    started_ticks: int
    memory_bytes: int


def read_stat(pid: int) -> ProcessStat | None:
    """One process, or None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 – thousands of times a minute
            text = file.read()
    except OSError:
        return None
    # The name stands in brackets and may itself hold brackets and spaces.
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessStat(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        session=int(fields[3]),
        cpu_ticks=int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14]),
        threads=int(fields[17]),
        started_ticks=int(fields[19]),
        memory_bytes=int(fields[21]) * PAGE_BYTES,
    )


def read_io(pid: int) -> tuple[int, int] | None:
    """Bytes read from and written to storage, children that were waited for included; None where it may not be known."""
    try:
        with open(f"/proc/{pid}/io", "rb") as file:  # noqa: PTH123
            told = dict(line.split(b": ") for line in file.read().splitlines())
        return int(told[b"read_bytes"]), int(told[b"write_bytes"])
    except (OSError, KeyError, ValueError):
        return None


def iter_descendants(pid: int) -> Iterator[int]:
    """All processes below ``pid``, parents first."""
    waiting = [pid]
    while waiting:
        children = list(_children(waiting.pop()))
        yield from children
        waiting += children


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 – as above
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                yield from map(int, file.read().split())


class RunTree:
    """The processes of one run: what descends from its first one, and what became an orphan of it."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._members: dict[int, int] = {}  # pid to start, so that a reused number is not taken for a member

    def find(self) -> list[ProcessStat]:
        """All members now, the ended ones that nobody waited for yet included."""
        found: dict[int, ProcessStat] = {}
        root = read_stat(self.root)
        if root is not None:
            found[root.pid] = root
        for pid in iter_descendants(self.root):
            if stat := read_stat(pid):
                found[pid] = stat
        for pid in _children(os.getpid()):  # orphans came to the tracker
            if pid in found or (stat := read_stat(pid)) is None:
                continue
            if stat.session == self.root or self._members.get(pid) == stat.started_ticks:
                found[pid] = stat
                for below in iter_descendants(pid):
                    if inner := read_stat(below):
                        found[below] = inner
        self._members = {pid: stat.started_ticks for pid, stat in found.items()}
        return list(found.values())

    def living(self) -> list[ProcessStat]:
        """Members that still run."""
        return [stat for stat in self.find() if stat.state != ZOMBIE]

    def send(self, number: signal.Signals) -> int:
        """Signal every member that runs; returns how many there were."""
        living = self.living()
        for stat in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(stat.pid, number)
        return len(living)
