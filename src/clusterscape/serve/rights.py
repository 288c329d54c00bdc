"""Who may ask what: the least role for every route, in one table. Whose things they may change then is the queries' matter.

A route that is not in the table is for admins alone, and a test says so: whoever adds one decides who may use it.
"""

from collections.abc import Mapping

from fastapi import Request

from clusterscape.errors import ForbiddenError
from clusterscape.model.viewers import Role
from clusterscape.serve.state import CurrentViewer

_OPEN = "get_health get_session sign_in sign_out begin_sign_in finish_sign_in"
_VIEWER = """
    sign_out_everywhere change_password list_tokens create_token revoke_token
    get_cluster get_timeline get_waste get_waste_by_unit list_nodes get_node search
    get_snapshot get_tick get_units get_chosen_units get_series get_live get_own_metrics get_sources list_metrics
    list_workloads get_workload get_diagnosis get_workload_histograms get_workload_lines get_workload_scatter
    list_workload_events get_workload_verdicts
    list_violations list_violating_units get_violation_timeline list_mutes list_comments get_alert_state
    list_rules read_rule complete_rule describe_rule_language
    list_views list_insights list_runs read_run_tree read_run_workload list_run_metrics read_run_series read_run_bands read_run
    list_traces diff_traces read_trace get_trace_steps get_trace_marey read_trace_span read_trace_flow get_trace_operators
    get_trace_communication get_trace_curves ask_what_if
    list_job_traces describe_job_trace forecast_wait forecast_waiting list_models report_reliability
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

LEAST: Mapping[str, Role | None] = {
    **dict.fromkeys(_OPEN.split(), None),
    **dict.fromkeys(_VIEWER.split(), Role.VIEWER),
    **dict.fromkeys(_RESEARCHER.split(), Role.RESEARCHER),
    **dict.fromkeys(_OPERATOR.split(), Role.OPERATOR),
    **dict.fromkeys(_ADMIN.split(), Role.ADMIN),
}
"""The least role by the name of the route; None: anybody, signed in or not.

Researchers change what is their own. Questions that are POSTed only because they are long are questions all the same.
"""


async def check_rights(request: Request, viewer: CurrentViewer) -> None:
    """A dependency of every route: raise ForbiddenError where the viewer's role does not reach."""
    name = getattr(request.scope.get("route"), "name", "")
    least = LEAST.get(name, Role.ADMIN)
    if least is not None and not viewer.role.reaches(least):
        raise ForbiddenError(
            f"this needs the role {least.value}, and yours is {viewer.role.value}",
            hint="Ask an admin of this site for the role, or somebody who has it to do it.",
        )
