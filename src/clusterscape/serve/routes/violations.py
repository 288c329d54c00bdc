"""Violations, past and present; mutes and comments."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from clusterscape.model.access import Viewer
from clusterscape.query.bounds import ItemId, LongText, Moment, Name
from clusterscape.query.rule_answers import (
    CommentAnswer,
    MuteAnswer,
    RuleTimeline,
    UnitViolations,
    ViolationList,
    WorkloadVerdicts,
)
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.routes.cluster import PastMoment
from clusterscape.serve.state import CurrentViewer, State

router = APIRouter(prefix="/api/v1", tags=["violations"], route_class=RedactedRoute)

Hours = Annotated[float, Query(gt=0, le=24 * 366)]


class MuteRequest(BaseModel):
    """What to mute, why and for how long."""

    model_config = ConfigDict(extra="forbid")

    rule: Name
    workload: ItemId | None = None
    reason: LongText
    author: Name
    hours: Annotated[float, Field(gt=0, le=24 * 366)]


class NewComment(BaseModel):
    """A new comment on a workload."""

    model_config = ConfigDict(extra="forbid")

    workload: ItemId
    author: Name
    text: LongText


@router.get("/violations")
def list_violations(
    state: State,
    hours: Hours = 24.0,
    start: Annotated[Moment | None, Query(description="Unix ms; instead of hours.")] = None,
    end: Annotated[Moment | None, Query(description="Unix ms; by default now.")] = None,
    rule: Name | None = None,
    user: Name | None = None,
    project: Name | None = None,
    is_open: Annotated[bool | None, Query(description="Only open violations, or only past ones.")] = None,
) -> ViolationList:
    """Violations in a time range by workload and rule, most GPU-hours first; sums by user and project."""
    return state.queries.violations.all(
        hours=hours, start=start, end=end, rule=rule, user=user, project=project, is_open=is_open
    )


@router.get("/violations/units")
def list_violating_units(state: State, at: PastMoment = None) -> UnitViolations:
    """The units that violate each rule, now or at a past time."""
    return state.queries.violations.units(at)


@router.get("/violations/timeline")
def get_violation_timeline(
    state: State,
    hours: Hours = 24.0,
    steps: Annotated[int, Query(ge=1, le=2000)] = 96,
    end: Annotated[Moment | None, Query(description="Unix ms; by default now.")] = None,
) -> RuleTimeline:
    """Number of GPUs that violated each rule over the last hours, or over the hours before a past time."""
    return state.queries.violations.timeline(hours=hours, steps=steps, end=end)


@router.get("/workloads/{workload}/rules")
def get_workload_verdicts(workload: ItemId, state: State) -> WorkloadVerdicts:
    """The verdict of every rule on every unit of a workload with its statistics, and the workload's violations."""
    return state.queries.violations.workload(workload)


@router.get("/mutes")
def list_mutes(state: State) -> list[MuteAnswer]:
    """Mutes that have not expired."""
    return state.queries.rule_notes.mutes()


@router.post("/mutes")
def mute_rule(request: MuteRequest, state: State, viewer: CurrentViewer) -> MuteAnswer:
    """Mute a rule: send no messages for a while. The author is the login of the signed-in user."""
    return state.services.notes.mute(**_sign(request.model_dump(), viewer))


@router.delete("/mutes/{key}", status_code=204)
def unmute_rule(key: ItemId, state: State) -> None:
    """End a mute."""
    state.services.notes.unmute(key)


@router.get("/comments")
def list_comments(state: State, workload: ItemId | None = None) -> list[CommentAnswer]:
    """Comments, newest first."""
    return state.queries.rule_notes.comments(workload)


@router.post("/comments")
def write_comment(comment: NewComment, state: State, viewer: CurrentViewer) -> CommentAnswer:
    """Comment on a workload. The author is the login of the signed-in user."""
    return state.services.notes.comment(**_sign(comment.model_dump(), viewer))


@router.delete("/comments/{key}", status_code=204)
def remove_comment(key: ItemId, state: State, viewer: CurrentViewer) -> None:
    """Delete a comment."""
    state.services.notes.remove_comment(key, by=viewer)


def _sign(fields: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
    """Set the author to the login of the signed-in user."""
    return fields if viewer.login is None else fields | {"author": viewer.login}
