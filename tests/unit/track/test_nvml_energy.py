"""Energy of a shared GPU: every increase of the counter is attributed to a run, even if one of them ends in between."""

from collections.abc import Collection
from pathlib import Path
from typing import cast

from clusterscape.track.listeners.contract import ListenedRun, ListenerContext
from clusterscape.track.listeners.host_sampler import HostSampler
from clusterscape.track.listeners.nvml import NvmlListener
from clusterscape.track.listeners.nvml_reading import GpuReading, Part, ProcessReading
from clusterscape.track.processes import ProcessStat, ProcessTree
from clusterscape.track.spool import Spool


class Readings:
    """A sampler with readings that the test sets."""

    def __init__(self) -> None:
        self.joules = 0.0
        self.pids = [-1, -2]

    def read(self, parts: Part, gpus: Collection[int] | None = None) -> list[GpuReading]:
        assert gpus == {0}
        processes = [ProcessReading(pid, None, None) for pid in self.pids] if Part.STATE in parts else None
        return [GpuReading(0, {"energy_joules": self.joules}, processes, [])]


class EnergySpool:
    """A spool that keeps the last energy value of its run."""

    def __init__(self) -> None:
        self.energy: tuple[float, str] | None = None

    def sample(self, time_us: int, name: str, value: float, *, unit: str, scope: str, method: str = "measured") -> None:
        del time_us, unit
        if (name, scope) == ("energy_joules", "process"):
            self.energy = (value, method)


class Tree:
    def __init__(self, pid: int) -> None:
        self._pid = pid

    def find(self) -> list[ProcessStat]:
        return [ProcessStat(self._pid, 0, 0, "R", 0, 1, 0, 0)]


def test_nothing_is_lost_when_one_of_two_runs_ends_first(tmp_path: Path) -> None:
    listener = NvmlListener(ListenerContext("n1", tmp_path, None))
    readings, spools = Readings(), {"a": EnergySpool(), "b": EnergySpool()}
    listener._sampler = cast(HostSampler, readings)
    a, b = (
        ListenedRun(name, cast(Spool, spools[name]), cast(ProcessTree, Tree(pid)), (0,))
        for name, pid in (("a", -1), ("b", -2))
    )
    listener.sample([a, b], 0)
    readings.joules = 100.0
    listener.sample([a, b], 1_000_000)
    readings.joules = 160.0
    listener.finish(a, 1_500_000)
    readings.joules, readings.pids = 200.0, [-2]
    listener.sample([b], 2_000_000)
    readings.joules = 230.0
    listener.finish(b, 2_300_000)
    assert spools["a"].energy == (80.0, "estimated")
    assert spools["b"].energy == (150.0, "estimated")
