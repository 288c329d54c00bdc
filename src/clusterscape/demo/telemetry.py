"""Metrics of every GPU, as a pure function of (scenario, unit, time), with the names of dcgm-exporter's default counters.
There is no state, so history and live values agree.

Values are recorded shapes, scaled to the GPU, plus noise hashed from unit and time. Arithmetic is float32; results are
rounded to the digits that an exporter prints.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.demo.recorded import RECORDED_IDLE_CELSIUS, read_shapes
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.timeline import FULL_RATIO, GpuTimeline, TimelinePoints
from clusterscape.model import ALIASES, Names, SampleBatch
from clusterscape.model.arrays import Float32s, Float64s, Int64s, Uint32s
from clusterscape.model.durations import DAY_MS


@dataclass(frozen=True, slots=True)
class Field:
    """A DCGM field. ``decimals``: digits to which values are rounded, equal in the history and the exposition text.

    ``in_history``: False for fields that never change on a healthy cluster.
    """

    name: str
    type: str
    help: str
    decimals: int = 0
    in_history: bool = True

    @property
    def format(self) -> str:
        """printf format of the exporter: integers without decimals, others with six."""
        return "%.6f" if self.decimals else "%d"


FIELDS: tuple[Field, ...] = (
    Field("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."),
    Field("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", in_history=False),
    Field("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C)."),
    Field("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."),
    Field("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", 3),
    Field("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Total energy consumption since boot (in mJ)."),
    Field("DCGM_FI_DEV_POWER_MGMT_LIMIT", "gauge", "Power limit (in W).", 3, in_history=False),
    Field("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", in_history=False),
    Field("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %)."),
    Field("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %)."),
    Field("DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered."),
    Field("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB)."),
    Field("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB)."),
    Field("DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB).", in_history=False),
    Field(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for uncorrectable errors",
        in_history=False,
    ),
    Field("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed", in_history=False),
    Field("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.", 4),
    Field("DCGM_FI_PROF_SM_ACTIVE", "gauge", "The ratio of cycles an SM has at least 1 warp assigned.", 4),
    Field("DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "The ratio of number of warps resident on an SM.", 4),
    Field("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Ratio of cycles the tensor (HMMA) pipe is active.", 4),
    Field(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        4,
    ),
    Field("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "The rate of data transmitted over the PCIe bus in bytes per second."),
    Field("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "The rate of data received over the PCIe bus in bytes per second."),
    Field("DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "The rate of data transmitted over NVLink in bytes per second."),
    Field("DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "The rate of data received over NVLink in bytes per second."),
)


CHUNK_POINTS = 1 << 16  # arrays of this length fit into the CPU cache
WINDOW_POINTS = 1_200_000
WARMING_S = 75.0  # time constant of a heat sink
CONTEXT_MIB = 410
CLOCK_STEP_MHZ = 15.0
CHECKPOINT_BYTES_PER_S = 6e9


@dataclass(frozen=True, slots=True)
class TelemetrySnapshot:
    """All exported fields at one moment. ``units`` are the GPUs that are up; all arrays have shape (units,).

    ``jobs`` is the id of the job that holds each GPU, or 0.
    """

    time_ms: int
    units: NDArray[np.int32]
    jobs: Int64s
    values: Mapping[str, Float64s]


class DemoTelemetry:
    """Computes the metrics of one scenario."""

    def __init__(self, scenario: DemoScenario) -> None:
        self._scenario = scenario
        self._shapes = read_shapes()
        self._timeline = GpuTimeline(scenario, self._shapes)
        hardware = scenario.hardware
        machines = [node.machine for node in hardware.nodes for _ in range(node.gpu_count)]
        rng = np.random.default_rng([scenario.seed, 1])
        count = len(machines)
        self._unit_key: Uint32s = rng.integers(0, 2**32, count, dtype=np.uint32)
        self._idle_watts: Float32s = self._timeline.idle_watts.astype(np.float32)
        self._span_watts: Float32s = self._timeline.span_watts.astype(np.float32)
        self._base_celsius: Float32s = (RECORDED_IDLE_CELSIUS - 6.0 + 9.0 * rng.random(count)).astype(np.float32)
        self._memory_mib: Float32s = np.array([machine.memory_mib for machine in machines], np.float32)
        self._reserved_mib: Float32s = np.array([machine.reserved_mib for machine in machines], np.float32)
        self._sm_mhz: Float32s = np.array([machine.sm_clock_mhz for machine in machines], np.float32)
        self._limit_watts: Float32s = np.array([machine.power_limit_watts for machine in machines], np.float32)
        self._memory_mhz: Float32s = np.array([machine.memory_clock_mhz for machine in machines], np.float32)
        self._nvlink: Float32s = np.array([machine.nvlink_bytes_per_s for machine in machines], np.float32)
        self._replays: Float32s = np.floor(rng.exponential(0.4, count)).astype(np.float32)
        self._memory_skew: Float32s = (1.0 - 0.015 * rng.random(count)).astype(np.float32)

    def at(self, time_ms: int) -> TelemetrySnapshot:
        """All fields of all units that are up at ``time_ms``."""
        self._timeline.refresh(time_ms)
        points = self._timeline.grid(time_ms, 1, 1)
        jobs = self._timeline.rows.job[self._timeline.entries.row[points.entry]]
        return TelemetrySnapshot(time_ms, points.unit, jobs, self._evaluate(points, FIELDS))

    def history(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[list[SampleBatch]]:
        """Canonical samples at multiples of ``step_ms`` in [start, end): one batch per time window and metric.

        A window is within one UTC day. Its batches are ordered by metric, sorted by (unit, time), and share these two columns.
        """
        start_ms = max(start_ms, self._scenario.origin_s * 1000)
        self._timeline.refresh(end_ms)
        kept = sorted(
            (field for field in FIELDS if field.in_history), key=lambda field: ALIASES[field.name].metric.name
        )
        metrics = Names(ALIASES[field.name].metric.name for field in kept)
        units = Names(self._scenario.hardware.unit_ids)
        for first_ms, count in self._windows(start_ms, end_ms, step_ms):
            points = self._timeline.grid(first_ms, step_ms, count)
            values = self._evaluate(points, kept)
            batches = []
            for field in kept:
                alias = ALIASES[field.name]
                metric = np.full(len(points.unit), metrics.code(alias.metric.name), np.int32)
                batches.append(
                    SampleBatch(units, metrics, points.unit, metric, points.time_ms, values[field.name] * alias.scale)
                )
            yield batches

    def _windows(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[tuple[int, int]]:
        """(first time, number of times) of windows that are within one day and not too large."""
        most = max(1, WINDOW_POINTS // self._scenario.hardware.unit_count)
        first_ms = -(-start_ms // step_ms) * step_ms
        while first_ms < end_ms:
            stop_ms = min(end_ms, (first_ms // DAY_MS + 1) * DAY_MS)
            count = min(most, -(-(stop_ms - first_ms) // step_ms))
            yield first_ms, count
            first_ms += count * step_ms

    def _evaluate(self, points: TimelinePoints, fields: tuple[Field, ...] | list[Field]) -> dict[str, Float64s]:
        """Raw values as the exporter prints them, by field."""
        out = {field.name: np.empty(len(points.unit)) for field in fields}
        for low in range(0, len(points.unit), CHUNK_POINTS):
            piece = slice(low, low + CHUNK_POINTS)
            chunk = TimelinePoints(points.entry[piece], points.unit[piece], points.time_ms[piece])
            values = self._chunk(chunk)
            for field in fields:
                if field.name in values:
                    out[field.name][piece] = _rounded(values[field.name], field.decimals)
        if "DCGM_FI_DEV_XID_ERRORS" in out:
            self._mark_xid_errors(points, out["DCGM_FI_DEV_XID_ERRORS"])
        return out

    def _chunk(self, points: TimelinePoints) -> dict[str, Float32s | Float64s]:
        """Unrounded values of all fields but XID errors."""
        shapes, rows, entries = self._shapes, self._timeline.rows, self._timeline.entries
        unit, row = points.unit, entries.row[points.entry]
        elapsed_ms = points.time_ms - entries.start_ms[points.entry]
        elapsed_s = (elapsed_ms * 1e-3).astype(np.float32)
        fast, slow, shuffle = self._noise(points, row)
        place = self._place(row, elapsed_s, shuffle)

        level = rows.level[row]
        wander = 1.0 + rows.jitter[row] * (slow + 0.4 * fast)
        util = np.clip(shapes.util[place] * level * wander, 0.0, 100.0)
        power = shapes.power[place] * rows.power[row]
        activity = util * np.float32(0.01)
        watts = self._idle_watts[unit] + self._span_watts[unit] * power * (1.0 + 0.02 * fast)
        sm = np.minimum(activity * rows.sm[row] * (1.0 + 0.06 * slow + 0.03 * fast), 1.0)
        dram = shapes.memory_util[place] * np.minimum(level, 2.0) * wander
        memory_mib = self._memory_used(points, row, elapsed_s)
        total_mib, reserved_mib = self._memory_mib[unit], self._reserved_mib[unit]
        warmth, memory_warmth = self._warmth(points, row, place, elapsed_s)
        spread = 1.0 + 0.25 * fast
        sent = self._nvlink[unit] * rows.nvlink[row] * activity * spread
        checkpoint = shapes.checkpoint[place] * np.float32(CHECKPOINT_BYTES_PER_S)
        return {
            "DCGM_FI_DEV_SM_CLOCK": np.rint(shapes.clock[place] * self._sm_mhz[unit] / CLOCK_STEP_MHZ) * CLOCK_STEP_MHZ,
            "DCGM_FI_DEV_MEM_CLOCK": self._memory_mhz[unit],
            "DCGM_FI_DEV_MEMORY_TEMP": self._base_celsius[unit] + 3.0 + memory_warmth,
            "DCGM_FI_DEV_GPU_TEMP": self._base_celsius[unit] + warmth,
            "DCGM_FI_DEV_POWER_USAGE": watts,
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": self._energy_mj(points, row, elapsed_ms),
            "DCGM_FI_DEV_POWER_MGMT_LIMIT": self._limit_watts[unit],
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": self._replays[unit],
            "DCGM_FI_DEV_GPU_UTIL": util,
            "DCGM_FI_DEV_MEM_COPY_UTIL": np.minimum(dram, 100.0),
            "DCGM_FI_DEV_XID_ERRORS": np.zeros(len(unit), np.float32),
            "DCGM_FI_DEV_FB_FREE": total_mib - reserved_mib - memory_mib,
            "DCGM_FI_DEV_FB_USED": memory_mib,
            "DCGM_FI_DEV_FB_RESERVED": reserved_mib,
            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": np.zeros(len(unit), np.float32),
            "DCGM_FI_DEV_ROW_REMAP_FAILURE": np.zeros(len(unit), np.float32),
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": np.minimum(activity * (1.0 + 0.01 * fast), 1.0),
            "DCGM_FI_PROF_SM_ACTIVE": sm,
            "DCGM_FI_PROF_SM_OCCUPANCY": sm * (0.32 + 0.1 * rows.tensor[row]),
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": np.clip(power * rows.tensor[row] * (1.0 + 0.08 * slow), 0.0, 1.0),
            "DCGM_FI_PROF_DRAM_ACTIVE": np.clip(dram * 0.0095 * (1.0 + 0.05 * fast), 0.0, 1.0),
            "DCGM_FI_PROF_PCIE_TX_BYTES": rows.pcie_tx_bytes_per_s[row] * (0.25 + activity) * spread + checkpoint,
            "DCGM_FI_PROF_PCIE_RX_BYTES": rows.pcie_rx_bytes_per_s[row] * (0.25 + activity) * (1.0 + 0.3 * slow),
            "DCGM_FI_PROF_NVLINK_TX_BYTES": sent,
            "DCGM_FI_PROF_NVLINK_RX_BYTES": sent * (1.0 + 0.02 * slow),
        }

    def _noise(self, points: TimelinePoints, row: NDArray[np.int32]) -> tuple[Float32s, Float32s, Float32s]:
        """Noise per GPU and second in [−½, ½), per job and minute in [−½, ½), and per GPU and second in [0, 1)."""
        seconds = (points.time_ms // 1000).astype(np.uint32)
        mixed = _mix(self._unit_key[points.unit] ^ (seconds * np.uint32(0x9E3779B1)))
        common = _mix(self._timeline.rows.salt[row] ^ ((seconds // np.uint32(60)) * np.uint32(0x85EBCA6B)))
        fast = (mixed & np.uint32(0xFFFF)).astype(np.float32) * np.float32(2**-16) - np.float32(0.5)
        shuffle = (mixed >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
        slow = (common >> np.uint32(8)).astype(np.float32) * np.float32(2**-24) - np.float32(0.5)
        return fast, slow, shuffle

    def _place(self, row: NDArray[np.int32], elapsed_s: Float32s, shuffle: Float32s) -> Int64s:
        """Index into the shapes: by elapsed time if the shape is cyclic, else random."""
        shapes, rows = self._shapes, self._timeline.rows
        mode = rows.mode[row]
        cycle_s = rows.cycle_s[row]
        turns = elapsed_s / np.where(cycle_s > 0, cycle_s, np.float32(1.0))
        within = np.where(cycle_s > 0, turns - np.floor(turns), shuffle)
        length = shapes.length[mode]
        index: Int64s = shapes.offset[mode] + np.minimum((within * length).astype(np.int64), length - 1)
        return index

    def _memory_used(self, points: TimelinePoints, row: NDArray[np.int32], elapsed_s: Float32s) -> Float32s:
        rows = self._timeline.rows
        ratio = np.minimum(rows.memory_ratio[row] + rows.memory_per_s[row] * elapsed_s, FULL_RATIO)
        held = (
            ratio * self._memory_skew[points.unit] * (self._memory_mib[points.unit] - self._reserved_mib[points.unit])
        )
        # A free GPU uses a few MiB, an allocated one at least the driver's context.
        used: Float32s = np.where(rows.memory_ratio[row] > 0, np.maximum(held, CONTEXT_MIB), np.float32(4.0))
        return np.rint(used)

    def _warmth(
        self, points: TimelinePoints, row: NDArray[np.int32], place: Int64s, elapsed_s: Float32s
    ) -> tuple[Float32s, Float32s]:
        """°C of GPU and memory above idle; approach the new level exponentially (WARMING_S) after each change."""
        shapes, rows, entries = self._shapes, self._timeline.rows, self._timeline.entries
        power = np.minimum(rows.power[row], 1.0)
        before = entries.row[np.maximum(points.entry - 1, entries.first[points.unit])]
        mode = rows.mode[before]
        former = (shapes.power_mean[mode] * 22.0 * np.minimum(rows.power[before], 1.0)).astype(np.float32)
        memory = np.exp(elapsed_s * np.float32(-1.0 / WARMING_S))
        warmth = shapes.warmth[place] * power
        memory_warmth = shapes.memory_warmth[place] * power
        return warmth + (former - warmth) * memory, memory_warmth + (0.8 * former - memory_warmth) * memory

    def _energy_mj(self, points: TimelinePoints, row: NDArray[np.int32], elapsed_ms: Int64s) -> Float64s:
        since = self._timeline.energy_within(row, points.unit, elapsed_ms / 1000.0)
        total: Float64s = (self._timeline.entries.energy_j[points.entry] + since) * 1000.0
        return total

    def _mark_xid_errors(self, points: TimelinePoints, codes: Float64s) -> None:
        if not len(codes):
            return
        first_ms, last_ms = points.time_ms.min(), points.time_ms.max()
        recent = [e for e in self._scenario.xid_errors if e.from_ms <= last_ms and e.to_ms > first_ms]
        for error in sorted(recent, key=lambda error: error.from_ms):  # the latest error wins
            low, high = np.searchsorted(points.unit, (error.unit, error.unit + 1))
            times = points.time_ms[low:high]
            start, stop = np.searchsorted(times, (error.from_ms, error.to_ms))
            codes[low + start : low + stop] = error.code


def _mix(bits: Uint32s) -> Uint32s:
    """A 32-bit hash (the finalizer of MurmurHash3)."""
    bits = bits ^ (bits >> np.uint32(16))
    bits *= np.uint32(0x85EBCA6B)
    bits ^= bits >> np.uint32(13)
    bits *= np.uint32(0xC2B2AE35)
    bits ^= bits >> np.uint32(16)
    return bits


def _rounded(values: Float32s | Float64s, decimals: int) -> Float64s:
    """``values`` rounded to ``decimals``, as float64: equal to parsing the decimal text."""
    if not decimals:
        return np.rint(values).astype(np.float64)
    scale = 10.0**decimals
    rounded: Float64s = np.rint(values * np.float32(scale)).astype(np.float64) / scale
    return rounded
