"""The live queue: who waits and why, one of them in full, and what a change would do."""

from typing import Annotated

from fastapi import APIRouter, Path

from clusterscape.query.scheduling.queue_answers import QueueAnswer, WaitingStory
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf, WhatIfAnswer, WhatIfProgress
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import CurrentUser, CurrentViewer, State

router = APIRouter(prefix="/api/v1/scheduling", tags=["scheduling"], route_class=RedactedRoute)

WhatIfRun = Annotated[str, Path(max_length=64, description="As the answer to the question says.")]


@router.get("/queue")
def list_queue(state: State) -> QueueAnswer:
    """Every waiting workload in queue order: its place, the reason in words, the planned and the likely start."""
    return state.queries.queue.all()


@router.get("/queue/{workload:path}")
def explain_waiting(
    workload: Annotated[str, Path(description="Such as slurm:4711.", max_length=200)], state: State
) -> WaitingStory:
    """Why a workload waits: who is ahead and why, what must come free, who holds it, each slip, what would help."""
    return state.queries.queue.story(workload)


@router.post("/whatif")
def simulate_what_if(what: QueueWhatIf, state: State) -> WhatIfAnswer:
    """The queue as it is and changed, simulated on the same sampled futures; differences are paired. Takes seconds."""
    return state.queries.what_if.ask(what)


@router.post("/whatif/runs")
def start_what_if(what: QueueWhatIf, state: State, viewer: CurrentViewer, user: CurrentUser) -> WhatIfProgress:
    """The same, begun and answered at once: the answer says under which name to look how far it is."""
    return state.queries.what_if_runs.start(what, by=viewer, user=user)


@router.get("/whatif/runs/{run}")
def read_what_if(run: WhatIfRun, state: State, viewer: CurrentViewer) -> WhatIfProgress:
    """How far a what-if is, and its answer once it is done."""
    return state.queries.what_if_runs.find(run, by=viewer)


@router.delete("/whatif/runs/{run}")
def stop_what_if(run: WhatIfRun, state: State, viewer: CurrentViewer) -> WhatIfProgress:
    """Do not go on with a what-if. Who began it may, and operators."""
    return state.queries.what_if_runs.stop(run, by=viewer)
