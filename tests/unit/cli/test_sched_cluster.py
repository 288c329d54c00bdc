"""``clusterscape sched simulate`` on GPU nodes: descriptions of clusters, and the results."""

import json
from pathlib import Path

import numpy as np
import pytest
from unit.cli.test_commands import run

from clusterscape.cli.sched_cluster import parse_cluster, read_cluster
from clusterscape.collect.job_traces import read_trace
from clusterscape.errors import QueryError

NODES = {"nodes": [{"count": 3, "gpus": 8}]}
TRACE = """job,user,submit_time,wait_time,run_time,wall_time,gpu_num,node_num,cpu_num
1,a,0,0,10,20,16,2,4
2,b,1,0,10,20,8,1,4
3,a,2,0,5,20,12,2,4
4,c,3,0,5,5,0.5,1,1
"""


def test_nodes_partitions_outages_and_names_are_read_when_a_cluster_is_described(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(
        """
        [[nodes]]
        count = 2
        gpus = 8
        model = "H100"
        cpus = 96
        memory_gib = 1024
        partition = "train"
        [[nodes]]
        name = "mig"
        gpus = 4
        cpus = 32
        partition = "small"
        mig_slices = 7
        [[partitions]]
        name = "small"
        max_gpus_per_user = 2
        [[outages]]
        node = "node-0001"
        from_s = 100
        [queues]
        debug = "small"
        [priorities]
        debug = 5
        """
    )
    cluster_file = read_cluster(path, None)
    cluster = cluster_file.cluster
    assert cluster.names == ("node-0001", "node-0002", "mig")
    assert [partition.name for partition in cluster.partitions] == ["small", "train"]
    assert cluster.partition.tolist() == [1, 1, 0]
    assert cluster.cpu_milli.tolist() == [96_000, 96_000, 32_000]
    assert cluster.slices.tolist() == [0, 0, 7]
    assert cluster.partitions[0].max_gpus_per_user == 2
    assert cluster_file.faults[0].to_s is None
    assert (cluster_file.partition_of, cluster_file.priority_of) == ({"debug": "small"}, {"debug": 5})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "no nodes"),
        ({"nodes": [{"gpu": 8}]}, "unknown key 'gpu'"),
        ({"nodes": [{"count": 0}]}, "count must be at least 1"),
        ({"nodes": [{"gpus": 8, "cpus": 4}, {"gpus": 8}]}, "set cpus for all groups"),
        (NODES | {"outages": [{"node": "x", "kind": "boom", "from_s": 1}]}, "invalid outage"),
        (NODES | {"partitions": {"a": 1}}, "must be a list of tables"),
        ({"nodes": [{"name": "a", "gpus": 1}, {"name": "a", "gpus": 1}]}, "same name"),
        ({"nodes": [{"gpus": 1, "mig_slices": 3}]}, "must divide"),
        ({"nodes": [{"count": 10**9, "gpus": 8}]}, "more than 100,000 nodes"),
        ({"nodes": [{"gpus": 10**9}]}, "1,024 GPUs on a node"),
        ({"nodes": [{"gpus": 8, "cpus": float("inf")}]}, "of anything"),
        ({"nodes": [{"gpus": 8, "memory_gib": float("nan")}]}, "at least 0"),
    ],
)
def test_error_says_what_is_wrong_when_a_cluster_is_not_understood(table: dict[str, object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_cluster(table, "test")


def test_cluster_is_uniform_when_given_as_a_product() -> None:
    assert read_cluster(None, "3x8").cluster.gpus.tolist() == [8, 8, 8]
    with pytest.raises(QueryError, match="invalid --nodes"):
        read_cluster(None, "many")
    assert np.all(read_cluster(None, "2x4").cluster.cpu_milli == 0)


def test_measures_sizes_and_schedule_are_reported_when_a_trace_runs_on_nodes(tmp_path: Path) -> None:
    trace, output = tmp_path / "trace.csv", tmp_path / "schedule.swf"
    trace.write_text(TRACE)
    cluster = tmp_path / "cluster.toml"
    cluster.write_text("[[nodes]]\ncount = 3\ngpus = 8\n")
    arguments = ("sched", "simulate", str(trace), "--policy", "size-priority", "--placement", "fgd")
    done = run(*arguments, "--cluster", str(cluster), "--output", str(output), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["jobs"], report["nodes"], report["gpus"], report["placement"]) == (4, 3, 24, "fgd")
    assert report["measures"]["unfinished_jobs"] == 0
    assert [size_class["jobs"] for size_class in report["sizes"]] == [1, 1, 2]
    assert report["sizes"][0]["reference_max_s"] is not None
    written = read_trace(output)
    assert (len(written), written.total) == (4, 24)
    again = run(*arguments, "--nodes", "3x8")
    assert "fairness over users" in again.stdout
    assert report["fingerprint"][:16] in again.stdout  # the same input gives the same output
    refused = run("sched", "simulate", str(trace), "--nodes", "3x8", "--backfill", "conservative")
    assert "not available for clusters" in refused.stderr
