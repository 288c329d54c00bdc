"""What could start at once, and which free GPUs are of no use to anybody who waits."""

import polars as pl
import pytest

from clusterscape.model import NodeId, Partition, UnitKind, Workload, WorkloadId, WorkloadState
from clusterscape.query.answers import Startable, UnitState
from clusterscape.query.placement import count_free, find_stranded, mark_free_use, place_in, waiting_in


def units(**free: tuple[int, int, str | None]) -> pl.DataFrame:
    """Nodes by name: free GPUs, all GPUs, machine type."""
    rows = [
        (name, machine, UnitKind.GPU.value, UnitState.FREE.value if i < idle else UnitState.ALLOCATED.value)
        for name, (idle, total, machine) in free.items()
        for i in range(total)
    ]
    return pl.DataFrame(rows, schema=["node", "machine_type", "kind", "unit_state"], orient="row")


def waiting(gpus: int, nodes: int | None = None, wants: str | None = None, partition: str = "main") -> Workload:
    return Workload(
        id=WorkloadId(f"slurm:{gpus}{nodes}{wants}{partition}"),
        state=WorkloadState.WAITING,
        gpus_requested=gpus,
        nodes_requested=nodes,
        resource_type=None if wants is None else f"{wants}-{gpus}",
        partition=partition,
    )


def part(*nodes: str, name: str = "main", is_up: bool = True) -> Partition:
    return Partition(name=name, nodes=tuple(NodeId(node) for node in nodes), is_up=is_up)


FRAGMENTED = {f"n{i}": (2, 8, "A100-80G") for i in range(4)}


def test_no_eight_can_start_when_eight_are_free_on_four_nodes() -> None:
    nodes = count_free(units(**FRAGMENTED))
    [place] = place_in(part(*FRAGMENTED), nodes, [waiting(8)])
    assert place == Startable(
        machine_type="A100-80G", free=8, gpus_per_node=8, one_node_gpus=2, whole_nodes=0, whole_node_gpus=0,
        smallest_request=8, stranded=8,
    )  # fmt: skip


def test_whole_nodes_add_up_when_they_are_wholly_free() -> None:
    nodes = count_free(units(a=(8, 8, "H100"), b=(8, 8, "H100"), c=(7, 8, "H100"), d=(4, 4, "H100")))
    [place] = place_in(part("a", "b", "c", "d"), nodes, [])
    assert (place.free, place.one_node_gpus, place.whole_nodes, place.whole_node_gpus) == (27, 8, 2, 16)
    assert (place.smallest_request, place.stranded) == (None, 0)


@pytest.mark.parametrize(
    ("queue", "request_", "stranded"),
    [
        ([waiting(8), waiting(2)], 2, 1),
        ([waiting(8, nodes=2)], 4, 3),
        ([waiting(9, nodes=2)], 5, 7),
        ([waiting(64)], 8, 7),
        ([waiting(4, wants="V100")], 4, 3),
        ([waiting(4, wants="H100")], None, 0),
    ],
)
def test_smallest_request_decides_when_several_wait(queue: list[Workload], request_: int | None, stranded: int) -> None:
    table = units(a=(1, 8, "V100"), b=(2, 8, "V100"), c=(4, 8, "V100"), d=(0, 8, "V100"), h=(3, 8, "H100"))
    places = place_in(part("a", "b", "c", "d", "h"), count_free(table), queue)
    assert [place.machine_type for place in places] == ["H100", "V100"]
    assert (places[1].smallest_request, places[1].stranded) == (request_, stranded)


def test_nothing_starts_when_the_partition_is_closed() -> None:
    nodes = count_free(units(a=(8, 8, None)))
    [place] = place_in(part("a", is_up=False), nodes, [waiting(1)])
    assert (place.machine_type, place.free, place.one_node_gpus, place.whole_node_gpus, place.stranded) == (
        None, 8, 0, 0, 0,
    )  # fmt: skip


def test_unit_counts_once_and_only_if_no_partition_can_use_it_when_its_node_is_in_two() -> None:
    nodes = count_free(units(a=(2, 8, "V100"), b=(3, 8, None), c=(1, 8, "V100")))
    main, debug = part("a", "b", "c"), part("a", name="debug")
    queues = waiting_in([waiting(4), waiting(2, partition="debug"), waiting(0), waiting(1, partition="gone")])
    placed = [(each, place_in(each, nodes, queues.get(each.name, []))) for each in (main, debug)]
    assert [sum(place.stranded for place in places) for _, places in placed] == [6, 0]
    assert find_stranded(nodes, placed)["free"].sum() == 4
    assert find_stranded(nodes, [])["free"].sum() == 0


def test_stranded_units_are_named_when_others_can_be_used() -> None:
    table = units(a=(2, 8, "V100"), b=(4, 8, "V100"), c=(1, 1, None))
    marked = mark_free_use(table, [part("a", "b")], [waiting(4)])
    uses = marked.group_by("node", "free_use").len().sort("node", "free_use").rows()
    assert uses == [("a", None, 6), ("a", "stranded", 2), ("b", None, 4), ("b", "usable", 4), ("c", "usable", 1)]


def test_instances_are_no_gpus_when_free_ones_are_counted() -> None:
    table = units(a=(2, 2, "A100")).with_columns(kind=pl.lit(UnitKind.MIG.value))
    assert place_in(part("a"), count_free(table), [waiting(1)]) == []
