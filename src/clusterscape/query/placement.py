"""What could start at once, and which free GPUs nobody waiting can use. Who waits for what is the live queue's to say.

Looks at GPUs only: CPUs, memory, limits and reservations may forbid more, so these are upper bounds. MIG instances are left out:
a workload that asks for GPUs does not get them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from clusterscape.model import Allocation, Partition, UnitKind, Workload
from clusterscape.query.answers import Startable, UnitState
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.live_queue import (
    QueueJob,
    accepted_types,
    find_node_table,
    find_unplaced,
    read_jobs,
)

_FREE_USES = pl.Enum(["usable", "stranded"])


@dataclass(frozen=True, slots=True)
class Demand:
    """What the queue says of a moment: who waits, and GPUs by node that are held though no unit of them is known."""

    jobs: Sequence[QueueJob]
    unplaced: Mapping[str, int] = field(default_factory=dict)


Requests = Mapping[tuple[str, str | None], int]
"""GPUs on one node that the least demanding job needs, by partition and machine type."""


def read_demand(
    context: QueryContext, workloads: Sequence[Workload], allocations: Sequence[Allocation], now_s: int
) -> Demand:
    """Of any moment, from the workloads and allocations of then, as the live queue reads them."""
    unplaced: Counter[str] = Counter()
    for (_, node), gpus in find_unplaced(workloads, allocations).items():
        unplaced[node] += gpus
    return Demand(read_jobs(workloads, find_node_table(context), now_s), unplaced)


def count_free(units: pl.DataFrame, unplaced: Mapping[str, int] | None = None) -> pl.DataFrame:
    """GPUs and free GPUs of each node and machine type: ``node``, ``machine_type`` (String), ``gpus``, ``free`` (Int64).

    ``unplaced``: GPUs of a node that look free, but are held by workloads of which no unit is known.
    """
    nodes = (
        units.filter(pl.col("kind") == UnitKind.GPU.value)
        .with_columns(pl.col("node", "machine_type").cast(pl.String))
        .group_by("node", "machine_type")
        .agg(
            gpus=pl.len().cast(pl.Int64),
            free=(pl.col("unit_state") == UnitState.FREE.value).sum().cast(pl.Int64),
        )
    )
    if not unplaced:
        return nodes
    held = pl.DataFrame(
        {"node": list(unplaced), "held": list(unplaced.values())}, {"node": pl.String, "held": pl.Int64}
    )
    free = (pl.col("free") - pl.col("held").fill_null(0)).clip(0)
    return nodes.join(held, on="node", how="left").with_columns(free=free).drop("held")


def find_requests(jobs: Iterable[QueueJob], partitions: Sequence[Partition], nodes: pl.DataFrame) -> Requests:
    """The smallest request of those that wait for GPUs only: a held job makes no GPU useful. ``nodes``: see ``count_free``."""
    types_of: dict[str, set[str | None]] = {}
    for name, machine_type in nodes.select("node", "machine_type").iter_rows():
        types_of.setdefault(name, set()).add(machine_type)
    types = {part.name: set().union(*(types_of.get(name, set()) for name in part.nodes)) for part in partitions}
    requests: dict[tuple[str, str | None], int] = {}
    for job in jobs:
        if not job.is_planned:
            continue
        accepted = accepted_types(job, set().union(*(types.get(name, set()) for name in job.partitions)))
        for name in job.partitions:
            for machine_type in accepted & types.get(name, set()):
                least = requests.get((name, machine_type), job.gpus)
                requests[name, machine_type] = min(least, job.gpus)
    return requests


def place_in(partition: Partition, nodes: pl.DataFrame, requests: Requests) -> list[Startable]:
    """What could start in ``partition`` by machine type. ``nodes``: see ``count_free``.

    - The largest job on one node: the most free GPUs on any node.
    - The largest job on whole nodes: all GPUs of wholly free nodes, of the size of that type's largest node (8 GPUs a node, say).
    - Stranded: free, but on a node with fewer free GPUs than the smallest request. Where nobody waits, nothing is.

    In a closed partition nothing can start, and nothing is stranded for want of room.
    """
    mine = nodes.filter(pl.col("node").is_in(list(partition.nodes)))
    answers = []
    types: list[str | None] = sorted(mine["machine_type"].unique(), key=lambda name: (name is None, name or ""))
    for name in types:
        here = mine.filter(pl.col("machine_type").eq_missing(pl.lit(name, dtype=pl.String)))
        size = int(here["gpus"].to_numpy().max())
        free = here["free"].to_numpy()
        request = requests.get((partition.name, name))
        can_start = partition.is_up
        whole = int((free == size).sum()) if can_start else 0
        answers.append(
            Startable(
                machine_type=name,
                free=int(free.sum()),
                gpus_per_node=size,
                one_node_gpus=int(free.max()) if can_start else 0,
                whole_nodes=whole,
                whole_node_gpus=whole * size,
                smallest_request=request,
                stranded=0 if request is None or not can_start else int(free[free < request].sum()),
            )
        )
    return answers


def find_stranded(nodes: pl.DataFrame, placed: Iterable[tuple[Partition, Sequence[Startable]]]) -> pl.DataFrame:
    """The rows of ``nodes`` whose free GPUs no waiting workload of any open partition of their node can use, each once."""
    asked = [
        pl.DataFrame(
            {"node": list(partition.nodes), "machine_type": place.machine_type, "request": place.smallest_request},
            schema={"node": pl.String, "machine_type": pl.String, "request": pl.Int64},
        )
        for partition, places in placed
        for place in places
        if partition.is_up and place.smallest_request is not None and partition.nodes
    ]
    if not asked:
        return nodes.clear()
    least = pl.concat(asked).group_by("node", "machine_type").agg(pl.col("request").min())
    found = nodes.join(least, on=["node", "machine_type"], how="inner", nulls_equal=True)
    return found.filter(pl.col("free") < pl.col("request")).drop("request")


def place_all(
    units: pl.DataFrame, partitions: Sequence[Partition], demand: Demand
) -> tuple[pl.DataFrame, list[tuple[Partition, list[Startable]]]]:
    """Free GPUs by node (see ``count_free``), and what could start in each partition."""
    nodes = count_free(units, demand.unplaced)
    requests = find_requests(demand.jobs, partitions, nodes)
    return nodes, [(partition, place_in(partition, nodes, requests)) for partition in partitions]


def mark_free_use(picture: pl.DataFrame, partitions: Sequence[Partition], demand: Demand) -> pl.DataFrame:
    """``picture`` with the column ``free_use``: of free GPUs whether they are usable or stranded, null for all others."""
    nodes, placed = place_all(picture, partitions, demand)
    stranded = find_stranded(nodes, placed).select("node", "machine_type", is_stranded=pl.lit(True))
    is_stranded = (
        picture.select(pl.col("node", "machine_type").cast(pl.String))
        .join(stranded, on=["node", "machine_type"], how="left", maintain_order="left", nulls_equal=True)
        .get_column("is_stranded")
    )
    is_free = (pl.col("unit_state") == UnitState.FREE.value) & (pl.col("kind") == UnitKind.GPU.value)
    use = pl.when(is_stranded.fill_null(False)).then(pl.lit("stranded")).otherwise(pl.lit("usable"))
    return picture.with_columns(free_use=pl.when(is_free).then(use).cast(_FREE_USES))
