"""The lean way to read this machine's GPUs many times a second: handles and buffers kept, and only what is due asked for.

Values are in the catalogue's names and units. What a GPU does not offer is left out and not asked for again.
"""

import ctypes
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from clusterscape.track.listeners.nvml_instances import InstanceReading, MigParts
from clusterscape.track.listeners.nvml_rates import Part

_LIBRARY = "libnvidia-ml.so.1"
_MILLI = 1e-3
_PERCENT = 1e-2
_MEGAHERTZ = 1e6
_KIBIBYTE = 1024
_KILOBYTE = 1000
_ALL_LINKS = 0xFFFFFFFF


class ProcessReading(NamedTuple):
    """One process on one GPU; None where the driver does not say."""

    pid: int
    memory_bytes: int | None
    util_ratio: float | None


class GpuReading(NamedTuple):
    """One GPU: values by name, who computes on it (None: not looked up this time), and its MIG instances."""

    gpu: int  # its index
    values: dict[str, float]
    processes: list[ProcessReading] | None
    instances: list[InstanceReading]


class NvmlReader:
    """Opened once; raises whatever pynvml raises when the driver is not there."""

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
        found: list[GpuReading] = []
        lost: Exception | None = None
        for gpu in wanted:
            try:
                found.append(gpu.read(parts))
            except self._nvml.NVMLError as error:
                lost = error
        if lost is not None and not found:
            raise lost
        if Part.PCIE in parts and found:
            self._turn += 1
            place = self._turn // 2 % len(found)
            self._gpus[found[place].gpu].add_pcie(found[place].values, is_sent=self._turn % 2 == 0)
        return found

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
        # Buffers made once: what pynvml makes anew for each call costs more than the call.
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
        found: dict[str, float] = {}
        self._add_quick(found)
        if Part.MEMORY in parts:
            memory = self._ask("memory", self._nvml.nvmlDeviceGetMemoryInfo, self._handle)
            if memory is not None:
                found["memory_used_bytes"] = float(memory.used)
        if Part.COUNTERS in parts:
            self._add_counters(found)
        processes = None
        if Part.STATE in parts:
            self._add_state(found)
            processes = self._processes(with_shares=Part.COUNTERS in parts)
        return GpuReading(self.index, found, processes, self._instances.read(parts))

    def add_pcie(self, found: dict[str, float], *, is_sent: bool) -> None:
        """One direction; waits 20 ms."""
        nvml = self._nvml
        kind = nvml.NVML_PCIE_UTIL_TX_BYTES if is_sent else nvml.NVML_PCIE_UTIL_RX_BYTES
        rate = self._ask("pcie", nvml.nvmlDeviceGetPcieThroughput, self._handle, kind)
        if rate is not None:
            found[f"pcie_{'tx' if is_sent else 'rx'}_bytes_per_second"] = float(rate * _KILOBYTE)

    def _add_quick(self, found: dict[str, float]) -> None:
        if "util" not in self._refused and self._answers(
            "util", self._ask_rates(self._handle, ctypes.byref(self._rates))
        ):
            found["gpu_util_ratio"] = self._rates.gpu * _PERCENT
            found["memory_copy_util_ratio"] = self._rates.memory * _PERCENT
        watts = self._read_field("power field", self._nvml.NVML_FI_DEV_POWER_INSTANT)
        if watts is None:
            watts = self._ask("power", self._nvml.nvmlDeviceGetPowerUsage, self._handle)
        if watts is not None:
            found["power_watts"] = watts * _MILLI

    def _add_state(self, found: dict[str, float]) -> None:
        nvml, handle = self._nvml, self._handle
        for name, kind in (("sm_clock_hertz", nvml.NVML_CLOCK_SM), ("memory_clock_hertz", nvml.NVML_CLOCK_MEM)):
            clock = self._ask(name, nvml.nvmlDeviceGetClockInfo, handle, kind)
            if clock is not None:
                found[name] = clock * _MEGAHERTZ
        heat = self._ask("heat", nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
        if heat is not None:
            found["gpu_temperature_celsius"] = float(heat)
        reasons = self._ask("reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        if reasons is not None:
            found["throttle_reasons_bits"] = float(reasons)

    def _add_counters(self, found: dict[str, float]) -> None:
        energy = self._read_field("energy", self._nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION)
        if energy is not None:
            found["energy_joules"] = energy * _MILLI
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
                found[name] = (kibibytes - before) * _KIBIBYTE / (now_us - before_us) * 1e6

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
        """How busy each process was since the last question."""
        shares: dict[int, list[int]] = {}
        for one in self._ask("shares", self._nvml.nvmlDeviceGetProcessUtilization, self._handle, self._seen_us) or ():
            self._seen_us = max(self._seen_us, int(one.timeStamp))
            shares.setdefault(int(one.pid), []).append(int(one.smUtil))
        return {pid: _PERCENT * sum(parts) / len(parts) for pid, parts in shares.items()}

    def _read_field(self, name: str, field: int, scope: int = 0) -> float | None:
        if name in self._refused:
            return None
        told = self._field
        told.fieldId, told.scopeId = field, scope
        if not self._answers(name, self._ask_field(self._handle, 1, ctypes.byref(told))):
            return None
        if not self._answers(name, int(told.nvmlReturn)):
            return None
        member = self._members.get(told.valueType)
        return None if member is None else getattr(told.value, member)

    def _ask(self, name: str, call: Callable[..., Any], *arguments: object) -> Any:
        """None where this GPU does not offer it, which is remembered; a lost GPU raises."""
        if name in self._refused:
            return None
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            # The binding raises "success" where no process was busy since the last question.
            self._answers(name, error.value)
            return None

    def _answers(self, name: str, code: int) -> bool:
        """Whether a code says so; a lasting refusal is remembered, a lost GPU raises."""
        nvml = self._nvml
        if code == nvml.NVML_SUCCESS:
            return True
        if code in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND, nvml.NVML_ERROR_NO_PERMISSION):
            self._refused.add(name)
        elif code not in (nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INSUFFICIENT_SIZE):
            raise nvml.NVMLError(code)
        return False
