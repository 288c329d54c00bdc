"""The cluster in numbers, its nodes, and the search box."""

from typing import Annotated

from fastapi import APIRouter, Query

from clusterscape.query.answers import ClusterSummary, NodeAnswer, NodeDetail, SearchHits
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["cluster"])


@router.get("/cluster")
def get_cluster(state: State) -> ClusterSummary:
    """The cluster in one line, and each partition in one."""
    return state.queries.cluster.summary()


@router.get("/nodes")
def list_nodes(state: State) -> list[NodeAnswer]:
    """All nodes."""
    return state.queries.cluster.nodes()


@router.get("/nodes/{node}")
def get_node(node: str, state: State) -> NodeDetail:
    """One node and the workloads on it now."""
    return state.queries.cluster.node(node)


@router.get("/search")
def search(
    q: Annotated[str, Query(max_length=200)], state: State, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> SearchHits:
    """Workloads, users, projects and nodes that match a few letters."""
    return state.queries.search.search(q, limit=limit)
