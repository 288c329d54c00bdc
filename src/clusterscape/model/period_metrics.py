"""The metrics of users and projects over a period, as rows of the catalogue in ``metrics``: sums and ratios of their ended jobs.

They are computed from the summaries of jobs, not from samples: ``increase over last 7d`` is the sum over the jobs that ended in
these days, ``mean`` the ratio of all of them together, ``p50`` the median of the single jobs.
"""

from typing import NamedTuple

MIN_RUN_S = 1800
"""Shorter jobs do not count as unused: they are tests, or failed at the start."""
MUCH_MEMORY_PER_GPU_BYTES = 250e9
MEMORY_USED_RATIO = 0.8
MANY_CORES_PER_GPU = 18
LOW_UTIL_RATIO = 0.15
NODE_SHARE = 0.5
SERIAL = (0.85, 1.0)


class PeriodMetric(NamedTuple):
    """One metric; ``is_sum``: a sum over jobs, else a ratio or a rank."""

    name: str
    label: str
    unit: str
    text: str
    is_sum: bool = True


PERIOD_METRICS: tuple[PeriodMetric, ...] = (
    PeriodMetric("period_jobs_count", "Jobs", "count", "Jobs that ended."),
    PeriodMetric("period_gpu_hours_count", "GPU-hours", "count", "GPU-hours of jobs that ended."),
    PeriodMetric("period_core_hours_count", "Core-hours", "count", "Core-hours of jobs without GPUs that ended."),
    PeriodMetric(
        "unused_gpu_hours_count",
        "Unused GPU-hours",
        "count",
        "GPU-hours of GPUs that were never used, in runs of 30 minutes or more.",
    ),
    PeriodMetric(
        "gpu_efficiency_ratio",
        "GPU efficiency",
        "ratio",
        "Mean utilization of the GPUs of all jobs, by GPU-hours.",
        is_sum=False,
    ),
    PeriodMetric(
        "core_efficiency_ratio",
        "CPU efficiency",
        "ratio",
        "CPU time used of the cores' time, of all jobs without GPUs.",
        is_sum=False,
    ),
    PeriodMetric(
        "gpu_hours_share_ratio", "Share of GPU-hours", "ratio", "Share of the GPU-hours of all users.", is_sum=False
    ),
    PeriodMetric(
        "core_hours_share_ratio", "Share of core-hours", "ratio", "Share of the core-hours of all users.", is_sum=False
    ),
    PeriodMetric("gpu_hours_rank_count", "Rank by GPU-hours", "count", "1: the most GPU-hours.", is_sum=False),
    PeriodMetric("core_hours_rank_count", "Rank by core-hours", "count", "1: the most core-hours.", is_sum=False),
    PeriodMetric(
        "memory_heavy_gpu_hours_count",
        "GPU-hours with much CPU memory",
        "count",
        "GPU-hours of jobs with more than 250 GB of CPU memory per GPU, of which they used less than 80 %.",
    ),
    PeriodMetric(
        "core_heavy_gpu_hours_count",
        "GPU-hours with many cores",
        "count",
        "GPU-hours of jobs with more than 18 cores per GPU.",
    ),
    PeriodMetric(
        "scattered_gpu_hours_count",
        "Scattered GPU-hours",
        "count",
        "GPU-hours of jobs on several nodes with fewer GPUs on each than a node has.",
    ),
    PeriodMetric(
        "scattered_core_hours_count",
        "Scattered core-hours",
        "count",
        "Core-hours of jobs without GPUs on several nodes, with less than half of the cores and 80 % of the memory of each.",
    ),
    PeriodMetric(
        "overpowered_gpu_hours_count",
        "GPU-hours on too large GPUs",
        "count",
        "GPU-hours of jobs on one GPU that was used, but at most 15 %, with at most 10 GB of its memory.",
    ),
    PeriodMetric(
        "unused_limit_gpu_hours_count",
        "GPU-hours of unused time limits",
        "count",
        "GPU-hours between the end of completed jobs and their time limits.",
    ),
    PeriodMetric(
        "unused_limit_core_hours_count",
        "Core-hours of unused time limits",
        "count",
        "The same for cores, of jobs without GPUs.",
    ),
    PeriodMetric(
        "gpu_limit_use_ratio",
        "Time limit used, GPU jobs",
        "ratio",
        "GPU-hours used of those that the time limits of completed jobs asked for.",
        is_sum=False,
    ),
    PeriodMetric(
        "core_limit_use_ratio",
        "Time limit used, CPU jobs",
        "ratio",
        "The same for cores, of jobs without GPUs.",
        is_sum=False,
    ),
    PeriodMetric(
        "unused_node_jobs_count",
        "Jobs with unused nodes",
        "count",
        "Jobs of which a node used no CPU time at all, in runs of 30 minutes or more.",
    ),
    PeriodMetric(
        "unused_memory_tb_hours_count",
        "TB-hours of unused memory",
        "count",
        "CPU memory that jobs without GPUs had and did not use, times their run time.",
    ),
    PeriodMetric(
        "memory_use_ratio",
        "CPU memory used",
        "ratio",
        "Peak memory of that which jobs without GPUs had.",
        is_sum=False,
    ),
    PeriodMetric(
        "serial_core_hours_count",
        "Core-hours of serial jobs",
        "count",
        "Core-hours of jobs on one node with several cores that used one of them.",
    ),
)
