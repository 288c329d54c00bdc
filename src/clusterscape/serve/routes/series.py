"""Metrics over time, as Arrow IPC."""

from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query
from fastapi.responses import Response

from clusterscape.query.bounds import ItemId, Moment, Name
from clusterscape.query.picture import encode_strings
from clusterscape.serve.redaction import RedactedResponse, RedactedRoute, SampleRow
from clusterscape.serve.state import State
from clusterscape.serve.wire import ARROW, arrow_response

router = APIRouter(prefix="/api/v1", tags=["series"], route_class=RedactedRoute)


@router.get(
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
    points: Annotated[int, Query(ge=1, le=20_000, description="Steps a series, at most.")] = 300,
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
