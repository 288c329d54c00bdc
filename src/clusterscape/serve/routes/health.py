"""Is it alive, and what does it measure of itself."""

from dataclasses import dataclass

from fastapi import APIRouter

from clusterscape import __version__
from clusterscape.model.identity_fields import PublicText, ScopedText
from clusterscape.serve.redaction import RedactedResponse, RedactedRoute
from clusterscape.serve.state import State

router = APIRouter(tags=["health"], route_class=RedactedRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Alive; ``paused`` says why nothing is stored now, ``failing`` which background loops fail: /api/v1/sources says why."""

    status: PublicText
    version: PublicText
    newest_sample_at: int | None
    paused: ScopedText | None
    failing: list[PublicText]


@router.get("/healthz")
async def get_health(state: State) -> Health:
    """Answers as soon as the server does; never asks a store, nor waits for a thread."""
    context = state.queries.context
    versions, failing = context.changes.versions, context.loops.failing()
    return Health(
        status="paused" if versions.paused else "degraded" if failing else "ok",
        version=__version__,
        newest_sample_at=versions.newest_sample_at,
        paused=versions.paused,
        failing=[loop.loop for loop in failing],
    )


@router.get("/metrics", include_in_schema=False)
def get_own_metrics(state: State) -> RedactedResponse:
    """ClusterScape's own metrics for Prometheus."""
    return RedactedResponse(state.telemetry.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")
