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
from clusterscape.serve.admission import limit_cost
from clusterscape.serve.body_limits import BodyLimits
from clusterscape.serve.compression import Compress
from clusterscape.serve.costs import build_request_limits
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.identity.gate import Gate
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.live import LiveHub
from clusterscape.serve.page import STATIC, install_page
from clusterscape.serve.problems import ProblemAnswer, install_problem_handlers
from clusterscape.serve.redaction import RevealIds
from clusterscape.serve.request_target import CheckTarget
from clusterscape.serve.response_cache import ResponseCache, ShareResponses
from clusterscape.serve.rights import check_rights
from clusterscape.serve.routes import (
    accounts,
    alerts,
    audit,
    cluster,
    diagnosis,
    health,
    job_traces,
    live,
    predictions,
    rules,
    scheduling,
    series,
    session,
    simulations,
    sources,
    tokens,
    traces,
    units,
    views,
    violations,
    workloads,
)
from clusterscape.serve.routes import (
    runs as run_routes,
)
from clusterscape.serve.state import AppState, RunWriter, TraceWriter
from clusterscape.serve.telemetry import Telemetry, TimeRequests
from clusterscape.serve.warm_routes import require_warm
from clusterscape.settings.limits import RunLimits
from clusterscape.warm_up import Area

ROUTES = (
    cluster,
    units,
    workloads,
    diagnosis,
    traces,
    violations,
    alerts,
    series,
    views,
    rules,
    run_routes,
    sources,
    job_traces,
    predictions,
    scheduling,
    simulations,
    session,
    accounts,
    tokens,
    audit,
    live,
    health,
)


WARM_UP_AFTER_S = 5.0
"""What a first diagnosis would wait for is loaded aside, once the page has had its time."""


def create_app(
    queries: Queries,
    *,
    ingest: IngestState | None = None,
    identity: Identity | None = None,
    loopback_only: bool = False,
    static: Path = STATIC,
    runs: RunWriter | None = None,
    trace_writer: TraceWriter | None = None,
    guard: HttpGuard | None = None,
) -> FastAPI:
    """The whole server. ``identity``: who may come in; None, for everybody, only where the address is loopback.

    ``loopback_only``: requests that name another host are refused. ``guard``: the one of the server's connections.
    """
    guard = guard or HttpGuard()
    hub = LiveHub(queries.context.changes, queries.context.clock)
    responses = ResponseCache(queries.context.clock)
    limits = build_request_limits(queries.context.work)
    telemetry = Telemetry(queries, ingest, hub, responses, limits, guard)

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
        runs=runs,
        traces=trace_writer,
    )
    install_problem_handlers(app, queries.strictest)
    for area in ROUTES:
        app.include_router(
            area.router,
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
    """The bare app: title, error shape and naming, before it has routes. The schema's generator starts here too."""
    return FastAPI(
        title="ClusterScape",
        version=__version__,
        description="Who uses which GPU, for what, and how well.",
        generate_unique_id_function=_operation_id,
        responses={"default": {"model": ProblemAnswer, "description": "What was wrong and what to do."}},
        docs_url=None,
        redoc_url=None,
    )


def _operation_id(route: APIRoute) -> str:
    return route.name
