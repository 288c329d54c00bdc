"""The app factory: queries, live updates and the page behind one ASGI app."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute

from clusterscape import __version__
from clusterscape.query import IngestState, Queries
from clusterscape.serve.admission import check_rights, limit_cost, require_warm
from clusterscape.serve.costs import build_request_limits
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.identity.gate import Gate
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.live import LiveHub
from clusterscape.serve.page import STATIC, install_page
from clusterscape.serve.problems import ProblemAnswer, install_problem_handlers
from clusterscape.serve.redaction import RevealIds
from clusterscape.serve.request_limits import BodyLimits, CheckTarget
from clusterscape.serve.response_cache import ResponseCache, ShareResponses
from clusterscape.serve.routes import (
    accounts,
    cluster,
    diagnosis,
    jobs,
    rules,
    scheduling,
    service,
    session,
    tokens,
    traces,
    usage,
    views,
    violations,
)
from clusterscape.serve.routes import (
    runs as run_routes,
)
from clusterscape.serve.state import AppState, RunWriter, TraceWriter
from clusterscape.serve.telemetry import Telemetry, TimeRequests
from clusterscape.serve.wire import Compress
from clusterscape.services import Services
from clusterscape.settings.limits import RunLimits
from clusterscape.warm_up import Area

ROUTES = (
    cluster.router,
    cluster.units_router,
    cluster.workloads_router,
    jobs.router,
    usage.router,
    diagnosis.router,
    traces.router,
    violations.router,
    service.alerts_router,
    cluster.series_router,
    views.router,
    rules.router,
    run_routes.router,
    service.sources_router,
    scheduling.job_traces_router,
    scheduling.predictions_router,
    scheduling.router,
    scheduling.simulations_router,
    session.router,
    accounts.router,
    tokens.router,
    accounts.audit_router,
    service.live_router,
    service.health_router,
)


WARM_UP_AFTER_S = 5.0
"""Delay after the start before the code of the diagnosis is loaded in the background: it must not delay the first page."""


def create_app(
    queries: Queries,
    *,
    services: Services | None = None,
    ingest: IngestState | None = None,
    identity: Identity | None = None,
    loopback_only: bool = False,
    static: Path = STATIC,
    runs: RunWriter | None = None,
    trace_writer: TraceWriter | None = None,
    guard: HttpGuard | None = None,
) -> FastAPI:
    """Build the ASGI app of the server.

    ``identity``: authentication; None (everybody is let in) only if the server listens on loopback. ``services``: background
    services that write; None: the app only reads. ``loopback_only``: refuse requests with another Host header. ``guard``: the
    one that the server's connections use.
    """
    guard = guard or HttpGuard()
    hub = LiveHub(queries.context.changes, queries.context.clock)
    responses = ResponseCache(queries.context.clock)
    limits = build_request_limits(queries.context.work)
    telemetry = Telemetry(
        queries, ingest, hub, responses, limits, guard, None if services is None else services.context.quota
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        hub.open()
        anyio.to_thread.current_default_thread_limiter().total_tokens = queries.context.work.request_threads
        warming = asyncio.get_running_loop().call_later(WARM_UP_AFTER_S, _warm_up, queries)
        yield
        warming.cancel()
        hub.close()

    app = describe_api()
    app.router.lifespan_context = lifespan
    app.state.clusterscape = AppState(
        queries=queries,
        live=hub,
        telemetry=telemetry,
        limits=limits,
        identity=identity,
        site_services=services,
        runs=runs,
        traces=trace_writer,
    )
    install_problem_handlers(app, queries.anonymous_redactor)
    for router in ROUTES:
        app.include_router(
            router,
            dependencies=[Depends(check_rights), Depends(require_warm), Depends(limit_cost, scope="function")],
        )
    install_page(app, static)
    if queries.codes is not None:
        app.add_middleware(RevealIds, codes=queries.codes)
    app.add_middleware(Compress)
    app.add_middleware(
        ShareResponses,
        cache=responses,
        changes=queries.context.changes,
        past_version=queries.cluster.past.validity,
        is_private=queries.context.is_private,
        is_personal=identity is not None and not identity.is_open,
    )
    piece_bytes = RunLimits().piece_bytes if runs is None else runs.max_piece_bytes
    app.add_middleware(BodyLimits, guard=guard, run_piece_bytes=piece_bytes)
    app.add_middleware(Gate, identity=identity, loopback_only=loopback_only)
    app.add_middleware(CheckTarget, guard=guard)
    app.add_middleware(TimeRequests, telemetry=telemetry)
    return app


def _warm_up(queries: Queries) -> None:
    def load() -> None:
        queries.context.warm_up.wait(Area.DIAGNOSIS)
        queries.diagnosis.warm_up()

    threading.Thread(target=load, name="warm-up", daemon=True).start()


def describe_api() -> FastAPI:
    """The app without routes: title, error shape and operation ids. The schema generator also uses it."""
    return FastAPI(
        title="ClusterScape",
        version=__version__,
        description="Who uses which GPU, for what, and how well.",
        generate_unique_id_function=_operation_id,
        responses={"default": {"model": ProblemAnswer, "description": "What went wrong and what to do."}},
        docs_url=None,
        redoc_url=None,
    )


def _operation_id(route: APIRoute) -> str:
    return route.name
