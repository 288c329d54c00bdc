"""What a job used of its nodes, from samples: of itself by its number, of its GPUs by its allocations."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from clusterscape.analyze.jobcard.rounding import round_sample
from clusterscape.model import Allocation, NodeId, UnitId, UnixMs, Workload, job_unit_id
from clusterscape.model.job_usage import GpuUsage, JobUsage, NodeUsage
from clusterscape.model.metrics import JOB_NUMBER
from clusterscape.query.context import QueryContext
from clusterscape.store.metrics.contract import SeriesStatistic

MAX_SAMPLES = 400_000
"""Above this, memory is read as the largest value of steps instead of sample by sample."""
USUAL_INTERVAL_MS = 15_000
RSS, SHARED = "job_memory_rss_bytes", "job_memory_shared_bytes"


@dataclass(frozen=True, slots=True)
class GpuHold:
    """A GPU or MIG instance during [start, end)."""

    unit: UnitId
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWindow:
    """One execution of a job: when, where, and under which names exporters report it."""

    workload: Workload
    start: UnixMs
    end: UnixMs  # the last moment
    run_s: float
    gpu_count: int
    nodes: tuple[NodeId, ...]

    @property
    def job_units(self) -> dict[UnitId, NodeId]:
        """The ids of its parts on nodes."""
        return {job_unit_id(name, node): node for node in self.nodes for name in self.names}

    @property
    def names(self) -> list[str]:
        """Its number, and its SLUID."""
        number = self.workload.tags.get("job_id") or self.workload.id.partition(":")[2]
        sluid = self.workload.tags.get("sluid")
        return [number, sluid] if sluid else [number]


def find_held(context: QueryContext, window: JobWindow) -> list[GpuHold]:
    """Its GPUs: by its allocations, else by the job numbers that its nodes' exporters reported."""
    allocations = context.records.allocations(workload=window.workload.id)
    held = [_clip(allocation, window) for allocation in allocations]
    return [unit for unit in held if unit.start < unit.end] or (
        _find_by_number(context, window) if window.gpu_count else []
    )


def _clip(allocation: Allocation, window: JobWindow) -> GpuHold:
    end = window.end + 1 if allocation.to_at is None else min(window.end, allocation.to_at) + 1
    return GpuHold(allocation.unit, max(window.start, allocation.from_at), end)


def _find_by_number(context: QueryContext, window: JobWindow) -> list[GpuHold]:
    nodes = set(window.nodes)
    units = [unit.id for unit in context.records.units() if unit.node in nodes]
    table = context.metrics.series([JOB_NUMBER], units, start_ms=window.start, end_ms=UnixMs(window.end + 1))
    numbers = [float(name) for name in window.names if name.isdigit()]
    spans = (
        table.filter(pl.col("value").is_in(numbers))
        .group_by("unit", maintain_order=True)
        .agg(start=pl.col("time_ms").min(), end=pl.col("time_ms").max() + 1)
    )
    return [GpuHold(UnitId(unit), start, end) for unit, start, end in spans.select("unit", "start", "end").iter_rows()]


def read_usage(context: QueryContext, window: JobWindow, held: Sequence[GpuHold]) -> JobUsage:
    """The numbers of every node."""
    reading = _Reading(context, window)
    cpu_s, cores, limits = (
        reading.most(name) for name in ("job_cpu_seconds", "job_cores_count", "job_memory_limit_bytes")
    )
    memory = reading.peak_memory()
    gpus = _read_gpus(context, held)
    nodes: dict[str, NodeUsage] = {
        node: NodeUsage(
            cores=None if (count := cores.get(node)) is None else round(count),
            cpu_s=None if (seconds := cpu_s.get(node)) is None else round_sample(seconds),
            memory_used_bytes=memory.get(node),
            memory_limit_bytes=limits.get(node),
            gpus={index_of(unit): gpu for unit, gpu in gpus.items() if node_of(unit) == node},
        )
        for node in window.nodes
    }
    return JobUsage(run_s=window.run_s, gpu_count=window.gpu_count, nodes=nodes)


def node_of(unit: UnitId) -> str:
    """The node of a GPU's id."""
    return unit.rpartition(":")[0]


def index_of(unit: UnitId) -> str:
    """The index in a GPU's id, with the instance of MIG: ``3``, ``3/7``."""
    return unit.rpartition(":")[2]


class _Reading:
    """Reads metrics of the job on its nodes."""

    def __init__(self, context: QueryContext, window: JobWindow) -> None:
        self._metrics = context.metrics
        self._window = window
        self._units = window.job_units

    def most(self, metric: str) -> dict[NodeId, float]:
        """The largest value on each node."""
        window = self._window
        table = self._metrics.statistics(
            metric,
            [SeriesStatistic.MAX],
            start_ms=window.start,
            end_ms=UnixMs(window.end + 1),
            units=list(self._units),
        )
        return self._by_node(table.select("unit", value=pl.col("max")))

    def peak_memory(self) -> dict[NodeId, float]:
        """The most memory of processes and shared memory at the same time, on each node."""
        window = self._window
        span_ms = window.end + 1 - window.start
        steps = MAX_SAMPLES // max(1, len(self._units))
        step_ms = None if span_ms < steps * USUAL_INTERVAL_MS else -(-span_ms // steps // 60_000) * 60_000
        table = self._metrics.series(
            [RSS, SHARED], list(self._units), start_ms=window.start, end_ms=UnixMs(window.end + 1), step_ms=step_ms
        )
        value = "value" if step_ms is None else "max"
        rss = table.filter(pl.col("metric") == RSS).select("unit", "time_ms", rss=value)
        shared = table.filter(pl.col("metric") == SHARED).select("unit", "time_ms", shared=value)
        sums = rss.join(shared, on=["unit", "time_ms"], how="left").select(
            "unit", value=pl.col("rss") + pl.col("shared").fill_null(0.0)
        )
        return self._by_node(sums.group_by("unit").max())

    def _by_node(self, table: pl.DataFrame) -> dict[NodeId, float]:
        by_node: dict[NodeId, float] = {}
        for unit, value in table.select("unit", "value").iter_rows():
            if value is not None:
                node = self._units[UnitId(unit)]
                by_node[node] = max(value, by_node.get(node, value))
        return by_node


def _read_gpus(context: QueryContext, held: Sequence[GpuHold]) -> dict[UnitId, GpuUsage]:
    """The numbers of each GPU while it was held; units that were held at the same time are read together."""
    spans: dict[tuple[int, int], list[UnitId]] = {}
    for unit in held:
        spans.setdefault((unit.start, unit.end), []).append(unit.unit)
    gpus: dict[UnitId, GpuUsage] = {}
    for (start, end), units in spans.items():
        util = _statistic(context, "gpu_util_ratio", SeriesStatistic.MEAN, units, start, end)
        missing = [unit for unit in units if unit not in util]
        if missing:  # MIG instances, and exporters that report only this
            util |= _statistic(context, "graphics_active_ratio", SeriesStatistic.MEAN, missing, start, end)
        used = _statistic(context, "memory_used_bytes", SeriesStatistic.MAX, units, start, end)
        total = _read_memory_sizes(context, units, used, start, end)
        gpus |= {
            unit: GpuUsage(
                util_ratio=util.get(unit), memory_used_bytes=used.get(unit), memory_total_bytes=total.get(unit)
            )
            for unit in sorted(units)
        }
    return gpus


def _read_memory_sizes(
    context: QueryContext, units: Sequence[UnitId], used: Collection[UnitId], start: int, end: int
) -> Mapping[UnitId, float]:
    """The memory of each GPU, as sampled, else as the inventory has it."""
    total = _statistic(context, "memory_total_bytes", SeriesStatistic.MAX, units, start, end)
    missing = {unit for unit in units if unit in used and unit not in total}
    if not missing:
        return total
    sizes = {unit.id: float(unit.memory_bytes) for unit in context.records.units() if unit.memory_bytes is not None}
    return {**total, **{unit: sizes[unit] for unit in missing if unit in sizes}}


def _statistic(
    context: QueryContext, metric: str, statistic: SeriesStatistic, units: Iterable[UnitId], start: int, end: int
) -> dict[UnitId, float]:
    table = context.metrics.statistics(
        metric, [statistic], start_ms=UnixMs(start), end_ms=UnixMs(end), units=list(units)
    )
    return {
        UnitId(unit): value for unit, value in table.select("unit", str(statistic)).iter_rows() if value is not None
    }
