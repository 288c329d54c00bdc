"""The picture in numbers: the whole cluster and each partition. Pure: tables and records in, answers out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from clusterscape.model import Node, NodeId, Partition, Reservation, UnitKind, UnixMs
from clusterscape.query.answers import (
    ClusterSummary,
    PartitionSummary,
    ReservationAnswer,
    Startable,
    UnitCounts,
    UnitHealth,
    UnitState,
)
from clusterscape.query.placement import Demand, find_stranded, place_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a summary says beside its numbers; fields as in ``ClusterSummary``."""

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
    moment: Moment,
    table: pl.DataFrame,
    *,
    nodes: Sequence[Node],
    partitions: Sequence[Partition],
    demand: Demand,
) -> ClusterSummary:
    """``table``: the picture with the columns ``gpu_util_ratio`` and ``power_watts``; ``demand``: of the queue then."""
    is_requested = pl.col("kind") == UnitKind.REQUESTED.value
    waiting, units = table.filter(is_requested), table.filter(~is_requested)
    free, placed = place_all(units, partitions, demand)
    return ClusterSummary(
        cluster=moment.cluster,
        is_demo=moment.is_demo,
        at=moment.at,
        is_past=moment.is_past,
        inventory_version=moment.inventory_version,
        tick_version=moment.tick_version,
        newest_sample_at=moment.newest_sample_at,
        nodes=len(nodes),
        nodes_unavailable=moment.nodes_unavailable,
        units=_count(units),
        running=_distinct_workloads(units),
        waiting=_distinct_workloads(waiting),
        waiting_gpus=len(waiting),
        gpu_util_ratio=_mean_utilization(units),
        power_watts=_total(units["power_watts"]),
        stranded=int(find_stranded(free, placed)["free"].sum()),
        partitions=_partitions(units, waiting, nodes, placed),
        failing_sources=moment.failing_sources,
        awaited=list(moment.awaited),
        open_questions=moment.open_questions,
        paused=moment.paused,
        reservations=describe_reservations(moment.reservations, {node.id: node.gpu_count for node in nodes}, moment.at),
        hides_names=False,
    )


def describe_reservations(
    reservations: Sequence[Reservation], gpus_by_node: Mapping[NodeId, int], now: UnixMs
) -> list[ReservationAnswer]:
    """Those that have not ended, by start."""
    return [
        ReservationAnswer(
            name=each.name,
            starts_at=each.starts_at,
            ends_at=each.ends_at,
            is_active=each.starts_at <= now,
            is_maintenance=each.is_maintenance,
            nodes=list(each.nodes),
            gpus=sum(gpus_by_node.get(node, 0) for node in each.nodes),
        )
        for each in sorted(reservations, key=lambda each: (each.starts_at, each.name))
        if each.ends_at > now
    ]


def _partitions(
    units: pl.DataFrame,
    waiting: pl.DataFrame,
    nodes: Sequence[Node],
    placed: Sequence[tuple[Partition, list[Startable]]],
) -> list[PartitionSummary]:
    members = {node.id: node for node in nodes}
    lean = units.select(
        pl.col("node", "partition").cast(pl.String), "unit_state", "unit_health", "workload", "gpu_util_ratio"
    )
    asked = waiting.select(pl.col("partition").cast(pl.String), "workload")
    answers = []
    for partition, startable in placed:
        mine = lean.filter(pl.col("node").is_in(list(partition.nodes)))
        queue = asked.filter(pl.col("partition") == partition.name)
        own = [members[name] for name in partition.nodes if name in members]
        answers.append(
            PartitionSummary(
                name=partition.name,
                is_up=partition.is_up,
                machine_types=sorted({node.machine_type for node in own if node.machine_type}),
                nodes=len(own),
                units=_count(mine),
                running=_distinct_workloads(mine.filter(pl.col("partition") == partition.name)),
                waiting=_distinct_workloads(queue),
                waiting_gpus=len(queue),
                gpu_util_ratio=_mean_utilization(mine),
                largest_free_block=max((place.one_node_gpus for place in startable), default=0),
                largest_startable=startable,
                stranded=sum(place.stranded for place in startable),
                shared_nodes=sum(len(node.partitions) > 1 for node in own),
                shared_with=sorted({name for node in own for name in node.partitions} - {partition.name}),
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
    known = values.drop_nulls()
    return float(known.sum()) if len(known) else None
