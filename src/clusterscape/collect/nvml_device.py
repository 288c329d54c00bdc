"""Calls NVML and returns the readings of this machine's GPUs, as plain numbers in NVML's own units.

The only module that imports pynvml. Converts nothing; a number that NVML does not give is absent.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pynvml

from clusterscape.errors import SourceError

ALL_LINKS = 0xFFFF_FFFF

# Field id, scope, our name. One call reads them all; each has its own return code. The PCIe byte counters (197, 198) are
# left out: they have 32 bits and wrap every 80 ms on a busy fifth-generation link, and nvmlDeviceGetPcieThroughput blocks.
FIELDS: tuple[tuple[int, int, str], ...] = (
    (pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0, "energy_mj"),
    (pynvml.NVML_FI_DEV_POWER_INSTANT, 0, "power_instant_mw"),
    (pynvml.NVML_FI_DEV_POWER_AVERAGE, 0, "power_average_mw"),
    (pynvml.NVML_FI_DEV_MEMORY_TEMP, 0, "memory_temperature_celsius"),
    (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS, "nvlink_tx_kib_total"),
    (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS, "nvlink_rx_kib_total"),
    (pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER, 0, "pcie_replay_total"),
    (pynvml.NVML_FI_DEV_PERF_POLICY_POWER, 0, "power_throttle_ns"),
    (pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL, 0, "thermal_throttle_ns"),
    (pynvml.NVML_FI_DEV_ECC_SBE_VOL_TOTAL, 0, "ecc_sbe_volatile_total"),
    (pynvml.NVML_FI_DEV_ECC_DBE_VOL_TOTAL, 0, "ecc_dbe_volatile_total"),
    (pynvml.NVML_FI_DEV_ECC_SBE_AGG_TOTAL, 0, "ecc_sbe_aggregate_total"),
    (pynvml.NVML_FI_DEV_ECC_DBE_AGG_TOTAL, 0, "ecc_dbe_aggregate_total"),
    (pynvml.NVML_FI_DEV_REMAPPED_COR, 0, "remapped_rows_correctable_total"),
    (pynvml.NVML_FI_DEV_REMAPPED_UNC, 0, "remapped_rows_uncorrectable_total"),
    (pynvml.NVML_FI_DEV_REMAPPED_FAILURE, 0, "row_remap_failure"),
)

# GPM metric id, our name. Hopper and later, per MIG instance too.
GPM_METRICS: tuple[tuple[int, str], ...] = (
    (pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL, "gpm_graphics_percent"),
    (pynvml.NVML_GPM_METRIC_SM_UTIL, "gpm_sm_percent"),
    (pynvml.NVML_GPM_METRIC_SM_OCCUPANCY, "gpm_occupancy_percent"),
    (pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL, "gpm_tensor_percent"),
    (pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL, "gpm_dram_percent"),
    (pynvml.NVML_GPM_METRIC_FP64_UTIL, "gpm_fp64_percent"),
    (pynvml.NVML_GPM_METRIC_FP32_UTIL, "gpm_fp32_percent"),
    (pynvml.NVML_GPM_METRIC_FP16_UTIL, "gpm_fp16_percent"),
    (pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC, "gpm_pcie_tx_mib_per_second"),
    (pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC, "gpm_pcie_rx_mib_per_second"),
    (pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, "gpm_nvlink_tx_mib_per_second"),
    (pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, "gpm_nvlink_rx_mib_per_second"),
)

_VALUE_MEMBERS = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}
_BLANKS = frozenset({2**32 - 1, 2**64 - 1})  # NVML_VALUE_NOT_AVAILABLE

# After these errors nothing else can be read from the GPU or from the library.
_FATAL = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReading:
    """One GPU or, with ``instance``, one of its MIG instances. ``numbers`` are unconverted; their names state the units."""

    index: int
    instance: int | None = None
    uuid: str | None = None
    model_name: str | None = None
    pci_bus_id: str | None = None
    mig_profile: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    pids: tuple[int, ...] = ()
    problem: str | None = None  # why it could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReading:
    """All GPUs of this machine at one moment."""

    monotonic_s: float
    driver_version: str
    units: tuple[UnitReading, ...]


@dataclass(frozen=True, slots=True)
class _Identity:
    uuid: str | None = None
    model_name: str | None = None
    pci_bus_id: str | None = None


class NvmlDevices:
    """This machine's GPUs. Opens the library on the first read and after a failure."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # a read may still run in its thread when the collector is closed
        self._is_open = False
        self._identities: dict[int, _Identity] = {}  # by index
        self._gpm: dict[tuple[int, int | None], _Gpm] = {}

    def read(self) -> MachineReading:
        """Read every GPU and MIG instance. Raises SourceError if there is no driver or no GPU."""
        with self._lock:
            return self._read()

    def close(self) -> None:
        """Release the library."""
        with self._lock:
            self._close()

    def _read(self) -> MachineReading:
        try:
            self._open()
            count = int(pynvml.nvmlDeviceGetCount())
            driver_version = str(pynvml.nvmlSystemGetDriverVersion())
        except pynvml.NVMLError as error:
            self._close()
            raise _explain(error) from None
        if count == 0:
            raise SourceError("this machine has no GPU", hint="Set collect.nvml.enabled to false.")
        monotonic_s = time.monotonic()
        units = tuple(unit for index in range(count) for unit in self._read_gpu(index))
        if all(unit.problem for unit in units):
            self._close()  # after a driver reload the library must be initialized again
        return MachineReading(monotonic_s=monotonic_s, driver_version=driver_version, units=units)

    def _close(self) -> None:
        with contextlib.suppress(pynvml.NVMLError):
            for gpm in self._gpm.values():
                gpm.free()
            if self._is_open:
                pynvml.nvmlShutdown()
        self._gpm.clear()
        self._is_open = False

    def _open(self) -> None:
        if not self._is_open:
            pynvml.nvmlInit()
            self._is_open = True

    def _read_gpu(self, index: int) -> list[UnitReading]:
        """The GPU, then its MIG instances. A GPU that fails keeps its last identity."""
        numbers: dict[str, float] = {}
        instances: list[UnitReading] = []
        pids: set[int] = set()
        problem: str | None = None
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            new_identity = self._identities[index] = _read_identity(handle)
            numbers = _read_numbers(handle) | self._read_gpm(handle, index, None)
            instances = self._read_instances(handle, index, new_identity.pci_bus_id)
            pids = set() if instances else _read_pids(handle)
        except pynvml.NVMLError as error:
            problem = str(error)
        identity = self._identities.get(index, _Identity())
        gpu = UnitReading(
            index=index,
            uuid=identity.uuid,
            model_name=identity.model_name,
            pci_bus_id=identity.pci_bus_id,
            numbers=numbers,
            pids=tuple(sorted(pids)),
            problem=problem,
        )
        return [gpu, *instances]

    def _read_instances(self, gpu: Any, index: int, bus: str | None) -> list[UnitReading]:
        mode = _call_or_none(pynvml.nvmlDeviceGetMigMode, gpu)
        if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return []
        readings: dict[int, UnitReading] = {}
        for mig_index in range(int(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu))):
            handle = _call_or_none(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, mig_index)
            if handle is None:
                continue
            instance = int(pynvml.nvmlDeviceGetGpuInstanceId(handle))
            if instance in readings:  # a second compute instance of the same GPU instance
                continue
            identity = _read_identity(handle)
            readings[instance] = UnitReading(
                index=index,
                instance=instance,
                uuid=identity.uuid,
                model_name=identity.model_name,
                pci_bus_id=bus,
                mig_profile=(identity.model_name or "").partition(" MIG ")[2] or None,
                numbers=_read_memory(handle) | self._read_gpm(gpu, index, instance),
                pids=tuple(sorted(_read_pids(handle))),
            )
        return list(readings.values())

    def _read_gpm(self, gpu: Any, index: int, instance: int | None) -> dict[str, float]:
        """Activity since the last read; empty on the first read, or if the GPU has no GPM."""
        gpm = self._gpm.get((index, instance))
        if gpm is None:
            support = _call_or_none(pynvml.nvmlGpmQueryDeviceSupport, gpu)
            if support is None or not support.isSupportedDevice:
                return {}
            gpm = self._gpm[index, instance] = _Gpm(gpu, instance)
        return gpm.read()


class _Gpm:
    """Two alternating GPM samples of one GPU or MIG instance; metrics are computed between them."""

    def __init__(self, gpu: Any, instance: int | None) -> None:
        self._gpu = gpu
        self._instance = instance
        self._older = pynvml.nvmlGpmSampleAlloc()
        self._newer = pynvml.nvmlGpmSampleAlloc()
        self._has_sample = False

    def read(self) -> dict[str, float]:
        self._older, self._newer = self._newer, self._older
        had_sample, self._has_sample = self._has_sample, _call_or_none(self._sample) is not None
        if not (had_sample and self._has_sample):
            return {}
        request = pynvml.c_nvmlGpmMetricsGet_t()
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(GPM_METRICS)
        request.sample1, request.sample2 = self._older, self._newer
        for index, (metric, _) in enumerate(GPM_METRICS):
            request.metrics[index].metricId = metric
        if _call_or_none(pynvml.nvmlGpmMetricsGet, request) is None:
            return {}
        values = {name: request.metrics[index] for index, (_, name) in enumerate(GPM_METRICS)}
        return {
            name: float(result.value)
            for name, result in values.items()
            if result.nvmlReturn == pynvml.NVML_SUCCESS and math.isfinite(result.value)
        }

    def free(self) -> None:
        for sample in (self._older, self._newer):
            pynvml.nvmlGpmSampleFree(sample)

    def _sample(self) -> Any:
        if self._instance is None:
            return pynvml.nvmlGpmSampleGet(self._gpu, self._newer)
        return pynvml.nvmlGpmMigSampleGet(self._gpu, self._instance, self._newer)


def _read_numbers(gpu: Any) -> dict[str, float]:
    """All numbers of a whole GPU except GPM."""
    numbers = _read_fields(gpu) | _read_memory(gpu)
    rates = _call_or_none(pynvml.nvmlDeviceGetUtilizationRates, gpu)  # refused while MIG is on
    if rates is not None:
        numbers |= {"gpu_util_percent": float(rates.gpu), "memory_util_percent": float(rates.memory)}
    calls: Mapping[str, Callable[[], Any]] = {
        "gpu_temperature_celsius": lambda: pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU),
        "sm_clock_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),
        "memory_clock_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM),
        "encoder_util_percent": lambda: pynvml.nvmlDeviceGetEncoderUtilization(gpu)[0],
        "decoder_util_percent": lambda: pynvml.nvmlDeviceGetDecoderUtilization(gpu)[0],
        "power_limit_mw": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu),
    }
    if "power_instant_mw" not in numbers:
        calls = {**calls, "power_usage_mw": lambda: pynvml.nvmlDeviceGetPowerUsage(gpu)}
    for name, call in calls.items():
        value = _call_or_none(call)
        if value is not None and value not in _BLANKS:
            numbers[name] = float(value)
    return numbers


def _read_fields(gpu: Any) -> dict[str, float]:
    values = _call_or_none(pynvml.nvmlDeviceGetFieldValues, gpu, [(field_id, scope) for field_id, scope, _ in FIELDS])
    numbers: dict[str, float] = {}
    for (_, _, name), result in zip(FIELDS, values or (), strict=bool(values)):
        member = _VALUE_MEMBERS.get(result.valueType)
        if result.nvmlReturn != pynvml.NVML_SUCCESS or member is None:
            continue
        value = getattr(result.value, member)
        if value not in _BLANKS:
            numbers[name] = float(value)
    return numbers


def _read_memory(handle: Any) -> dict[str, float]:
    """Sizes in bytes. The older call counts memory reserved by the driver as used."""
    memory = _call_or_none(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if memory is None:
        memory = _call_or_none(pynvml.nvmlDeviceGetMemoryInfo, handle)
    sizes = {name: getattr(memory, name, None) for name in ("total", "reserved", "free", "used")}
    return {
        f"memory_{name}_bytes": float(size) for name, size in sizes.items() if size is not None and size not in _BLANKS
    }


def _read_pids(handle: Any) -> set[int]:
    """Compute processes on the GPU, including MPS clients; graphics processes are left out."""
    lists = (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3)
    return {int(process.pid) for call in lists for process in _call_or_none(call, handle) or ()}


def _call_or_none(call: Callable[..., Any], *arguments: object) -> Any:
    """Return the result of ``call``, or None if NVML does not support it here. Raises only errors in ``_FATAL``."""
    try:
        return call(*arguments)
    except pynvml.NVMLError as error:
        if error.value in _FATAL:
            raise
        return None


def _read_identity(handle: Any) -> _Identity:
    pci = _call_or_none(pynvml.nvmlDeviceGetPciInfo, handle)
    return _Identity(
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        model_name=str(pynvml.nvmlDeviceGetName(handle)),
        pci_bus_id=None if pci is None else _text(pci.busId),
    )


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _explain(error: Any) -> SourceError:
    hints = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
            "the NVIDIA driver is not installed (libnvidia-ml.so.1 was not found)",
            "Install the driver, or set collect.nvml.enabled to false on a machine without GPU.",
        ),
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
            "the NVIDIA driver is not loaded",
            "Load it with `modprobe nvidia`, then check `nvidia-smi`. In a container, pass the GPUs to it.",
        ),
        pynvml.NVML_ERROR_NO_PERMISSION: (
            "NVML denies access to the driver",
            "This user needs read and write permission on /dev/nvidia*.",
        ),
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "driver/library version mismatch",
            "The driver was updated: reload its kernel module or reboot the machine.",
        ),
    }
    message, hint = hints.get(error.value, (f"NVML failed: {error}", "`nvidia-smi` shows whether the driver works."))
    return SourceError(message, hint=hint)
