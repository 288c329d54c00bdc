"""Where the data comes from: sources, drops, the store, and the metric catalogue."""

from fastapi import APIRouter

from clusterscape.query.answers import MetricAnswer, Sources
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["sources"], route_class=RedactedRoute)


@router.get("/sources")
def get_sources(state: State) -> Sources:
    """How the sources are, what was dropped and why, and what the store holds."""
    return state.queries.sources.sources()


@router.get("/metrics")
def list_metrics(state: State) -> list[MetricAnswer]:
    """The metric catalogue, the ones to offer first in front."""
    return state.queries.sources.catalogue()
