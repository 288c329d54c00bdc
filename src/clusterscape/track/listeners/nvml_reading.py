"""Reads GPUs and MIG instances many times per second at low cost: handles and buffers are reused, and each value is read
at its own rate, because the cost of driver calls differs widely.

CPU time of one call on an H200 (driver 580): utilization 60 µs, power 0.1 ms, memory 0.1 ms, processes 0.3 ms,
PCIe 0.8 ms (and 20 ms of waiting), utilization of processes 2 ms, energy 4 ms.

No driver reports utilization, power and energy of instances. Instances may be created and removed, so they are listed regularly.

Names and units are those of the catalogue. Values that a GPU does not support are not queried again.
"""

import ctypes
from collections.abc import Callable, Collection
from enum import IntFlag
from typing import Any, NamedTuple


class Part(IntFlag):
    """Values read in addition to utilization and power, which are read at every tick."""

    NONE = 0
    MEMORY = 1  # of GPUs and MIG instances
    STATE = 2  # clocks, heat, throttle reasons, processes and their memory
    PCIE = 4  # one direction of one GPU, in turns: the driver watches the bus for 20 ms
    COUNTERS = 8  # energy, NVLink, how busy each process and MIG instance was


EARLY_S = 20.0
EVERY_S = {
    Part.MEMORY: (0.5, 0.5),
    Part.STATE: (1.0, 1.0),
    Part.PCIE: (1.0, 5.0),
    Part.COUNTERS: (2.0, 5.0),
}
"""In the first ``EARLY_S`` seconds, for the sake of short runs, and from then on."""
LAST_LOOK = Part.MEMORY | Part.COUNTERS
"""Parts needed at the end of a run."""
SHORTEST_WITH_PCIE_S = 0.05
"""Of ticks; with shorter ones the wait would cost some of them."""


class ReadingSchedule:
    """Which parts are due at a tick: each once per period since the first tick, even if ticks are missed."""

    def __init__(self, period_s: float) -> None:
        self._half_tick_s = period_s / 2
        self._parts = [part for part in EVERY_S if part is not Part.PCIE or period_s >= SHORTEST_WITH_PCIE_S]
        self._first_us: int | None = None
        self._done: dict[Part, int] = {}

    def due(self, time_us: int) -> Part:
        """The parts due at this tick; a slightly early tick counts for its intended period."""
        if self._first_us is None:
            self._first_us = time_us
        passed_s = (time_us - self._first_us) / 1e6 + self._half_tick_s
        due_parts = Part.NONE
        for part in self._parts:
            early_s, later_s = EVERY_S[part]
            stretch = int(min(passed_s, EARLY_S) / early_s) + int(max(0.0, passed_s - EARLY_S) / later_s)
            if self._done.get(part) != stretch:
                self._done[part] = stretch
                due_parts |= part
        return due_parts


_PERCENT = 1e-2
_LOOK_AGAIN = 5
"""Readings of the state after which the instances are looked up again."""
_METRICS = {1: "gpu_util_ratio", 2: "sm_active_ratio", 5: "tensor_active_ratio", 10: "dram_active_ratio"}
"""Numbers of NVML's performance metrics (GPM), given in percent."""


class InstanceReading(NamedTuple):
    """One MIG instance of a GPU by its number: values by name."""

    instance: int
    values: dict[str, float]


class MigParts:
    """The instances of one GPU. An instance may be removed at any time, so its errors are ignored."""

    def __init__(self, nvml: Any, gpu: Any) -> None:
        self._nvml = nvml
        self._gpu = gpu
        mode = self._ask(nvml.nvmlDeviceGetMigMode, gpu)
        self._is_on = mode is not None and int(mode[0]) == nvml.NVML_DEVICE_MIG_ENABLE
        self._handles: dict[int, Any] = {}
        self._samples: dict[int, Any] = {}  # performance counters when last asked
        self._until_look = 0

    def read(self, parts: Part) -> list[InstanceReading]:
        """The due values of all instances; empty if MIG is disabled."""
        if not self._is_on:
            return []
        if Part.STATE in parts:
            self._until_look -= 1
            if self._until_look < 0:
                self._until_look = _LOOK_AGAIN
                self._look()
        return [InstanceReading(number, self._read_one(number, parts)) for number in self._handles]

    def _look(self) -> None:
        nvml = self._nvml
        handles: dict[int, Any] = {}
        for place in range(int(self._ask(nvml.nvmlDeviceGetMaxMigDeviceCount, self._gpu) or 0)):
            handle = self._ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, self._gpu, place)
            number = None if handle is None else self._ask(nvml.nvmlDeviceGetGpuInstanceId, handle)
            if number is not None:
                handles[int(number)] = handle
        for number in self._samples.keys() - handles.keys():
            self._ask(nvml.nvmlGpmSampleFree, self._samples.pop(number))
        self._handles = handles

    def _read_one(self, number: int, parts: Part) -> dict[str, float]:
        values: dict[str, float] = {}
        if Part.MEMORY in parts:
            memory = self._ask(self._nvml.nvmlDeviceGetMemoryInfo, self._handles[number])
            if memory is not None:
                values["memory_used_bytes"] = float(memory.used)
        if Part.COUNTERS in parts:
            self._add_activity(number, values)
        return values

    def _add_activity(self, number: int, values: dict[str, float]) -> None:
        """Add activity since the last call; none at the first call, and none on GPUs older than Hopper."""
        nvml = self._nvml
        room = self._ask(nvml.nvmlGpmSampleAlloc)
        now = None if room is None else self._ask(nvml.nvmlGpmMigSampleGet, self._gpu, number, room)
        before = self._samples.pop(number, None)
        if now is not None:
            self._samples[number] = now
        elif room is not None:
            self._ask(nvml.nvmlGpmSampleFree, room)
        if before is None:
            return
        if now is not None:
            values |= self._between(before, now)
        self._ask(nvml.nvmlGpmSampleFree, before)

    def _between(self, before: Any, now: Any) -> dict[str, float]:
        nvml = self._nvml
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version, request.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(_METRICS)
        request.sample1, request.sample2 = before, now
        for place, metric in enumerate(_METRICS):
            request.metrics[place].metricId = metric
        if self._ask(nvml.nvmlGpmMetricsGet, request) is None:
            return {}
        return {
            name: request.metrics[place].value * _PERCENT
            for place, name in enumerate(_METRICS.values())
            if request.metrics[place].nvmlReturn == nvml.NVML_SUCCESS
        }

    def _ask(self, call: Callable[..., Any], *arguments: object) -> Any:
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None


_LIBRARY = "libnvidia-ml.so.1"
_MILLI = 1e-3
_MEGAHERTZ = 1e6
_KIBIBYTE = 1024
_KILOBYTE = 1000
_ALL_LINKS = 0xFFFFFFFF


class ProcessReading(NamedTuple):
    """One process on one GPU; None if the driver does not report a value."""

    pid: int
    memory_bytes: int | None
    util_ratio: float | None


class GpuReading(NamedTuple):
    """One GPU: values by name, its processes (None: not read this time), and its MIG instances."""

    gpu: int  # its index
    values: dict[str, float]
    processes: list[ProcessReading] | None
    instances: list[InstanceReading]


class NvmlReader:
    """Reads all GPUs; opening it raises pynvml's error if there is no driver."""

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        self.driver_version = str(pynvml.nvmlSystemGetDriverVersion())
        self._gpus = [
            _Gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index), index)
            for index in range(int(pynvml.nvmlDeviceGetCount()))
        ]
        self._turn = 0

    def __len__(self) -> int:
        return len(self._gpus)

    def read(self, parts: Part, gpus: Collection[int] | None = None) -> list[GpuReading]:
        """All GPUs now, or those named; a lost one is left out."""
        wanted = [gpu for gpu in self._gpus if gpus is None or gpu.index in gpus]
        readings: list[GpuReading] = []
        lost: Exception | None = None
        for gpu in wanted:
            try:
                readings.append(gpu.read(parts))
            except self._nvml.NVMLError as error:
                lost = error
        if lost is not None and not readings:
            raise lost
        if Part.PCIE in parts and readings:
            self._turn += 1
            place = self._turn // 2 % len(readings)
            self._gpus[readings[place].gpu].add_pcie(readings[place].values, is_sent=self._turn % 2 == 0)
        return readings

    def close(self) -> None:
        """Release the driver's library."""
        self._nvml.nvmlShutdown()


class _Gpu:
    def __init__(self, nvml: Any, handle: Any, index: int) -> None:
        self.index = index
        self._nvml = nvml
        self._handle = handle
        self._refused: set[str] = set()
        self._seen_us = 0
        self._shares: dict[int, float] = {}  # how busy each process was when last asked
        self._links: dict[str, tuple[int, int]] = {}  # NVLink: time in µs and KiB when last asked
        self._instances = MigParts(nvml, handle)
        # Buffers are reused: pynvml's allocation for each call costs more than the call.
        library = ctypes.CDLL(_LIBRARY)  # the one that pynvml has loaded
        self._rates = nvml.c_nvmlUtilization_t()
        self._ask_rates = library.nvmlDeviceGetUtilizationRates
        self._field = nvml.c_nvmlFieldValue_t()
        self._ask_field = library.nvmlDeviceGetFieldValues
        self._members = {
            nvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
            nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
            nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
            nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
            nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
        }

    def read(self, parts: Part) -> GpuReading:
        """Utilization and power, and the parts that are due."""
        values: dict[str, float] = {}
        self._add_quick(values)
        if Part.MEMORY in parts:
            memory = self._ask("memory", self._nvml.nvmlDeviceGetMemoryInfo, self._handle)
            if memory is not None:
                values["memory_used_bytes"] = float(memory.used)
        if Part.COUNTERS in parts:
            self._add_counters(values)
        processes = None
        if Part.STATE in parts:
            self._add_state(values)
            processes = self._processes(with_shares=Part.COUNTERS in parts)
        return GpuReading(self.index, values, processes, self._instances.read(parts))

    def add_pcie(self, values: dict[str, float], *, is_sent: bool) -> None:
        """One direction; waits 20 ms."""
        nvml = self._nvml
        kind = nvml.NVML_PCIE_UTIL_TX_BYTES if is_sent else nvml.NVML_PCIE_UTIL_RX_BYTES
        rate = self._ask("pcie", nvml.nvmlDeviceGetPcieThroughput, self._handle, kind)
        if rate is not None:
            values[f"pcie_{'tx' if is_sent else 'rx'}_bytes_per_second"] = float(rate * _KILOBYTE)

    def _add_quick(self, values: dict[str, float]) -> None:
        if "util" not in self._refused and self._answers(
            "util", self._ask_rates(self._handle, ctypes.byref(self._rates))
        ):
            values["gpu_util_ratio"] = self._rates.gpu * _PERCENT
            values["memory_copy_util_ratio"] = self._rates.memory * _PERCENT
        watts = self._read_field("power field", self._nvml.NVML_FI_DEV_POWER_INSTANT)
        if watts is None:
            watts = self._ask("power", self._nvml.nvmlDeviceGetPowerUsage, self._handle)
        if watts is not None:
            values["power_watts"] = watts * _MILLI

    def _add_state(self, values: dict[str, float]) -> None:
        nvml, handle = self._nvml, self._handle
        for name, kind in (("sm_clock_hertz", nvml.NVML_CLOCK_SM), ("memory_clock_hertz", nvml.NVML_CLOCK_MEM)):
            clock = self._ask(name, nvml.nvmlDeviceGetClockInfo, handle, kind)
            if clock is not None:
                values[name] = clock * _MEGAHERTZ
        heat = self._ask("heat", nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
        if heat is not None:
            values["gpu_temperature_celsius"] = float(heat)
        reasons = self._ask("reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        if reasons is not None:
            values["throttle_reasons_bits"] = float(reasons)

    def _add_counters(self, values: dict[str, float]) -> None:
        energy = self._read_field("energy", self._nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION)
        if energy is not None:
            values["energy_joules"] = energy * _MILLI
        for name, field in (
            ("nvlink_tx_bytes_per_second", self._nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
            ("nvlink_rx_bytes_per_second", self._nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX),
        ):
            kibibytes = self._read_field(name, field, _ALL_LINKS)
            if kibibytes is None:
                continue
            now_us = int(self._field.timestamp)
            before_us, before = self._links.get(name, (now_us, 0))
            self._links[name] = (now_us, int(kibibytes))
            if now_us > before_us and kibibytes >= before:
                values[name] = (kibibytes - before) * _KIBIBYTE / (now_us - before_us) * 1e6

    def _processes(self, *, with_shares: bool) -> list[ProcessReading]:
        nvml, handle = self._nvml, self._handle
        listed = [
            *(self._ask("compute", nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()),
            *(self._ask("mps", nvml.nvmlDeviceGetMPSComputeRunningProcesses, handle) or ()),
        ]
        used = {int(process.pid): process.usedGpuMemory for process in listed}
        if used and with_shares:
            self._shares = self._read_shares()
        return [
            ProcessReading(pid, None if memory is None else int(memory), self._shares.get(pid))
            for pid, memory in used.items()
        ]

    def _read_shares(self) -> dict[int, float]:
        """Utilization of each process since the last call."""
        shares: dict[int, list[int]] = {}
        for sample in (
            self._ask("shares", self._nvml.nvmlDeviceGetProcessUtilization, self._handle, self._seen_us) or ()
        ):
            self._seen_us = max(self._seen_us, int(sample.timeStamp))
            shares.setdefault(int(sample.pid), []).append(int(sample.smUtil))
        return {pid: _PERCENT * sum(parts) / len(parts) for pid, parts in shares.items()}

    def _read_field(self, name: str, field: int, scope: int = 0) -> float | None:
        if name in self._refused:
            return None
        field_value = self._field
        field_value.fieldId, field_value.scopeId = field, scope
        if not self._answers(name, self._ask_field(self._handle, 1, ctypes.byref(field_value))):
            return None
        if not self._answers(name, int(field_value.nvmlReturn)):
            return None
        member = self._members.get(field_value.valueType)
        return None if member is None else getattr(field_value.value, member)

    def _ask(self, name: str, call: Callable[..., Any], *arguments: object) -> Any:
        """The value; None if this GPU does not support it, which is remembered; raises for a lost GPU."""
        if name in self._refused:
            return None
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            # The binding raises "success" if no process was busy since the last call.
            self._answers(name, error.value)
            return None

    def _answers(self, name: str, code: int) -> bool:
        """Whether a return code is success; "not supported" is remembered; raises for a lost GPU."""
        nvml = self._nvml
        if code == nvml.NVML_SUCCESS:
            return True
        if code in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND, nvml.NVML_ERROR_NO_PERMISSION):
            self._refused.add(name)
        elif code not in (nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INSUFFICIENT_SIZE):
            raise nvml.NVMLError(code)
        return False
