"""The cluster: its numbers and nodes, the search box, all units as columns (Arrow IPC or one Parquet file; see
``query/picture.py``), metrics over time, and workloads.
"""

from typing import Annotated

import orjson
import polars as pl
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from clusterscape.model import WorkloadState
from clusterscape.query.answers import (
    ClusterSummary,
    NodeAnswer,
    NodeDetail,
    SearchHits,
    Timeline,
    WasteAnswer,
    WorkloadDetail,
    WorkloadList,
)
from clusterscape.query.bounds import Count, ItemId, Moment, Name
from clusterscape.query.picture import SnapshotRow, encode_strings
from clusterscape.query.workloads import MAX_LIMIT
from clusterscape.serve.redaction import NumbersOnly, RedactedResponse, RedactedRoute, SampleRow
from clusterscape.serve.state import State
from clusterscape.serve.wire import ARROW, ARROW_RESPONSE, PARQUET, REVALIDATE, arrow_response, parquet_response

router = APIRouter(prefix="/api/v1", tags=["cluster"], route_class=RedactedRoute)

PastMoment = Annotated[
    Moment | None, Query(description="Unix ms of a past moment, rounded down to the minute; by default the present.")
]


@router.get("/cluster")
def get_cluster(state: State, at: PastMoment = None) -> ClusterSummary:
    """A summary of the cluster and of each partition, now or at a past minute."""
    return state.queries.cluster.summary(at)


@router.get("/timeline")
def get_timeline(
    state: State,
    start: Annotated[Moment | None, Query(description="Unix ms; by default the start of the history.")] = None,
    end: Annotated[Moment | None, Query(description="Unix ms; by default now.")] = None,
    points: Annotated[int, Query(ge=1, le=2000, description="Maximum number of steps.")] = 300,
) -> Timeline:
    """Allocated GPUs, waiting GPUs and utilization at regular steps of the stored history, as columns."""
    return state.queries.timeline.timeline(start_ms=start, end_ms=end, points=points)


@router.get("/waste")
def get_waste(state: State, hours: Annotated[int, Query(ge=1, le=168)] = 24, at: PastMoment = None) -> WasteAnswer:
    """GPU-hours of the last hours that were held but not used; at most ten minutes old."""
    return state.queries.waste.waste(hours=hours, at_ms=at)


@router.get("/waste/units", response_class=Response, responses=ARROW_RESPONSE)
def get_waste_by_unit(state: State, hours: Annotated[int, Query(ge=1, le=168)] = 24) -> RedactedResponse:
    """Held, measured and wasted GPU-hours by ``unit`` and ``workload``, which can be summed over any group of units."""
    table = encode_strings(state.queries.waste.by_unit(hours=hours), ["workload"])
    return arrow_response(state.redact_table(table, SampleRow))


@router.get("/nodes")
def list_nodes(state: State, at: PastMoment = None) -> list[NodeAnswer]:
    """All nodes, now or at a past minute."""
    return state.queries.cluster.nodes(at)


@router.get("/nodes/{node}")
def get_node(node: Name, state: State, at: PastMoment = None) -> NodeDetail:
    """One node and the workloads on it, now or at a past minute."""
    return state.queries.cluster.node(node, at)


@router.get("/search")
def search(
    q: Annotated[str, Query(max_length=200)], state: State, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> SearchHits:
    """Workloads, users, projects and nodes that match a few letters."""
    return state.queries.search.search(q, limit=limit)


units_router = APIRouter(prefix="/api/v1", tags=["units"], route_class=RedactedRoute)

_PARQUET_RESPONSE: dict[int | str, dict[str, object]] = {
    200: {"content": {PARQUET: {}}, "description": "A Parquet file."}
}


@units_router.get("/snapshot", response_class=Response, responses=ARROW_RESPONSE)
def get_snapshot(state: State, at: PastMoment = None) -> RedactedResponse:
    """One row per unit, with the columns of its node and workload; header X-Inventory-Version."""
    version, table = state.queries.cluster.picture(at)
    headers = {"X-Inventory-Version": str(version)}
    return arrow_response(state.redact_table(table, SnapshotRow), headers, cache_control=REVALIDATE)


@units_router.get("/tick", response_class=Response, responses=ARROW_RESPONSE)
def get_tick(
    state: State,
    metrics: Annotated[str, Query(description="Metric names, comma-separated.", max_length=2000)],
    at: PastMoment = None,
) -> RedactedResponse:
    """Latest metrics in the snapshot's row order, one uint16 column each; header X-Scales has their bounds."""
    tick = state.queries.cluster.tick([name.strip() for name in metrics.split(",") if name.strip()], at)
    headers = {
        "X-Inventory-Version": str(tick.inventory_version),
        "X-Tick-Version": str(tick.tick_version),
        "X-Sampled-At": "" if tick.sampled_at is None else str(tick.sampled_at),
        "X-Scales": orjson.dumps(tick.scales).decode(),
    }
    return arrow_response(state.redact_table(tick.table, NumbersOnly), headers, cache_control=REVALIDATE)


class ChosenUnits(BaseModel):
    """The units to export."""

    units: Annotated[list[ItemId], Field(max_length=400_000)]


@units_router.get("/units.parquet", response_class=Response, responses=_PARQUET_RESPONSE)
def get_units(state: State, at: PastMoment = None) -> RedactedResponse:
    """The snapshot and the latest value of every metric, one row per unit, as a Parquet file."""
    table = state.redact_table(state.queries.cluster.unit_table(at), SnapshotRow)
    return parquet_response(table, "clusterscape-units.parquet")


@units_router.post("/units.parquet", response_class=Response, responses=_PARQUET_RESPONSE)
def get_chosen_units(chosen: ChosenUnits, state: State, at: PastMoment = None) -> RedactedResponse:
    """The same for the given units only, in the snapshot's order; unknown units are ignored."""
    table = state.queries.cluster.unit_table(at).filter(pl.col("unit").is_in(chosen.units))
    return parquet_response(state.redact_table(table, SnapshotRow), "clusterscape-units.parquet")


series_router = APIRouter(prefix="/api/v1", tags=["series"], route_class=RedactedRoute)


@series_router.get(
    "/series",
    response_class=Response,
    responses={200: {"content": {ARROW: {}}, "description": "An Arrow IPC stream."}},
)
def get_series(
    state: State,
    metric: Annotated[list[Name], Query(description="Metric names.", max_length=100)],
    unit: Annotated[
        list[ItemId] | None, Query(description="Units, or a workload, or a node.", max_length=10_000)
    ] = None,
    workload: ItemId | None = None,
    node: Name | None = None,
    start: Annotated[Moment | None, Query(description="Unix ms; of a workload, by default its start.")] = None,
    end: Annotated[Moment | None, Query(description="Unix ms; by default now, or the workload's end.")] = None,
    points: Annotated[int, Query(ge=1, le=20_000, description="Maximum number of steps per series.")] = 300,
) -> RedactedResponse:
    """``metric``, ``unit``, ``time_ms``, ``value``, ``min``, ``max``, sorted by metric, unit and time."""
    table = state.queries.series.series(
        metrics=metric, units=unit or (), workload=workload, node=node, start_ms=start, end_ms=end, points=points
    )
    encoded = encode_strings(table, ["metric", "unit"]).with_columns(
        pl.col("time_ms").cast(pl.Float64),
        pl.col("value", "min", "max").cast(pl.Float32),
    )
    return arrow_response(state.redact_table(encoded, SampleRow))


workloads_router = APIRouter(prefix="/api/v1", tags=["workloads"], route_class=RedactedRoute)


@workloads_router.get("/workloads")
def list_workloads(
    state: State,
    states: Annotated[list[WorkloadState] | None, Query(alias="state", max_length=len(WorkloadState))] = None,
    user: Name | None = None,
    project: Name | None = None,
    partition: Name | None = None,
    node: Name | None = None,
    text: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 100,
    offset: Count = 0,
    at: PastMoment = None,
) -> WorkloadList:
    """Workloads that match all parameters, newest submission first; for a past minute, those active at that time."""
    return state.queries.workloads.page(
        states=states or (),
        user=user,
        project=project,
        partition=partition,
        node=node,
        text=text,
        limit=limit,
        offset=offset,
        at_ms=at,
    )


@workloads_router.get("/workloads/{workload}")
def get_workload(workload: ItemId, state: State, at: PastMoment = None) -> WorkloadDetail:
    """One workload and every unit it held, now or at a past minute."""
    return state.queries.workloads.detail(workload, at)
