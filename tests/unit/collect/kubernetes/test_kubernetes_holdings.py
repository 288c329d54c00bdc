from clusters.kubernetes_objects import (
    RUNNING,
    allocated,
    container_status,
    job,
    node,
    pod,
    resource_claim,
    resource_slice,
)
from clusters.kubernetes_snapshots import read, stored

from clusterscape.collect.kubernetes.values import read_time
from clusterscape.model import AllocationSource

UUID = "GPU-8f6b1f5a-7c1e-4c1d-9a53-7d6a4f0a2b11"


def test_the_scheduler_names_the_devices_when_a_claim_was_allocated() -> None:
    for version in ("v1", "v1beta2", "v1beta1"):
        claims = [{"name": "gpus", "resourceClaimName": "two"}]
        holder = stored(pod("p", gpus=0, nodeName="a", resourceClaims=claims) | {"status": RUNNING})
        claim = resource_claim("two", version=version) | {"status": allocated("a", ["gpu-1", "gpu-3"], holder)}
        _, queue = read(node("a", 0), resource_slice("a", 4, version), holder, stored(claim))
        assert [allocation.unit for allocation in queue.allocations] == [
            "GPU-00000000-0000-0000-0000-000000000001",
            "GPU-00000000-0000-0000-0000-000000000003",
        ]
        assert {allocation.source for allocation in queue.allocations} == {AllocationSource.SCHEDULER_INDEX}
        assert queue.workloads[0].gpus_requested == 2


def test_claims_made_from_a_template_are_found_when_the_pods_status_names_them() -> None:
    claims = [{"name": "gpus", "resourceClaimTemplateName": "template"}]
    status = RUNNING | {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "p-gpus-x7"}]}
    holder = stored(pod("p", gpus=0, nodeName="a", resourceClaims=claims) | {"status": status})
    claim = resource_claim("p-gpus-x7") | {"status": allocated("a", ["gpu-0"], holder)}
    _, queue = read(node("a", 0), resource_slice("a", 4), holder, stored(claim))
    assert len(queue.allocations) == 1


def test_nothing_is_held_when_a_claim_watches_with_admin_access() -> None:
    holder = stored(
        pod("p", gpus=1, nodeName="a", resourceClaims=[{"name": "m", "resourceClaimName": "all"}]) | {"status": RUNNING}
    )
    status = allocated("a", ["gpu-0", "gpu-1"], holder)
    for result in status["allocation"]["devices"]["results"]:
        result["adminAccess"] = True
    _, queue = read(
        node("a", 0), resource_slice("a", 2), holder, stored(resource_claim("all", count=0) | {"status": status})
    )
    assert queue.allocations == ()


def test_devices_come_from_the_kubelet_when_it_reports_them() -> None:
    resources = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": f"{UUID}::2", "health": "Healthy"}]}]
    status = RUNNING | {"containerStatuses": [container_status({"running": {}}, allocatedResourcesStatus=resources)]}
    _, queue = read(node("a"), stored(pod("p", nodeName="a") | {"status": status}))
    (allocation,) = queue.allocations
    assert (allocation.unit, allocation.source, allocation.confidence) == (UUID, AllocationSource.POD_RESOURCES, 1.0)
    assert allocation.from_at == read_time("2026-11-15T08:00:20Z")


def test_an_annotation_names_the_devices_when_a_device_plugin_writes_one() -> None:
    by_index = stored(
        pod("i", gpus=2, annotations={"volcano.sh/gpu-index": "2,5,99"}, nodeName="a") | {"status": RUNNING}
    )
    by_uuid = stored(
        pod("u", annotations={"hami.io/vgpu-devices-allocated": f"{UUID},NVIDIA,8000,50:;"}, nodeName="a")
        | {"status": RUNNING}
    )
    _, queue = read(node("a"), by_index, by_uuid)
    assert sorted(allocation.unit for allocation in queue.allocations) == [UUID, "a:2", "a:5"]


def test_a_whole_node_is_held_when_a_workload_has_all_its_gpus() -> None:
    owner = stored(job("train", gpus=4, pods=2))
    pods = [stored(pod(f"t-{n}", gpus=4, owner=owner, nodeName="a") | {"status": RUNNING}) for n in range(2)]
    _, queue = read(node("a"), owner, *pods)
    assert [allocation.unit for allocation in queue.allocations] == [f"a:{index}" for index in range(8)]
    assert {allocation.source for allocation in queue.allocations} == {AllocationSource.WHOLE_NODE}
    assert queue.unplaced_pods == 0


def test_nothing_is_guessed_when_only_the_number_of_gpus_is_known() -> None:
    _, queue = read(node("a"), stored(pod("p", gpus=4, nodeName="a") | {"status": RUNNING}))
    assert (queue.allocations, queue.unplaced_pods) == ((), 1)
    assert list(queue.aliases) == ["kubernetes:team-a/p"]


def test_no_allocation_is_reported_when_a_gpu_is_offered_several_times() -> None:
    shared = node("a", 2, resources={"nvidia.com/gpu": "8"})
    _, queue = read(shared, stored(pod("p", gpus=2, nodeName="a") | {"status": RUNNING}))
    assert queue.allocations == ()
