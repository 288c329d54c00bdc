"""This cluster's workloads as a job trace."""

import dataclasses

import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster

from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.analyze.jobs.describe import describe_traces
from clusterscape.model import UnixMs, Workload, WorkloadId, WorkloadKind, WorkloadState
from clusterscape.query.scheduling.history import read_history


def test_workloads_are_jobs_when_the_history_is_read(small_cluster: SmallCluster) -> None:
    trace = read_history(small_cluster.records, name="small", now_ms=NOW)
    assert trace.frame["job_id"].to_list() == ["slurm:0", "slurm:1", "slurm:3"]
    assert trace.frame["status"].to_list() == ["failed", "unknown", "unknown"]
    assert trace.frame["wait_s"].to_list() == [3600.0, 3600.0, None]
    assert trace.frame["run_s"].to_list() == [7200.0, None, None]
    assert trace.frame["gpus"].to_list() == [1, 2, 3]
    assert (trace.size_unit, trace.total, trace.dropped) == ("gpus", 6, 1)
    assert [str(note) for note in trace.notes] == [
        "1 dropped: no submit time",
        "1 kept: still running: no run time yet",
        "1 kept: still waiting",
    ]


def test_what_runs_and_waits_now_counts_when_occupancy_is_described(small_cluster: SmallCluster) -> None:
    trace = read_history(small_cluster.records, name="small", now_ms=NOW)
    jobs = read_columns(trace)
    assert (jobs.is_running.tolist(), jobs.is_waiting.tolist()) == ([False, True, False], [False, False, True])
    description = describe_traces([trace]).traces[0]
    occupancy = description.occupancy
    assert occupancy is not None
    assert description.unit_hours == pytest.approx(occupancy.used_unit_hours)
    assert occupancy.used_unit_hours == pytest.approx(
        2 * 1 + 1 * 2
    )  # slurm:0 for two hours, slurm:1's two GPUs for one
    assert occupancy.utilization == pytest.approx(4 / (6 * 9))
    assert occupancy.course.waiting_jobs[-2] == pytest.approx(1)  # slurm:3
    assert occupancy.left_out == 0


def test_runs_are_left_out_and_ends_are_mapped_when_the_history_has_all_kinds(small_cluster: SmallCluster) -> None:
    states = {
        WorkloadState.OUT_OF_MEMORY: "failed",
        WorkloadState.NODE_FAILED: "failed",
        WorkloadState.PREEMPTED: "cancelled",
        WorkloadState.TIMEOUT: "timeout",
        WorkloadState.COMPLETED: "completed",
    }
    jobs = [
        Workload(
            id=WorkloadId(f"slurm:9{place}"),
            state=state,
            gpus_requested=1,
            submitted_at=UnixMs(NOW - 3 * HOUR_MS + place),
            started_at=UnixMs(NOW - 3 * HOUR_MS),  # a clock that is behind: before the submission
            ended_at=UnixMs(NOW - HOUR_MS),
        )
        for place, state in enumerate(states)
    ]
    run = dataclasses.replace(jobs[0], id=WorkloadId("run:1"), kind=WorkloadKind.RUN)
    idle = dataclasses.replace(jobs[0], id=WorkloadId("slurm:99"), gpus_requested=0)
    small_cluster.records.write_workloads([*jobs, run, idle], at_ms=NOW)
    trace = read_history(small_cluster.records, name="small", now_ms=NOW)
    statuses = dict(zip(trace.frame["job_id"], trace.frame["status"], strict=True))
    assert {job.id: statuses[job.id] for job in jobs} == dict(
        zip((job.id for job in jobs), states.values(), strict=True)
    )
    assert "run:1" not in statuses
    assert "slurm:99" not in statuses
    assert trace.frame["wait_s"].min() == 0
    assert "1 dropped: requests no GPU" in [str(note) for note in trace.notes]
