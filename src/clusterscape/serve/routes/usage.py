"""Usage over any period, and budgets."""

from typing import Annotated

from fastapi import APIRouter, Query

from clusterscape.query.bounds import Name
from clusterscape.query.usage import FORMS, CalendarStep
from clusterscape.query.usage.answers import BudgetAnswer, UsageAnswer, UsageKey, UsageReport
from clusterscape.query.usage.query import MAX_GROUPS
from clusterscape.serve.redaction import RedactedRoute
from clusterscape.serve.state import State

router = APIRouter(prefix="/api/v1", tags=["usage"], route_class=RedactedRoute)


@router.get("/usage")
def get_usage(
    state: State,
    period: Annotated[Name | None, Query(description=f"{FORMS}; by default the current month.")] = None,
    step: Annotated[CalendarStep | None, Query(description="By default days, weeks or months by length.")] = None,
    by: Annotated[list[UsageKey] | None, Query(max_length=7, description="Groups; by default users.")] = None,
    timezone: Annotated[Name | None, Query(description="By default that of the settings.")] = None,
    user: Name | None = None,
    project: Name | None = None,
    partition: Name | None = None,
    gpu_model: Name | None = None,
    qos: Name | None = None,
    job_size: Name | None = None,
    end_state: Name | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_GROUPS, description="Groups with the most GPU-hours.")] = 50,
) -> UsageAnswer:
    """GPU-hours, jobs, waits and money by user, project and so on, as accounting counts them, in steps of the calendar."""
    names = {
        "user": user,
        "project": project,
        "partition": partition,
        "gpu_model": gpu_model,
        "qos": qos,
        "job_size": job_size,
        "end_state": end_state,
    }
    chosen = {key: name for key, name in names.items() if name is not None}
    keys = by or [UsageKey.USER]
    return state.queries.usage.usage(period=period, step=step, by=keys, timezone=timezone, names=chosen, limit=limit)


@router.get("/usage/report")
def get_usage_report(
    state: State,
    period: Annotated[Name | None, Query(description=f"{FORMS}; by default the current month.")] = None,
    timezone: Annotated[Name | None, Query(description="By default that of the settings.")] = None,
    user: Name | None = None,
    project: Name | None = None,
) -> UsageReport:
    """A month or other period in full: by owner, GPU model, job size and end state, compared with those before, with findings."""
    return state.queries.usage_report.report(period=period, timezone=timezone, user=user, project=project)


@router.get("/budgets")
def list_budgets(state: State) -> list[BudgetAnswer]:
    """The budgets of the settings: what was used, and when they run out at the recent pace."""
    return state.queries.usage.budgets()
