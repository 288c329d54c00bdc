"""The cost of every route in one table, and the limits that follow from it: how many run at the same time, for whom.

A route that is not in the table counts as expensive, and a test says so: whoever adds one decides what it costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from clusterscape.executors import ThreadPool
from clusterscape.serve.concurrency import ConcurrencyLimit
from clusterscape.settings.limits import WorkLimits


class Cost(StrEnum):
    """What a request takes of the server."""

    LIGHT = "light"
    """Milliseconds, or bounded otherwise."""
    EXPENSIVE = "expensive"
    """Up to seconds of a core: statistics over many samples, traces."""
    SIMULATION = "simulation"
    """Up to a minute of a core: one of each user at a time, so that what is left of the interpreter suffices for others."""
    SHARED = "shared"
    """The same, made once for all who ask (`serve/response_cache.py`): never behind what one user asks."""
    UPLOAD = "upload"
    """Lasts as long as the client sends."""


_LIGHT = """
    get_health get_session sign_in sign_out begin_sign_in finish_sign_in sign_out_everywhere change_password
    list_tokens create_token revoke_token list_accounts add_account change_account remove_account list_audit
    get_cluster list_nodes get_node get_snapshot get_tick get_units get_chosen_units get_live get_own_metrics get_sources
    list_metrics search list_workloads get_workload get_workload_verdicts
    list_violations list_violating_units list_mutes mute_rule unmute_rule list_comments write_comment remove_comment
    get_alert_state list_rules read_rule complete_rule describe_rule_language save_rule remove_rule order_rules
    list_views save_view remove_view set_start_view list_insights save_insight remove_insight
    list_runs read_run_workload list_run_metrics read_run list_run_files
    list_traces create_trace import_trace delete_trace read_trace read_trace_span
    list_job_traces remove_job_trace list_models list_queue
    read_what_if stop_what_if list_simulator_options list_simulations read_simulation stop_simulation remove_simulation
"""
_EXPENSIVE = """
    get_series get_diagnosis get_workload_histograms get_workload_lines get_workload_scatter list_workload_events
    try_rule read_run_tree read_run_series read_run_bands
    diff_traces get_trace_steps get_trace_marey read_trace_flow get_trace_operators get_trace_communication
    get_trace_curves ask_what_if
    describe_job_trace forecast_wait explain_waiting start_what_if delete_run
"""
_SIMULATION = "simulate_what_if simulate_job_trace report_reliability"
_SHARED = "get_timeline get_waste get_waste_by_unit get_violation_timeline forecast_waiting"
_UPLOAD = "send_run_file send_trace_file upload_job_trace"

COSTS: Mapping[str, Cost] = {
    **dict.fromkeys(_LIGHT.split(), Cost.LIGHT),
    **dict.fromkeys(_EXPENSIVE.split(), Cost.EXPENSIVE),
    **dict.fromkeys(_SIMULATION.split(), Cost.SIMULATION),
    **dict.fromkeys(_SHARED.split(), Cost.SHARED),
    **dict.fromkeys(_UPLOAD.split(), Cost.UPLOAD),
}
"""By the name of the route."""


STREAMED = frozenset({"try_rule"})
"""Routes whose work is done while the answer is sent: they hold their slot until its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The limits of one server. ``upload_threads``: one for each upload that is received."""

    by_cost: Mapping[Cost, ConcurrencyLimit]
    upload_threads: ThreadPool
    upload_stall_s: float


def build_request_limits(limits: WorkLimits) -> RequestLimits:
    """From the settings. One user has half of the expensive slots and one simulation: each delays all answers a little."""

    def limit(what: str, at_once: int, per_user: int) -> ConcurrencyLimit:
        return ConcurrencyLimit(
            what=what,
            at_once=at_once,
            at_once_per_user=per_user,
            per_user=limits.per_user,
            waiting=limits.waiting,
            wait_s=limits.wait_s,
        )

    half = max(1, limits.at_once // 2)
    return RequestLimits(
        by_cost={
            Cost.EXPENSIVE: limit("expensive requests", limits.at_once, half),
            Cost.SIMULATION: limit("simulations", half, 1),
            Cost.SHARED: limit("statistics of the whole cluster", limits.at_once, half),
            Cost.UPLOAD: limit("uploads", limits.uploads_at_once, limits.uploads_per_user),
        },
        upload_threads=ThreadPool("upload", limits.uploads_at_once),
        upload_stall_s=limits.upload_stall_s,
    )
