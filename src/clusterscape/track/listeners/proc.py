"""Processor, memory and storage of a run's own processes, from /proc. 1 ``process_cpu_cores`` is one core kept busy."""

import contextlib
import os
from collections.abc import Sequence

from clusterscape.model.run_frames import SampleMethod
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext
from clusterscape.track.processes import TICKS_PER_S, ZOMBIE, ProcessStat, read_io


class ProcListener:
    """Includes usage of ended processes, which the kernel adds to the parent that waits for them."""

    name = "proc"
    period_s = 1.0

    def __init__(self, context: ListenerContext) -> None:
        del context
        self._before: dict[str, tuple[int, int, int, int]] = {}  # by run: time, CPU ticks, bytes read, bytes written
        self._reaped_ticks: dict[str, int] = {}

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Nothing to open."""

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """All runs."""
        for run in runs:
            self._sample(run, time_us)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """The totals of the whole run."""
        self._sample(run, time_us)

    def close(self) -> None:
        """Nothing to close."""

    def _sample(self, run: ListenedRun, time_us: int) -> None:
        members = run.tree.find()
        if not members:
            return
        spool = run.spool
        before = self._before.get(run.id)
        ticks = sum(stat.cpu_ticks for stat in members) + self._reaped_ticks.get(run.id, 0)
        ticks = max(ticks, before[1] if before else 0)  # the time of a child that was not waited for is lost
        read, written, is_whole = _storage(members)
        living = [stat for stat in members if stat.state != ZOMBIE]
        spool.sample(time_us, "process_cpu_seconds", ticks / TICKS_PER_S)
        if living:
            # Pages that processes share are counted for each of them.
            method = SampleMethod.MEASURED if len(living) == 1 else SampleMethod.ESTIMATED
            spool.sample(time_us, "process_memory_bytes", sum(s.memory_bytes for s in living), method=method)
            spool.sample(time_us, "process_count", len(living))
            spool.sample(time_us, "process_threads", sum(stat.threads for stat in living))
        if before is not None and time_us - before[0] >= 50_000:  # a shorter time is finer than the system's counters
            elapsed_s = (time_us - before[0]) / 1e6
            spool.sample(time_us, "process_cpu_cores", (ticks - before[1]) / TICKS_PER_S / elapsed_s)
            if is_whole:
                spool.sample(time_us, "process_read_bytes_per_second", max(0, read - before[2]) / elapsed_s)
                spool.sample(time_us, "process_write_bytes_per_second", max(0, written - before[3]) / elapsed_s)
        if before is None or time_us - before[0] >= 50_000:
            self._before[run.id] = (time_us, ticks, read, written)
        self._reap(run, members)

    def _reap(self, run: ListenedRun, members: Sequence[ProcessStat]) -> None:
        """Wait for ended orphans and keep their usage."""
        own = os.getpid()
        for stat in members:
            if stat.state == ZOMBIE and stat.parent == own and stat.pid != run.tree.root:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(stat.pid, os.WNOHANG)
                    self._reaped_ticks[run.id] = self._reaped_ticks.get(run.id, 0) + stat.cpu_ticks


def _storage(members: Sequence[ProcessStat]) -> tuple[int, int, bool]:
    """Bytes read, bytes written, and whether all running processes could be read."""
    read = written = 0
    is_whole = True
    for stat in members:
        counters = read_io(stat.pid)
        if counters is not None:
            read, written = read + counters[0], written + counters[1]
        elif stat.state != ZOMBIE:
            is_whole = False
    return read, written, is_whole
