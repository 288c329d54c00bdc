"""Workloads: lists and details."""

from typing import Annotated

from fastapi import APIRouter, Query

from clusterscape.model import WorkloadState
from clusterscape.query.answers import WorkloadDetail, WorkloadList
from clusterscape.query.bounds import Count, ItemId, Name
from clusterscape.query.workloads import MAX_LIMIT
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.routes.cluster import PastMoment
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["workloads"], route_class=RedactedRoute)


@router.get("/workloads")
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
    """Workloads that match every given parameter, newest submission first; of a past minute, those active then."""
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


@router.get("/workloads/{workload}")
def get_workload(workload: ItemId, state: State, at: PastMoment = None) -> WorkloadDetail:
    """One workload and every unit it held; of a past minute, as it was then."""
    return state.queries.workloads.detail(workload, at)
