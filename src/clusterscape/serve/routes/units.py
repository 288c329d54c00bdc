"""All units as columns: the snapshot and its metrics, as Arrow IPC or one Parquet file; see ``query/picture.py`` for them."""

from collections.abc import Mapping
from typing import Annotated

import orjson
import polars as pl
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from clusterscape.query.bounds import ItemId
from clusterscape.query.picture import SnapshotRow
from clusterscape.serve.redaction import NumbersOnly, RedactedResponse, RedactedRoute, RedactedTable
from clusterscape.serve.routes.cluster import PastMoment
from clusterscape.serve.state import State
from clusterscape.serve.wire import ARROW_RESPONSE, PARQUET, parquet_once

router = APIRouter(prefix="/api/v1", tags=["units"], route_class=RedactedRoute)

_PARQUET_RESPONSE: dict[int | str, dict[str, object]] = {
    200: {"content": {PARQUET: {}}, "description": "A Parquet file."}
}


@router.get("/snapshot", response_class=Response, responses=ARROW_RESPONSE)
def get_snapshot(request: Request, state: State, at: PastMoment = None) -> RedactedResponse:
    """One row per unit with everything known of its node and workload; header X-Inventory-Version."""
    cluster, scope = state.queries.cluster, state.queries.scope_code

    def make() -> tuple[RedactedTable, Mapping[str, str]]:
        made, table = cluster.picture(at)
        return state.redact_table(table, SnapshotRow), {"X-Inventory-Version": str(made)}

    # The scope is part of the version, too: a browser that kept another's picture must not show it to the next.
    if at is None:
        version = state.queries.context.changes.versions.inventory
        return state.wire.table(request, ("snapshot", scope), f"s{version}{scope}", make)
    minute = cluster.past.minute(at)
    version_then = f"p{minute}.{cluster.past.validity(minute)}{scope}"
    return state.wire.table(request, ("snapshot", scope, str(minute)), version_then, make)


@router.get("/tick", response_class=Response, responses=ARROW_RESPONSE)
def get_tick(
    request: Request,
    state: State,
    metrics: Annotated[str, Query(description="Metric names, comma-separated.", max_length=2000)],
    at: PastMoment = None,
) -> RedactedResponse:
    """Latest metrics in the snapshot's row order, one uint16 column each; header X-Scales has their bounds."""
    names = tuple(name.strip() for name in metrics.split(",") if name.strip())
    cluster = state.queries.cluster

    def make() -> tuple[RedactedTable, Mapping[str, str]]:
        tick = cluster.tick(names, at)
        return state.redact_table(tick.table, NumbersOnly), {
            "X-Inventory-Version": str(tick.inventory_version),
            "X-Tick-Version": str(tick.tick_version),
            "X-Sampled-At": "" if tick.sampled_at is None else str(tick.sampled_at),
            "X-Scales": orjson.dumps(tick.scales).decode(),
        }

    if at is None:
        versions = state.queries.context.changes.versions
        return state.wire.table(request, ("tick", *names), f"t{versions.inventory}.{versions.tick}", make)
    minute = cluster.past.minute(at)
    key = ("tick", str(minute), *names)
    return state.wire.table(request, key, f"q{minute}.{cluster.past.validity(minute)}", make)


class ChosenUnits(BaseModel):
    """Which units to write."""

    units: Annotated[list[ItemId], Field(max_length=400_000)]


@router.get("/units.parquet", response_class=Response, responses=_PARQUET_RESPONSE)
def get_units(state: State, at: PastMoment = None) -> RedactedResponse:
    """The snapshot and the latest value of every metric, one row per unit, as a Parquet file."""
    table = state.redact_table(state.queries.cluster.unit_table(at), SnapshotRow)
    return parquet_once(table, "clusterscape-units.parquet")


@router.post("/units.parquet", response_class=Response, responses=_PARQUET_RESPONSE)
def get_chosen_units(chosen: ChosenUnits, state: State, at: PastMoment = None) -> RedactedResponse:
    """The same of some units only, in the snapshot's order; names that no unit has are passed over."""
    table = state.queries.cluster.unit_table(at).filter(pl.col("unit").is_in(chosen.units))
    return parquet_once(state.redact_table(table, SnapshotRow), "clusterscape-units.parquet")
