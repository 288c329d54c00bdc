"""The cluster in numbers, its nodes, and the search box."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from clusterscape.query.answers import ClusterSummary, NodeAnswer, NodeDetail, SearchHits, Timeline, WasteAnswer
from clusterscape.query.bounds import Moment, Name
from clusterscape.query.picture import encode_strings
from clusterscape.serve.redaction import RedactedResponse, RedactedRoute, SampleRow
from clusterscape.serve.state import State
from clusterscape.serve.wire import ARROW_RESPONSE, arrow_response

router = APIRouter(prefix="/api/v1", tags=["cluster"], route_class=RedactedRoute)

PastMoment = Annotated[
    Moment | None, Query(description="Unix ms of a past moment, rounded down to the minute; by default the present.")
]


@router.get("/cluster")
def get_cluster(state: State, at: PastMoment = None) -> ClusterSummary:
    """The cluster in one line, and each partition in one; now or at a past minute."""
    return state.queries.cluster.summary(at)


@router.get("/timeline")
def get_timeline(
    state: State,
    start: Annotated[Moment | None, Query(description="Unix ms; by default the begin of the history.")] = None,
    end: Annotated[Moment | None, Query(description="Unix ms; by default now.")] = None,
    points: Annotated[int, Query(ge=1, le=2000, description="Steps, at most.")] = 300,
) -> Timeline:
    """Allocated and waiting GPUs and utilization at even steps of the stored history, as columns."""
    return state.queries.timeline.timeline(start_ms=start, end_ms=end, points=points)


@router.get("/waste")
def get_waste(state: State, hours: Annotated[int, Query(ge=1, le=168)] = 24, at: PastMoment = None) -> WasteAnswer:
    """GPU-hours of the last hours that were held and not used; at most ten minutes old."""
    return state.queries.waste.waste(hours=hours, at_ms=at)


@router.get("/waste/units", response_class=Response, responses=ARROW_RESPONSE)
def get_waste_by_unit(state: State, hours: Annotated[int, Query(ge=1, le=168)] = 24) -> RedactedResponse:
    """The same by ``unit`` and ``workload``: held, measured and wasted GPU-hours, for any group of units to sum."""
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
