"""Forecasts: when a job would start, when waiting workloads start, what the models are and how reliable they were."""

from typing import Annotated

from fastapi import APIRouter, Query

from clusterscape.query.scheduling.waiting import ModelCards, ReliabilityAnswer, WaitAnswer, WaitingForecasts
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1/scheduling", tags=["scheduling"], route_class=RedactedRoute)


@router.get("/wait")
def forecast_wait(
    state: State,
    gpus: Annotated[int, Query(ge=1, le=1_000_000, description="GPUs in all.")],
    hours: Annotated[float, Query(gt=0, le=10_000, description="Time limit.")],
    machine_type: Annotated[
        str | None, Query(max_length=100, description="Such as A100; its beginning is enough.")
    ] = None,
    memory_gib: Annotated[
        float | None, Query(gt=0, le=1_000_000, description="Memory on each node; nodes with less do not count.")
    ] = None,
    partition: Annotated[str | None, Query(max_length=100, description="By default the one that starts first.")] = None,
    user: Annotated[str | None, Query(max_length=100, description="Whose former jobs tell how long it runs.")] = None,
    alternatives: Annotated[bool, Query(description="Also say what would start sooner.")] = True,
) -> WaitAnswer:
    """When such a job would start if it were submitted now, with 80 % and 90 % intervals, and what would start sooner."""
    if state.redactor is not None and user != state.redactor.scope.user:
        user = None  # how others' jobs run is not told: anybody but oneself is the average user
    return state.queries.waits.ask(
        gpus=gpus,
        hours=hours,
        machine_type=machine_type,
        memory_gib=memory_gib,
        partition=partition,
        user=user,
        alternatives=alternatives,
    )


@router.get("/waiting")
def forecast_waiting(state: State) -> WaitingForecasts:
    """When every waiting workload starts."""
    return state.queries.waits.waiting()


@router.get("/models")
def list_models(state: State) -> ModelCards:
    """Cards of the models in use: what they were made from, when, how good they are."""
    return state.queries.waits.cards()


@router.get("/reliability")
def report_reliability(state: State) -> ReliabilityAnswer:
    """Forecasts that were shown, against what happened: coverage by nominal level, errors by size and queue."""
    return state.queries.waits.reliability()
