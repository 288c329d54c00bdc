"""Simulations of job traces: asked for, then looked after until they are done."""

from typing import Annotated

from fastapi import APIRouter, Path

from clusterscape.query.scheduling.simulations_answers import (
    SimulationAnswer,
    SimulationAsk,
    SimulationList,
    SimulatorOptions,
)
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import CurrentUser, CurrentViewer, State

router = APIRouter(prefix="/api/v1/simulations", tags=["scheduling"], route_class=RedactedRoute)

SimulationName = Annotated[str, Path(max_length=64, description="As the answer to the question says.")]


@router.get("/options")
def list_simulator_options(state: State) -> SimulatorOptions:
    """Policies, ways of backfilling and semantics that there are."""
    return state.queries.simulations.options()


@router.post("")
def simulate_job_trace(
    asked: SimulationAsk, state: State, viewer: CurrentViewer, user: CurrentUser
) -> SimulationAnswer:
    """Simulate every policy with every backfilling on a trace; the answer says under which name to look how far it is."""
    return state.queries.simulations.ask(asked, by=viewer, user=user)


@router.get("")
def list_simulations(state: State) -> SimulationList:
    """Results that are kept, the newest first."""
    return state.queries.simulations.all()


@router.delete("/{simulation}")
def stop_simulation(simulation: SimulationName, state: State, viewer: CurrentViewer) -> SimulationAnswer:
    """Do not go on with a simulation; the choices that are done stay readable. Who began it may, and operators."""
    return state.queries.simulations.stop(simulation, by=viewer)


@router.delete("/{simulation}/result", status_code=204)
def remove_simulation(simulation: SimulationName, state: State, viewer: CurrentViewer) -> None:
    """Forget a kept result. Who asked for it may, and operators; the same question can be asked again."""
    state.queries.simulations.remove(simulation, by=viewer)


@router.get("/{simulation}")
def read_simulation(simulation: SimulationName, state: State) -> SimulationAnswer:
    """How far a simulation is, and the choices that are done."""
    return state.queries.simulations.find(simulation)
