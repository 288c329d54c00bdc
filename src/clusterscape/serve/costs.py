"""The cost of every route in one table, and the concurrency limits by cost: a bounded number of requests run, a bounded
number wait, and users take turns.

Runs in the server's event loop: a waiting request holds no thread.

A route that is not in the table counts as expensive, and a test fails: to add a route is to decide what it costs.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from clusterscape.errors import ThrottledError
from clusterscape.executors import FairQueue, ThreadPool
from clusterscape.settings.limits import WorkLimits

RETRY_AFTER_S = 5


@dataclass(slots=True, kw_only=True)
class ConcurrencyLimit:
    """Concurrency limit; a request that waits longer than ``wait_s`` is refused.

    ``at_once`` requests run, at most ``at_once_per_user`` of one user. ``per_user``: running and waiting requests of one user;
    ``waiting``: waiting requests of all users. ``what``: the requests, in error messages.
    """

    what: str
    at_once: int
    at_once_per_user: int
    per_user: int
    waiting: int
    wait_s: float
    refused: int = 0
    """Number of requests answered with 429."""
    _running: Counter[str] = field(default_factory=Counter)
    _queue: FairQueue[asyncio.Future[None]] = field(default_factory=FairQueue)

    @property
    def running(self) -> int:
        """Number of requests that hold a slot."""
        return self._running.total()

    @property
    def queued(self) -> int:
        """Number of requests that wait for a slot."""
        return len(self._queue)

    @asynccontextmanager
    async def slot(
        self, user: str, wait_for_disconnect: Callable[[], Awaitable[object]] | None = None
    ) -> AsyncIterator[None]:
        """Hold a slot within the block. Raises ThrottledError if the user, or all users together, have too many requests.

        ``wait_for_disconnect`` returns when the client has disconnected: then the request leaves the queue.
        """
        await self._acquire(user, wait_for_disconnect)
        try:
            yield
        finally:
            self._release(user)

    async def _acquire(self, user: str, wait_for_disconnect: Callable[[], Awaitable[object]] | None) -> None:
        if self._running[user] + self._queue.count(user) >= self.per_user:
            raise self._refuse(f"you have {self.per_user} {self.what} running or waiting")
        if self._is_eligible(user):
            self._running[user] += 1
            return
        if len(self._queue) >= self.waiting:
            raise self._refuse(f"too many {self.what} are waiting ({self.waiting})")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(user, turn)
        try:
            await self._wait(turn, wait_for_disconnect)
        except BaseException:
            self._queue.remove(user, turn)
            if turn.done() and not turn.cancelled():  # the slot was granted at the same moment
                self._release(user)
            raise

    async def _wait(
        self, turn: "asyncio.Future[None]", wait_for_disconnect: Callable[[], Awaitable[object]] | None
    ) -> None:
        disconnect: asyncio.Future[Any] = asyncio.ensure_future(
            _never() if wait_for_disconnect is None else wait_for_disconnect()
        )
        try:
            done, _ = await asyncio.wait({turn, disconnect}, timeout=self.wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnect.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await disconnect
        if turn in done:
            return
        if disconnect in done:
            raise ThrottledError("the client has disconnected", retry_after_s=RETRY_AFTER_S)  # nobody reads it
        raise self._refuse(f"no slot for {self.what} became free within {self.wait_s:g} s")

    def _is_eligible(self, user: str) -> bool:
        return self.running < self.at_once and self._running[user] < self.at_once_per_user

    def _release(self, user: str) -> None:
        self._running[user] -= 1
        if not self._running[user]:
            del self._running[user]
        while (entry := self._queue.pop(self._is_eligible)) is not None:
            waiting_user, turn = entry
            if not turn.done():
                self._running[waiting_user] += 1
                turn.set_result(None)

    def _refuse(self, message: str) -> ThrottledError:
        self.refused += 1
        hint = "Wait until your other requests are done, then try again. The settings limits.work set these limits."
        return ThrottledError(message, retry_after_s=RETRY_AFTER_S, hint=hint)


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


class Cost(StrEnum):
    """How much of the server's time a request takes."""

    LIGHT = "light"
    """Milliseconds, or limited by other means."""
    EXPENSIVE = "expensive"
    """Up to seconds of CPU time: statistics over many samples, traces."""
    SIMULATION = "simulation"
    """Up to a minute of CPU time: one per user at a time, so that the interpreter still has time for others."""
    SHARED = "shared"
    """As expensive, but computed once for all viewers (`serve/response_cache.py`): never queued behind one user's requests."""
    UPLOAD = "upload"
    """Takes as long as the client sends."""


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
    list_job_traces remove_job_trace list_models list_queue get_mail_choice set_mail_choice
    read_what_if stop_what_if list_simulator_options list_simulations read_simulation stop_simulation remove_simulation
"""
_EXPENSIVE = """
    get_usage get_usage_report list_budgets
    get_series get_job_card get_diagnosis get_workload_histograms get_workload_lines get_workload_scatter
    list_workload_events try_rule read_run_hang list_hangs read_run_tree read_run_series read_run_bands
    diff_traces get_trace_steps get_trace_marey read_trace_flow get_trace_operators get_trace_communication
    read_trace_flow_activity get_trace_highlights get_trace_overview get_trace_curves ask_what_if
    describe_job_trace forecast_wait explain_waiting start_what_if delete_run
"""
_SIMULATION = "simulate_what_if simulate_job_trace report_reliability compare_job_trace_predictors"
_SHARED = "get_timeline get_waste get_waste_by_unit get_violation_timeline forecast_waiting"
_UPLOAD = "send_run_file send_trace_file upload_job_trace"

COSTS: Mapping[str, Cost] = {
    **dict.fromkeys(_LIGHT.split(), Cost.LIGHT),
    **dict.fromkeys(_EXPENSIVE.split(), Cost.EXPENSIVE),
    **dict.fromkeys(_SIMULATION.split(), Cost.SIMULATION),
    **dict.fromkeys(_SHARED.split(), Cost.SHARED),
    **dict.fromkeys(_UPLOAD.split(), Cost.UPLOAD),
}
"""The cost by the name of the route."""


STREAMED = frozenset({"try_rule"})
"""Routes that do their work while the response is sent: they hold their slot until its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The limits of one server. ``upload_threads``: one thread per upload in progress."""

    by_cost: Mapping[Cost, ConcurrencyLimit]
    upload_threads: ThreadPool
    upload_timeout_s: float


def build_request_limits(limits: WorkLimits) -> RequestLimits:
    """Build the limits from the settings.

    One user gets at most half of the expensive slots and one simulation: every one of them slows down all other requests.
    """

    def limit(what: str, at_once: int, per_user: int) -> ConcurrencyLimit:
        return ConcurrencyLimit(
            what=what,
            at_once=at_once,
            at_once_per_user=per_user,
            per_user=limits.requests_per_user,
            waiting=limits.queued_requests,
            wait_s=limits.queue_timeout_s,
        )

    half = max(1, limits.concurrent_requests // 2)
    return RequestLimits(
        by_cost={
            Cost.EXPENSIVE: limit("expensive requests", limits.concurrent_requests, half),
            Cost.SIMULATION: limit("simulations", half, 1),
            Cost.SHARED: limit("statistics of the whole cluster", limits.concurrent_requests, half),
            Cost.UPLOAD: limit("uploads", limits.concurrent_uploads, limits.uploads_per_user),
        },
        upload_threads=ThreadPool("upload", limits.concurrent_uploads),
        upload_timeout_s=limits.upload_timeout_s,
    )
