"""Answers recorded from real Slurm 21.08 and 24.05 to 25.11 mean the same, whatever their shape."""

import asyncio
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from servers.reference import reference_data

from clusterscape.collect.slurm import SlurmCollector
from clusterscape.collect.slurm.faults import parse_response, version_of
from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_jobs import ParsedJobs, parse_jobs
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, parse_nodes, parse_partitions
from clusterscape.errors import SourceError
from clusterscape.model import AllocationSource, NodeState, QueueObserved, SourceStatus, UnixMs, WorkloadState
from clusterscape.settings import SlurmSettings

NOW = UnixMs(1_763_000_000_000)
VERSIONS = ("24.05/0.0.41", "24.11/0.0.42", "25.05/0.0.43", "25.11/0.0.44")
every_version = pytest.mark.parametrize("version", VERSIONS)


def folder(version: str) -> Path:
    return reference_data("telemetry", "slurm-web", "slurmrestd", *version.split("/"))


def read(path: Path, key: str) -> dict[str, object]:
    return parse_response(path.read_bytes(), request=path.name, key=key)


def inventory_of(version: str) -> SlurmInventory:
    return parse_nodes(read(folder(version) / "slurm-nodes.json", "nodes"))


def queue_of(version: str, name: str) -> ParsedJobs:
    parsed = parse_jobs(read(folder(version) / f"{name}.json", "jobs"), inventory_of(version), NOW)
    assert not parsed.dropped
    assert parsed.is_complete
    return parsed


def units(node: str, gpus: range) -> list[str]:
    return [f"{node}:{gpu}" for gpu in gpus]


# name of the recorded answer → version → (job id, GPUs asked for, units held)
QUEUE: dict[str, dict[str, tuple[int, int, list[str]]]] = {
    "slurm-job-gpus-running": {
        "24.05/0.0.41": (9, 4, units("gpu1", range(4))),
        "24.11/0.0.42": (6374, 6, units("ia1", range(6))),
        "25.05/0.0.43": (4751, 4, units("gpu1", range(4))),
        "25.11/0.0.44": (5557, 4, units("gpu2", range(4))),
    },
    "slurm-job-gpus-multi-nodes": {
        "24.05/0.0.41": (11, 8, units("gpu1", range(4)) + units("gpu2", range(4))),
        "24.11/0.0.42": (6371, 12, units("ia1", range(6)) + units("ia2", range(6))),
        "25.05/0.0.43": (4746, 8, units("gpu1", range(4)) + units("gpu2", range(4))),
        "25.11/0.0.44": (5679, 8, units("gpu1", range(4)) + units("gpu2", range(4))),
    },
    "slurm-job-gpus-per-node": {
        "24.05/0.0.41": (13, 2, ["gpu1:0", "gpu2:0"]),
        "24.11/0.0.42": (6377, 2, ["ia1:0", "ia2:0"]),
        "25.05/0.0.43": (4744, 2, ["gpu1:0", "gpu2:0"]),
        "25.11/0.0.44": (5680, 2, ["gpu1:0", "gpu2:0"]),
    },
    "slurm-job-gpus-multi-types": {
        "24.05/0.0.41": (4, 1, ["gpu1:0"]),
        "24.11/0.0.42": (6356, 2, ["ia1:0", "ia1:2"]),  # one H100 and one H200
        "25.05/0.0.43": (4752, 1, ["gpu1:0"]),
        "25.11/0.0.44": (4716, 1, ["gpu1:0"]),
    },
    "slurm-job-gpus-pending": {
        "24.05/0.0.41": (2, 4, []),
        "24.11/0.0.42": (6376, 6, []),
        "25.05/0.0.43": (4745, 4, []),
        "25.11/0.0.44": (4965, 4, []),
    },
    "slurm-job-pending": {
        "24.05/0.0.41": (649730, 0, []),
        "24.11/0.0.42": (6370, 0, []),
        "25.05/0.0.43": (4743, 0, []),
        "25.11/0.0.44": (5750, 0, []),
    },
    "slurm-job-failed": {
        "24.05/0.0.41": (649719, 0, []),
        "24.11/0.0.42": (6359, 0, []),
        "25.05/0.0.43": (4732, 0, []),
        "25.11/0.0.44": (5739, 0, []),
    },
}


@every_version
@pytest.mark.parametrize("name", QUEUE)
def test_job_means_the_same_when_recorded_from_another_version(version: str, name: str) -> None:
    job_id, gpus, held = QUEUE[name][version]
    parsed = queue_of(version, name)
    (workload,) = parsed.workloads
    assert workload.id == f"slurm:{job_id}"
    assert workload.gpus_requested == gpus
    assert [allocation.unit for allocation in parsed.allocations] == held
    assert all(allocation.source is AllocationSource.SCHEDULER_INDEX for allocation in parsed.allocations)
    if "pending" in name:
        assert (workload.state, workload.pending_reason) == (WorkloadState.WAITING, "BeginTime")
        assert workload.started_at is None
        assert workload.expected_start_at is not None
    elif "failed" in name:
        assert (workload.state, workload.exit_code) == (WorkloadState.FAILED, 1)
        assert workload.ended_at is not None
    else:
        assert workload.state is WorkloadState.RUNNING
        assert {allocation.from_at for allocation in parsed.allocations} == {workload.started_at}


def test_types_are_kept_apart_when_a_node_has_two() -> None:
    inventory = inventory_of("24.11/0.0.42")
    types: dict[str, str | None] = {unit.id: unit.machine_type for unit in inventory.units}
    assert (types["ia1:1"], types["ia1:2"]) == ("H100", "H200")
    assert queue_of("24.11/0.0.42", "slurm-job-gpus-multi-types").workloads[0].resource_type == "H100+H200-2"


def test_whole_queue_is_read_when_many_jobs_ended() -> None:
    parsed = queue_of("25.11/0.0.44", "slurm-jobs")
    states: dict[str, WorkloadState] = {workload.id: workload.state for workload in parsed.workloads}
    assert len(states) == 15
    assert states["slurm:5736"] is WorkloadState.CANCELLED
    assert states["slurm:5737"] is WorkloadState.TIMEOUT
    assert next(workload for workload in parsed.workloads if workload.id == "slurm:5737").exit_signal == 15


@every_version
@pytest.mark.parametrize(
    ("name", "state", "reason"),
    [
        ("slurm-node-down", NodeState.DOWN, "CPU dead"),
        ("slurm-node-drain", NodeState.DRAINED, "ECC memory error"),
        ("slurm-node-draining", NodeState.DRAINING, "ECC memory error"),
        ("slurm-node-planned", NodeState.IDLE, None),
        ("slurm-node-with-gpus-model-allocated", NodeState.ALLOCATED, None),
        ("slurm-node-with-gpus-model-idle", NodeState.IDLE, None),
        ("slurm-node-with-gpus-model-mixed", NodeState.MIXED, None),
        ("slurm-node-with-gpus-mixed", NodeState.MIXED, None),
    ],
)
def test_node_means_the_same_when_recorded_from_another_version(
    version: str, name: str, state: NodeState, reason: str | None
) -> None:
    path = folder(version) / f"{name}.json"
    if not path.exists():
        assert name in NOT_RECORDED[version]
        return
    inventory = parse_nodes(read(path, "nodes"))
    (node,) = inventory.nodes
    assert (node.state, node.reason) == (state, reason)
    assert not inventory.dropped
    if "gpus" in name:
        assert node.gpu_count == (6 if version.startswith("24.11") else 4)
        assert (inventory.nodes_without_index == (node.id,)) == ("model" not in name)


NOT_RECORDED = {
    "24.05/0.0.41": {"slurm-node-planned", "slurm-node-with-gpus-model-mixed", "slurm-node-with-gpus-mixed"},
    "24.11/0.0.42": {"slurm-node-draining", "slurm-node-with-gpus-model-mixed", "slurm-node-with-gpus-mixed"},
    "25.05/0.0.43": {"slurm-node-draining", "slurm-node-with-gpus-mixed"},
    "25.11/0.0.44": set[str](),
}


@every_version
def test_inventory_is_read_when_recorded_from_any_version(version: str) -> None:
    inventory = inventory_of(version)
    nodes, gpus = {
        "24.05/0.0.41": (100, 0),
        "24.11/0.0.42": (6, 12),
        "25.05/0.0.43": (6, 8),
        "25.11/0.0.44": (8, 16),
    }[version]
    assert (len(inventory.nodes), len(inventory.units)) == (nodes, gpus)
    partitions, dropped = parse_partitions(read(folder(version) / "slurm-partitions.json", "partitions"), inventory)
    assert not dropped
    assert all(partition.is_up and partition.nodes for partition in partitions)
    limits = {partition.name: partition.max_time_s for partition in partitions}
    assert limits.get("gpu", limits.get("ia")) in (600, 7200)
    assert version_of(read(folder(version) / "slurm-nodes.json", "nodes")) is not None


@every_version
@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("slurmdb-job-gpus-completed", WorkloadState.COMPLETED),
        ("slurmdb-job-timeout", WorkloadState.TIMEOUT),
        ("slurmdb-job-gpus-multi-nodes", None),  # still running, or not yet known to the accounting
        ("slurmdb-job-gpus-pending", None),
    ],
)
def test_history_means_the_same_when_recorded_from_another_version(
    version: str, name: str, state: WorkloadState | None
) -> None:
    parsed = parse_history(read(folder(version) / f"{name}.json", "jobs"), inventory_of(version), NOW)
    assert not parsed.dropped
    assert [workload.state for workload in parsed.workloads] == ([state] if state else [])
    for workload in parsed.workloads:
        assert workload.started_at is not None
        assert workload.ended_at is not None
        assert workload.exit_code == (0 if state is WorkloadState.COMPLETED else None)
        assert workload.nodes


@every_version
def test_answers_to_other_questions_are_refused_when_read_as_jobs(version: str) -> None:
    for path in sorted(folder(version).glob("*.json")):
        document = orjson.loads(path.read_bytes())
        if not {"jobs", "nodes", "partitions"} & document.keys():
            with pytest.raises(SourceError):
                read(path, "jobs")
            assert parse_jobs(document, SlurmInventory(), NOW).dropped == {"no list of jobs": 1}


@every_version
def test_hint_says_to_renew_the_token_when_it_has_expired(version: str) -> None:
    path = folder(version) / "slurm-jwt-expired-token.json"
    if not path.exists():
        assert version == "24.05/0.0.41"
        return
    with pytest.raises(SourceError) as caught:
        read(path, "jobs")
    assert "Protocol authentication error" in caught.value.message
    assert "expired" in (caught.value.hint or "")
    assert "scontrol token" in (caught.value.hint or "")


def test_first_json_of_slurm_is_read_when_it_is_21_08() -> None:
    home = reference_data("telemetry", "rivos-slurm-exporter")
    inventory = parse_nodes(read(home / "sinfo_out.json", "nodes"))
    assert [node.state for node in inventory.nodes] == [
        NodeState.MIXED,
        NodeState.IDLE,
        NodeState.ALLOCATED,
        NodeState.DOWN,
    ]
    assert inventory.nodes[0].memory_bytes == 500_000 * 2**20
    parsed = parse_jobs(read(home / "squeue_out.json", "jobs"), inventory, NOW)
    assert not parsed.dropped
    running, *waiting = parsed.workloads
    assert (running.id, running.state, running.nodes) == ("slurm:26515966", WorkloadState.RUNNING, ("cs75",))
    assert running.time_limit_s == 30_240 * 60
    assert [workload.id for workload in waiting] == [f"slurm:58948420_{task}" for task in range(1, 11)]
    assert {workload.pending_reason for workload in waiting} == {"Dependency"}


@every_version
async def test_newest_version_is_found_when_slurmrestd_serves_it(version: str) -> None:
    """The recorded answers over HTTP, as slurmrestd of that release serves them: other versions do not exist there."""
    home, api = folder(version), f"v{version.split('/')[1]}"
    answers = {
        f"/slurm/{api}/ping": "slurm-ping",
        f"/slurm/{api}/nodes": "slurm-nodes",
        f"/slurm/{api}/partitions": "slurm-partitions",
        f"/slurm/{api}/jobs": "slurm-job-gpus-running",
        f"/slurmdb/{api}/jobs": "slurmdb-job-timeout",
    }

    async def serve(request: web.Request) -> web.Response:
        if request.path == f"/slurm/{api}/reservations":
            return web.json_response({"reservations": []})
        name = answers.get(request.path)
        if name is None:
            return web.Response(
                status=404, text="Unable find requested URL. Please view /openapi/v3 for API reference."
            )
        body = await asyncio.to_thread((home / f"{name}.json").read_bytes)
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        collector = SlurmCollector(SlurmSettings(mode="rest", url=site_address(runner), history_days=0.1), lambda: NOW)
        observations = [observation async for observation in collector.poll(NOW)]
        (nodes,) = [status for status in await collector.check() if status.source == "slurm nodes"]
        await collector.close()
    finally:
        await runner.cleanup()
    assert all(status.is_ok for status in observations if isinstance(status, SourceStatus))
    (queue,) = [observation for observation in observations if isinstance(observation, QueueObserved)]
    assert [allocation.unit for allocation in queue.allocations] == QUEUE["slurm-job-gpus-running"][version][2]
    assert api in (nodes.message or "") or version.startswith("24.05")


def site_address(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"
