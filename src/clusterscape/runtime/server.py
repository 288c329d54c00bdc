"""Runs a site: the server, the collectors and the upkeep, until it is told to stop."""

import asyncio
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn

from clusterscape import executors
from clusterscape.collect.contract import Collector
from clusterscape.collect.schedule import run_collectors
from clusterscape.errors import ClusterScapeError
from clusterscape.runtime.compiling import choose_folder, compile_ahead, find_marker
from clusterscape.runtime.garbage import settle_garbage
from clusterscape.runtime.replicas import Tending
from clusterscape.runtime.site import Site, SiteRuns, build_collectors
from clusterscape.serve.app import create_app
from clusterscape.serve.health_only import OnlyHealth
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.http_protocol import HttpConfig
from clusterscape.serve.identity.addresses import is_loopback, refuse_open_address
from clusterscape.serve.identity.identity import Identity
from clusterscape.serve.state import AppState
from clusterscape.store.access import open_access_store
from clusterscape.supervision import SupervisedLoop, keep_running
from clusterscape.warm_up import Area

log = logging.getLogger(__name__)

MAINTAIN_EVERY_S = 60.0
LOOK_AT_CLOCK_EVERY_S = 2.0
FORECAST_EVERY_S = 30.0
"""How soon after its submission a workload has its first forecast."""


def bind(host: str, port: int) -> socket.socket:
    """The listening socket; a taken port is said so before anything else starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ClusterScapeError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="Is ClusterScape running already? Choose another port with --port.",
        ) from None
    # The kernel sends small answers at once; without this a keep-alive request can wait 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def raise_file_limit() -> None:
    """Thousands of exporters are thousands of open connections: take what the system grants this process."""
    with suppress(ValueError, OSError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def count_grantable_connections() -> int | None:
    """Connections that leave half of the process's files to stores and collectors; None: any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else max(1, soft // 2)


def address_of(listener: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_site(
    site: Site,
    collectors: Sequence[Collector],
    listener: socket.socket,
    *,
    on_ready: Callable[[str], None],
    beside: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until interrupted. ``beside`` runs once beside the server (the demo's history)."""
    refuse_open_address(site.settings.server, site.settings.auth)
    raise_file_limit()
    site.ingest.expect(collector.name for collector in collectors)
    compiled = find_marker(choose_folder(site.settings.storage.data_dir))
    if site.settings.server.compile_ahead and not compiled.exists():
        site.warm_up.begin()  # before any thread could ask
    site.traces.mark_interrupted()
    identity = open_identity(site)
    guard = HttpGuard(site.settings.limits.http, most_connections=count_grantable_connections())
    app = create_app(
        site.queries,
        ingest=site.ingest,
        identity=identity,
        loopback_only=identity.is_open and is_loopback(site.settings.server.host),
        runs=SiteRuns(site),
        trace_writer=site.traces,
        guard=guard,
    )
    served = OnlyHealth(app) if site.settings.server.role == "collector" else app
    config = HttpConfig(served, guard)
    state: AppState = app.state.clusterscape
    server = _Server(config, on_ready=lambda: on_ready(address_of(listener)), on_stop=state.live.close)
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_run(site, collectors, server, listener, beside, identity, compiled))
    finally:
        identity.close()
        site.close()


def open_identity(site: Site) -> Identity:
    """Who may come in, kept with the records."""
    settings = site.settings
    return Identity(
        open_access_store(settings.storage),
        settings.auth,
        static_token=settings.server.token,
        clock=site.clock,
        limits=settings.limits.items,
    )


class _Server(uvicorn.Server):
    """A server that says when it answers, and ends live streams when told to stop (they would never end themselves)."""

    def __init__(self, config: uvicorn.Config, *, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop

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
    beside: Callable[[], Awaitable[None]] | None,
    identity: Identity,
    compiled: Path,
) -> None:
    background = [
        _supervise(site, "collection", lambda: _collect(site, collectors)),
        _supervise(site, "upkeep", lambda: _maintain(site, identity)),
        _supervise(site, "clock", lambda: _watch_clock(site)),
        _supervise(site, "garbage collection", lambda: settle_garbage(_loop(site, "garbage"))),
        _supervise(site, "alerts", site.alerts.run),
        _supervise(site, "export", site.exporting.run),
    ]
    every_s = site.settings.rules.judge_every_s
    judging = _supervise_thread(site, "judging", partial(site.watch.run, every_s))
    tending = _tending(site)
    following = [_supervise_thread(site, name, run) for name, run in tending.runs.items()]
    once = {} if beside is None else {"beside": beside}
    if not site.warm_up.is_ready(Area.RULES):
        once["compiling"] = partial(compile_ahead, site.warm_up, compiled)
    background += [asyncio.create_task(_run_once(site, name, work), name=name) for name, work in once.items()]
    try:
        await server.serve(sockets=[listener])
    finally:
        for task in background:
            task.cancel()
        for task in background:
            with suppress(asyncio.CancelledError):
                await task
        site.traces.close()
        site.watch.stop()
        for stop in tending.stops:
            stop()
        await judging
        await asyncio.gather(*following)


async def _collect(site: Site, collectors: Sequence[Collector]) -> None:
    """Collect, or where several processes could, when it is this one's turn."""
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
    """What follows the queue beside everything else, each in a thread until its stop is called."""

    runs: Mapping[str, Callable[[], None]]
    stops: Sequence[Callable[[], None]]


def _tending(site: Site) -> _Threads:
    waits, promises, replica = site.queries.waits, site.queries.promises, site.replica
    if replica is None:
        runs: dict[str, Callable[[], None]] = {
            "following waits": partial(waits.run, FORECAST_EVERY_S),
            "following promises": promises.run,
        }
        return _Threads(runs, [waits.stop, promises.stop])

    def keep() -> None:
        promises.look()
        waits.tend()

    def follow() -> None:
        promises.follow()
        waits.models.tend()

    tending = Tending(decides=lambda: replica.decides, keep=keep, follow=follow, loops=site.loops)
    return _Threads({"following the queue": partial(tending.run, FORECAST_EVERY_S)}, [tending.stop, waits.stop])


async def _run_once(site: Site, name: str, work: Callable[[], Awaitable[None]]) -> None:
    with _loop(site, name):
        await work()


def _loop(site: Site, name: str) -> SupervisedLoop:
    return site.loops.loop(name, log, fails=f"{name} failed", works=f"{name} works again")


def _supervise(site: Site, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Work that goes on until it is cancelled, begun again after any exception."""
    return asyncio.create_task(keep_running(_loop(site, name), work), name=name)


def _supervise_thread(site: Site, name: str, work: Callable[[], None]) -> asyncio.Task[None]:
    """The same in a thread of its own, until ``work`` returns."""
    return _supervise(site, name, lambda: executors.run_in_own_thread(name, work))


async def _watch_clock(site: Site) -> None:
    """A jump is told soon, not at the next upkeep."""
    while True:
        site.steady.now()
        await asyncio.sleep(LOOK_AT_CLOCK_EVERY_S)


async def _maintain(site: Site, identity: Identity) -> None:
    while True:
        await asyncio.sleep(MAINTAIN_EVERY_S)
        await run_upkeep(site, identity)


async def run_upkeep(site: Site, identity: Identity) -> None:
    """One round. The tasks are independent: what one raises keeps no other from being done."""
    for name, task in {**site.upkeep(), "sessions": identity.maintain}.items():
        with _loop(site, f"upkeep of {name}"):
            await executors.UPKEEP.run(task)
