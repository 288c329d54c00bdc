"""GPUs of a run: values of whole devices as measured, and the run's own part where the driver tells processes apart.

Energy of a shared GPU is split by what the processes were busy with, or evenly, and says that it is an estimate.
"""

from collections.abc import Sequence

from clusterscape.model.run_frames import SampleMethod, SampleScope
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext, ListenerUnavailableError
from clusterscape.track.listeners.host_sampler import HostSampler
from clusterscape.track.listeners.nvml_reading import GpuReading, ProcessReading

PROCESSES_EVERY_S = 1.0
DEFAULT_PERIOD_S = 1.0


class NvmlListener:
    """``nvml`` or ``nvml=HERTZ``."""

    name = "nvml"

    def __init__(self, context: ListenerContext) -> None:
        hertz = float(context.argument) if context.argument else 1.0 / DEFAULT_PERIOD_S
        self.period_s = 1.0 / hertz
        self._host = context.host
        self._sampler = HostSampler(context.host_folder, self.period_s)
        self._processes_due_us = 0
        self._processes: dict[int, list[ProcessReading]] = {}
        self._last_joules: dict[int, float] = {}
        self._run_joules: dict[tuple[str, int], float] = {}

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Find the driver."""
        del runs
        try:
            self._sampler.open()
        except ImportError:
            raise ListenerUnavailableError("the Python package nvidia-ml-py is not installed") from None
        except Exception as error:
            raise ListenerUnavailableError(f"no NVIDIA driver answers: {error}") from None

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """All GPUs once; every run gets those it uses."""
        with_processes = time_us >= self._processes_due_us
        readings = self._sampler.read(with_processes=with_processes)
        if with_processes and readings:
            self._processes_due_us = time_us + int(PROCESSES_EVERY_S * 1e6)
        members = {run.id: {stat.pid for stat in run.tree.find()} for run in runs} if with_processes else None
        for gpu in readings:
            if with_processes or gpu.processes:
                self._processes[gpu.gpu] = gpu.processes
            self._share_energy(gpu, runs, members)
            for run in runs:
                self._tell(gpu, run, time_us, members)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """The counters at the end, for the energy of the whole run."""
        for gpu in self._sampler.read(with_processes=False):
            self._share_energy(gpu, [run], None)
            self._tell(gpu, run, time_us, None)

    def close(self) -> None:
        """Release the driver."""
        self._sampler.close()

    def _tell(self, gpu: GpuReading, run: ListenedRun, time_us: int, members: dict[str, set[int]] | None) -> None:
        if not self._uses(gpu.gpu, run, members):
            return
        unit = f"{self._host}:{gpu.gpu}"
        for name, value in gpu.values.items():
            run.spool.sample(time_us, name, value, unit=unit, scope=SampleScope.DEVICE)
        part = f"run:{run.id}/{unit}"
        joules = self._run_joules.get((run.id, gpu.gpu))
        if joules is not None:
            method = SampleMethod.MEASURED if self._is_alone(gpu.gpu, run) else SampleMethod.ESTIMATED
            run.spool.sample(time_us, "energy_joules", joules, unit=part, scope=SampleScope.PROCESS, method=method)
        if members is None:
            return
        own = [one for one in self._processes.get(gpu.gpu, []) if one.pid in members[run.id]]
        memory = [one.memory_bytes for one in own if one.memory_bytes is not None]
        if memory:
            run.spool.sample(time_us, "memory_used_bytes", sum(memory), unit=part, scope=SampleScope.PROCESS)
        shares = [one.util_ratio for one in own if one.util_ratio is not None]
        if shares:
            run.spool.sample(time_us, "gpu_util_ratio", sum(shares), unit=part, scope=SampleScope.PROCESS)

    def _uses(self, index: int, run: ListenedRun, members: dict[str, set[int]] | None) -> bool:
        if run.devices:
            return index in run.devices
        if members is not None and any(one.pid in members[run.id] for one in self._processes.get(index, [])):
            self._run_joules.setdefault((run.id, index), 0.0)
        return (run.id, index) in self._run_joules

    def _is_alone(self, index: int, run: ListenedRun) -> bool:
        """Nobody else computes there: what the device used, the run used."""
        known = {stat.pid for stat in run.tree.find()}
        return all(one.pid in known for one in self._processes.get(index, []))

    def _share_energy(self, gpu: GpuReading, runs: Sequence[ListenedRun], members: dict[str, set[int]] | None) -> None:
        joules = gpu.values.get("energy_joules")
        if joules is None:
            return
        before = self._last_joules.get(gpu.gpu)
        self._last_joules[gpu.gpu] = joules
        increase = joules - before if before is not None else 0.0
        if increase < 0:  # the driver was loaded anew
            increase = joules
        users = [run for run in runs if self._uses(gpu.gpu, run, members)]
        weights = [self._weight(gpu.gpu, run) for run in users]
        whole = sum(weights) or 1.0
        for run, weight in zip(users, weights, strict=True):
            key = (run.id, gpu.gpu)
            self._run_joules[key] = self._run_joules.get(key, 0.0) + increase * weight / whole

    def _weight(self, index: int, run: ListenedRun) -> float:
        known = {stat.pid for stat in run.tree.find()}
        shares = [one.util_ratio for one in self._processes.get(index, []) if one.pid in known]
        told = [share for share in shares if share is not None]
        return sum(told) + 1e-3 if told else 1.0
