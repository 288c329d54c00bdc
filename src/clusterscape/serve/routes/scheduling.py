"""The live queue: who waits and why, one of them in full, and what a change would do."""

from typing import Annotated

from fastapi import APIRouter, Path

from clusterscape.query.scheduling.queue_answers import QueueAnswer, WaitingStory
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf, WhatIfAnswer
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1/scheduling", tags=["scheduling"])


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
