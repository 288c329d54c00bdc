"""What could start at once, and which free GPUs nobody waiting can use.

Looks at GPUs only: CPUs, memory, limits and reservations may forbid more, so these are upper bounds. MIG instances are left out:
a workload that asks for GPUs does not get them.
"""

import math
from collections.abc import Iterable, Sequence

import polars as pl

from clusterscape.model import Partition, UnitKind, Workload, WorkloadState
from clusterscape.query.answers import Startable, UnitState

_FREE_USES = pl.Enum(["usable", "stranded"])


def count_free(units: pl.DataFrame) -> pl.DataFrame:
    """GPUs and free GPUs of each node and machine type: ``node``, ``machine_type`` (String), ``gpus``, ``free`` (Int64)."""
    return (
        units.filter(pl.col("kind") == UnitKind.GPU.value)
        .with_columns(pl.col("node", "machine_type").cast(pl.String))
        .group_by("node", "machine_type")
        .agg(
            gpus=pl.len().cast(pl.Int64),
            free=(pl.col("unit_state") == UnitState.FREE.value).sum().cast(pl.Int64),
        )
    )


def place_in(partition: Partition, nodes: pl.DataFrame, waiting: Sequence[Workload]) -> list[Startable]:
    """What could start in ``partition`` by machine type. ``nodes``: see ``count_free``; ``waiting``: its workloads that wait.

    - The largest job on one node: the most free GPUs on any node.
    - The largest job on whole nodes: all GPUs of wholly free nodes, of the size of that type's largest node (8 GPUs a node, say).
    - The request of a waiting workload: the GPUs it needs on each of its nodes. Where it names a number of nodes, its GPUs
      divided by it; else all on one node, or whole nodes where it asks for more than one has. It concerns the machine type that
      its resource type names, or all where it names none of this partition.
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
        request = min((_request(w, size) for w in waiting if _accepts(w, name, types)), default=None)
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


def mark_free_use(
    picture: pl.DataFrame, partitions: Sequence[Partition], workloads: Iterable[Workload]
) -> pl.DataFrame:
    """``picture`` with the column ``free_use``: of free GPUs whether they are usable or stranded, null for all others."""
    nodes = count_free(picture)
    queues = waiting_in(workloads)
    placed = [(part, place_in(part, nodes, queues.get(part.name, []))) for part in partitions]
    stranded = find_stranded(nodes, placed).select("node", "machine_type", is_stranded=pl.lit(True))
    is_stranded = (
        picture.select(pl.col("node", "machine_type").cast(pl.String))
        .join(stranded, on=["node", "machine_type"], how="left", maintain_order="left", nulls_equal=True)
        .get_column("is_stranded")
    )
    is_free = (pl.col("unit_state") == UnitState.FREE.value) & (pl.col("kind") == UnitKind.GPU.value)
    use = pl.when(is_stranded.fill_null(False)).then(pl.lit("stranded")).otherwise(pl.lit("usable"))
    return picture.with_columns(free_use=pl.when(is_free).then(use).cast(_FREE_USES))


def waiting_in(workloads: Iterable[Workload]) -> dict[str, list[Workload]]:
    """Workloads that wait for GPUs, by partition."""
    found: dict[str, list[Workload]] = {}
    for workload in workloads:
        if workload.state is WorkloadState.WAITING and workload.gpus_requested > 0 and workload.partition:
            found.setdefault(workload.partition, []).append(workload)
    return found


def _request(workload: Workload, size: int) -> int:
    if workload.nodes_requested:
        return math.ceil(workload.gpus_requested / workload.nodes_requested)
    return min(workload.gpus_requested, size)


def _accepts(workload: Workload, machine_type: str | None, types: Sequence[str | None]) -> bool:
    wanted = (workload.resource_type or "").rpartition("-")[0]
    return wanted not in types or wanted == machine_type
