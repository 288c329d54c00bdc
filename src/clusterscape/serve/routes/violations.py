"""Violations, past and present; mutes and comments."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from clusterscape.model.viewers import Viewer
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
    """Whom not to tell of, why and for how long."""

    model_config = ConfigDict(extra="forbid")

    rule: Name
    workload: ItemId | None = None
    reason: LongText
    author: Name
    hours: Annotated[float, Field(gt=0, le=24 * 366)]


class NewComment(BaseModel):
    """What to write about a workload."""

    model_config = ConfigDict(extra="forbid")

    workload: ItemId
    author: Name
    text: LongText


@router.get("/violations")
def list_violations(
    state: State,
    hours: Hours = 24.0,
    start: Annotated[Moment | None, Query(description="Unix ms; instead of hours.")] = None,
    end: Annotated[Moment | None, Query(description="Unix ms; now where left out.")] = None,
    rule: Name | None = None,
    user: Name | None = None,
    project: Name | None = None,
    is_open: Annotated[bool | None, Query(description="Only those that go on, or only past ones.")] = None,
) -> ViolationList:
    """Violations of a time by workload and rule, most GPU-hours first; sums by user and project."""
    return state.queries.violations.all(
        hours=hours, start=start, end=end, rule=rule, user=user, project=project, is_open=is_open
    )


@router.get("/violations/units")
def list_violating_units(state: State, at: PastMoment = None) -> UnitViolations:
    """Which units break which rules, now or at a past moment."""
    return state.queries.violations.units(at)


@router.get("/violations/timeline")
def get_violation_timeline(
    state: State,
    hours: Hours = 24.0,
    steps: Annotated[int, Query(ge=1, le=2000)] = 96,
    end: Annotated[Moment | None, Query(description="Unix ms; now where left out.")] = None,
) -> RuleTimeline:
    """How many GPUs broke each rule over the last hours, or those before a past moment."""
    return state.queries.violations.timeline(hours=hours, steps=steps, end=end)


@router.get("/workloads/{workload}/rules")
def get_workload_verdicts(workload: ItemId, state: State) -> WorkloadVerdicts:
    """Every rule on every unit of a workload with the numbers behind it, and its violations."""
    return state.queries.violations.workload(workload)


@router.get("/mutes")
def list_mutes(state: State) -> list[MuteAnswer]:
    """Mutes that have not expired."""
    return state.queries.rule_notes.mutes()


@router.post("/mutes")
def mute_rule(wanted: MuteRequest, state: State, viewer: CurrentViewer) -> MuteAnswer:
    """Tell nobody of a rule's violations for a while; who is signed in signs with their login."""
    return state.queries.rule_notes.mute(**_sign(wanted.model_dump(), viewer))


@router.delete("/mutes/{key}", status_code=204)
def unmute_rule(key: ItemId, state: State) -> None:
    """End a mute."""
    state.queries.rule_notes.unmute(key)


@router.get("/comments")
def list_comments(state: State, workload: ItemId | None = None) -> list[CommentAnswer]:
    """What people wrote, newest first."""
    return state.queries.rule_notes.comments(workload)


@router.post("/comments")
def write_comment(comment: NewComment, state: State, viewer: CurrentViewer) -> CommentAnswer:
    """Write something about a workload; who is signed in signs with their login."""
    return state.queries.rule_notes.comment(**_sign(comment.model_dump(), viewer))


@router.delete("/comments/{key}", status_code=204)
def remove_comment(key: ItemId, state: State, viewer: CurrentViewer) -> None:
    """Take back a comment."""
    state.queries.rule_notes.remove_comment(key, by=viewer)


def _sign(written: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
    return written if viewer.login is None else written | {"author": viewer.login}
