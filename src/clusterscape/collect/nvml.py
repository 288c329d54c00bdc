"""Reads this machine's own GPUs as a cluster of one node: samples and inventory from NVML, processes on the GPUs from /proc.

Translates readings; ``nvml_device`` calls the driver.
"""

import os
import pwd
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clusterscape import executors
from clusterscape.collect.nvml_device import MachineReading, NvmlDevices, UnitReading
from clusterscape.errors import SourceError
from clusterscape.model import (
    CONFIDENCE,
    Allocation,
    AllocationSource,
    GpuUuid,
    InventoryObserved,
    Node,
    NodeId,
    NodeState,
    Observation,
    QueueObserved,
    RawScrape,
    RawSeries,
    ScrapeObserved,
    SeriesTable,
    SourceStatus,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadKind,
    WorkloadState,
    gpu_unit_id,
    mig_unit_id,
)
from clusterscape.settings import NvmlSettings

_PROC = Path("/proc")
_MAX_COMMAND_CHARS = 200
_START_TICKS_FIELD = 19  # of /proc/PID/stat, counted from the state, which follows the command in brackets


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this machine. Fields that /proc does not give (other PID namespace, already ended) are None."""

    pid: int
    command: str | None = None
    user: str | None = None
    started_at: UnixMs | None = None


def read_process(pid: int, proc: Path = _PROC) -> Process:
    """Read process ``pid`` from /proc."""
    folder = proc / str(pid)
    return Process(
        pid=pid, command=_find_command(folder), user=_find_user(folder), started_at=_find_start(folder, proc)
    )


def _find_command(folder: Path) -> str | None:
    """The command line; for a process without one, its name in brackets."""
    try:
        arguments = [
            argument.decode("utf-8", "replace")
            for argument in (folder / "cmdline").read_bytes().split(b"\0")
            if argument
        ]
        if not arguments:
            return f"[{(folder / 'comm').read_text('utf-8', 'replace').strip()}]"
    except OSError:
        return None
    arguments[0] = arguments[0].rpartition("/")[2]
    return " ".join(arguments)[:_MAX_COMMAND_CHARS]


def _find_user(folder: Path) -> str | None:
    """The user name; the uid if it has no name on this machine."""
    try:
        uid = folder.stat().st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _find_start(folder: Path, proc: Path) -> UnixMs | None:
    try:
        after_command = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        ticks = int(after_command[_START_TICKS_FIELD])
        boot_s = next(int(line.split()[1]) for line in (proc / "stat").read_text().splitlines() if line[:5] == "btime")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return UnixMs(boot_s * 1000 + ticks * 1000 // os.sysconf("SC_CLK_TCK"))


LOCAL = "local"
_MPS_SERVER = "nvidia-cuda-mps-server"
_STALE_SPARE = 1_000

# Number of NVML, name in the metric catalogue, factor between their units. If several numbers give one name, the first is used.
_SAMPLES: tuple[tuple[str, str, float], ...] = (
    ("gpu_util_percent", "nvml_gpu_util", 1.0),
    ("memory_util_percent", "nvml_memory_util", 1.0),
    ("encoder_util_percent", "nvml_encoder_util", 1.0),
    ("decoder_util_percent", "nvml_decoder_util", 1.0),
    ("power_instant_mw", "nvml_power_watts", 1e-3),
    ("power_usage_mw", "nvml_power_watts", 1e-3),
    ("power_average_mw", "nvml_power_watts", 1e-3),
    ("power_limit_mw", "nvml_power_limit_watts", 1e-3),
    ("energy_mj", "nvml_energy_mj", 1.0),
    ("gpu_temperature_celsius", "nvml_gpu_temperature", 1.0),
    ("memory_temperature_celsius", "nvml_memory_temperature", 1.0),
    ("sm_clock_mhz", "nvml_sm_clock_mhz", 1.0),
    ("memory_clock_mhz", "nvml_memory_clock_mhz", 1.0),
    ("memory_used_bytes", "nvml_memory_used_mib", 2**-20),
    ("memory_free_bytes", "nvml_memory_free_mib", 2**-20),
    ("memory_reserved_bytes", "nvml_memory_reserved_mib", 2**-20),
    ("memory_total_bytes", "nvml_memory_total_mib", 2**-20),
    ("gpm_sm_percent", "nvml_sm_active", 1e-2),
    ("gpm_occupancy_percent", "nvml_sm_occupancy", 1e-2),
    ("gpm_tensor_percent", "nvml_tensor_active", 1e-2),
    ("gpm_dram_percent", "nvml_dram_active", 1e-2),
    ("gpm_graphics_percent", "nvml_graphics_active", 1e-2),
    ("gpm_fp64_percent", "fp64_active_ratio", 1e-2),
    ("gpm_fp32_percent", "fp32_active_ratio", 1e-2),
    ("gpm_fp16_percent", "fp16_active_ratio", 1e-2),
    ("gpm_pcie_tx_mib_per_second", "nvml_pcie_tx", 2**20),
    ("gpm_pcie_rx_mib_per_second", "nvml_pcie_rx", 2**20),
    ("gpm_nvlink_tx_mib_per_second", "nvml_nvlink_tx", 2**20),
    ("gpm_nvlink_rx_mib_per_second", "nvml_nvlink_rx", 2**20),
    ("pcie_replay_total", "nvml_pcie_replay", 1.0),
    ("power_throttle_ns", "power_throttle_seconds", 1e-9),
    ("thermal_throttle_ns", "thermal_throttle_seconds", 1e-9),
    ("ecc_sbe_volatile_total", "ecc_sbe_volatile_count", 1.0),
    ("ecc_dbe_volatile_total", "ecc_dbe_volatile_count", 1.0),
    ("ecc_sbe_aggregate_total", "ecc_sbe_aggregate_count", 1.0),
    ("ecc_dbe_aggregate_total", "ecc_dbe_aggregate_count", 1.0),
    ("remapped_rows_correctable_total", "remapped_rows_correctable_count", 1.0),
    ("remapped_rows_uncorrectable_total", "remapped_rows_uncorrectable_count", 1.0),
    ("row_remap_failure", "row_remap_failure", 1.0),
)

# Counters whose rate is the metric, for GPUs without GPM: number, name, factor to bytes.
_RATES: tuple[tuple[str, str, float], ...] = (
    ("nvlink_tx_kib_total", "nvml_nvlink_tx", 1024.0),
    ("nvlink_rx_kib_total", "nvml_nvlink_rx", 1024.0),
)


class NvmlCollector:
    """Reads this machine's GPUs and the processes on them."""

    name = "nvml"

    def __init__(
        self,
        settings: NvmlSettings,
        clock: Callable[[], UnixMs],
        hostname: str,
        *,
        devices: NvmlDevices | None = None,
        process_of: Callable[[int], Process] = read_process,
    ) -> None:
        self.interval_s = settings.interval_s
        self._clock = clock
        self._node = NodeId(hostname)
        self._devices = devices or NvmlDevices()
        self._process_of = process_of
        self._before: MachineReading | None = None
        self._series = _SeriesCodes(self._node)
        self._first_seen: dict[int, UnixMs] = {}  # by process ID, for processes whose start is unknown

    async def poll(self, now_ms: UnixMs) -> AsyncIterator[Observation]:
        """Read every GPU; samples are yielded first."""
        started = time.monotonic()
        try:
            reading = await executors.COLLECT.run(self._devices.read)
        except SourceError as error:
            yield ScrapeObserved(at=now_ms, scrapes=[], statuses=[self._status(error)])
            return
        duration_s = time.monotonic() - started
        scrape = self._series.scrape(reading, self._before, fetched_at=self._clock(), duration_s=duration_s)
        self._before = reading
        status = self._status(find_problem(reading), duration_s=duration_s)
        yield ScrapeObserved(at=now_ms, scrapes=[scrape], statuses=[status])
        yield inventory_of(reading, self._node, now_ms)
        processes = await executors.COLLECT.run(self._find_processes, reading, now_ms)
        yield queue_of(reading, processes, self._node, now_ms)

    async def check(self) -> list[SourceStatus]:
        """Check that the driver responds, and list its GPUs."""
        try:
            reading = await executors.COLLECT.run(self._devices.read)
        except SourceError as error:
            return [self._status(error)]
        names = [unit.model_name or "unknown GPU" for unit in reading.units if unit.instance is None]
        kinds = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
        message = f"{kinds}, driver {reading.driver_version}"
        return [self._status(find_problem(reading), message=message)]

    async def close(self) -> None:
        """Release the driver's library."""
        await executors.COLLECT.run(self._devices.close)

    def _find_processes(self, reading: MachineReading, now_ms: UnixMs) -> dict[int, Process]:
        pids = {pid for unit in reading.units for pid in unit.pids}
        self._first_seen = {pid: self._first_seen.get(pid, now_ms) for pid in pids}
        return {pid: self._with_start(self._process_of(pid)) for pid in sorted(pids)}

    def _with_start(self, process: Process) -> Process:
        if process.started_at is not None:
            return process
        first_seen = self._first_seen[process.pid]
        return Process(pid=process.pid, command=process.command, user=process.user, started_at=first_seen)

    def _status(
        self, problem: SourceError | None, *, message: str | None = None, duration_s: float | None = None
    ) -> SourceStatus:
        return SourceStatus(
            source=f"{self.name} {self._node}",
            kind=self.name,
            is_ok=problem is None,
            at=self._clock(),
            node=self._node,
            message=problem.message if problem else message,
            hint=problem.hint if problem else None,
            duration_s=duration_s,
        )


class _SeriesCodes:
    """Assigns each series of this machine a code, the same in every scrape."""

    def __init__(self, node: NodeId) -> None:
        self._node = node
        self._start_table()

    def _start_table(self) -> None:
        self._table = SeriesTable()
        self._codes: dict[tuple[str, str | None], int] = {}
        self._labels: dict[str | None, Mapping[str, str]] = {}

    def scrape(
        self, reading: MachineReading, before: MachineReading | None, *, fetched_at: UnixMs, duration_s: float
    ) -> RawScrape:
        """Convert a reading into a scrape."""
        past = {} if before is None else {unit.uuid: unit for unit in before.units}
        elapsed_s = 0.0 if before is None else reading.monotonic_s - before.monotonic_s
        rows = [
            (self._code(name, unit, reading.driver_version), value)
            for unit in reading.units
            for name, value in samples_of(unit, past.get(unit.uuid), elapsed_s).items()
        ]
        scrape = RawScrape(
            source=f"nvml {self._node}",
            node=self._node,
            fetched_at=fetched_at,
            duration_s=duration_s,
            table=self._table,
            series=np.array([code for code, _ in rows], np.int32),
            value=np.array([value for _, value in rows], np.float64),
        )
        if len(self._table) > 4 * len(rows) + _STALE_SPARE:  # MIG was repartitioned again and again
            self._start_table()
        return scrape

    def _code(self, name: str, unit: UnitReading, driver_version: str) -> int:
        code = self._codes.get((name, unit.uuid))
        if code is None:
            labels = self._labels.setdefault(unit.uuid, labels_of(unit, self._node, driver_version))
            code = self._codes[name, unit.uuid] = self._table.add(RawSeries(name, labels))
        return code


def samples_of(unit: UnitReading, before: UnitReading | None, elapsed_s: float) -> dict[str, float]:
    """Values by their names in the metric catalogue, in the units of these names. Values that NVML does not give are absent."""
    values: dict[str, float] = {}
    for number, name, factor in _SAMPLES:
        if number in unit.numbers and name not in values:
            values[name] = unit.numbers[number] * factor
    if before is None or elapsed_s <= 0:
        return values
    for number, name, factor in _RATES:
        if name in values or number not in unit.numbers or number not in before.numbers:
            continue
        increase = unit.numbers[number] - before.numbers[number]
        if increase >= 0:  # a negative increase: the driver was reloaded
            values[name] = increase * factor / elapsed_s
    return values


def labels_of(unit: UnitReading, node: NodeId, driver_version: str) -> Mapping[str, str]:
    """Labels as dcgm-exporter spells them."""
    labels = {
        "gpu": str(unit.index),
        "UUID": unit.uuid,
        "Hostname": node,
        "modelName": unit.model_name,
        "driver_version": driver_version,
        "pci_bus_id": unit.pci_bus_id,
        "GPU_I_ID": None if unit.instance is None else str(unit.instance),
        "GPU_I_PROFILE": unit.mig_profile,
    }
    return {name: value for name, value in labels.items() if value is not None}


def inventory_of(reading: MachineReading, node: NodeId, at: UnixMs) -> InventoryObserved:
    """The node with its GPUs and MIG instances."""
    gpus = [unit for unit in reading.units if unit.instance is None]
    used = {unit.index for unit in reading.units if unit.pids}
    state = NodeState.IDLE if not used else NodeState.ALLOCATED if len(used) == len(gpus) else NodeState.MIXED
    machine = Node(
        id=node,
        state=state,
        gpu_count=len(gpus),
        cpu_count=os.cpu_count(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        driver_version=reading.driver_version,
    )
    return InventoryObserved(
        source="nvml", at=at, nodes=[machine], units=[_unit_of(unit, node) for unit in reading.units]
    )


def queue_of(reading: MachineReading, processes: Mapping[int, Process], node: NodeId, at: UnixMs) -> QueueObserved:
    """A workload for every process on a GPU. It holds the units on which it runs, since its start."""
    units: dict[int, list[UnitId]] = {}
    for unit in reading.units:
        for pid in unit.pids:
            # The MPS server computes for its clients, which are listed themselves.
            if not (processes[pid].command or "").startswith(_MPS_SERVER):
                units.setdefault(pid, []).append(_unit_id(unit, node))
    workloads = [_workload_of(processes[pid], len(held_units), node) for pid, held_units in units.items()]
    allocations = [
        Allocation(
            workload=_workload_id(pid),
            unit=unit,
            from_at=processes[pid].started_at or at,
            source=AllocationSource.PROCESS,
            confidence=CONFIDENCE[AllocationSource.PROCESS],
        )
        for pid, held_units in units.items()
        for unit in held_units
    ]
    return QueueObserved(source=LOCAL, at=at, workloads=workloads, allocations=allocations)


def find_problem(reading: MachineReading) -> SourceError | None:
    """Return which GPUs could not be read, if any."""
    failed = [unit for unit in reading.units if unit.problem]
    if not failed:
        return None
    return SourceError(
        f"GPU {_join(unit.index for unit in failed)} cannot be read: {failed[0].problem}",
        hint="`nvidia-smi` and the kernel log (`dmesg | grep -i xid`) have details; a lost GPU needs a reset or a reboot.",
    )


def _workload_of(process: Process, gpu_count: int, node: NodeId) -> Workload:
    return Workload(
        id=_workload_id(process.pid),
        state=WorkloadState.RUNNING,
        kind=WorkloadKind.SESSION,
        name=process.command,
        user=process.user,
        gpus_requested=gpu_count,
        nodes_requested=1,
        submitted_at=process.started_at,
        eligible_at=process.started_at,
        started_at=process.started_at,
        nodes=(node,),
        tags={"pid": str(process.pid)},
    )


def _workload_id(pid: int) -> WorkloadId:
    return WorkloadId(f"{LOCAL}:{pid}")


def _unit_id(unit: UnitReading, node: NodeId) -> UnitId:
    return gpu_unit_id(node, unit.index) if unit.instance is None else mig_unit_id(node, unit.index, unit.instance)


def _unit_of(unit: UnitReading, node: NodeId) -> Unit:
    memory = unit.numbers.get("memory_total_bytes")
    limit = unit.numbers.get("power_limit_mw")
    return Unit(
        id=_unit_id(unit, node),
        kind=UnitKind.GPU if unit.instance is None else UnitKind.MIG,
        node=node,
        index=unit.index,
        uuid=None if unit.uuid is None else GpuUuid(unit.uuid),
        memory_bytes=None if memory is None else int(memory),
        power_limit_watts=None if limit is None else limit / 1000,
        pci_bus_id=unit.pci_bus_id,
        parent=None if unit.instance is None else gpu_unit_id(node, unit.index),
        mig_profile=unit.mig_profile,
    )


def _join(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
