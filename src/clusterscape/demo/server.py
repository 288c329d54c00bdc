"""The demo cluster as a separate process: every node's exporter and one slurmrestd, on one loopback port.

Run by ``start_demo_server``; by hand: ``python -m clusterscape.demo.server --gpus 1024 --seed 7 --anchor UNIX_MS --port 9499``.
"""

import argparse
import asyncio
import signal
import socket
import sys
import time
from collections.abc import Callable

import orjson
from aiohttp import web

from clusterscape.demo.exporter import CONTENT_TYPE, Exporters
from clusterscape.demo.scenario import DEFAULT_PLACEMENT, DemoScenario
from clusterscape.demo.slurm_values import API_VERSION, Json, look_at_cluster
from clusterscape.demo.slurmrestd import (
    accounting_answer,
    jobs_answer,
    nodes_answer,
    parse_time,
    partitions_answer,
    ping_answer,
    reservations_answer,
)
from clusterscape.demo.telemetry import DemoTelemetry
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_S
from clusterscape.simulate.placements import PLACEMENTS

HOST = "127.0.0.1"
BACKLOG = 4096  # all exporters may be scraped while the cluster is still being built
SHUTDOWN_TIMEOUT_S = 1.0


class DemoServer:
    """Serves one scenario at the time of the given clock."""

    def __init__(self, scenario: DemoScenario, clock: Callable[[], UnixMs]) -> None:
        self._scenario = scenario
        self._clock = clock
        self._exporters = Exporters(scenario, DemoTelemetry(scenario))

    def create_app(self) -> web.Application:
        """The web application."""
        app = web.Application()
        app.router.add_get("/nodes/{node}/metrics", self._metrics)
        for path in ("jobs", "nodes", "partitions", "reservations", "ping"):
            app.router.add_get(f"/slurm/{API_VERSION}/{path}", self._slurm)
            app.router.add_get(f"/slurm/{API_VERSION}/{path}/", self._slurm)
        app.router.add_get(f"/slurmdb/{API_VERSION}/jobs", self._accounting)
        app.router.add_get(f"/slurmdb/{API_VERSION}/jobs/", self._accounting)
        return app

    async def _metrics(self, request: web.Request) -> web.Response:
        try:
            text = self._exporters.render(request.match_info["node"], self._clock())
        except KeyError:
            raise web.HTTPNotFound(text="there is no such node\n") from None
        if text is None:
            # The node is down: close the connection without a response.
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPServiceUnavailable
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def _slurm(self, request: web.Request) -> web.Response:
        now_s = self._clock() // 1000
        match request.path.rstrip("/").rpartition("/")[2]:
            case "jobs":
                return _json(jobs_answer(look_at_cluster(self._scenario, now_s)))
            case "nodes":
                return _json(nodes_answer(look_at_cluster(self._scenario, now_s), self._scenario.hardware))
            case "partitions":
                return _json(partitions_answer(self._scenario.hardware))
            case "reservations":
                return _json(reservations_answer())
            case _:
                return _json(ping_answer())

    async def _accounting(self, request: web.Request) -> web.Response:
        now_s = self._clock() // 1000
        try:
            start_s = parse_time(request.query.get("start_time"), now_s - now_s % DAY_S)
            end_s = parse_time(request.query.get("end_time"), now_s)
        except ValueError:
            raise web.HTTPBadRequest(text="start_time and end_time are Unix seconds\n") from None
        return _json(accounting_answer(self._scenario, start_s, end_s, now_s))


def _json(answer: Json) -> web.Response:
    return web.Response(body=orjson.dumps(answer), content_type="application/json")


def _system_clock() -> UnixMs:
    return UnixMs(time.time_ns() // 1_000_000)


async def _serve(app: web.Application, listener: socket.socket, *, until_input_closes: bool) -> None:
    """Serve until a signal, or until the parent process has ended."""
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_TIMEOUT_S)
    await runner.setup()
    await web.SockSite(runner, listener, backlog=BACKLOG).start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_input_closes:
        loop.add_reader(sys.stdin, stop.set)
    await stop.wait()
    await runner.cleanup()


def main() -> None:
    """Build the cluster, then serve it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--anchor", type=int, required=True, help="Unix milliseconds from which the past is played")
    parser.add_argument("--placement", choices=PLACEMENTS, default=DEFAULT_PLACEMENT)
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1; 0 takes a free one")
    parser.add_argument("--listener", type=int, help="file descriptor of a listening socket, instead of a port")
    arguments = parser.parse_args()
    if arguments.listener is None:
        listener = socket.create_server((HOST, arguments.port), backlog=BACKLOG)
        print(f"http://{HOST}:{listener.getsockname()[1]}", flush=True)
    else:
        listener = socket.socket(fileno=arguments.listener)
    scenario = DemoScenario(arguments.gpus, arguments.seed, UnixMs(arguments.anchor), arguments.placement)
    scenario.advance(_system_clock())
    app = DemoServer(scenario, _system_clock).create_app()
    asyncio.run(_serve(app, listener, until_input_closes=arguments.listener is not None))


if __name__ == "__main__":
    main()
