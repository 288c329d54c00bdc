"""GPUs of a run: values of whole devices, and the run's share if the driver reports values per process.

Energy of a shared GPU is split by the utilization of processes, or evenly, and marked as an estimate.
"""

from collections.abc import Sequence
from pathlib import Path

from clusterscape.model.ids import NodeId, mig_unit_id
from clusterscape.model.run_frames import SampleMethod, SampleScope
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext, ListenerUnavailableError
from clusterscape.track.listeners.host_sampler import HostSampler
from clusterscape.track.listeners.nvml_reading import LAST_LOOK, GpuReading, ProcessReading, ReadingSchedule

DEFAULT_PERIOD_S = 1.0


class NvmlListener:
    """``nvml`` or ``nvml=HERTZ``."""

    name = "nvml"

    def __init__(self, context: ListenerContext) -> None:
        hertz = float(context.argument) if context.argument else 1.0 / DEFAULT_PERIOD_S
        self.period_s = 1.0 / hertz
        self._host = context.host
        self._sampler = HostSampler(context.host_folder, self.period_s)
        self._schedule = ReadingSchedule(self.period_s)
        self._processes: dict[int, list[ProcessReading]] = {}  # by GPU
        self._members: dict[str, set[int]] = {}  # pids by run
        self._last_joules: dict[int, float] = {}
        self._run_joules: dict[tuple[str, int], float] = {}
        self._estimated: set[tuple[str, int]] = set()
        self._mps_servers: dict[int, bool] = {}
        self._running: dict[str, ListenedRun] = {}

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
        """Read each GPU once, only values that are due; each run gets those of its GPUs."""
        self._running = {run.id: run for run in runs}
        readings = self._sampler.read(self._schedule.due(time_us), _named(runs))
        if any(gpu.processes is not None for gpu in readings):
            self._members = {run.id: {stat.pid for stat in run.tree.find()} for run in runs}
        for gpu in readings:
            if gpu.processes is not None:
                self._processes[gpu.gpu] = [
                    process for process in gpu.processes if not self._is_mps_server(process.pid)
                ]
            self._share_energy(gpu, runs)
            for run in runs:
                if self._uses(gpu.gpu, run):
                    self._write_device(gpu, run, time_us)
                    self._write_instances(gpu, run, time_us)
                    if gpu.processes is not None:
                        self._write_processes(gpu.gpu, run, time_us)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """Read the final counters, for the energy of the whole run; other runs get their share up to now."""
        sharing = list({**self._running, run.id: run}.values())
        self._running.pop(run.id, None)
        for gpu in self._sampler.read(LAST_LOOK, _named(sharing)):
            self._share_energy(
                gpu, sharing
            )  # by the previous processes: the driver no longer lists those of the ended run
            if self._uses(gpu.gpu, run):
                self._write_device(gpu, run, time_us)
                self._write_instances(gpu, run, time_us)

    def close(self) -> None:
        """Release the driver."""
        self._sampler.close()

    def _write_instances(self, gpu: GpuReading, run: ListenedRun, time_us: int) -> None:
        own = {process.instance for process in run.instances if process.gpu == gpu.gpu}
        for number, values in gpu.instances:
            if number in own:
                unit = mig_unit_id(NodeId(self._host), gpu.gpu, number)
                for name, value in values.items():
                    run.spool.sample(time_us, name, value, unit=unit, scope=SampleScope.MIG)

    def _write_device(self, gpu: GpuReading, run: ListenedRun, time_us: int) -> None:
        unit = f"{self._host}:{gpu.gpu}"
        for name, value in gpu.values.items():
            run.spool.sample(time_us, name, value, unit=unit, scope=SampleScope.DEVICE)
        joules = self._run_joules.get((run.id, gpu.gpu))
        if joules is not None and "energy_joules" in gpu.values:
            is_guess = (run.id, gpu.gpu) in self._estimated
            method = SampleMethod.ESTIMATED if is_guess else SampleMethod.MEASURED
            part = f"run:{run.id}/{unit}"
            run.spool.sample(time_us, "energy_joules", joules, unit=part, scope=SampleScope.PROCESS, method=method)

    def _write_processes(self, gpu: int, run: ListenedRun, time_us: int) -> None:
        own = self._own(gpu, run)
        part = f"run:{run.id}/{self._host}:{gpu}"
        memory = [process.memory_bytes for process in own if process.memory_bytes is not None]
        if memory:
            run.spool.sample(time_us, "memory_used_bytes", sum(memory), unit=part, scope=SampleScope.PROCESS)
        shares = [process.util_ratio for process in own if process.util_ratio is not None]
        if shares:
            run.spool.sample(time_us, "gpu_util_ratio", sum(shares), unit=part, scope=SampleScope.PROCESS)

    def _own(self, gpu: int, run: ListenedRun) -> list[ProcessReading]:
        members = self._members.get(run.id, set())
        return [process for process in self._processes.get(gpu, []) if process.pid in members]

    def _uses(self, gpu: int, run: ListenedRun) -> bool:
        """The GPUs of a run: those assigned to it, else those on which its processes were observed."""
        if run.devices:
            return gpu in run.devices
        if self._own(gpu, run):
            self._run_joules.setdefault((run.id, gpu), 0.0)
        return (run.id, gpu) in self._run_joules

    def _is_mps_server(self, pid: int) -> bool:
        """An MPS server is listed together with the clients that it computes for."""
        is_server = self._mps_servers.get(pid)
        if is_server is None:
            try:
                name = Path(f"/proc/{pid}/comm").read_text()
            except OSError:
                return False
            is_server = self._mps_servers[pid] = name.startswith("nvidia-cuda-mps")
        return is_server

    def _share_energy(self, gpu: GpuReading, runs: Sequence[ListenedRun]) -> None:
        joules = gpu.values.get("energy_joules")
        if joules is None:
            return
        before = self._last_joules.get(gpu.gpu)
        self._last_joules[gpu.gpu] = joules
        increase = joules - before if before is not None else 0.0
        if increase < 0:  # the driver was reloaded
            increase = joules
        users = [run for run in runs if self._uses(gpu.gpu, run)]
        weights = [self._weight(gpu.gpu, run) for run in users]
        foreign = self._foreign_weight(gpu.gpu, users)
        whole = sum(weights) + foreign
        for run, weight in zip(users, weights, strict=True):
            key = (run.id, gpu.gpu)
            if foreign or len(users) > 1:
                self._estimated.add(key)  # a sum that includes an estimate is an estimate
            self._run_joules[key] = self._run_joules.get(key, 0.0) + increase * weight / whole

    def _weight(self, gpu: int, run: ListenedRun) -> float:
        return _busy(self._own(gpu, run)) or 1.0

    def _foreign_weight(self, gpu: int, users: Sequence[ListenedRun]) -> float:
        """The weight of processes that do not belong to these runs."""
        members = set().union(*(self._members.get(run.id, set()) for run in users))
        return _busy([process for process in self._processes.get(gpu, []) if process.pid not in members])


def _busy(processes: Sequence[ProcessReading]) -> float:
    """Utilization of processes, with a small minimum; equal for all if the driver does not report it."""
    return sum(1.0 if process.util_ratio is None else process.util_ratio + 1e-3 for process in processes)


def _named(runs: Sequence[ListenedRun]) -> set[int] | None:
    """The GPUs to read: all if the GPUs of a run are unknown."""
    return {gpu for run in runs for gpu in run.devices} if all(run.devices for run in runs) else None
