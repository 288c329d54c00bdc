"""The checks before every route: the minimum role (in one table; ownership of single items is checked by the queries),
the parts that must be compiled after a start (503 until then), and a free slot for its cost (or 429).

A route that is not in the table is for admins only, and a test fails: to add a route is to decide who may use it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

from fastapi import Request

from clusterscape.errors import ForbiddenError
from clusterscape.model.access import Role
from clusterscape.serve.costs import COSTS, STREAMED, Cost
from clusterscape.serve.state import AppState, CurrentUser, CurrentViewer
from clusterscape.warm_up import Area

_OPEN = "get_health get_session sign_in sign_out begin_sign_in finish_sign_in"
_VIEWER = """
    sign_out_everywhere change_password list_tokens create_token revoke_token
    get_cluster get_timeline get_waste get_waste_by_unit get_usage get_usage_report list_budgets list_nodes get_node search
    get_snapshot get_tick get_units get_chosen_units get_series get_live get_own_metrics get_sources list_metrics
    list_workloads get_workload get_job_card get_diagnosis get_workload_histograms get_workload_lines get_workload_scatter
    list_workload_events get_workload_verdicts
    list_violations list_violating_units get_violation_timeline list_mutes list_comments get_alert_state
    list_rules read_rule complete_rule describe_rule_language
    get_mail_choice set_mail_choice
    list_views list_insights list_runs read_run_tree read_run_workload list_run_metrics read_run_series read_run_bands read_run
    read_run_hang list_hangs
    list_traces diff_traces read_trace get_trace_steps get_trace_marey read_trace_span read_trace_flow get_trace_operators
    read_trace_flow_activity get_trace_highlights get_trace_overview get_trace_communication get_trace_curves ask_what_if
    list_job_traces describe_job_trace compare_job_trace_predictors
    forecast_wait forecast_waiting list_models report_reliability
    list_queue explain_waiting simulate_what_if start_what_if read_what_if stop_what_if
    list_simulator_options list_simulations read_simulation
"""
_RESEARCHER = """
    save_view remove_view save_insight remove_insight write_comment remove_comment try_rule
    list_run_files send_run_file delete_run create_trace send_trace_file import_trace delete_trace
    upload_job_trace remove_job_trace simulate_job_trace stop_simulation remove_simulation
"""
_OPERATOR = "save_rule remove_rule order_rules mute_rule unmute_rule set_start_view"
_ADMIN = "list_accounts add_account change_account remove_account list_audit"

MINIMUM_ROLES: Mapping[str, Role | None] = {
    **dict.fromkeys(_OPEN.split(), None),
    **dict.fromkeys(_VIEWER.split(), Role.VIEWER),
    **dict.fromkeys(_RESEARCHER.split(), Role.RESEARCHER),
    **dict.fromkeys(_OPERATOR.split(), Role.OPERATOR),
    **dict.fromkeys(_ADMIN.split(), Role.ADMIN),
}
"""The minimum role by the name of the route; None: everybody, signed in or not.

Researchers change what they own. A query that is POSTed only because it is long is still a read.
"""


async def check_rights(request: Request, viewer: CurrentViewer) -> None:
    """A dependency of every route: raise ForbiddenError if the viewer's role is too low."""
    name = getattr(request.scope.get("route"), "name", "")
    minimum = MINIMUM_ROLES.get(name, Role.ADMIN)
    if minimum is not None and not viewer.role.is_at_least(minimum):
        raise ForbiddenError(
            f"this requires the role {minimum.value}, and yours is {viewer.role.value}",
            hint="Ask an administrator for the role, or ask a user who has it.",
        )


NEEDED_AREAS: Mapping[str, Area] = {
    **dict.fromkeys(["list_queue", "explain_waiting", "forecast_wait", "forecast_waiting"], Area.QUEUE),
    **dict.fromkeys(
        ["get_diagnosis", "get_workload_histograms", "get_workload_lines", "get_workload_scatter"], Area.DIAGNOSIS
    ),
    **dict.fromkeys(["simulate_what_if", "start_what_if"], Area.WHAT_IF),
    "try_rule": Area.RULES,
}
"""The compiled part that each route needs, by the name of the route."""


async def require_warm(request: Request) -> None:
    """A dependency of every route: raise WarmingUpError if its code is not compiled yet."""
    area = NEEDED_AREAS.get(str(getattr(request.scope.get("route"), "name", "")))
    if area is not None:
        cast(AppState, request.app.state.clusterscape).queries.context.warm_up.require(area)


async def limit_cost(request: Request, user: CurrentUser) -> AsyncIterator[None]:
    """A dependency of every route: hold a slot while the route runs. Raises ThrottledError if too many requests run or wait."""
    if _name_of(request) in STREAMED:
        yield
        return
    async with _hold_slot(request, user):
        yield


async def limit_stream(request: Request, user: CurrentUser) -> AsyncIterator[None]:
    """Hold a slot for a route of STREAMED until its response has been sent."""
    async with _hold_slot(request, user):
        yield


@asynccontextmanager
async def _hold_slot(request: Request, user: str) -> AsyncIterator[None]:
    cost = COSTS.get(_name_of(request), Cost.EXPENSIVE)
    limit = cast(AppState, request.app.state.clusterscape).limits.by_cost.get(cost)
    if limit is None:
        yield
        return

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    # The body of an upload has not been read yet: waiting for a disconnect would consume it.
    async with limit.slot(user, None if cost is Cost.UPLOAD else wait_for_disconnect):
        yield


def _name_of(request: Request) -> str:
    return str(getattr(request.scope.get("route"), "name", ""))
