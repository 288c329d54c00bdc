"""Runs a site: the server, the collectors and the upkeep, until it is stopped.

Freezes long-lived objects so that full garbage collections are cheap: on a site with 10,000 GPUs, one would visit a million
objects and block requests for 0.4 s. Frozen objects are still freed by reference counting; only cycles among them wait for the
hourly full collection.
"""

import asyncio
import gc
import logging
import resource
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn

from clusterscape import executors
from clusterscape.collect.contract import Collector
from clusterscape.collect.schedule import run_collectors
from clusterscape.errors import ClusterScapeError
from clusterscape.runtime.compiling import choose_folder, compile_ahead, find_marker
from clusterscape.runtime.job_mail import open_job_mailer
from clusterscape.runtime.replicas import QueueUpkeep
from clusterscape.runtime.site import Site, SiteRuns, build_collectors
from clusterscape.serve.app import create_app
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.http_protocol import HttpConfig
from clusterscape.serve.identity.addresses import is_loopback, refuse_open_address
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.state import AppState
from clusterscape.serve.telemetry import OnlyHealth
from clusterscape.services.hang_alerts import HangAlerts
from clusterscape.services.job_summaries import SummaryKeeper
from clusterscape.store.access import open_access_store
from clusterscape.supervision import SupervisedLoop, cancel_and_wait, keep_running
from clusterscape.warm_up import Area

SWITCH_INTERVAL_S = 0.0005
"""A tenth of Python's default; docs/design/load.md has the measurement."""
FREEZE_EVERY_S = 30.0
FULL_COLLECTION_EVERY = 120
"""Every 120th round is a full collection: once an hour."""


async def freeze_periodically(loop: SupervisedLoop) -> None:
    """Freeze live objects periodically, until cancelled."""
    rounds = 0
    while True:
        await asyncio.sleep(FREEZE_EVERY_S)
        rounds += 1
        with loop:
            await executors.UPKEEP.run(freeze_survivors, full=rounds % FULL_COLLECTION_EVERY == 0)


def freeze_survivors(*, full: bool = False) -> None:
    """Collect new garbage and freeze the rest; ``full``: also collect among objects that were frozen before."""
    if full:
        gc.unfreeze()
    gc.collect()
    gc.freeze()


log = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
MAINTAIN_EVERY_S = 60.0
CHECK_CLOCK_EVERY_S = 2.0
FORECAST_EVERY_S = 30.0
"""A workload has its first forecast at most this long after its submission."""


def bind(host: str, port: int) -> socket.socket:
    """The listening socket; raises if the port is in use, before anything else starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ClusterScapeError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="Is ClusterScape already running? Choose another port with --port.",
        ) from None
    # Send small responses at once; otherwise a keep-alive request can wait 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def share_interpreter() -> None:
    """Let requests interrupt computing threads sooner.

    A thread that wants the interpreter waits one switch interval for each that computes, and a request passes several threads.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def raise_file_limit() -> None:
    """Raise the limit of open files to the maximum: thousands of exporters are thousands of connections."""
    with suppress(ValueError, OSError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def max_connections() -> int | None:
    """Half of the process's file limit, the rest is for stores and collectors; None: unlimited."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else max(1, soft // 2)


def url_of(listener: socket.socket) -> str:
    """The URL of the server."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_site(
    site: Site,
    collectors: Sequence[Collector],
    listener: socket.socket,
    *,
    on_ready: Callable[[str], None],
    startup_task: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until interrupted. ``startup_task`` runs once in the background (the demo's history)."""
    refuse_open_address(site.settings.server, site.settings.auth)
    raise_file_limit()
    share_interpreter()
    site.ingest.expect(collector.name for collector in collectors)
    compiled = find_marker(choose_folder(site.settings.storage.data_dir))
    if site.settings.server.compile_ahead and not compiled.exists():
        site.warm_up.begin()  # before any thread checks it
    site.traces.mark_interrupted()
    identity = open_identity(site)
    guard = HttpGuard(site.settings.limits.http, most_connections=max_connections())
    app = create_app(
        site.queries,
        services=site.services,
        ingest=site.ingest,
        identity=identity,
        loopback_only=identity.is_open and is_loopback(site.settings.server.host),
        runs=SiteRuns(site),
        trace_writer=site.traces,
        guard=guard,
    )
    asgi_app = OnlyHealth(app) if site.settings.server.role == "collector" else app
    config = HttpConfig(asgi_app, guard)
    state: AppState = app.state.clusterscape
    server = _Server(config, on_ready=lambda: on_ready(url_of(listener)), on_stop=state.live.close)
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_run(site, collectors, server, listener, startup_task, identity, compiled))
    finally:
        identity.close()
        site.close()


def open_identity(site: Site) -> Identity:
    """Authentication, with its accounts in the record store."""
    settings = site.settings
    return Identity(
        open_access_store(settings.storage),
        settings.auth,
        static_token=settings.server.token,
        clock=site.clock,
        limits=settings.limits.items,
    )


class _Server(uvicorn.Server):
    """A server that reports when it is ready, and closes live streams on shutdown (they would never end).

    SIGINT and SIGTERM end ``serve``; the caller then ends its threads and closes the stores. A further signal ends the process.
    """

    def __init__(self, config: uvicorn.Config, *, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again afterwards, as uvicorn does: that would skip closing the stores."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        for number in STOP_SIGNALS:
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_DFL)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


async def _run(
    site: Site,
    collectors: Sequence[Collector],
    server: uvicorn.Server,
    listener: socket.socket,
    startup_task: Callable[[], Awaitable[None]] | None,
    identity: Identity,
    compiled: Path,
) -> None:
    background = [
        _supervise(site, "collection", lambda: _collect(site, collectors)),
        _supervise(site, "upkeep", lambda: _maintain(site, identity)),
        _supervise(site, "clock", lambda: _watch_clock(site)),
        _supervise(site, "garbage collection", lambda: freeze_periodically(_loop(site, "garbage"))),
        _supervise(site, "alerts", site.alerts.run),
        _supervise(site, "export", site.exporting.run),
    ]
    every_s = site.settings.rules.evaluation_interval_s
    judging = _supervise_thread(site, "judging", partial(site.watch.run, every_s))
    queue_threads = _queue_threads(site)
    replica = site.replica
    hang_alerts = HangAlerts(
        site.queries.hangs,
        site.alerts,
        site.changes,
        site.clock,
        (lambda: True) if replica is None else (lambda: replica.decides),
    )
    summaries = SummaryKeeper(
        site.services.context,
        keep_days=site.settings.retention.summaries_days,
        decides=(lambda: True) if replica is None else (lambda: replica.decides),
    )
    following = [_supervise_thread(site, name, run) for name, run in queue_threads.runs.items()]
    following.append(_supervise_thread(site, "alerts on hangs", hang_alerts.run))
    following.append(_supervise_thread(site, "job summaries", summaries.run))
    job_mailer = open_job_mailer(site, (lambda: True) if replica is None else (lambda: replica.decides))
    if job_mailer is not None:
        following.append(_supervise_thread(site, "job mail", job_mailer.run))
    once = {} if startup_task is None else {"startup task": startup_task}
    if not site.warm_up.is_ready(Area.RULES):
        once["compiling"] = partial(compile_ahead, site.warm_up, compiled)
    background += [asyncio.create_task(_run_once(site, name, work), name=name) for name, work in once.items()]
    try:
        await server.serve(sockets=[listener])
    finally:
        # First, whatever happens next: a thread that is not stopped keeps the process alive forever.
        site.watch.stop()
        hang_alerts.stop()
        summaries.stop()
        if job_mailer is not None:
            job_mailer.stop()
        for stop in queue_threads.stops:
            stop()
        await cancel_and_wait(*background)
        site.traces.close()
        await asyncio.gather(judging, *following)


async def _collect(site: Site, collectors: Sequence[Collector]) -> None:
    """Collect; with several processes, only while this one is the leader."""
    if site.replica is None:
        await run_collectors(collectors, site.accept, site.clock, site.loops)
    elif site.replica.may_collect:
        await site.replica.collect_when_elected(
            lambda: build_collectors(site.settings, site.clock),
            site.accept,
            site.clock,
            take_over=site.take_over,
            writer=site.writer,
        )


@dataclass(frozen=True, slots=True)
class _Threads:
    """Background threads that follow the queue, each until its stop is called."""

    runs: Mapping[str, Callable[[], None]]
    stops: Sequence[Callable[[], None]]


def _queue_threads(site: Site) -> _Threads:
    forecasts, promises, replica = site.services.forecasts, site.services.promises, site.replica
    if replica is None:
        runs: dict[str, Callable[[], None]] = {
            "following waits": partial(forecasts.run, FORECAST_EVERY_S),
            "following promises": promises.run,
        }
        return _Threads(runs, [forecasts.stop, promises.stop])

    def update() -> None:
        promises.update()
        forecasts.update()

    def follow() -> None:
        promises.reload()
        forecasts.train()

    upkeep = QueueUpkeep(decides=lambda: replica.decides, update=update, follow=follow, loops=site.loops)
    return _Threads({"following the queue": partial(upkeep.run, FORECAST_EVERY_S)}, [upkeep.stop, forecasts.stop])


async def _run_once(site: Site, name: str, work: Callable[[], Awaitable[None]]) -> None:
    with _loop(site, name):
        await work()


def _loop(site: Site, name: str) -> SupervisedLoop:
    return site.loops.loop(name, log, fails=f"{name} failed", works=f"{name} works again")


def _supervise(site: Site, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Run until cancelled; restart after any exception."""
    return asyncio.create_task(keep_running(_loop(site, name), work), name=name)


def _supervise_thread(site: Site, name: str, work: Callable[[], None]) -> asyncio.Task[None]:
    """Run in a separate thread until ``work`` returns; restart after any exception."""
    return _supervise(site, name, lambda: executors.run_in_own_thread(name, work))


async def _watch_clock(site: Site) -> None:
    """Check the clock often, so that a jump is logged soon."""
    while True:
        site.steady.now()
        await asyncio.sleep(CHECK_CLOCK_EVERY_S)


async def _maintain(site: Site, identity: Identity) -> None:
    while True:
        await asyncio.sleep(MAINTAIN_EVERY_S)
        await run_upkeep(site, identity)


async def run_upkeep(site: Site, identity: Identity) -> None:
    """Run one round of upkeep. Tasks are independent: an error of one does not stop the others."""
    for name, task in {**site.upkeep(), "sessions": identity.maintain}.items():
        with _loop(site, f"upkeep of {name}"):
            await executors.UPKEEP.run(task)
