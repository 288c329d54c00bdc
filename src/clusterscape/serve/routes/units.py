"""All units as columns: the snapshot and its metrics. Arrow IPC; see ``query/picture.py`` for the columns."""

from collections.abc import Mapping
from typing import Annotated

import orjson
import polars as pl
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from clusterscape.serve.state import State
from clusterscape.serve.wire import ARROW

router = APIRouter(prefix="/api/v1", tags=["units"])

_ARROW_RESPONSE: dict[int | str, dict[str, object]] = {
    200: {"content": {ARROW: {}}, "description": "An Arrow IPC stream."}
}


@router.get("/snapshot", response_class=Response, responses=_ARROW_RESPONSE)
def get_snapshot(request: Request, state: State) -> Response:
    """One row per unit with everything known of its node and workload; header X-Inventory-Version."""
    version = state.queries.context.changes.versions.inventory

    def make() -> tuple[pl.DataFrame, Mapping[str, str]]:
        made, table = state.queries.cluster.picture()
        return table, {"X-Inventory-Version": str(made)}

    return state.wire.table(request, ("snapshot",), f"s{version}", make)


@router.get("/tick", response_class=Response, responses=_ARROW_RESPONSE)
def get_tick(
    request: Request,
    state: State,
    metrics: Annotated[str, Query(description="Metric names, comma-separated.", max_length=2000)],
) -> Response:
    """Latest metrics in the snapshot's row order, one uint16 column each; header X-Scales has their bounds."""
    names = tuple(name.strip() for name in metrics.split(",") if name.strip())
    versions = state.queries.context.changes.versions

    def make() -> tuple[pl.DataFrame, Mapping[str, str]]:
        tick = state.queries.cluster.tick(names)
        return tick.table, {
            "X-Inventory-Version": str(tick.inventory_version),
            "X-Tick-Version": str(tick.tick_version),
            "X-Sampled-At": "" if tick.sampled_at is None else str(tick.sampled_at),
            "X-Scales": orjson.dumps(tick.scales).decode(),
        }

    return state.wire.table(request, ("tick", *names), f"t{versions.inventory}.{versions.tick}", make)
