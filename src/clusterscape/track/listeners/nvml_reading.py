"""The lean way to read this machine's GPUs many times a second: handles kept, few calls, one field query for each GPU.

Values are in the catalogue's names and units. What a GPU does not offer is left out and not asked for again.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

_MILLI = 1e-3
_PERCENT = 1e-2
_MEGAHERTZ = 1e6


class ProcessReading(NamedTuple):
    """One process on one GPU; None where the driver does not say."""

    pid: int
    memory_bytes: int | None
    util_ratio: float | None


class GpuReading(NamedTuple):
    """One GPU: values by name, and who computes on it."""

    gpu: int  # its index
    values: dict[str, float]
    processes: list[ProcessReading]


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

    def __len__(self) -> int:
        return len(self._gpus)

    def read(self, *, with_processes: bool) -> list[GpuReading]:
        """All GPUs now, a lost one left out. Processes, energy, clocks and heat only where asked."""
        found: list[GpuReading] = []
        lost: Exception | None = None
        for gpu in self._gpus:
            try:
                found.append(gpu.read(is_whole=with_processes))
            except self._nvml.NVMLError as error:
                lost = error
        if lost is not None and not found:
            raise lost
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
        # The energy counter is apart: on an H200 asking for it costs 4 ms of processor time, everything else 0.1 ms.
        self._power = (nvml.NVML_FI_DEV_POWER_INSTANT, "power_watts", _MILLI)
        self._energy = (nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, "energy_joules", _MILLI)
        self._members = {
            nvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
            nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
            nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
            nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
            nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
        }

    def read(self, *, is_whole: bool) -> GpuReading:
        """Utilisation, memory and power; the rest, which is dear or changes slowly, where asked."""
        found = self._quick_values()
        if is_whole:
            self._add_slow_values(found)
        return GpuReading(self.index, found, self.processes() if is_whole else [])

    def _quick_values(self) -> dict[str, float]:
        nvml, handle = self._nvml, self._handle
        found: dict[str, float] = {}
        rates = self._ask("util", nvml.nvmlDeviceGetUtilizationRates, handle)
        if rates is not None:
            found["gpu_util_ratio"] = rates.gpu * _PERCENT
            found["memory_copy_util_ratio"] = rates.memory * _PERCENT
        memory = self._ask("memory", nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is not None:
            found["memory_used_bytes"] = float(memory.used)
        self._read_field(*self._power, found)
        if "power_watts" not in found:
            power = self._ask("power", nvml.nvmlDeviceGetPowerUsage, handle)
            if power is not None:
                found["power_watts"] = power * _MILLI
        return found

    def _add_slow_values(self, found: dict[str, float]) -> None:
        nvml, handle = self._nvml, self._handle
        self._read_field(*self._energy, found)
        clock = self._ask("clock", nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
        if clock is not None:
            found["sm_clock_hertz"] = clock * _MEGAHERTZ
        heat = self._ask("heat", nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
        if heat is not None:
            found["gpu_temperature_celsius"] = float(heat)
        reasons = self._ask("reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        if reasons is not None:
            found["throttle_reasons_bits"] = float(reasons)

    def processes(self) -> list[ProcessReading]:
        nvml, handle = self._nvml, self._handle
        listed = [
            *(self._ask("compute", nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()),
            *(self._ask("mps", nvml.nvmlDeviceGetMPSComputeRunningProcesses, handle) or ()),
        ]
        used = {int(process.pid): process.usedGpuMemory for process in listed}
        if not used:
            return []
        shares: dict[int, list[int]] = {}
        for one in self._ask("shares", nvml.nvmlDeviceGetProcessUtilization, handle, self._seen_us) or ():
            self._seen_us = max(self._seen_us, int(one.timeStamp))
            shares.setdefault(int(one.pid), []).append(int(one.smUtil))
        return [
            ProcessReading(
                pid,
                None if memory is None else int(memory),
                _PERCENT * sum(shares[pid]) / len(shares[pid]) if pid in shares else None,
            )
            for pid, memory in used.items()
        ]

    def _read_field(self, field: int, name: str, factor: float, found: dict[str, float]) -> None:
        answers = self._ask(name, self._nvml.nvmlDeviceGetFieldValues, self._handle, [field])
        for told in answers or ():
            member = self._members.get(told.valueType)
            if told.nvmlReturn == self._nvml.NVML_SUCCESS and member is not None:
                found[name] = getattr(told.value, member) * factor

    def _ask(self, name: str, call: Callable[..., Any], *arguments: object) -> Any:
        """None where this GPU does not offer it, which is remembered; a lost GPU raises."""
        if name in self._refused:
            return None
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            lasting = (self._nvml.NVML_ERROR_NOT_SUPPORTED, self._nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            # The binding raises "success" where no process was busy since the last question.
            passing = (
                self._nvml.NVML_SUCCESS,
                self._nvml.NVML_ERROR_NOT_FOUND,
                self._nvml.NVML_ERROR_INSUFFICIENT_SIZE,
            )
            if error.value in (*lasting, self._nvml.NVML_ERROR_NO_PERMISSION):
                self._refused.add(name)
                return None
            if error.value in passing:
                return None
            raise
