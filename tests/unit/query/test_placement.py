"""Workloads that could start now, and free GPUs that no waiting workload can use."""

from dataclasses import replace

import polars as pl
import pytest

from clusterscape.model import NodeId, Partition, UnitKind, Workload, WorkloadId, WorkloadState
from clusterscape.query.answers import Startable, UnitState
from clusterscape.query.scheduling.live_queue import NodeTable, QueueJob, QueueNode, read_jobs
from clusterscape.query.summary import (
    Demand,
    compute_startable,
    count_free,
    find_requests,
    find_stranded,
    mark_free_use,
)


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


def queue_of(table: pl.DataFrame, partitions: list[Partition], workloads: list[Workload]) -> tuple[QueueJob, ...]:
    """The workloads as the live queue reads them on these nodes."""
    sizes = table.group_by("node", "machine_type").len().rows()
    nodes = {
        name: QueueNode(
            name, gpus, machine_type, tuple(partition.name for partition in partitions if name in partition.nodes), True
        )
        for name, machine_type, gpus in sizes
    }
    return read_jobs(
        workloads, NodeTable(nodes, {}, {partition.name: None for partition in partitions if partition.is_up}), 0
    )


def place(table: pl.DataFrame, partition: Partition, *workloads: Workload) -> list[Startable]:
    nodes = count_free(table)
    jobs = queue_of(table, [partition], list(workloads))
    return compute_startable(partition, nodes, find_requests(jobs, [partition], nodes))


FRAGMENTED = {f"n{i}": (2, 8, "A100-80G") for i in range(4)}


def test_job_of_eight_cannot_start_when_eight_gpus_are_free_on_four_nodes() -> None:
    [startable] = place(units(**FRAGMENTED), part(*FRAGMENTED), waiting(8))
    assert startable == Startable(
        machine_type="A100-80G", free=8, gpus_per_node=8, one_node_gpus=2, whole_nodes=0, whole_node_gpus=0,
        smallest_request=8, stranded=8,
    )  # fmt: skip


def test_nodes_are_summed_when_all_their_gpus_are_free() -> None:
    table = units(a=(8, 8, "H100"), b=(8, 8, "H100"), c=(7, 8, "H100"), d=(4, 4, "H100"))
    [h100] = place(table, part("a", "b", "c", "d"))
    assert (h100.free, h100.one_node_gpus, h100.whole_nodes, h100.whole_node_gpus) == (27, 8, 2, 16)
    assert (h100.smallest_request, h100.stranded) == (None, 0)


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
    places = place(table, part("a", "b", "c", "d", "h"), *queue)
    assert [startable.machine_type for startable in places] == ["H100", "V100"]
    assert (places[1].smallest_request, places[1].stranded) == (request_, stranded)


def test_nothing_starts_when_the_partition_is_closed() -> None:
    [closed] = place(units(a=(8, 8, None)), part("a", is_up=False), waiting(1))
    assert (closed.machine_type, closed.free, closed.one_node_gpus, closed.whole_node_gpus, closed.stranded) == (
        None, 8, 0, 0, 0,
    )  # fmt: skip


def test_unit_counts_once_and_only_if_no_partition_can_use_it_when_its_node_is_in_two() -> None:
    table = units(a=(2, 8, "V100"), b=(3, 8, None), c=(1, 8, "V100"))
    nodes, parts = count_free(table), [part("a", "b", "c"), part("a", name="debug")]
    workloads = [waiting(4), waiting(2, partition="debug"), waiting(0), waiting(1, partition="gone")]
    requests = find_requests(queue_of(table, parts, workloads), parts, nodes)
    placed = [(partition, compute_startable(partition, nodes, requests)) for partition in parts]
    assert [sum(startable.stranded for startable in places) for _, places in placed] == [6, 0]
    assert find_stranded(nodes, placed)["free"].sum() == 4
    assert find_stranded(nodes, [])["free"].sum() == 0


def test_stranded_units_are_named_when_others_can_be_used() -> None:
    table = units(a=(2, 8, "V100"), b=(4, 8, "V100"), c=(1, 1, None))
    parts = [part("a", "b")]
    marked = mark_free_use(table, parts, Demand(queue_of(table, parts, [waiting(4)])))
    uses = marked.group_by("node", "free_use").len().sort("node", "free_use").rows()
    assert uses == [("a", None, 6), ("a", "stranded", 2), ("b", None, 4), ("b", "usable", 4), ("c", "usable", 1)]


def test_instances_are_no_gpus_when_free_ones_are_counted() -> None:
    table = units(a=(2, 2, "A100")).with_columns(kind=pl.lit(UnitKind.MIG.value))
    assert place(table, part("a"), waiting(1)) == []


@pytest.mark.parametrize(("reason", "stranded"), [("Resources", 0), ("JobHeldUser", 2), ("Dependency", 2)])
def test_free_gpus_are_of_no_use_when_only_held_jobs_would_fit(reason: str, stranded: int) -> None:
    small = replace(waiting(1), pending_reason=reason)
    [a100] = place(units(a=(2, 8, "A100")), part("a"), waiting(4), small)
    assert a100.stranded == stranded


def test_a_job_can_use_each_of_its_partitions_when_it_names_several() -> None:
    table, parts = units(a=(2, 8, "A100"), b=(2, 8, "A100")), [part("a"), part("b", name="spare")]
    job = replace(waiting(2), tags={"partitions": "main,spare"})
    requests = find_requests(queue_of(table, parts, [job, waiting(4, partition="spare")]), parts, count_free(table))
    assert requests == {("main", "A100"): 2, ("spare", "A100"): 2}


def test_fewer_are_free_when_a_workload_does_not_say_which_gpus_it_has() -> None:
    nodes = count_free(units(a=(8, 8, "A100"), b=(3, 8, "A100")), {"a": 6, "b": 5})
    assert dict(nodes.select("node", "free").iter_rows()) == {"a": 2, "b": 0}


@pytest.mark.parametrize(
    "reason",
    [
        "Dependency",
        "JobHeldUser",
        "BeginTime",
        "QOSMaxGRESPerUser",
        "Reservation",
        "ReqNodeNotAvail, UnavailableNodes:n9",
        "KueueQuota",
        "NodeDown",
    ],
)
def test_free_gpus_are_stranded_when_the_small_request_waits_for_something_else(reason: str) -> None:
    """54 free GPUs, at most 4 on a node, and the only workloads that lack nothing but GPUs request 8."""
    table = units(**{f"n{i}": (4 if i < 10 else 2, 8, "V100") for i in range(17)})
    whole = [replace(waiting(8), id=WorkloadId(f"slurm:{i}"), pending_reason="Resources") for i in range(4)]
    held = replace(waiting(1), pending_reason=reason)
    [startable] = place(table, part(*table["node"].unique()), *whole, held)
    assert (startable.free, startable.smallest_request, startable.stranded) == (54, 8, 54)
    [startable] = place(table, part(*table["node"].unique()), *whole, replace(held, pending_reason="Priority"))
    assert (startable.smallest_request, startable.stranded) == (1, 0)
