"""All units as columns: the snapshot and its metrics, as Arrow IPC or one Parquet file; see ``query/picture.py`` for them."""

from typing import Annotated

import orjson
import polars as pl
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from clusterscape.query.bounds import ItemId
from clusterscape.query.picture import SnapshotRow
from clusterscape.serve.redaction import NumbersOnly, RedactedResponse, RedactedRoute
from clusterscape.serve.routes.cluster import PastMoment
from clusterscape.serve.state import State
from clusterscape.serve.wire import ARROW_RESPONSE, PARQUET, REVALIDATE, arrow_response, parquet_response

router = APIRouter(prefix="/api/v1", tags=["units"], route_class=RedactedRoute)

_PARQUET_RESPONSE: dict[int | str, dict[str, object]] = {
    200: {"content": {PARQUET: {}}, "description": "A Parquet file."}
}


@router.get("/snapshot", response_class=Response, responses=ARROW_RESPONSE)
def get_snapshot(state: State, at: PastMoment = None) -> RedactedResponse:
    """One row per unit with everything known of its node and workload; header X-Inventory-Version."""
    version, table = state.queries.cluster.picture(at)
    headers = {"X-Inventory-Version": str(version)}
    return arrow_response(state.redact_table(table, SnapshotRow), headers, cache_control=REVALIDATE)


@router.get("/tick", response_class=Response, responses=ARROW_RESPONSE)
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
    """Which units to write."""

    units: Annotated[list[ItemId], Field(max_length=400_000)]


@router.get("/units.parquet", response_class=Response, responses=_PARQUET_RESPONSE)
def get_units(state: State, at: PastMoment = None) -> RedactedResponse:
    """The snapshot and the latest value of every metric, one row per unit, as a Parquet file."""
    table = state.redact_table(state.queries.cluster.unit_table(at), SnapshotRow)
    return parquet_response(table, "clusterscape-units.parquet")


@router.post("/units.parquet", response_class=Response, responses=_PARQUET_RESPONSE)
def get_chosen_units(chosen: ChosenUnits, state: State, at: PastMoment = None) -> RedactedResponse:
    """The same of some units only, in the snapshot's order; names that no unit has are passed over."""
    table = state.queries.cluster.unit_table(at).filter(pl.col("unit").is_in(chosen.units))
    return parquet_response(state.redact_table(table, SnapshotRow), "clusterscape-units.parquet")
