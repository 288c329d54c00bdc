"""The card of a job: its shares of CPU, memory and GPUs, curves and notes."""

from fastapi import APIRouter

from clusterscape.query.bounds import ItemId
from clusterscape.query.jobs.answers import JobCard
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=RedactedRoute)


@router.get("/jobs/{job}")
def get_job_card(job: ItemId, state: State) -> JobCard:
    """What a job that runs or ran used of its cores, memory and GPUs. Accepts the ids of Slurm's commands (4711, 4711_3)."""
    return state.queries.jobs.card(job)
