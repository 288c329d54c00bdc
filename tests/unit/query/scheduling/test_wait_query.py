"""Forecasts on the live queue: pools, answers, alternatives, the record of forecasts, learning from the site's history."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster
from fastapi.testclient import TestClient

from clusterscape.analyze.jobs.wait_intervals import WaitBins
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import Node, NodeId, NodeState, Partition, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.query import Queries
from clusterscape.query.scheduling.live_queue import read_live_queue
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.scheduling.waiting_log import KIND, ForecastLog, LoggedForecast
from clusterscape.serve.app import create_app
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SmallCluster]:
    """Two nodes of four A100 in partition ``gpu``, held until an hour from now; one free node of four V100 in ``old``."""
    storage = StorageSettings(data_dir=tmp_path)
    metrics = open_metric_store(storage, RetentionSettings(), cluster="forecast")
    records = open_record_store(storage)
    site = SmallCluster(metrics, records)
    nodes = [
        Node(id=NodeId(name), partitions=(part,), machine_type=kind, state=NodeState.MIXED, gpu_count=4)
        for name, part, kind in (("a1", "gpu", "A100-80G"), ("a2", "gpu", "A100-80G"), ("v1", "old", "V100"))
    ]
    parts = [
        Partition(name="gpu", nodes=(NodeId("a1"), NodeId("a2")), max_time_s=86_400),
        Partition(name="old", nodes=(NodeId("v1"),)),
    ]
    records.write_inventory(nodes=nodes, partitions=parts, units=[], at_ms=NOW)
    records.write_workloads([running("1", 6, hours=2), waiting("2", 4, priority=5), waiting("3", 4)], at_ms=NOW)
    yield site
    metrics.close()
    records.close()


def running(name: str, gpus: int, *, hours: int) -> Workload:
    return Workload(
        id=WorkloadId(f"slurm:{name}"),
        state=WorkloadState.RUNNING,
        user="ann",
        partition="gpu",
        gpus_requested=gpus,
        nodes=("a1", "a2"),
        time_limit_s=hours * 3600,
        submitted_at=UnixMs(NOW - 2 * HOUR_MS),
        started_at=UnixMs(NOW - HOUR_MS),
    )


def waiting(name: str, gpus: int, *, priority: int | None = None) -> Workload:
    return Workload(
        id=WorkloadId(f"slurm:{name}"),
        state=WorkloadState.WAITING,
        user="bob",
        partition="gpu",
        gpus_requested=gpus,
        priority=priority,
        time_limit_s=3600,
        submitted_at=UnixMs(NOW - HOUR_MS // 2),
    )


def ended(place: int, random: np.random.Generator) -> Workload:
    submitted = NOW - 40 * 24 * HOUR_MS + place * HOUR_MS
    started = submitted + 60_000
    return Workload(
        id=WorkloadId(f"slurm:9{place:04}"),
        state=WorkloadState.COMPLETED,
        user="ann" if place % 2 else "bob",
        partition="gpu",
        gpus_requested=1 + place % 4,
        time_limit_s=7200,
        submitted_at=UnixMs(submitted),
        started_at=UnixMs(started),
        ended_at=UnixMs(started + int(random.lognormal(7, 0.2) * 1000)),
    )


def test_waiting_workloads_are_in_order_and_nodes_hold_what_runs_when_the_queue_is_read(site: SmallCluster) -> None:
    queue = read_live_queue(site.queries.context)
    assert [job.workload for job in queue.waiting] == ["slurm:2", "slurm:3"]  # by priority, then submission
    assert queue.free_by_node() == {"a1": 1, "a2": 1, "v1": 4}


def test_nobody_starts_at_once_when_free_gpus_lie_on_different_nodes(site: SmallCluster) -> None:
    held = [replace(waiting("8", 1), pending_reason="Dependency"), replace(waiting("7", 2), pending_reason="Resources")]
    site.records.write_workloads(held, at_ms=NOW)
    answer = WaitQuery(site.queries.context).waiting()
    assert [each.workload for each in answer.workloads] == ["slurm:2", "slurm:3", "slurm:7"]
    assert answer.left_out == 1
    # Two GPUs are free, one on each node: no workload that asks for two on one node can have them.
    assert not any(each.start.is_at_once for each in answer.workloads)


def test_a_start_is_foretold_with_alternatives_when_the_queue_is_long(site: SmallCluster) -> None:
    answer = WaitQuery(site.queries.context).ask(gpus=8, hours=4, machine_type="A100")
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


def test_the_partition_that_starts_first_answers_when_none_is_named(site: SmallCluster) -> None:
    answer = WaitQuery(site.queries.context).ask(gpus=4, hours=1)
    assert (answer.start.partition, answer.start.is_at_once) == ("old", True)
    assert [(other.change, other.start.partition) for other in answer.alternatives] == [("partition", "gpu")]


def test_an_impossible_job_is_refused_when_no_partition_runs_it(site: SmallCluster) -> None:
    waits = WaitQuery(site.queries.context)
    with pytest.raises(QueryError, match="no partition runs 9 GPUs") as refused:
        waits.ask(gpus=9, hours=1)
    assert "gpu: 8 × A100-80G" in (refused.value.hint or "")
    with pytest.raises(NotFoundError, match="no open partition 'nowhere'"):
        waits.ask(gpus=1, hours=1, partition="nowhere")
    with pytest.raises(QueryError, match="for 48 h"):
        waits.ask(gpus=8, hours=48)  # longer than the partition allows


def test_forecasts_are_kept_and_compared_when_workloads_start(site: SmallCluster) -> None:
    waits = WaitQuery(site.queries.context)
    waits.tend()
    assert (waits.reliability().jobs, waits.reliability().open) == (0, 2)
    started = waiting("2", 4)
    site.records.write_workloads(
        [replace(started, state=WorkloadState.RUNNING, started_at=UnixMs(NOW + 1_800_000))], at_ms=NOW
    )
    site.now = UnixMs(NOW + 2_000_000)
    waits.tend()
    found = waits.reliability()
    # The other one has now waited for more than an hour: its second forecast is open beside the first.
    assert (found.jobs, found.open, found.since) == (1, 2, NOW)
    assert found.median_error_s is not None
    assert [one.nominal for one in found.told] == [0.5, 0.8, 0.9]
    # Another process finds the same in the store.
    assert ForecastLog(site.records).outcomes().wait_s.tolist() == [1800.0]
    assert len(site.records.documents(KIND)) == 1


def test_later_forecasts_are_kept_and_judged_apart_when_a_workload_goes_on_waiting(site: SmallCluster) -> None:
    waits = WaitQuery(site.queries.context)
    waits.tend()  # both have waited for half an hour: they count as newcomers
    site.now = UnixMs(NOW + 2 * HOUR_MS)
    fresh = replace(waiting("4", 4), submitted_at=UnixMs(NOW + 2 * HOUR_MS))
    site.records.write_workloads([fresh], at_ms=site.now)
    waits.tend()
    assert waits.reliability().open == 5  # both again, and one that just came
    started = [
        replace(each, state=WorkloadState.RUNNING, started_at=UnixMs(NOW + 3 * HOUR_MS))
        for each in (waiting("2", 4), fresh)
    ]
    site.records.write_workloads(started, at_ms=site.now)
    site.now = UnixMs(NOW + 4 * HOUR_MS)
    waits.tend()
    found = waits.reliability()
    assert (found.jobs, found.later_jobs) == (2, 1)
    assert [one.jobs for one in found.later] == [1, 1, 1]
    assert all(one.low <= one.covered <= one.high for one in (*found.told, *found.later))


def test_forecasts_keep_their_promise_when_the_sampled_ones_do_not(site: SmallCluster) -> None:
    """Everybody starts three times later than sampled: told intervals follow, for newcomers and for those who wait."""
    log = ForecastLog(site.records)
    random = np.random.default_rng(3)
    levels = np.array([0.4, 0.5, 0.75, 1.0, 1.4, 2.0, 2.4])
    logged = []
    for place in range(200):
        sampled = float(random.uniform(1_000, 20_000)) * levels
        wait = float(3.0 * sampled[3] * random.lognormal(0, 0.2))
        logged.append(
            LoggedForecast(
                f"slurm:7{place:03}", NOW, sampled.tolist(), sampled.tolist(), 0.05, 5, wait, stage=place % 2
            )
        )
    log.add(logged)
    known = log.calibrations()
    assert (known.first.count, known.later.count) == (100, 100)
    asked = np.full((2, 7), 6_000.0) * levels
    told = known.apply(asked, WaitBins(np.full(2, 0.05), np.full(2, 5.0)), np.array([True, False]))
    assert (told[:, 1] < 18_000).all()
    assert (told[:, 5] > 18_000).all()
    assert np.abs(told[:, 3] - 18_000).max() < 2_000
    assert known.apply(asked[:1], WaitBins(np.full(1, 0.05), np.full(1, 5.0)), np.array([False])).tolist() == [
        told[1].tolist()
    ]


def test_smaller_nodes_do_not_count_when_memory_is_asked_for(site: SmallCluster) -> None:
    small = Node(
        id=NodeId("v1"), partitions=("old",), machine_type="V100", state=NodeState.IDLE, gpu_count=4, memory_bytes=2**35
    )
    site.records.write_inventory(nodes=[small], partitions=[], units=[], at_ms=NOW)
    waits = WaitQuery(site.queries.context)
    assert waits.ask(gpus=4, hours=1, memory_gib=32).start.partition == "old"
    assert waits.ask(gpus=4, hours=1, memory_gib=64).start.partition == "gpu"
    with pytest.raises(QueryError, match="V100 with 64 GiB a node") as refused:
        waits.ask(gpus=4, hours=1, machine_type="V100", memory_gib=64)
    assert "old: 4 × V100" in (refused.value.hint or "")


def test_run_times_are_learned_and_learned_again_when_jobs_end(site: SmallCluster) -> None:
    waits = WaitQuery(site.queries.context)
    random = np.random.default_rng(1)
    waits.tend()
    assert not waits.models.card().is_trained
    assert waits.models.card().retrained_after == 200
    site.records.write_workloads([ended(place, random) for place in range(400)], at_ms=NOW)
    assert waits.models.tend()
    card = waits.models.card()
    assert (card.is_trained, card.jobs, card.trained_at, card.retrained_after) == (True, 400, NOW, 100)
    assert card.report is not None
    assert card.report.tables[0].rows[-1].accuracy.value > 0.7
    assert not waits.models.tend()
    site.records.write_workloads([ended(place, random) for place in range(400, 500)], at_ms=NOW)
    assert waits.models.tend()
    assert waits.models.card().jobs == 500
    answer = waits.ask(gpus=8, hours=4, machine_type="A100")
    assert answer.is_learned
    # Everybody runs some 18 minutes of two hours: the start is well before the plan.
    assert answer.start.likely_at < answer.start.plan_at


def test_routes_answer_when_a_page_asks(site: SmallCluster) -> None:
    queries: Queries = site.queries
    with TestClient(create_app(queries)) as client:
        found = client.get("/api/v1/scheduling/wait", params={"gpus": 8, "hours": 4, "machine_type": "A100"}).json()
        assert found["start"]["gpus"] == 8
        listed = client.get("/api/v1/scheduling/waiting").json()
        assert [one["workload"] for one in listed["workloads"]] == ["slurm:2", "slurm:3"]
        assert client.get("/api/v1/scheduling/models").json()["models"][0]["name"] == "run time"
        assert client.get("/api/v1/scheduling/reliability").json()["jobs"] == 0
        refused = client.get("/api/v1/scheduling/wait", params={"gpus": 99, "hours": 1})
        assert refused.status_code == 422
        assert "no partition runs 99 GPUs" in refused.json()["error"]["message"]
        assert client.get("/api/v1/scheduling/wait", params={"gpus": 0, "hours": 1}).status_code == 422
