"""Scheduling: the live queue and what-if simulations of it, forecasts and their reliability, job traces with their statistics,
and simulations of them.
"""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from clusterscape.query.scheduling.description import JobTraceList, JobTraceRow, TracePredictions, TracesDescription
from clusterscape.query.scheduling.queue_answers import QueueAnswer, WaitingStory
from clusterscape.query.scheduling.waiting import ModelCards, ReliabilityAnswer, WaitAnswer, WaitingForecasts
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf, WhatIfAnswer, WhatIfProgress
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import CurrentUser, CurrentViewer, State
from clusterscape.serve.uploads import SizeLimit, drain_if_refused, read_pieces, stream_to_thread
from clusterscape.services.simulation_answers import (
    SimulationAnswer,
    SimulationAsk,
    SimulationList,
    SimulatorOptions,
)

job_traces_router = APIRouter(prefix="/api/v1/job-traces", tags=["scheduling"], route_class=RedactedRoute)

TraceId = Annotated[str, Path(description="`cluster`, or the id of an upload.", max_length=100)]
Zone = Annotated[str, Query(max_length=64, description="Such as Europe/Berlin.")]
_RAW_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@job_traces_router.get("")
def list_job_traces(state: State) -> JobTraceList:
    """This cluster's own history, then uploaded traces."""
    return state.queries.job_traces.all()


@job_traces_router.post("", status_code=201, openapi_extra=_RAW_BODY)
async def upload_job_trace(
    request: Request,
    state: State,
    viewer: CurrentViewer,
    name: Annotated[str, Query(min_length=1, max_length=200, description="The file's name; it names the trace.")],
    format: Annotated[str | None, Query(max_length=32, description="By default detected from the content.")] = None,
    timezone: Zone = "UTC",
    total_units: Annotated[
        int | None,
        Query(ge=1, le=1_000_000_000, description="Number of units of the machine, if the file does not state it."),
    ] = None,
) -> JobTraceRow:
    """Upload a job trace as the raw body, compressed or not; the response lists why rows were dropped."""
    limit = SizeLimit(
        "a job trace",
        state.queries.context.uploads.job_trace_bytes,
        setting="limits.uploads.job_trace_bytes",
        hint="Compress it, or split it by time.",
    )
    upload = state.services.job_traces.upload
    store = partial(upload, name, format=format, timezone=timezone, total_units=total_units, by=viewer)
    threads, stall_s = state.limits.upload_threads, state.limits.upload_timeout_s
    async with drain_if_refused(request):
        limit.check_announced(request)
        pieces = limit.bound(read_pieces(request, stall_s=stall_s))
        return await stream_to_thread(threads, pieces, store, stall_s=stall_s)


@job_traces_router.get("/{trace}/description")
def describe_job_trace(
    trace: TraceId,
    state: State,
    compare: Annotated[str, Query(max_length=500, description="Up to three more ids, separated by commas.")] = "",
    timezone: Zone = "UTC",
) -> TracesDescription:
    """Geometries, failures and users of one to four traces as chart data, and the paper's claims tested on them."""
    other_traces = [trace_id.strip() for trace_id in compare.split(",") if trace_id.strip()]
    return state.queries.job_traces.description(trace, other_traces, timezone=timezone)


@job_traces_router.get("/{trace}/predictions")
def compare_job_trace_predictors(trace: TraceId, state: State) -> TracePredictions:
    """Run-time predictors compared: trained on the first jobs of a trace, tested on the last. Takes up to a minute."""
    return state.queries.job_traces.predictions(trace)


@job_traces_router.delete("/{trace}", status_code=204)
def remove_job_trace(trace: TraceId, state: State, viewer: CurrentViewer) -> None:
    """Delete an uploaded trace and its file."""
    state.services.job_traces.remove(trace, by=viewer)


predictions_router = APIRouter(prefix="/api/v1/scheduling", tags=["scheduling"], route_class=RedactedRoute)


@predictions_router.get("/wait")
def forecast_wait(
    state: State,
    gpus: Annotated[int, Query(ge=1, le=1_000_000, description="Total number of GPUs.")],
    hours: Annotated[float, Query(gt=0, le=10_000, description="Time limit.")],
    machine_type: Annotated[str | None, Query(max_length=100, description="Such as A100; a prefix is enough.")] = None,
    memory_gib: Annotated[
        float | None, Query(gt=0, le=1_000_000, description="Memory on each node; nodes with less do not count.")
    ] = None,
    partition: Annotated[str | None, Query(max_length=100, description="By default the one that starts first.")] = None,
    user: Annotated[
        str | None, Query(max_length=100, description="The run time is predicted from the past jobs of this user.")
    ] = None,
    alternatives: Annotated[bool, Query(description="Also return requests that would start sooner.")] = True,
) -> WaitAnswer:
    """When such a job would start if submitted now, with 80 % and 90 % intervals, and requests that would start sooner."""
    if state.redactor is not None and user != state.redactor.scope.user:
        user = None  # do not reveal how other users' jobs run: predict for the average user
    return state.queries.waits.ask(
        gpus=gpus,
        hours=hours,
        machine_type=machine_type,
        memory_gib=memory_gib,
        partition=partition,
        user=user,
        alternatives=alternatives,
    )


@predictions_router.get("/waiting")
def forecast_waiting(state: State) -> WaitingForecasts:
    """Forecast start times of all waiting workloads."""
    return state.queries.waits.waiting()


@predictions_router.get("/models")
def list_models(state: State) -> ModelCards:
    """Model cards of the models in use: training data, date and accuracy."""
    return state.queries.waits.cards()


@predictions_router.get("/reliability")
def report_reliability(state: State) -> ReliabilityAnswer:
    """Past forecasts compared with actual starts: coverage by nominal level, errors by size and queue."""
    return state.queries.waits.reliability()


router = APIRouter(prefix="/api/v1/scheduling", tags=["scheduling"], route_class=RedactedRoute)

WhatIfRun = Annotated[str, Path(max_length=64, description="The id that the POST returned.")]


@router.get("/queue")
def list_queue(state: State) -> QueueAnswer:
    """All waiting workloads in queue order: position, reason in words, planned and likely start."""
    return state.queries.queue.all()


@router.get("/queue/{workload:path}")
def explain_waiting(
    workload: Annotated[str, Path(description="Such as slurm:4711.", max_length=200)], state: State
) -> WaitingStory:
    """Why a workload waits: jobs ahead of it, the resources it needs and their holders, slips, and what would help."""
    return state.queries.queue.story(workload)


@router.post("/whatif")
def simulate_what_if(change: QueueWhatIf, state: State) -> WhatIfAnswer:
    """Simulate the queue with and without a change on the same sampled futures; differences are paired. Takes seconds."""
    return state.queries.what_if.ask(change)


@router.post("/whatif/runs")
def start_what_if(change: QueueWhatIf, state: State, viewer: CurrentViewer, user: CurrentUser) -> WhatIfProgress:
    """Start a what-if simulation in the background; the response has the id under which to read its progress."""
    return state.services.what_if_runs.start(change, by=viewer, user=user)


@router.get("/whatif/runs/{run}")
def read_what_if(run: WhatIfRun, state: State, viewer: CurrentViewer) -> WhatIfProgress:
    """The progress of a what-if simulation, and its result once it is done."""
    return state.services.what_if_runs.find(run, by=viewer)


@router.delete("/whatif/runs/{run}")
def stop_what_if(run: WhatIfRun, state: State, viewer: CurrentViewer) -> WhatIfProgress:
    """Cancel a what-if simulation. For the user who started it, and operators."""
    return state.services.what_if_runs.stop(run, by=viewer)


simulations_router = APIRouter(prefix="/api/v1/simulations", tags=["scheduling"], route_class=RedactedRoute)

SimulationName = Annotated[str, Path(max_length=64, description="The id that the POST returned.")]


@simulations_router.get("/options")
def list_simulator_options(state: State) -> SimulatorOptions:
    """The available policies, backfilling methods and semantics."""
    return state.services.simulations.options()


@simulations_router.post("")
def simulate_job_trace(
    request: SimulationAsk, state: State, viewer: CurrentViewer, user: CurrentUser
) -> SimulationAnswer:
    """Simulate each policy with each backfilling on a trace; the response has the id under which to read its progress."""
    return state.services.simulations.ask(request, by=viewer, user=user)


@simulations_router.get("")
def list_simulations(state: State) -> SimulationList:
    """Stored results, newest first."""
    return state.services.simulations.all()


@simulations_router.delete("/{simulation}")
def stop_simulation(simulation: SimulationName, state: State, viewer: CurrentViewer) -> SimulationAnswer:
    """Cancel a simulation; finished results stay readable. For the user who started it, and operators."""
    return state.services.simulations.stop(simulation, by=viewer)


@simulations_router.delete("/{simulation}/result", status_code=204)
def remove_simulation(simulation: SimulationName, state: State, viewer: CurrentViewer) -> None:
    """Delete a stored result. For the user who started it, and operators."""
    state.services.simulations.remove(simulation, by=viewer)


@simulations_router.get("/{simulation}")
def read_simulation(simulation: SimulationName, state: State) -> SimulationAnswer:
    """The progress of a simulation, and its finished results."""
    return state.services.simulations.find(simulation)
