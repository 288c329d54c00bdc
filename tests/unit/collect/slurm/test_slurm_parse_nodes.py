"""Nodes, units and partitions from Slurm's JSON."""

import pytest
from unit.collect.slurm.documents import NODES, PARTITIONS, node, nodes

from clusterscape.collect.slurm.parse_nodes import SlurmInventory, parse_nodes, parse_partitions, partitions_of_nodes
from clusterscape.model import NodeId, NodeState, Unit, UnitId, UnitKind


def only(inventory: SlurmInventory) -> tuple[str, str | None, int]:
    (entry,) = inventory.nodes
    return entry.id, entry.machine_type, entry.gpu_count


def test_nodes_have_units_when_slurm_names_gpus() -> None:
    inventory = parse_nodes(NODES)
    assert [entry.id for entry in inventory.nodes] == ["gpu01", "gpu02", "v1", "cpu1"]
    assert [entry.gpu_count for entry in inventory.nodes] == [8, 8, 4, 0]
    assert [entry.machine_type for entry in inventory.nodes] == ["A100", "A100", "V100", None]
    assert len(inventory.units) == 20
    assert inventory.units[3] == Unit(
        id=UnitId("gpu01:3"), kind=UnitKind.GPU, node=NodeId("gpu01"), index=3, machine_type="A100"
    )
    assert inventory.partition_types == {"a100": "A100", "v100": "V100", "all": None}
    assert not inventory.dropped


def test_node_has_all_fields_when_slurm_reports_them() -> None:
    (entry,) = parse_nodes(nodes(node("gpu01", state=["MIXED", "DRAIN"], reason="ECC error"))).nodes
    assert entry.state is NodeState.DRAINING
    assert entry.reason == "ECC error"
    assert entry.partitions == ("a100", "all")
    assert entry.features == ("a100", "nvlink")
    assert entry.cpu_count == 64
    assert entry.memory_bytes == 512_000 * 2**20


def test_reason_is_left_out_when_the_node_has_recovered() -> None:
    (entry,) = parse_nodes(nodes(node("gpu01", reason="was rebooted"))).nodes
    assert entry.reason is None


def test_reason_is_slurms_own_word_when_the_operator_gave_none() -> None:
    (entry,) = parse_nodes(nodes(node("gpu01", state="idle", state_flags=["NOT_RESPONDING"]))).nodes
    assert (entry.state, entry.reason) == (NodeState.DOWN, "not responding")


def test_units_keep_slurms_order_when_a_node_has_several_types() -> None:
    inventory = parse_nodes(nodes(node("mix", gres="gpu:a100:2(S:0),gpu:v100:1(S:1),shard:8")))
    assert only(inventory) == ("mix", "A100+V100", 3)
    assert [(unit.id, unit.machine_type) for unit in inventory.units] == [
        ("mix:0", "A100"),
        ("mix:1", "A100"),
        ("mix:2", "V100"),
    ]


def test_mig_instances_are_named_apart_from_gpus_when_slurm_numbers_them() -> None:
    inventory = parse_nodes(nodes(node("m1", gres="gpu:a100:1,gpu:a100_3g.20gb:2")))
    assert [(unit.id, unit.kind, unit.index, unit.mig_profile) for unit in inventory.units] == [
        ("m1:0", UnitKind.GPU, 0, None),
        ("m1:mig1", UnitKind.MIG, None, "3g.20gb"),
        ("m1:mig2", UnitKind.MIG, None, "3g.20gb"),
    ]


def test_future_node_is_left_out_when_it_does_not_exist_yet() -> None:
    inventory = parse_nodes(nodes(node("gpu01"), node("later", state=["FUTURE"])))
    assert [entry.id for entry in inventory.nodes] == ["gpu01"]
    assert not inventory.dropped


def test_nodes_without_index_are_named_when_gpus_are_only_counted() -> None:
    inventory = parse_nodes(
        nodes(node("gpu01"), node("gpu02", gres="gpu:4", gres_used="gpu:1"), node("c1", gres="", gres_used=""))
    )
    assert inventory.nodes_without_index == ("gpu02",)


def test_damaged_nodes_are_counted_when_others_are_whole() -> None:
    inventory = parse_nodes(
        nodes(
            node("gpu01"),
            "junk",
            {"state": "idle"},
            node("gpu03", state=None),
            node("gpu04", gres="gpu:a100:8((("),
            node("gpu05", gres="gpu:a100:999999"),
        )
    )
    assert [entry.id for entry in inventory.nodes] == ["gpu01"]
    assert inventory.dropped == {
        "nodes: not an object": 1,
        "nodes: no name": 1,
        "nodes: no state": 1,
        "nodes: unreadable gres": 1,
        "nodes: impossible number of GPUs": 1,
    }


def test_missing_list_is_counted_when_the_response_has_none() -> None:
    assert parse_nodes({"nodes": None}).dropped == {"no list of nodes": 1}


def test_partitions_are_read_when_in_old_and_new_shape() -> None:
    inventory = parse_nodes(NODES)
    partitions, dropped = parse_partitions(PARTITIONS, inventory)
    a100, v100 = partitions
    assert (a100.name, a100.nodes, a100.is_up, a100.is_default) == ("a100", ("gpu01", "gpu02"), True, True)
    assert a100.max_time_s == 7 * 86_400
    assert (v100.name, v100.nodes, v100.is_up, v100.is_default) == ("v100", ("v1",), False, False)
    assert v100.max_time_s is None
    assert not dropped


def test_partition_has_the_configured_nodes_when_no_node_names_it() -> None:
    partitions, dropped = parse_partitions(PARTITIONS, SlurmInventory())
    assert [partition.nodes for partition in partitions] == [("gpu01", "gpu02"), ("v1",)]
    assert not dropped


def test_damaged_partitions_are_counted_when_others_are_whole() -> None:
    document: dict[str, object] = {"partitions": [{"name": "ok"}, {}, {"name": "x", "nodes": "n[1"}, 5]}
    partitions, dropped = parse_partitions(document, SlurmInventory())
    assert [partition.name for partition in partitions] == ["ok"]
    assert sum(dropped.values()) == 3


def test_partitions_come_from_nodes_when_slurm_does_not_list_them() -> None:
    entry = {partition.name: partition.nodes for partition in partitions_of_nodes(parse_nodes(NODES))}
    assert entry == {"a100": ("gpu01", "gpu02"), "v100": ("v1",), "all": ("gpu01", "gpu02", "v1", "cpu1")}


@pytest.mark.parametrize(
    ("features", "rack"),
    [
        ("a100,rack-r03", "r03"),
        ("rack_12", "12"),
        ("Rack=B4,ib", "B4"),
        ("rack7", "7"),
        ("tracked,rack", None),
        ("", None),
    ],
)
def test_rack_is_found_when_a_feature_names_it(features: str, rack: str | None) -> None:
    parsed = parse_nodes({"nodes": [{"name": "n1", "state": "IDLE", "gres": "gpu:a100:1", "features": features}]})
    assert [node.rack for node in parsed.nodes] == [rack]
