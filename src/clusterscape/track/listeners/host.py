"""The whole machine: processor, memory, storage and network from /proc, of all processes. Scope ``host``."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterscape.model.run_frames import SampleScope
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext
from clusterscape.track.processes import TICKS_PER_S

_SECTOR_BYTES = 512  # /proc/diskstats counts these, whatever the device has
_WHOLE_DISK = re.compile(r"^(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+)$")
_KIBIBYTE = 1024


class HostListener:
    """Rates are averages over the previous second."""

    name = "host"
    period_s = 1.0

    def __init__(self, context: ListenerContext, proc: Path = Path("/proc")) -> None:
        self._host = context.host
        self._proc = proc
        self._before: tuple[int, dict[str, float]] | None = None

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Nothing to open."""

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """One sample for all runs."""
        counters = {**self._processor(), **self._storage(), **self._network()}
        values: dict[str, float] = self._memory()
        if self._before is not None and time_us > self._before[0]:
            elapsed_s = (time_us - self._before[0]) / 1e6
            before = self._before[1]
            values |= {name: max(0.0, now - before.get(name, now)) / elapsed_s for name, now in counters.items()}
        self._before = (time_us, counters)
        for name, value in values.items():
            for run in runs:
                run.spool.sample(time_us, name, value, unit=self._host, scope=SampleScope.HOST)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to close."""

    def _processor(self) -> Mapping[str, float]:
        """Total busy seconds of all cores; one busy core adds 1 per second."""
        words = (self._proc / "stat").read_text().splitlines()[0].split()[1:]
        user, nice, system, _, _, interrupts, soft, steal = map(int, words[:8])
        return {"host_cpu_cores": (user + nice + system + interrupts + soft + steal) / TICKS_PER_S}

    def _memory(self) -> dict[str, float]:
        fields = dict(line.split(":", 1) for line in (self._proc / "meminfo").read_text().splitlines())
        total, free = (int(fields[name].split()[0]) * _KIBIBYTE for name in ("MemTotal", "MemAvailable"))
        return {"host_memory_used_bytes": float(total - free), "host_load": os.getloadavg()[0]}

    def _storage(self) -> Mapping[str, float]:
        read = written = 0
        for line in (self._proc / "diskstats").read_text().splitlines():
            words = line.split()
            if len(words) >= 10 and _WHOLE_DISK.match(words[2]):  # partitions are counted in their disk
                read, written = read + int(words[5]), written + int(words[9])
        return {
            "host_disk_read_bytes_per_second": read * _SECTOR_BYTES,
            "host_disk_write_bytes_per_second": written * _SECTOR_BYTES,
        }

    def _network(self) -> Mapping[str, float]:
        received = sent = 0
        for line in (self._proc / "net/dev").read_text().splitlines()[2:]:
            name, _, rest = line.partition(":")
            if name.strip() != "lo":
                words = rest.split()
                received, sent = received + int(words[0]), sent + int(words[8])
        return {"host_network_receive_bytes_per_second": received, "host_network_transmit_bytes_per_second": sent}
