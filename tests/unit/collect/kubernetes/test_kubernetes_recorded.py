"""Recorded responses of a real kube-apiserver 1.20.2 are read like those of the stand-in.

Its objects were written by tests/clusters/kubernetes_objects.py and returned with the fields that the server adds.
"""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from clusters.kubernetes_snapshots import NOW, SETTINGS

from clusterscape.collect.kubernetes.access import open_access
from clusterscape.collect.kubernetes.client import KubernetesApiError, KubernetesClient
from clusterscape.collect.kubernetes.reading import read_snapshot
from clusterscape.collect.kubernetes.resources import RESOURCES
from clusterscape.collect.kubernetes.snapshot import take_snapshot
from clusterscape.model import NodeState, WorkloadState

FILE = Path(__file__).parents[3] / "data/kubernetes/apiserver-1.20.2.json"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    workloads_by_name: dict[str, Any] = json.loads(FILE.read_text())
    return workloads_by_name


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
    assert [partition.name for partition in inventory.partitions] == ["k8s/default", "k8s/llm"]
    workloads_by_name = {workload.name: workload for workload in queue.workloads}
    assert {name: workload.state for name, workload in workloads_by_name.items()} == {
        "llm": WorkloadState.RUNNING,
        "queued": WorkloadState.WAITING,
        "waits": WorkloadState.WAITING,
    }
    assert workloads_by_name["queued"].pending_reason == "KueueQuota"
    assert workloads_by_name["waits"].pending_reason == "Insufficient nvidia.com/gpu"
    assert len(queue.allocations) == 8


def test_deleted_object_is_complete_when_a_real_server_reports_it(recorded: dict[str, Any]) -> None:
    client = KubernetesClient(open_access(SETTINGS), 1.0, lambda: NOW)
    events = [client._read_event("/api/v1/pods", orjson.dumps(line)) for line in recorded["watch"]]
    assert [event.type for event in events] == ["MODIFIED", "DELETED"]
    (parse,) = (resource.parse for resource in RESOURCES if resource.key == "pods")
    assert parse(events[-1].object, SETTINGS) is not None
    assert events[-1].version != events[0].version


def test_expired_page_has_its_own_status_when_a_real_server_refuses_it(recorded: dict[str, Any]) -> None:
    client = KubernetesClient(open_access(SETTINGS), 1.0, lambda: NOW)
    refusal = client._refused("/api/v1/pods", recorded["expired"]["status"], orjson.dumps(recorded["expired"]["body"]))
    assert isinstance(refusal, KubernetesApiError)
    assert refusal.status == 410
    assert "too old to display a consistent list" in refusal.message
