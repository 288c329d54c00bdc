"""The card of a job: its shares of CPU, memory and GPUs, curves, notes and advice; and which mails on jobs a user gets."""

from fastapi import APIRouter
from pydantic import BaseModel

from clusterscape.query.bounds import ItemId
from clusterscape.query.jobs.answers import JobCard
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import CurrentViewer, State
from clusterscape.services.job_mail.choices import MailKind

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=RedactedRoute)


@router.get("/jobs/{job}")
def get_job_card(job: ItemId, state: State) -> JobCard:
    """What a job that runs or ran used of its cores, memory and GPUs. Accepts the ids of Slurm's commands (4711, 4711_3)."""
    return state.queries.jobs.card(job)


class MailChoice(BaseModel):
    """Which mails on ended jobs a user gets; null: what the site sends by default."""

    choice: MailKind | None


class ChosenMail(BaseModel):
    """A choice of mails."""

    choice: MailKind


@router.get("/mail-choice")
def get_mail_choice(state: State, viewer: CurrentViewer) -> MailChoice:
    """Which mails on ended jobs the signed-in user gets."""
    return MailChoice(choice=state.services.mail_choices.read(viewer))


@router.put("/mail-choice", status_code=204)
def set_mail_choice(chosen: ChosenMail, state: State, viewer: CurrentViewer) -> None:
    """Choose mails on ended jobs: all, only on jobs that wasted something, or none."""
    state.services.mail_choices.write(chosen.choice, viewer)
