"""The demo cluster read by the standard collectors over real sockets."""

import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from clusterscape.collect.dcgm import DcgmCollector
from clusterscape.collect.slurm import SlurmCollector
from clusterscape.demo import DemoCluster, start_demo_server
from clusterscape.demo.server import DemoServer
from clusterscape.demo.slurm_values import look_at_cluster
from clusterscape.model import (
    HistoryObserved,
    InventoryObserved,
    NodeState,
    Observation,
    QueueObserved,
    ScrapeObserved,
    UnixMs,
)
from clusterscape.settings import CollectSettings
from clusterscape.simulate.faults import FaultKind

GPUS = 128
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def cluster(anchor: UnixMs) -> DemoCluster:
    return DemoCluster(gpus=GPUS, seed=7, anchor_ms=anchor)


@pytest.fixture
async def settings(cluster: DemoCluster, anchor: UnixMs) -> AsyncIterator[CollectSettings]:
    """Settings for the cluster served as of its anchor."""
    app: web.Application = DemoServer(cluster.scenario, lambda: anchor).create_app()
    async with TestServer(app, host="127.0.0.1") as server:
        assert server.port is not None
        yield cluster.collect_settings(server.port)


async def poll(collector: DcgmCollector | SlurmCollector, now_ms: UnixMs) -> Sequence[Observation]:
    try:
        return [observation async for observation in collector.poll(now_ms)]
    finally:
        await collector.close()


async def test_slurm_collector_sees_the_cluster_when_it_reads_the_demo(
    settings: CollectSettings, cluster: DemoCluster, anchor: UnixMs
) -> None:
    observations = await poll(SlurmCollector(settings.slurm, lambda: anchor), anchor)
    inventory = next(s for s in observations if isinstance(s, InventoryObserved))
    queue = next(s for s in observations if isinstance(s, QueueObserved))
    assert inventory.is_complete
    assert queue.is_complete
    assert not inventory.dropped
    assert not queue.dropped
    assert len(inventory.units) == GPUS
    assert {node.machine_type for node in inventory.nodes} == {"A100-80G", "V100-32G"}
    assert {partition.name for partition in inventory.partitions} == {"a100-small", "a100-large", "v100"}
    workloads, allocations = cluster.history_records(anchor, UnixMs(anchor + 1))
    assert sorted(queue.allocations, key=lambda a: a.unit) == sorted(allocations, key=lambda a: a.unit)
    observed = {workload.id: workload for workload in queue.workloads if workload.state.is_active}
    expected = {workload.id: workload for workload in workloads if workload.state.is_active}
    assert observed.keys() == expected.keys()
    for id, workload in expected.items():
        if "array_job" not in workload.tags:
            assert observed[id] == workload


async def test_accounting_agrees_with_the_past_when_the_collector_reads_it(
    settings: CollectSettings, cluster: DemoCluster, anchor: UnixMs
) -> None:
    observations = await poll(SlurmCollector(settings.slurm, lambda: anchor), anchor)
    observed = {w.id: w for s in observations if isinstance(s, HistoryObserved) for w in s.workloads}
    workloads, _ = cluster.history_records(UnixMs(anchor - DAY_MS), UnixMs(anchor + 1))
    past = {workload.id: workload for workload in workloads}
    assert observed
    for id, workload in observed.items():
        expected = past[id]
        assert (workload.state, workload.started_at, workload.ended_at) == (
            expected.state,
            expected.started_at,
            expected.ended_at,
        )
        assert (workload.exit_code, workload.exit_signal) == (expected.exit_code, expected.exit_signal)
        assert (workload.kind, workload.resource_type, workload.experiment) == (
            expected.kind,
            expected.resource_type,
            expected.experiment,
        )


async def test_reason_is_reported_when_a_node_is_out_of_service(
    settings: CollectSettings, cluster: DemoCluster, anchor: UnixMs
) -> None:
    observations = await poll(SlurmCollector(settings.slurm, lambda: anchor), anchor)
    inventory = next(s for s in observations if isinstance(s, InventoryObserved))
    nodes = {node.id: node for node in inventory.nodes}
    outages = look_at_cluster(cluster.scenario, anchor // 1000).outages
    assert outages
    for place, outage in outages.items():
        node = nodes[cluster.scenario.hardware.nodes[place].name]
        is_failed = outage.kind is FaultKind.FAIL
        assert node.state in ((NodeState.DOWN,) if is_failed else (NodeState.DRAINED, NodeState.DRAINING))
        assert node.reason == outage.reason


async def test_dcgm_collector_reads_every_live_exporter_when_one_node_is_down(
    settings: CollectSettings, cluster: DemoCluster, anchor: UnixMs
) -> None:
    observations = await poll(DcgmCollector(settings.dcgm, lambda: anchor), anchor)
    scrapes = [scrape for s in observations if isinstance(s, ScrapeObserved) for scrape in s.scrapes]
    statuses = {status.node: status for s in observations if isinstance(s, ScrapeObserved) for status in s.statuses}
    down = {
        cluster.scenario.hardware.nodes[place].name
        for place, outage in look_at_cluster(cluster.scenario, anchor // 1000).outages.items()
        if outage.kind is FaultKind.FAIL
    }
    assert down
    assert {node for node, status in statuses.items() if not status.is_ok} == down
    assert {scrape.node for scrape in scrapes} == {n.name for n in cluster.scenario.hardware.nodes} - down
    assert all(not scrape.malformed for scrape in scrapes)


async def test_response_is_404_when_a_version_or_node_is_unknown(settings: CollectSettings) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("/slurm/v0.0.41/ping", "/slurm/v0.0.39/jobs", "/nodes/gpu-999/metrics"):
            async with session.get(f"{settings.slurm.url}{path}") as response:
                assert response.status == 404
        async with session.get(f"{settings.slurm.url}/slurmdb/v0.0.40/jobs?start_time=yesterday") as response:
            assert response.status == 400


def test_history_is_split_in_parts_when_a_day_is_requested(cluster: DemoCluster, anchor: UnixMs) -> None:
    start = UnixMs(anchor - DAY_MS)
    parts = list(cluster.history(start, anchor))
    ratios = [part.done_ratio for part in parts]
    assert ratios == sorted(ratios)
    assert ratios[-1] == 1.0
    assert parts[0].workloads
    assert parts[0].allocations
    assert not any(part.workloads or part.allocations for part in parts[1:])
    assert all(not workload.state.is_active for workload in parts[0].workloads)
    assert all(a.to_at is not None and a.from_at < a.to_at <= anchor and a.to_at > start for a in parts[0].allocations)
    samples = sum(len(batch) for part in parts for batch in part.batches)
    assert 0.9 * GPUS * 1440 * 19 < samples <= GPUS * 1440 * 19


def test_history_of_a_gap_joins_seamlessly_when_filled_in_later(cluster: DemoCluster, anchor: UnixMs) -> None:
    gap = list(cluster.history(UnixMs(anchor + 1), UnixMs(anchor + 180_001)))
    times = {int(at) for part in gap for batch in part.batches for at in batch.time_ms}
    assert times == {anchor + 60_000, anchor + 120_000, anchor + 180_000}


def test_history_is_coarser_when_the_cluster_is_large(anchor: UnixMs) -> None:
    steps = [DemoCluster(gpus=gpus, seed=1, anchor_ms=anchor).history_step_ms for gpus in (8, 1024, 4096, 10_000)]
    assert steps == [60_000, 60_000, 120_000, 300_000]


def test_size_is_refused_when_it_is_out_of_range(anchor: UnixMs) -> None:
    with pytest.raises(ValueError, match="GPUs, not 2"):
        DemoCluster(gpus=2, seed=1, anchor_ms=anchor)


async def test_child_answers_and_ends_with_its_context_when_started() -> None:
    now = UnixMs(time.time_ns() // 1_000_000)
    with start_demo_server(DemoCluster(gpus=8, seed=3, anchor_ms=now)) as port:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            async with session.get("/slurm/v0.0.40/ping") as response:
                assert (await response.json())["pings"][0]["pinged"] == "UP"
            async with session.get("/nodes/gpu-001/metrics") as response:
                assert (await response.text()).startswith("# HELP DCGM_FI_DEV_SM_CLOCK")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_child_ends_by_itself_when_its_input_closes() -> None:
    now_ms = time.time_ns() // 1_000_000
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [
            sys.executable,
            "-m",
            "clusterscape.demo.server",
            "--gpus",
            "8",
            "--seed",
            "3",
            "--anchor",
            str(now_ms),
        ]
        command += ["--listener", str(listener.fileno())]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(listener.fileno(),))
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(30) == 0
