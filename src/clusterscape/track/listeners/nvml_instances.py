"""Values of MIG instances, as far as the driver gives them: memory, and on Hopper and later how busy its parts were.

Utilization, power and energy of an instance no driver tells; they are left out. Instances come and go: they are looked up again.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from clusterscape.track.listeners.nvml_rates import Part

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
    """The instances of one GPU. An instance may be removed at any moment: its errors are nobody's."""

    def __init__(self, nvml: Any, gpu: Any) -> None:
        self._nvml = nvml
        self._gpu = gpu
        mode = self._ask(nvml.nvmlDeviceGetMigMode, gpu)
        self._is_on = mode is not None and int(mode[0]) == nvml.NVML_DEVICE_MIG_ENABLE
        self._handles: dict[int, Any] = {}
        self._samples: dict[int, Any] = {}  # performance counters when last asked
        self._until_look = 0

    def read(self, parts: Part) -> list[InstanceReading]:
        """What is due; empty where MIG is off."""
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
        found: dict[int, Any] = {}
        for place in range(int(self._ask(nvml.nvmlDeviceGetMaxMigDeviceCount, self._gpu) or 0)):
            handle = self._ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, self._gpu, place)
            number = None if handle is None else self._ask(nvml.nvmlDeviceGetGpuInstanceId, handle)
            if number is not None:
                found[int(number)] = handle
        for number in self._samples.keys() - found.keys():
            self._ask(nvml.nvmlGpmSampleFree, self._samples.pop(number))
        self._handles = found

    def _read_one(self, number: int, parts: Part) -> dict[str, float]:
        found: dict[str, float] = {}
        if Part.MEMORY in parts:
            memory = self._ask(self._nvml.nvmlDeviceGetMemoryInfo, self._handles[number])
            if memory is not None:
                found["memory_used_bytes"] = float(memory.used)
        if Part.COUNTERS in parts:
            self._add_activity(number, found)
        return found

    def _add_activity(self, number: int, found: dict[str, float]) -> None:
        """Since the last question; nothing the first time, and nothing on GPUs older than Hopper."""
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
            found |= self._between(before, now)
        self._ask(nvml.nvmlGpmSampleFree, before)

    def _between(self, before: Any, now: Any) -> dict[str, float]:
        nvml = self._nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(_METRICS)
        asked.sample1, asked.sample2 = before, now
        for place, metric in enumerate(_METRICS):
            asked.metrics[place].metricId = metric
        if self._ask(nvml.nvmlGpmMetricsGet, asked) is None:
            return {}
        return {
            name: asked.metrics[place].value * _PERCENT
            for place, name in enumerate(_METRICS.values())
            if asked.metrics[place].nvmlReturn == nvml.NVML_SUCCESS
        }

    def _ask(self, call: Callable[..., Any], *arguments: object) -> Any:
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None
