"""The picture in numbers, for the whole cluster and each partition: what could start now, and which free GPUs are stranded,
that is, usable by no waiting workload. Why single jobs wait is explained by the live queue.

Considers GPUs only: CPUs, memory, limits and reservations may forbid more, so the numbers are upper bounds. MIG instances are
excluded: a workload that requests GPUs does not get them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from clusterscape.model import Allocation, Node, NodeId, Partition, Reservation, UnitKind, UnixMs, Workload
from clusterscape.query.answers import (
    ClusterSummary,
    PartitionSummary,
    ReservationAnswer,
    Startable,
    UnitCounts,
    UnitHealth,
    UnitState,
)
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.live_queue import QueueJob, accepted_types, find_node_table, find_unplaced, read_jobs

_FREE_USES = pl.Enum(["usable", "stranded"])


@dataclass(frozen=True, slots=True)
class Demand:
    """The queue at one moment: waiting jobs, and GPUs by node that are held by workloads whose units are unknown."""

    jobs: Sequence[QueueJob]
    unplaced: Mapping[str, int] = field(default_factory=dict)


Requests = Mapping[tuple[str, str | None], int]
"""The fewest GPUs on one node that a waiting job needs, by partition and machine type."""


def read_demand(
    context: QueryContext, workloads: Sequence[Workload], allocations: Sequence[Allocation], now_s: int
) -> Demand:
    """The demand of the live queue at any moment, from the workloads and allocations of that moment."""
    unplaced: Counter[str] = Counter()
    for (_, node), gpus in find_unplaced(workloads, allocations).items():
        unplaced[node] += gpus
    return Demand(read_jobs(workloads, find_node_table(context), now_s), unplaced)


def count_free(units: pl.DataFrame, unplaced: Mapping[str, int] | None = None) -> pl.DataFrame:
    """GPUs and free GPUs of each node and machine type: ``node``, ``machine_type`` (String), ``gpus``, ``free`` (Int64).

    ``unplaced``: GPUs of a node that look free, but are held by workloads whose units are unknown.
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
    """The smallest requests of jobs that would start now if they had room. ``nodes``: see ``count_free``."""
    types_of: dict[str, set[str | None]] = {}
    for name, machine_type in nodes.select("node", "machine_type").iter_rows():
        types_of.setdefault(name, set()).add(machine_type)
    types = {part.name: set().union(*(types_of.get(name, set()) for name in part.nodes)) for part in partitions}
    requests: dict[tuple[str, str | None], int] = {}
    for job in jobs:
        if not job.is_demand:
            continue
        accepted = accepted_types(job, set().union(*(types.get(name, set()) for name in job.partitions)))
        for name in job.partitions:
            for machine_type in accepted & types.get(name, set()):
                least = requests.get((name, machine_type), job.gpus)
                requests[name, machine_type] = min(least, job.gpus)
    return requests


def compute_startable(partition: Partition, nodes: pl.DataFrame, requests: Requests) -> list[Startable]:
    """What could start in ``partition`` by machine type. ``nodes``: see ``count_free``.

    - The largest job on one node: the most free GPUs on any node.
    - The largest job on whole nodes: all GPUs of completely free nodes of that type's largest size (for example 8 GPUs).
    - Stranded: free, but on a node with fewer free GPUs than the smallest request. Without waiting jobs, none is stranded.

    In a partition that is down nothing can start, and nothing counts as stranded.
    """
    members = nodes.filter(pl.col("node").is_in(list(partition.nodes)))
    answers = []
    types: list[str | None] = sorted(members["machine_type"].unique(), key=lambda name: (name is None, name or ""))
    for name in types:
        same_type = members.filter(pl.col("machine_type").eq_missing(pl.lit(name, dtype=pl.String)))
        size = int(same_type["gpus"].to_numpy().max())
        free = same_type["free"].to_numpy()
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


def find_stranded(nodes: pl.DataFrame, by_partition: Iterable[tuple[Partition, Sequence[Startable]]]) -> pl.DataFrame:
    """The rows of ``nodes`` whose free GPUs no waiting workload of any available partition of their node can use."""
    requests = [
        pl.DataFrame(
            {
                "node": list(partition.nodes),
                "machine_type": startable.machine_type,
                "request": startable.smallest_request,
            },
            schema={"node": pl.String, "machine_type": pl.String, "request": pl.Int64},
        )
        for partition, startables in by_partition
        for startable in startables
        if partition.is_up and startable.smallest_request is not None and partition.nodes
    ]
    if not requests:
        return nodes.clear()
    smallest = pl.concat(requests).group_by("node", "machine_type").agg(pl.col("request").min())
    requested = nodes.join(smallest, on=["node", "machine_type"], how="inner", nulls_equal=True)
    return requested.filter(pl.col("free") < pl.col("request")).drop("request")


def compute_all_startable(
    units: pl.DataFrame, partitions: Sequence[Partition], demand: Demand
) -> tuple[pl.DataFrame, list[tuple[Partition, list[Startable]]]]:
    """Free GPUs by node (see ``count_free``), and what could start in each partition."""
    nodes = count_free(units, demand.unplaced)
    requests = find_requests(demand.jobs, partitions, nodes)
    return nodes, [(partition, compute_startable(partition, nodes, requests)) for partition in partitions]


def mark_free_use(picture: pl.DataFrame, partitions: Sequence[Partition], demand: Demand) -> pl.DataFrame:
    """Adds the column ``free_use`` to ``picture``: ``usable`` or ``stranded`` for free GPUs, null for all others."""
    nodes, by_partition = compute_all_startable(picture, partitions, demand)
    stranded = find_stranded(nodes, by_partition).select("node", "machine_type", is_stranded=pl.lit(True))
    is_stranded = (
        picture.select(pl.col("node", "machine_type").cast(pl.String))
        .join(stranded, on=["node", "machine_type"], how="left", maintain_order="left", nulls_equal=True)
        .get_column("is_stranded")
    )
    is_free = (pl.col("unit_state") == UnitState.FREE.value) & (pl.col("kind") == UnitKind.GPU.value)
    use = pl.when(is_stranded.fill_null(False)).then(pl.lit("stranded")).otherwise(pl.lit("usable"))
    return picture.with_columns(free_use=pl.when(is_free).then(use).cast(_FREE_USES))


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryHeader:
    """The fields of a ``ClusterSummary`` that are not computed from the picture."""

    cluster: str
    is_demo: bool
    at: UnixMs
    is_past: bool
    inventory_version: int
    tick_version: int
    newest_sample_at: UnixMs | None = None
    nodes_unavailable: int | None = None
    failing_sources: int | None = None
    awaited: Sequence[str] = ()
    open_questions: int | None = None
    paused: str | None = None
    reservations: Sequence[Reservation] = ()


def summarize(
    header: SummaryHeader,
    table: pl.DataFrame,
    *,
    nodes: Sequence[Node],
    partitions: Sequence[Partition],
    demand: Demand,
) -> ClusterSummary:
    """``table``: the picture with the columns ``gpu_util_ratio`` and ``power_watts``; ``demand``: the queue at that moment."""
    is_requested = pl.col("kind") == UnitKind.REQUESTED.value
    waiting, units = table.filter(is_requested), table.filter(~is_requested)
    free, by_partition = compute_all_startable(units, partitions, demand)
    return ClusterSummary(
        cluster=header.cluster,
        is_demo=header.is_demo,
        at=header.at,
        is_past=header.is_past,
        inventory_version=header.inventory_version,
        tick_version=header.tick_version,
        newest_sample_at=header.newest_sample_at,
        nodes=len(nodes),
        nodes_unavailable=header.nodes_unavailable,
        units=_count(units),
        running=_distinct_workloads(units),
        waiting=_distinct_workloads(waiting),
        waiting_gpus=len(waiting),
        gpu_util_ratio=_mean_utilization(units),
        power_watts=_total(units["power_watts"]),
        stranded=int(find_stranded(free, by_partition)["free"].sum()),
        partitions=_partitions(units, waiting, nodes, by_partition),
        failing_sources=header.failing_sources,
        awaited=list(header.awaited),
        open_questions=header.open_questions,
        paused=header.paused,
        reservations=describe_reservations(header.reservations, {node.id: node.gpu_count for node in nodes}, header.at),
        hides_names=False,
    )


def describe_reservations(
    reservations: Sequence[Reservation], gpus_by_node: Mapping[NodeId, int], now: UnixMs
) -> list[ReservationAnswer]:
    """Reservations that have not ended, by start."""
    return [
        ReservationAnswer(
            name=reservation.name,
            starts_at=reservation.starts_at,
            ends_at=reservation.ends_at,
            is_active=reservation.starts_at <= now,
            is_maintenance=reservation.is_maintenance,
            nodes=list(reservation.nodes),
            gpus=sum(gpus_by_node.get(node, 0) for node in reservation.nodes),
        )
        for reservation in sorted(reservations, key=lambda reservation: (reservation.starts_at, reservation.name))
        if reservation.ends_at > now
    ]


def _partitions(
    units: pl.DataFrame,
    waiting: pl.DataFrame,
    nodes: Sequence[Node],
    by_partition: Sequence[tuple[Partition, list[Startable]]],
) -> list[PartitionSummary]:
    nodes_by_id = {node.id: node for node in nodes}
    unit_columns = units.select(
        pl.col("node", "partition").cast(pl.String), "unit_state", "unit_health", "workload", "gpu_util_ratio"
    )
    requested = waiting.select(pl.col("partition").cast(pl.String), "workload")
    answers = []
    for partition, startable in by_partition:
        partition_units = unit_columns.filter(pl.col("node").is_in(list(partition.nodes)))
        queue = requested.filter(pl.col("partition") == partition.name)
        partition_nodes = [nodes_by_id[name] for name in partition.nodes if name in nodes_by_id]
        answers.append(
            PartitionSummary(
                name=partition.name,
                is_up=partition.is_up,
                machine_types=sorted({node.machine_type for node in partition_nodes if node.machine_type}),
                nodes=len(partition_nodes),
                units=_count(partition_units),
                running=_distinct_workloads(partition_units.filter(pl.col("partition") == partition.name)),
                waiting=_distinct_workloads(queue),
                waiting_gpus=len(queue),
                gpu_util_ratio=_mean_utilization(partition_units),
                largest_free_block=max((startable_type.one_node_gpus for startable_type in startable), default=0),
                largest_startable=startable,
                stranded=sum(startable_type.stranded for startable_type in startable),
                shared_nodes=sum(len(node.partitions) > 1 for node in partition_nodes),
                shared_with=sorted({name for node in partition_nodes for name in node.partitions} - {partition.name}),
            )
        )
    return answers


def _count(units: pl.DataFrame) -> UnitCounts:
    counts: dict[str, int] = dict(units["unit_state"].value_counts().iter_rows())
    healths: dict[str, int] = dict(units["unit_health"].value_counts().iter_rows())
    return UnitCounts(
        total=len(units),
        allocated=counts.get(UnitState.ALLOCATED, 0),
        free=counts.get(UnitState.FREE, 0),
        unavailable=counts.get(UnitState.UNAVAILABLE, 0),
        stale=counts.get(UnitState.STALE, 0),
        silent=healths.get(UnitHealth.SILENT, 0),
        faulty=healths.get(UnitHealth.FAULTY, 0),
    )


def _distinct_workloads(rows: pl.DataFrame) -> int:
    return rows["workload"].drop_nulls().n_unique()


def _mean_utilization(units: pl.DataFrame) -> float | None:
    mean = units.filter(pl.col("unit_state") == UnitState.ALLOCATED.value)["gpu_util_ratio"].mean()
    return float(mean) if isinstance(mean, float) else None


def _total(values: pl.Series) -> float | None:
    values_present = values.drop_nulls()
    return float(values_present.sum()) if len(values_present) else None
