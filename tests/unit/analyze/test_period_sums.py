"""Sums of ended jobs by user and project, against plain Python over the same jobs."""

from dataclasses import asdict
from statistics import median

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.analyze.test_job_advice import GIB, gpu_summary, summary

from clusterscape.analyze.periods.sums import NodeSize, sum_jobs
from clusterscape.model import METRICS, WorkloadState
from clusterscape.model.job_summaries import JobSummary
from clusterscape.model.metrics import MetricSubject
from clusterscape.model.period_metrics import PERIOD_METRICS

SIZE = NodeSize(gpus=4, cores=64, memory_bytes=512 * 2**30)


def table(*jobs: JobSummary) -> pl.DataFrame:
    rows = [{name: value for name, value in asdict(job).items() if name not in ("name", "detail")} for job in jobs]
    floats = ("cpu_s", "peak_cores", "memory_used_bytes", "memory_limit_bytes", "memory_peak_bytes", "gpu_util_ratio")
    schema = dict.fromkeys((*floats, "gpu_memory_peak_bytes", "gpu_memory_total_bytes", "run_s"), pl.Float64)
    whole = (
        "nodes",
        "gpus",
        "cpus",
        "time_limit_s",
        "nodes_unused",
        "gpus_idle",
        "gpus_unused",
        "memory_requested_bytes",
    )
    return pl.DataFrame(rows, schema_overrides=schema | dict.fromkeys(whole, pl.Int64))


def sums(*jobs: JobSummary) -> dict[str, float]:
    [row] = sum_jobs(table(*jobs), "user", SIZE).to_dicts()
    return row


def test_every_metric_of_the_catalogue_has_a_column() -> None:
    names = {metric.name for metric in METRICS.values() if metric.subject is MetricSubject.PERIOD}
    assert names == {metric.name for metric in PERIOD_METRICS}
    assert names <= set(sum_jobs(table(summary()), "user", SIZE).columns)


@pytest.mark.parametrize(
    ("metric", "counted", "spared"),
    [
        ("unused_gpu_hours", gpu_summary(gpus=4, gpus_unused=2), gpu_summary(gpus=4, gpus_unused=2, run_s=900.0)),
        (
            "memory_heavy_gpu_hours",
            gpu_summary(memory_limit_bytes=300 * GIB, memory_used_bytes=100 * GIB),
            gpu_summary(memory_limit_bytes=300 * GIB, memory_used_bytes=280 * GIB),
        ),
        ("core_heavy_gpu_hours", gpu_summary(cpus=19), gpu_summary(cpus=18)),
        ("scattered_gpu_hours", gpu_summary(nodes=2, gpus=6), gpu_summary(nodes=2, gpus=8)),
        ("scattered_core_hours", summary(nodes=2, cpus=40), summary(nodes=2, cpus=128)),
        (
            "overpowered_gpu_hours",
            gpu_summary(gpu_util_ratio=0.1),
            gpu_summary(gpu_util_ratio=0.1, gpu_memory_peak_bytes=20 * GIB),
        ),
        ("unused_limit_gpu_hours", gpu_summary(), gpu_summary(state=WorkloadState.FAILED)),
        ("unused_limit_core_hours", summary(), summary(time_limit_s=None)),
        ("unused_node_jobs", summary(nodes_unused=1), summary(nodes_unused=0)),
        ("unused_memory_tb_hours", summary(), summary(memory_used_bytes=None)),
        ("serial_core_hours", summary(cpu_s=7000.0), summary(cpu_s=8000.0)),
    ],
)
def test_a_sum_counts_only_the_jobs_that_it_is_about(metric: str, counted: JobSummary, spared: JobSummary) -> None:
    name = f"{metric}_count"
    assert sums(spared)[name] == 0
    assert sums(counted, spared)[name] == sums(counted)[name] > 0


JOBS = st.builds(
    gpu_summary,
    user=st.sampled_from(["ada", "bob", "cy"]) | st.none(),
    project=st.sampled_from(["ml", "bio"]),
    gpus=st.integers(0, 8),
    nodes=st.integers(1, 4),
    cpus=st.integers(1, 200) | st.none(),
    run_s=st.floats(1, 1e6),
    time_limit_s=st.integers(1, 10**6) | st.none(),
    gpu_util_ratio=st.floats(0, 1) | st.none(),
    gpus_unused=st.integers(0, 8) | st.none(),
    cpu_s=st.floats(0, 1e7) | st.none(),
    memory_used_bytes=st.floats(0, 64 * GIB) | st.none(),
    state=st.sampled_from([WorkloadState.COMPLETED, WorkloadState.FAILED]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(JOBS, min_size=1, max_size=12))
def test_sums_and_ratios_equal_plain_loops(jobs: list[JobSummary]) -> None:
    result = {row["user"]: row for row in sum_jobs(table(*jobs), "user", SIZE).to_dicts()}
    assert set(result) == {job.user for job in jobs if job.user is not None}
    everything = sum(job.gpus * job.run_s / 3600 for job in jobs if job.user is not None)
    for user, row in result.items():
        own = [job for job in jobs if job.user == user]
        gpu_hours = sum(job.gpus * job.run_s / 3600 for job in own)
        assert row["period_gpu_hours_count"] == pytest.approx(gpu_hours)
        unused = sum((job.gpus_unused or 0) * job.run_s / 3600 for job in own if job.run_s >= 1800)
        assert row["unused_gpu_hours_count"] == pytest.approx(unused)
        measured = [job for job in own if job.gpus and job.gpu_util_ratio is not None]
        hours = sum(job.gpus * job.run_s for job in measured)
        mean = sum(job.gpus * job.run_s * (job.gpu_util_ratio or 0) for job in measured) / hours if hours else None
        assert row["gpu_efficiency_ratio"] == (None if mean is None else pytest.approx(mean))
        assert row["gpu_hours_share_ratio"] == (pytest.approx(gpu_hours / everything) if everything else None)
        limited = [
            job.run_s / job.time_limit_s
            for job in own
            if job.gpus and job.time_limit_s and job.state is WorkloadState.COMPLETED
        ]
        assert row["gpu_limit_use_ratio_p50"] == (pytest.approx(median(limited)) if limited else None)
        rank = 1 + sum(other["period_gpu_hours_count"] > row["period_gpu_hours_count"] for other in result.values())
        assert row["gpu_hours_rank_count"] == rank
