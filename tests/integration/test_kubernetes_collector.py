"""The Kubernetes collector against an API server: in health, through changes and in failure.

The same tests run on the stand-in and, where kube-apiserver and etcd are on PATH, on a real server.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from clusters.kubernetes_looking import LIMIT_S, clock, look, look_until, make_settings
from clusters.kubernetes_objects import (
    KUBEFLOW,
    KUEUE,
    RUNNING,
    VOLCANO,
    cluster_queue,
    condition,
    deployment,
    flavor,
    job,
    kueue_workload,
    local_queue,
    node,
    pod,
    pytorch_job,
    replica_set,
    waiting,
)
from servers.kube_apiserver import VIEWER, kube_apiserver
from servers.kubernetes import stand_in
from servers.kubernetes_api import Api

from clusterscape.collect.kubernetes import KubernetesCollector
from clusterscape.collect.kubernetes import client as client_module
from clusterscape.model import (
    NodeState,
    SourceStatus,
    WorkloadState,
)
from clusterscape.settings import KubernetesSettings

Json = dict[str, Any]

pytestmark = pytest.mark.server

MANIFEST = Path(__file__).parents[2] / "deploy/kubernetes/clusterscape.yaml"


@dataclass
class Cluster:
    """A server to write to, and how the collector reaches it."""

    api: Api
    settings: KubernetesSettings


@pytest.fixture(scope="module", params=["stand-in", "kube-apiserver"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if request.param == "stand-in":
        with stand_in() as state:
            yield Cluster(Api(state.url, "secret"), make_settings(state.url))
        return
    with kube_apiserver(tmp_path_factory.mktemp("kube")) as (api, authority):
        settings = make_settings(api.url, ca_file=authority)
        yield Cluster(api, settings)


@pytest.fixture(scope="module")
def filled(cluster: Cluster) -> Cluster:
    """Nodes, the namespace and the kinds of Kueue, Volcano and Kubeflow."""
    api = cluster.api
    for namespace in ("team-a", "team-b"):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for thing in (node("gpu-1"), node("gpu-2", cordoned=True), node("cpu-1", 0)):
        api.create(thing)
    for kinds in (KUEUE, VOLCANO, KUBEFLOW):
        api.install(kinds)
    return cluster


@pytest.fixture
async def collector(filled: Cluster) -> AsyncIterator[KubernetesCollector]:
    opened = KubernetesCollector(filled.settings, clock, first_retry_s=0.05)
    yield opened
    await opened.close()


async def test_the_cluster_is_seen_whole_when_first_looked_at(filled: Cluster, collector: KubernetesCollector) -> None:
    owner = filled.api.create(pytorch_job("llm", workers=1, labels={"user": "ada"}))
    for name in ("llm-master-0", "llm-worker-0"):
        created = filled.api.create(pod(name, gpus=4, owner=owner, nodeName="gpu-1"))
        filled.api.set_status(created | {"apiVersion": "v1", "kind": "Pod"}, RUNNING)
    observations = await look(collector)
    assert not observations.failing()
    assert observations.node_states == {
        "cpu-1": NodeState.IDLE,
        "gpu-1": NodeState.ALLOCATED,
        "gpu-2": NodeState.DRAINED,
    }
    workload = observations.workloads["llm"]
    assert (workload.state, workload.user, workload.tags["owner"]) == (WorkloadState.RUNNING, "ada", "PyTorchJob")
    assert observations.queue is not None
    assert observations.queue.is_complete
    assert sorted(allocation.unit for allocation in observations.queue.allocations) == [
        f"gpu-1:{index}" for index in range(8)
    ]
    assert observations.queue.aliases["kubernetes:team-a/llm-master-0"] == workload.id  # type: ignore[index]


async def test_changes_are_followed_when_pods_come_run_and_go(filled: Cluster, collector: KubernetesCollector) -> None:
    api = filled.api
    await look(collector)
    owner = api.create(job("train", gpus=2))
    created = api.create(pod("train-0", gpus=2, owner=owner))
    api.set_status(created, waiting("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."))
    observations = await look_until(
        collector,
        lambda observations: (
            "train" in observations.workloads and observations.workloads["train"].tags.get("reason_detail")
        ),
    )
    assert observations.workloads["train"].pending_reason == "Insufficient nvidia.com/gpu"
    api.delete(created)
    bound = api.create(pod("train-1", gpus=2, owner=owner, nodeName="gpu-2"))
    api.set_status(bound, RUNNING)
    observations = await look_until(
        collector, lambda observations: observations.workloads["train"].state is WorkloadState.RUNNING
    )
    assert observations.node_states["gpu-2"] is NodeState.DRAINING
    api.delete(bound)
    done = {"startTime": "2026-11-15T08:00:00Z", "completionTime": "2026-11-15T09:30:00Z", "succeeded": 1}
    api.set_status(owner, done | {"conditions": [condition("Complete", at="2026-11-15T09:30:00Z")]})
    observations = await look_until(
        collector, lambda observations: observations.workloads["train"].state is WorkloadState.COMPLETED
    )
    api.delete(owner)
    await look_until(collector, lambda observations: "train" not in observations.workloads)


async def test_owners_of_owners_are_followed_when_a_deployment_makes_a_replica_set(
    filled: Cluster, collector: KubernetesCollector
) -> None:
    service = filled.api.create(deployment("chat"))
    middle = filled.api.create(replica_set(service))
    filled.api.create(pod("chat-1", owner=middle, nodeName="gpu-2"))
    observations = await look_until(collector, lambda observations: "chat" in observations.workloads)
    assert observations.workloads["chat"].tags["owner"] == "Deployment"


async def test_a_suspended_job_waits_in_its_queue_when_kueue_holds_it(
    filled: Cluster, collector: KubernetesCollector
) -> None:
    api = filled.api
    api.create(flavor("h100", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}))
    api.create(cluster_queue("llm", 16, "h100", used=16, pending=1))
    api.create(local_queue("main", "team-b", "llm"))
    owner = api.create(job("queued", "team-b", labels={"kueue.x-k8s.io/queue-name": "main"}, suspend=True))
    words = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"
    api.create(kueue_workload(owner, queue="main", conditions=[condition("QuotaReserved", "False", "Pending", words)]))
    observations = await look_until(
        collector,
        lambda observations: (
            "queued" in observations.workloads and observations.workloads["queued"].pending_reason == "KueueQuota"
        ),
    )
    workload = observations.workloads["queued"]
    assert (workload.partition, workload.gpus_requested, workload.project) == ("k8s/llm", 8, "team-b")
    assert observations.statuses["kubernetes kueue"].message == "llm 16 of 16 GPUs, 1 waiting"
    assert observations.inventory is not None
    partitions = {partition.name: partition.nodes for partition in observations.inventory.partitions}
    assert partitions["k8s/llm"] == ("gpu-1", "gpu-2")


async def test_every_page_is_read_when_there_are_more_objects_than_one_holds(
    filled: Cluster, collector: KubernetesCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PAGE_LIMIT", 3)
    pods = [filled.api.create(pod(f"many-{number}", "team-b")) for number in range(10)]
    observations = await look(collector)
    assert {f"many-{number}" for number in range(10)} <= observations.workloads.keys()
    for created in pods:
        filled.api.delete(created)
    await look_until(
        collector, lambda observations: not any(name.startswith("many-") for name in observations.workloads)
    )


async def test_a_kind_is_read_when_it_is_installed_later(filled: Cluster, collector: KubernetesCollector) -> None:
    observations = await look(collector)
    assert {"kubernetes kueue", "kubernetes volcano", "kubernetes owners"} <= observations.statuses.keys()
    assert not observations.failing()


async def test_doctor_reports_ok_when_all_is_well(filled: Cluster, collector: KubernetesCollector) -> None:
    statuses = {status.source: status for status in await collector.check()}
    assert all(status.is_ok for status in statuses.values()), statuses
    assert "nodes, 2 with GPUs (16 in all)" in (statuses["kubernetes nodes"].message or "")


async def test_the_shipped_role_suffices_when_the_server_checks_rights(filled: Cluster) -> None:
    if filled.settings.ca_file is None:
        pytest.skip("the stand-in checks no rights")
    narrow = KubernetesCollector(filled.settings.model_copy(update={"token": VIEWER}), clock)
    try:
        statuses = {status.source: status for status in await narrow.check()}
        assert not statuses["kubernetes nodes"].is_ok
        assert "ClusterRole" in (statuses["kubernetes nodes"].hint or "")
    finally:
        await narrow.close()
    for thing in yaml.safe_load_all(MANIFEST.read_text()):
        if thing["kind"] == "ClusterRole":
            filled.api.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", thing)
        if thing["kind"] == "ClusterRoleBinding":
            thing["subjects"] = [{"kind": "User", "name": "clusterscape", "apiGroup": "rbac.authorization.k8s.io"}]
            filled.api.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", thing)
    granted = KubernetesCollector(filled.settings.model_copy(update={"token": VIEWER}), clock, first_retry_s=0.05)
    try:
        deadline = time.monotonic() + LIMIT_S
        while wrong := [status for status in await granted.check() if not status.is_ok]:
            assert time.monotonic() < deadline, wrong
            await asyncio.sleep(0.2)
    finally:
        await granted.close()


def test_a_client_trusts_only_the_configured_authority_when_tls_is_used(cluster: Cluster) -> None:
    if cluster.settings.ca_file is None:
        pytest.skip("the stand-in of this test speaks plain HTTP")
    assert isinstance(cluster.api.tls, ssl.SSLContext)

    async def ask() -> list[SourceStatus]:
        stranger = KubernetesCollector(cluster.settings.model_copy(update={"ca_file": None}), clock)
        try:
            return await stranger.check()
        finally:
            await stranger.close()

    (status,) = asyncio.run(ask())
    assert "is not trusted" in (status.message or "")
