"""Energy of whole CPU packages and memory from RAPL, if the user may read it."""

from collections.abc import Sequence
from pathlib import Path

from clusterscape.model.run_frames import SampleScope
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext, ListenerUnavailableError

_FOLDER = Path("/sys/class/powercap")
_MICROJOULE = 1e-6


class _Zone:
    def __init__(self, folder: Path) -> None:
        name = (folder / "name").read_text().strip()
        self.label = f"{name}-{folder.name.partition(':')[2]}" if not name.startswith("package") else name
        self.file = folder / "energy_uj"
        self.range_uj = int((folder / "max_energy_range_uj").read_text())
        self.last_uj = int(self.file.read_text())
        self.total_uj = 0

    def read(self) -> float:
        """Joules since the start; the counter wraps at its range."""
        now_uj = int(self.file.read_text())
        self.total_uj += (now_uj - self.last_uj) % (self.range_uj + 1)
        self.last_uj = now_uj
        return self.total_uj * _MICROJOULE


class RaplListener:
    """``cpu_energy_joules`` of each package, counted from the start of the workload."""

    name = "rapl"
    period_s = 1.0

    def __init__(self, context: ListenerContext, folder: Path = _FOLDER) -> None:
        self._host = context.host
        self._folder = folder
        self._zones: list[_Zone] = []

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Find the zones."""
        del runs
        folders = sorted(self._folder.glob("intel-rapl:*")) if self._folder.is_dir() else []
        if not folders:
            raise ListenerUnavailableError("this machine has no RAPL counters")
        try:
            self._zones = [_Zone(folder) for folder in folders if (folder / "energy_uj").exists()]
        except PermissionError:
            raise ListenerUnavailableError("RAPL counters may be read by root only") from None
        except (OSError, ValueError) as error:
            raise ListenerUnavailableError(f"RAPL counters cannot be read: {error}") from None

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """Every zone, once for all runs."""
        for zone in self._zones:
            joules = zone.read()
            for run in runs:
                unit = f"{self._host}/{zone.label}"
                run.spool.sample(time_us, "cpu_energy_joules", joules, unit=unit, scope=SampleScope.DEVICE)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """The counters at the end."""
        self.sample([run], time_us)

    def close(self) -> None:
        """Nothing to close."""
