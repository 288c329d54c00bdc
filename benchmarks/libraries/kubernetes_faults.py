"""How our reflector and kubernetes_asyncio handle an API server that fails or misbehaves; printed by ``python -m``.

Each fault is one server on loopback; each side lists pods and then watches them for a second and a half.
"""

import asyncio
import json
import resource
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from benchmarks.kubernetes_poll import SETTINGS
from clusterscape.collect.kubernetes.access import Access
from clusterscape.collect.kubernetes.client import KubernetesClient
from clusterscape.collect.kubernetes.parse_pods import parse_pod
from clusterscape.collect.kubernetes.reflector import Reflector
from clusterscape.collect.kubernetes.tokens import FixedToken
from clusterscape.model import UnixMs
from clusterscape.settings.limits import SourceLimits

WATCHED_S = 1.5
HUGE_BYTES = 600 * 2**20
SOUND = {
    "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": {}},
    "spec": {"containers": [{"name": "main"}]},
    "status": {"phase": "Running"},
}
LIST = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": [SOUND]}


class Server:
    """Answers lists and watches as a fault says; counts both."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.lists = self.watches = self.elsewhere = 0
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answers one request."""
        if request.path != "/api/v1/pods":
            self.elsewhere += 1
            return web.json_response(LIST)
        if request.query.get("watch", "").lower() in ("1", "true"):
            self.watches += 1
            return await self._watch(request)
        self.lists += 1
        return self._list(request)

    def _list(self, request: web.Request) -> web.StreamResponse:
        match self.fault:
            case "list redirects":
                raise web.HTTPFound("/elsewhere")
            case "list unpacks to 600 MiB" if "gzip" in request.headers.get("Accept-Encoding", ""):
                packer = zlib.compressobj(1, wbits=31)
                packed = b"".join(packer.compress(b" " * 2**20) for _ in range(HUGE_BYTES // 2**20)) + packer.flush()
                return web.Response(body=packed, headers={"Content-Encoding": "gzip"}, content_type="application/json")
            case "one object lacks a required field":
                odd = SOUND | {"metadata": SOUND["metadata"] | {"uid": "odd"}, "spec": {}}  # type: ignore[operator]
                return web.json_response(LIST | {"items": [SOUND, odd]})
        return web.json_response(LIST)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        match self.fault:
            case "every watch is forgotten (410)":
                status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                await stream.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            case "every watch ends at once":
                pass
            case "an event is 5 MiB":
                big = SOUND | {"spec": {"containers": [{"name": "main", "image": "x" * 5 * 2**20}]}}
                await stream.write(json.dumps({"type": "MODIFIED", "object": big}).encode() + b"\n")
                await asyncio.sleep(WATCHED_S * 2)
            case "an event is no JSON":
                await stream.write(b"<html>502 Bad Gateway</html>\n")
                await asyncio.sleep(WATCHED_S * 2)
            case _:
                await asyncio.sleep(WATCHED_S * 2)
        return stream

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Server"]:
        """Serves on loopback."""
        app = web.Application()
        app.router.add_route("GET", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()


async def ours(url: str) -> str:
    """The reflector."""
    client = KubernetesClient(Access(url, None, FixedToken("t")), 30.0, lambda: UnixMs(0), limits=SourceLimits())
    watch: Reflector[object] = Reflector(client, "/api/v1/pods", lambda item: parse_pod(item, SETTINGS) or item)
    watch.start()
    await watch.settle()
    await asyncio.sleep(WATCHED_S)
    outcome = f"{len(watch.facts)} pods, {watch.error.message[:90] if watch.error else 'goes on'}"
    await watch.stop()
    await client.close()
    return outcome


async def library(url: str) -> str:
    """The library as its documentation shows it."""
    from kubernetes_asyncio import client, watch

    async with client.ApiClient(client.Configuration(host=url)) as api:
        core = client.CoreV1Api(api)
        pods = 0
        try:
            page = await core.list_pod_for_all_namespaces(limit=500)
            pods = len(page.items)
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCHED_S), watch.Watch() as watching:
                    version = page.metadata.resource_version
                    async for event in watching.stream(core.list_pod_for_all_namespaces, resource_version=version):
                        assert event["type"]
        except Exception as error:
            return f"{pods} pods, raises {type(error).__name__}: {str(error)[:90]!r}"
        return f"{pods} pods, goes on"


FAULTS = (
    "none",
    "every watch is forgotten (410)",
    "every watch ends at once",
    "an event is 5 MiB",
    "an event is no JSON",
    "list redirects",
    "list unpacks to 600 MiB",
    "one object lacks a required field",
)
SIDES: dict[str, Callable[[str], Awaitable[str]]] = {"ours": ours, "library": library}


async def judge(fault: str, side: str) -> str:
    """The outcome, and how often the server was queried."""
    async with Server(fault).running() as server:
        outcome = await SIDES[side](server.url)
        requests = f"{server.lists} lists, {server.watches} watches, {server.elsewhere} elsewhere"
    return f"{outcome}; {requests}; peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB"


def main() -> None:
    """Judge every fault on both sides, each in a process of its own; ``FAULT SIDE`` as arguments judges one."""
    if len(sys.argv) == 3:
        print(f"{sys.argv[1]:34} {sys.argv[2]:8} {asyncio.run(judge(sys.argv[1], sys.argv[2]))}", flush=True)
        return
    for fault in FAULTS:
        for side in SIDES:
            subprocess.run([sys.executable, "-m", "benchmarks.libraries.kubernetes_faults", fault, side], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main()
    else:
        import subprocess

        for fault in FAULTS:
            for side in SIDES:
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.libraries.kubernetes_faults", fault, side], check=False
                )
