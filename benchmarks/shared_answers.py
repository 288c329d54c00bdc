"""Many pages ask the same: processor time of a request that hits the response cache, compared with one that misses.

Budget: ≤ 0.5 ms of one core for a hit on any path.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from starlette.types import ASGIApp, Message, Scope

from benchmarks.report import Report
from benchmarks.snapshot_wire import NOW, build_site
from clusterscape.query import Queries
from clusterscape.serve.app import create_app
from clusterscape.serve.response_cache import ShareResponses

TARGETS = {
    "a tick of two metrics": "/api/v1/tick?metrics=gpu_util_ratio,power_watts",
    "the picture": "/api/v1/snapshot",
    "the summary": "/api/v1/cluster",
    "the rules": "/api/v1/rules",
    "all nodes": "/api/v1/nodes",
    "a hundred workloads": "/api/v1/workloads?state=running",
}
TIMES = 200
"""As many as there are pages."""
BUDGET_MS = 0.5


def app_of(queries: Queries, *, shares: bool) -> ASGIApp:
    """The whole server, with the response cache or without."""
    app = create_app(queries)
    if not shares:
        app.user_middleware = [
            middleware
            for middleware in app.user_middleware
            if getattr(middleware.cls, "__name__", "") != ShareResponses.__name__
        ]
    return app


async def cpu_ms(app: ASGIApp, target: str, times: int) -> float:
    """Mean processor time of a request, of all threads; the first request does not count."""
    path, _, query = target.partition("?")
    statuses: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    def scope() -> Scope:
        return {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(b"host", b"localhost"), (b"accept-encoding", b"gzip")],
            "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        }  # fmt: skip

    await app(scope(), receive, send)
    begin = time.process_time()
    await asyncio.gather(*(app(scope(), receive, send) for _ in range(times)))
    spent_s = time.process_time() - begin
    assert set(statuses) == {200}, statuses
    return spent_s / max(1, times) * 1000


def made_ms(app: ASGIApp, queries: Queries, target: str, repeat: int = 5) -> float:
    """Median processor time of the first request after nodes, jobs and values changed; later requests hit the cache."""
    times_ms = []
    for _ in range(repeat):
        queries.context.changes.bump_inventory()
        queries.context.changes.bump_tick(NOW)
        begin = time.process_time()
        asyncio.run(cpu_ms(app, target, 0))
        times_ms.append((time.process_time() - begin) * 1000)
    return statistics.median(times_ms)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = Report(f"{TIMES} pages ask the same of {options.gpus:,} GPUs: CPU a request")
    with tempfile.TemporaryDirectory() as folder:
        queries = build_site(Path(folder), options.gpus)
        ours, peer = app_of(queries, shares=True), app_of(queries, shares=False)
        for label, target in TARGETS.items():
            shared = asyncio.run(cpu_ms(ours, target, TIMES))
            separate = asyncio.run(cpu_ms(peer, target, TIMES))
            report.add(label, shared, "ms", separate, "each by itself", budget=BUDGET_MS)
            report.add("  made once after a change", made_ms(ours, queries, target), "ms")
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
