"""From traces to jobs of a GPU cluster."""

from pathlib import Path

import pytest

from clusterscape.cli.sched_cluster import parse_cluster
from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import QueryError
from clusterscape.model.jobs import JobTrace
from clusterscape.simulate.batch import PRESETS
from clusterscape.simulate.cluster import Cluster, ClusterJobs, prepare_cluster_jobs
from clusterscape.simulate.placing import UNITS_PER_GPU

LUMOS = "job,user,submit_time,wait_time,run_time,wall_time,gpu_num,node_num,cpu_num\n"
NODES = {"nodes": [{"count": 3, "gpus": 8}]}


def make_trace(folder: Path, *lines: str) -> JobTrace:
    path = folder / "trace.csv"
    path.write_text(LUMOS + "".join(f"{place},u,{line}\n" for place, line in enumerate(lines)))
    return read_trace(path, "lumos")


def prepare(trace: JobTrace, cluster: Cluster, **names: dict[str, str]) -> tuple[ClusterJobs, list[str]]:
    jobs, notes = prepare_cluster_jobs(
        trace,
        cluster,
        estimates="request",
        semantics=PRESETS["clusterscape"],
        partition_of=names.get("partition_of"),
    )
    return jobs, [str(note) for note in notes]


def test_gangs_are_cut_to_nodes_and_shares_stay_shares_when_gpus_are_counted(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, "0,0,10,20,16,2,4", "1,0,10,20,12,,4", "2,0,10,20,0.5,1,1", "3,0,10,20,4,4,4")
    jobs, notes = prepare(trace, parse_cluster(NODES, "test").cluster)
    assert jobs.nodes.tolist() == [2, 2, 1, 4][:3]
    assert jobs.gpus.tolist() == [8, 6, 1]
    assert jobs.units.tolist() == [UNITS_PER_GPU, UNITS_PER_GPU, UNITS_PER_GPU // 2]
    assert any("fits on no node of its partition, or on too few" in note for note in notes)  # 4 nodes of 3


def test_jobs_are_left_out_and_counted_when_a_partition_refuses_them(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, "0,0,10,20,1,1,1", "1,0,10,20,9,2,1", "2,0,10,9000,1,1,1")
    limits = {"partitions": [{"name": "all", "max_gpus_per_job": 8, "max_hours": 2}]}
    jobs, notes = prepare(trace, parse_cluster(NODES | limits, "test").cluster)
    assert len(jobs) == 1
    assert "1 dropped: larger than partition all allows (8 GPUs) (line 3)" in notes
    assert "1 dropped: requests more time than partition all allows (7,200 s) (line 4)" in notes


def test_error_says_why_when_no_job_is_left(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, "0,0,10,20,99,1,1")
    with pytest.raises(QueryError, match="no job of"):
        prepare(trace, parse_cluster(NODES, "test").cluster)
    with pytest.raises(QueryError, match="unknown partition 'x'"):
        prepare(trace, parse_cluster(NODES, "test").cluster, partition_of={"q": "x"})


def test_processors_are_refused_when_a_trace_counts_no_gpus(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    path.write_text("; MaxProcs: 8\n1 0 -1 10 6 -1 -1 6 10 -1 1 1 -1 -1 -1 -1 -1 -1\n")
    with pytest.raises(QueryError, match="counts processors"):
        prepare(read_trace(path), parse_cluster(NODES, "test").cluster)
