"""Forecasts on the live queue: answers, alternatives, refusals."""

from dataclasses import replace

import pytest
from clusters.forecast_site import forecast_site, waiting
from clusters.small import HOUR_MS, NOW, SmallCluster
from fastapi.testclient import TestClient

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import Node, NodeId, NodeState
from clusterscape.query import Queries
from clusterscape.query.scheduling.live_queue import read_live_queue
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.serve.app import create_app

__all__ = ["forecast_site"]


def test_waiting_workloads_are_in_order_and_nodes_hold_what_runs_when_the_queue_is_read(
    forecast_site: SmallCluster,
) -> None:
    queue = read_live_queue(forecast_site.queries.context)
    assert [job.workload for job in queue.waiting] == ["slurm:2", "slurm:3"]  # by priority, then submission
    assert queue.free_by_node() == {"a1": 1, "a2": 1, "v1": 4}


def test_no_job_starts_immediately_when_free_gpus_are_on_different_nodes(forecast_site: SmallCluster) -> None:
    held = [replace(waiting("8", 1), pending_reason="Dependency"), replace(waiting("7", 2), pending_reason="Resources")]
    forecast_site.records.write_workloads(held, at_ms=NOW)
    answer = WaitQuery(forecast_site.queries.context).waiting()
    assert [forecast.workload for forecast in answer.workloads] == ["slurm:2", "slurm:3", "slurm:7"]
    assert answer.left_out == 1
    # Two GPUs are free, one on each node: no workload that requests two on one node can start.
    assert not any(forecast.start.is_at_once for forecast in answer.workloads)


def test_start_is_predicted_with_alternatives_when_the_queue_is_long(forecast_site: SmallCluster) -> None:
    answer = WaitQuery(forecast_site.queries.context).ask(gpus=8, hours=4, machine_type="A100")
    assert (answer.start.partition, answer.start.ahead, answer.is_learned) == ("gpu", 2, False)
    assert answer.start.wait_s > 0
    likely, sure = answer.start.intervals
    assert (likely.level, sure.level) == (0.8, 0.9)
    assert NOW <= sure.from_at <= likely.from_at <= answer.start.likely_at <= likely.to_at <= sure.to_at
    # By the limits: 6 GPUs until +1 h, then both waiting jobs for an hour.
    assert answer.start.plan_at == NOW + 2 * HOUR_MS
    changes = {other.change: other.start for other in answer.alternatives}
    assert changes["fewer_gpus"].wait_s < answer.start.wait_s
    assert answer.assumptions


def test_the_partition_that_starts_first_answers_when_none_is_named(forecast_site: SmallCluster) -> None:
    answer = WaitQuery(forecast_site.queries.context).ask(gpus=4, hours=1)
    assert (answer.start.partition, answer.start.is_at_once) == ("old", True)
    assert [(other.change, other.start.partition) for other in answer.alternatives] == [("partition", "gpu")]


def test_an_impossible_job_is_refused_when_no_partition_runs_it(forecast_site: SmallCluster) -> None:
    waits = WaitQuery(forecast_site.queries.context)
    with pytest.raises(QueryError, match="no partition runs 9 GPUs") as refused:
        waits.ask(gpus=9, hours=1)
    assert "gpu: 8 × A100-80G" in (refused.value.hint or "")
    with pytest.raises(NotFoundError, match="no partition 'nowhere' that is up"):
        waits.ask(gpus=1, hours=1, partition="nowhere")
    with pytest.raises(QueryError, match="for 48 h"):
        waits.ask(gpus=8, hours=48)  # longer than the partition allows


def test_smaller_nodes_do_not_count_when_memory_is_asked_for(forecast_site: SmallCluster) -> None:
    small = Node(
        id=NodeId("v1"), partitions=("old",), machine_type="V100", state=NodeState.IDLE, gpu_count=4, memory_bytes=2**35
    )
    forecast_site.records.write_inventory(nodes=[small], partitions=[], units=[], at_ms=NOW)
    waits = WaitQuery(forecast_site.queries.context)
    assert waits.ask(gpus=4, hours=1, memory_gib=32).start.partition == "old"
    assert waits.ask(gpus=4, hours=1, memory_gib=64).start.partition == "gpu"
    with pytest.raises(QueryError, match="V100 with 64 GiB per node") as refused:
        waits.ask(gpus=4, hours=1, machine_type="V100", memory_gib=64)
    assert "old: 4 × V100" in (refused.value.hint or "")


def test_routes_answer_when_a_page_asks(forecast_site: SmallCluster) -> None:
    queries: Queries = forecast_site.queries
    with TestClient(create_app(queries)) as client:
        answer = client.get("/api/v1/scheduling/wait", params={"gpus": 8, "hours": 4, "machine_type": "A100"}).json()
        assert answer["start"]["gpus"] == 8
        listed = client.get("/api/v1/scheduling/waiting").json()
        assert [row["workload"] for row in listed["workloads"]] == ["slurm:2", "slurm:3"]
        assert client.get("/api/v1/scheduling/models").json()["models"][0]["name"] == "run time"
        assert client.get("/api/v1/scheduling/reliability").json()["jobs"] == 0
        refused = client.get("/api/v1/scheduling/wait", params={"gpus": 99, "hours": 1})
        assert refused.status_code == 422
        assert "no partition runs 99 GPUs" in refused.json()["error"]["message"]
        assert client.get("/api/v1/scheduling/wait", params={"gpus": 0, "hours": 1}).status_code == 422
