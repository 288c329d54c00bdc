"""The service itself: health, its own metrics, data sources, the state of alert channels, and the live stream."""

from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from clusterscape import __version__
from clusterscape.model.identity_fields import PublicText, ScopedText
from clusterscape.query.answers import MetricAnswer, Sources
from clusterscape.query.rule_answers import AlertState
from clusterscape.serve.redaction import RedactedResponse, RedactedRoute, RedactedStream
from clusterscape.serve.state import State

health_router = APIRouter(tags=["health"], route_class=RedactedRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Health. ``paused``: why samples are not stored now; ``failing``: failing background loops (details: /api/v1/sources)."""

    status: PublicText
    version: PublicText
    newest_sample_at: int | None
    paused: ScopedText | None
    failing: list[PublicText]


@health_router.get("/healthz")
async def get_health(state: State) -> Health:
    """Health check; never reads from a store or waits for a thread."""
    context = state.queries.context
    versions, failing = context.changes.versions, context.loops.failing()
    return Health(
        status="paused" if versions.paused else "degraded" if failing else "ok",
        version=__version__,
        newest_sample_at=versions.newest_sample_at,
        paused=versions.paused,
        failing=[loop.loop for loop in failing],
    )


@health_router.get("/metrics", include_in_schema=False)
def get_own_metrics(state: State) -> RedactedResponse:
    """ClusterScape's own metrics for Prometheus."""
    return RedactedResponse(state.telemetry.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")


sources_router = APIRouter(prefix="/api/v1", tags=["sources"], route_class=RedactedRoute)


@sources_router.get("/sources")
def get_sources(state: State) -> Sources:
    """The state of the sources, dropped rows with their reasons, and the content of the store."""
    return state.queries.sources.sources()


@sources_router.get("/metrics")
def list_metrics(state: State) -> list[MetricAnswer]:
    """The metric catalogue, most useful metrics first."""
    return state.queries.sources.catalogue()


alerts_router = APIRouter(prefix="/api/v1", tags=["alerts"], route_class=RedactedRoute)


@alerts_router.get("/alerts")
def get_alert_state(state: State) -> AlertState:
    """Sent, waiting and failed messages of each channel."""
    return state.queries.alerts.state()


live_router = APIRouter(prefix="/api/v1", tags=["live"], route_class=RedactedRoute)


@live_router.get("/live", response_class=StreamingResponse)
async def get_live(state: State) -> RedactedStream:
    """Server-sent events: `version` ticks at once, on every change, and at least every 15 s."""
    return RedactedStream(
        state.live.stream(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
