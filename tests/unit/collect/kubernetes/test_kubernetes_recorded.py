"""What a real kube-apiserver 1.20.2 answered, recorded: it is read as the stand-in's answers are.

Its objects were written by tests/clusters/kubernetes_objects.py and came back with what the server adds.
"""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from clusters.kubernetes_snapshots import NOW, SETTINGS

from clusterscape.collect.kubernetes.access import open_access
from clusterscape.collect.kubernetes.client import ApiError, KubernetesClient
from clusterscape.collect.kubernetes.reading import read_snapshot
from clusterscape.collect.kubernetes.resources import RESOURCES
from clusterscape.collect.kubernetes.snapshot import take_snapshot
from clusterscape.model import NodeState, WorkloadState

FILE = Path(__file__).parents[3] / "data/kubernetes/apiserver-1.20.2.json"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def test_nodes_workloads_and_queues_are_read_when_a_real_server_answered(recorded: dict[str, Any]) -> None:
    held: list[tuple[str, dict[str, object]]] = []
    for resource in RESOURCES:
        for version in resource.versions:
            items = recorded["answers"].get(resource.path(version), {}).get("items", [])
            facts = {item["metadata"]["uid"]: resource.parse(item, SETTINGS) for item in items}
            held.append((resource.key, {uid: fact for uid, fact in facts.items() if fact is not None}))
    inventory, queue = read_snapshot(take_snapshot(held, now_ms=NOW), SETTINGS, NOW)
    assert {str(node.id): node.state for node in inventory.nodes} == {
        "gpu-1": NodeState.ALLOCATED,
        "gpu-2": NodeState.DRAINED,
    }
    assert [each.name for each in inventory.partitions] == ["k8s/default", "k8s/llm"]
    found = {workload.name: workload for workload in queue.workloads}
    assert {name: each.state for name, each in found.items()} == {
        "llm": WorkloadState.RUNNING,
        "queued": WorkloadState.WAITING,
        "waits": WorkloadState.WAITING,
    }
    assert found["queued"].pending_reason == "KueueQuota"
    assert found["waits"].pending_reason == "Insufficient nvidia.com/gpu"
    assert len(queue.allocations) == 8


def test_a_deleted_object_comes_whole_when_a_real_server_tells_of_it(recorded: dict[str, Any]) -> None:
    client = KubernetesClient(open_access(SETTINGS), 1.0, lambda: NOW)
    events = [client._read_event("/api/v1/pods", orjson.dumps(line)) for line in recorded["watch"]]
    assert [event.type for event in events] == ["MODIFIED", "DELETED"]
    (parse,) = (resource.parse for resource in RESOURCES if resource.key == "pods")
    assert parse(events[-1].object, SETTINGS) is not None
    assert events[-1].version != events[0].version


def test_an_expired_page_is_told_by_its_status_when_a_real_server_refuses_it(recorded: dict[str, Any]) -> None:
    client = KubernetesClient(open_access(SETTINGS), 1.0, lambda: NOW)
    refusal = client._refused("/api/v1/pods", recorded["expired"]["status"], orjson.dumps(recorded["expired"]["body"]))
    assert isinstance(refusal, ApiError)
    assert refusal.status == 410
    assert "too old to display a consistent list" in refusal.message
