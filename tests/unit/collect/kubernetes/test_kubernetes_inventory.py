from clusters.kubernetes_objects import RUNNING, cluster_queue, flavor, job, node, pod, resource_slice, volcano_queue
from clusters.kubernetes_snapshots import read, stored

from clusterscape.model import NodeState, UnitKind


def test_units_are_numbered_places_when_a_node_offers_gpus() -> None:
    inventory, _ = read(node("gpu-1.cluster.local", 4), node("cpu-1", 0))
    gpu, cpu = inventory.nodes[1], inventory.nodes[0]
    assert (gpu.id, gpu.machine_type, gpu.gpu_count) == ("gpu-1", "H100-80G", 4)
    assert (cpu.id, cpu.gpu_count, cpu.machine_type, cpu.partitions) == ("cpu-1", 0, None, ())
    assert [unit.id for unit in inventory.units] == [f"gpu-1:{index}" for index in range(4)]
    assert {unit.kind for unit in inventory.units} == {UnitKind.GPU}


def test_a_gpu_is_one_unit_when_it_is_offered_several_times() -> None:
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    sliced = node("a", 2, "NVIDIA-A100-SXM4-80GB-SHARED", labels=labels, resources={"nvidia.com/gpu": "8"})
    inventory, _ = read(sliced)
    assert (inventory.nodes[0].gpu_count, inventory.nodes[0].machine_type) == (2, "A100-80G")
    assert inventory.shared_nodes == {"a"}


def test_instances_are_left_to_exporters_when_gpus_are_cut() -> None:
    mixed = node("mixed", 8, resources={"nvidia.com/gpu": "7", "nvidia.com/mig-1g.10gb": "7"})
    single = node("single", 7, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", resources={"nvidia.com/gpu": "7"})
    inventory, _ = read(mixed, single)
    by_name = {str(node.id): node for node in inventory.nodes}
    assert by_name["mixed"].gpu_count == 8
    assert "mig-1g.10gb=7" in by_name["mixed"].features
    assert (by_name["single"].gpu_count, by_name["single"].machine_type) == (0, "A100-80G")


def test_nodes_are_closed_when_cordoned_or_not_ready() -> None:
    busy = pod("p", gpus=8, nodeName="busy") | {"status": RUNNING}
    half = pod("q", gpus=4, nodeName="half") | {"status": RUNNING}
    draining = pod("r", gpus=4, nodeName="draining") | {"status": RUNNING}
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    inventory, _ = read(
        *(stored(node) for node in (busy, half, draining)),
        node("idle"),
        node("busy"),
        node("half"),
        node("draining", cordoned=True),
        node("drained", cordoned=True, taints=[taint]),
        node("sick", ready="False"),
        node("lost", ready="Unknown"),
    )
    states = {node.id: node.state for node in inventory.nodes}
    assert states == {
        "idle": NodeState.IDLE,
        "busy": NodeState.ALLOCATED,
        "half": NodeState.MIXED,
        "draining": NodeState.DRAINING,
        "drained": NodeState.DRAINED,
        "sick": NodeState.DOWN,
        "lost": NodeState.DOWN,
    }
    reasons = {str(node.id): node.reason for node in inventory.nodes}
    assert reasons["drained"] == "cordoned; dedicated=ml:NoSchedule"
    assert reasons["lost"] == "Kubelet stopped posting node status."


def test_units_carry_their_uuid_when_a_dra_driver_lists_them() -> None:
    for version in ("v1", "v1beta1"):
        inventory, _ = read(node("a", 0), resource_slice("a", 2, version))
        assert [(unit.id, unit.uuid) for unit in inventory.units] == [
            ("a:0", "GPU-00000000-0000-0000-0000-000000000000"),
            ("a:1", "GPU-00000000-0000-0000-0000-000000000001"),
        ]
        assert inventory.nodes[0].machine_type == "H100-80G"


def test_a_queue_has_the_nodes_of_its_flavors_when_kueue_is_there() -> None:
    inventory, _ = read(
        node("h-1", labels={"pool": "h100"}),
        node("a-1", product="NVIDIA-A100-SXM4-80GB", labels={"pool": "a100"}),
        flavor("h100", {"pool": "h100"}),
        cluster_queue("llm", 16, "h100"),
        volcano_queue("batch", 8),
    )
    partitions = {partition.name: partition for partition in inventory.partitions}
    assert partitions["k8s/llm"].nodes == ("h-1",)
    assert partitions["k8s/batch"].nodes == ("a-1", "h-1")
    assert "k8s/default" not in partitions
    assert {node.id: node.partitions for node in inventory.nodes} == {
        "h-1": ("k8s/llm", "k8s/batch"),
        "a-1": ("k8s/batch",),
    }


def test_default_queue_exists_when_a_workload_is_in_none() -> None:
    inventory, _ = read(node("a"), volcano_queue("batch", 8), job("free"))
    assert [partition.name for partition in inventory.partitions] == ["k8s/batch", "k8s/default"]


def test_a_second_node_is_counted_when_two_have_the_same_short_name() -> None:
    inventory, _ = read(node("a.one"), node("a.two"))
    assert [node.id for node in inventory.nodes] == ["a"]
    assert inventory.dropped == {"nodes: two with the same short name": 1}
