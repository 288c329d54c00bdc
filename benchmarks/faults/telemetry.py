"""What the machine says of every rank while cases are recorded: processor time, time without a core, bytes read and written,
every 20 ms from outside of the processes. Telemetry-only verdicts see nothing else.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PERIOD_S = 0.02
COLUMNS = ("time_ns", "rank", "cpu_s", "core_wait_s", "read_bytes", "written_bytes")


class Telemetry:
    """Samples the processes of ranks; counters since their start. What a machine does not count is None."""

    def __init__(self, processes: Sequence[int]) -> None:
        self._processes = list(processes)
        self._rows: list[tuple[Any, ...]] = []
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")

    def sample(self) -> None:
        """Add one row per rank that still runs."""
        now = time.monotonic_ns()
        for rank, process in enumerate(self._processes):
            folder = Path("/proc", str(process))
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            cpu_s = (int(fields[11]) + int(fields[12])) * self._tick_s
            core_wait_s = None
            try:
                waits = [int((task / "schedstat").read_text().split()[1]) for task in (folder / "task").iterdir()]
                core_wait_s = sum(waits) / 1e9
            except (OSError, IndexError):
                pass
            read = written = None
            try:
                lines = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
                read, written = int(lines["rchar"]), int(lines["wchar"])
            except (OSError, KeyError, ValueError):
                pass
            self._rows.append((now, rank, cpu_s, core_wait_s, read, written))

    def take(self, begin_ns: int, end_ns: int) -> dict[str, list[Any]]:
        """The samples of a case by column; those before are forgotten."""
        chosen = [row for row in self._rows if begin_ns <= row[0] <= end_ns]
        self._rows = [row for row in self._rows if row[0] > end_ns]
        return {name: [row[at] for row in chosen] for at, name in enumerate(COLUMNS)}
