"""Sums and ratios of ended jobs by user or project, as columns; the metrics are those of ``model/period_metrics.py``.

What was not measured adds nothing to a sum, and a ratio without measured jobs is null.
"""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from clusterscape.model import WorkloadState
from clusterscape.model.period_metrics import (
    LOW_UTIL_RATIO,
    MANY_CORES_PER_GPU,
    MEMORY_USED_RATIO,
    MIN_RUN_S,
    MUCH_MEMORY_PER_GPU_BYTES,
    NODE_SHARE,
    SERIAL,
)

SMALL_GPU_MEMORY_BYTES = 10e9
MEDIAN = "_p50"
"""Appended to the name of a ratio: the median of single jobs."""


@dataclass(frozen=True, slots=True)
class NodeSize:
    """The largest node: what a job on several nodes could have had on one of them. None: unknown."""

    gpus: int | None = None
    cores: int | None = None
    memory_bytes: int | None = None


def sum_jobs(jobs: pl.DataFrame, by: Literal["user", "project"], size: NodeSize) -> pl.DataFrame:
    """One row per user or project. ``jobs``: columns of ``RecordReader.summary_columns``."""
    hours, gpus, nodes = pl.col("run_s") / 3600, pl.col("gpus"), pl.col("nodes")
    has_gpus, is_long = gpus > 0, pl.col("run_s") >= MIN_RUN_S
    cores = pl.when(has_gpus).then(0).otherwise(pl.col("cpus").fill_null(0))
    gpu_hours, core_hours = hours * gpus, hours * cores
    util, cpu_s = pl.col("gpu_util_ratio"), pl.col("cpu_s")
    memory = pl.coalesce("memory_limit_bytes", pl.col("memory_requested_bytes").cast(pl.Float64))
    used_memory = pl.col("memory_used_bytes")
    has_limit = (pl.col("state") == WorkloadState.COMPLETED.value) & (pl.col("time_limit_s") > 0)
    limit_hours = pl.col("time_limit_s") / 3600
    busy_cores = cpu_s / pl.col("run_s")
    is_scattered_gpu = (nodes > 1) & has_gpus & (gpus < nodes * (size.gpus or 0))
    is_scattered_cpu = (
        (nodes > 1)
        & ~has_gpus
        & (cores < NODE_SHARE * nodes * (size.cores or 0))
        & (memory < MEMORY_USED_RATIO * nodes * (size.memory_bytes or 0))
    )
    is_serial = ~has_gpus & (nodes == 1) & (cores > 1) & (busy_cores > SERIAL[0]) & (busy_cores <= SERIAL[1])
    is_overpowered = (
        (gpus == 1) & (util > 0) & (util <= LOW_UTIL_RATIO) & (pl.col("gpu_memory_peak_bytes") < SMALL_GPU_MEMORY_BYTES)
    )
    is_memory_heavy = (
        has_gpus & (memory / gpus > MUCH_MEMORY_PER_GPU_BYTES) & (used_memory < MEMORY_USED_RATIO * memory)
    )
    is_core_heavy = has_gpus & (pl.col("cpus") / gpus > MANY_CORES_PER_GPU)
    is_measured_cpu = ~has_gpus & cpu_s.is_not_null()
    is_measured_memory = ~has_gpus & used_memory.is_not_null() & memory.is_not_null()
    limit_use = pl.when(has_limit).then(pl.col("run_s") / pl.col("time_limit_s"))

    def total(value: pl.Expr, where: pl.Expr) -> pl.Expr:
        return pl.when(where).then(value).otherwise(0.0).fill_null(0.0).sum()

    table = (
        jobs.filter(pl.col(by).is_not_null())
        .group_by(by)
        .agg(
            period_jobs_count=pl.len().cast(pl.Float64),
            period_gpu_hours_count=gpu_hours.sum(),
            period_core_hours_count=core_hours.sum(),
            unused_gpu_hours_count=total(hours * pl.col("gpus_unused").fill_null(0), is_long),
            _util=total(util * gpu_hours, util.is_not_null()),
            _util_hours=total(gpu_hours, util.is_not_null()),
            _cpu_hours=total(cpu_s / 3600, is_measured_cpu),
            _core_hours=total(core_hours, is_measured_cpu),
            memory_heavy_gpu_hours_count=total(gpu_hours, is_memory_heavy),
            core_heavy_gpu_hours_count=total(gpu_hours, is_core_heavy),
            scattered_gpu_hours_count=total(gpu_hours, is_scattered_gpu),
            scattered_core_hours_count=total(core_hours, is_scattered_cpu),
            overpowered_gpu_hours_count=total(gpu_hours, is_overpowered),
            unused_limit_gpu_hours_count=total((limit_hours - hours).clip(0) * gpus, has_limit),
            unused_limit_core_hours_count=total((limit_hours - hours).clip(0) * cores, has_limit),
            _gpu_limit=total(limit_hours * gpus, has_limit),
            _gpu_limit_used=total(gpu_hours, has_limit),
            _core_limit=total(limit_hours * cores, has_limit),
            _core_limit_used=total(core_hours, has_limit),
            gpu_limit_use_ratio_p50=limit_use.filter(has_gpus).median(),
            core_limit_use_ratio_p50=limit_use.filter(~has_gpus).median(),
            unused_node_jobs_count=total(pl.lit(1.0), is_long & (pl.col("nodes_unused") > 0)),
            unused_memory_tb_hours_count=total((memory - used_memory).clip(0) / 1e12 * hours, is_measured_memory),
            _memory_used=total(used_memory * hours, is_measured_memory),
            _memory=total(memory * hours, is_measured_memory),
            memory_use_ratio_p50=(used_memory / memory).filter(~has_gpus).median(),
            serial_core_hours_count=total(core_hours, is_serial),
        )
    )

    def ratio(part: str, whole: str) -> pl.Expr:
        return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))

    gpu_sum, core_sum = pl.col("period_gpu_hours_count"), pl.col("period_core_hours_count")
    return (
        table.with_columns(
            gpu_efficiency_ratio=ratio("_util", "_util_hours"),
            core_efficiency_ratio=ratio("_cpu_hours", "_core_hours"),
            gpu_hours_share_ratio=pl.when(gpu_sum.sum() > 0).then(gpu_sum / gpu_sum.sum()),
            core_hours_share_ratio=pl.when(core_sum.sum() > 0).then(core_sum / core_sum.sum()),
            gpu_hours_rank_count=gpu_sum.rank("min", descending=True).cast(pl.Float64),
            core_hours_rank_count=core_sum.rank("min", descending=True).cast(pl.Float64),
            gpu_limit_use_ratio=ratio("_gpu_limit_used", "_gpu_limit"),
            core_limit_use_ratio=ratio("_core_limit_used", "_core_limit"),
            memory_use_ratio=ratio("_memory_used", "_memory"),
        )
        .drop(pl.selectors.starts_with("_"))
        .sort(by)
    )
