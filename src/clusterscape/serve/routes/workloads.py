"""Workloads: lists and details."""

from typing import Annotated

from fastapi import APIRouter, Query

from clusterscape.model import WorkloadState
from clusterscape.query.answers import WorkloadDetail, WorkloadList
from clusterscape.query.workloads import MAX_LIMIT
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["workloads"])


@router.get("/workloads")
def list_workloads(
    state: State,
    states: Annotated[list[WorkloadState] | None, Query(alias="state")] = None,
    user: str | None = None,
    project: str | None = None,
    partition: str | None = None,
    node: str | None = None,
    text: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 100,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> WorkloadList:
    """Workloads that match every given parameter, newest submission first."""
    return state.queries.workloads.page(
        states=states or (),
        user=user,
        project=project,
        partition=partition,
        node=node,
        text=text,
        limit=limit,
        offset=offset,
    )


@router.get("/workloads/{workload}")
def get_workload(workload: str, state: State) -> WorkloadDetail:
    """One workload and every unit it held."""
    return state.queries.workloads.detail(workload)
