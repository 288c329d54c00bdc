"""Lists 10,000 pods and follows 10,000 events of a watch: our client and reflector against kubernetes_asyncio.

``python -m benchmarks.libraries.kubernetes`` runs every side in a process of its own against the API server's stand-in, which has
a process of its own, too; prints seconds of wall and CPU time and the peak memory of the client.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from types import SimpleNamespace

import orjson
from servers.kubernetes import StandIn, stand_in

from benchmarks.kubernetes_poll import SETTINGS, make_cluster
from clusterscape.collect.kubernetes.access import Access
from clusterscape.collect.kubernetes.client import KubernetesClient
from clusterscape.collect.kubernetes.parse_pods import parse_pod
from clusterscape.collect.kubernetes.reflector import Reflector
from clusterscape.collect.kubernetes.tokens import FixedToken
from clusterscape.collect.kubernetes.values import Json
from clusterscape.model import UnixMs

PATH = "/api/v1/pods"
TOKEN = "secret"
LAST = "last"
"""Label of the event that ends the watch."""


def serve(pods: int, pipe: Connection) -> None:
    """The stand-in with so many pods; makes one change of each when asked, and stops when asked again."""
    state = StandIn(token=TOKEN)
    for text in make_cluster(pods * 2)["pods"]:
        pod = orjson.loads(text)
        meta = pod["metadata"]
        for status in pod["status"]["containerStatuses"]:  # the library's classes refuse a pod without them
            status |= {"image": "pytorch", "imageID": "pytorch"}
        state.write("ADDED", ("", "pods"), (meta["namespace"], meta["name"]), pod)
    with stand_in(state=state):
        pipe.send(state.url)
        while pipe.recv() == "change":
            todo = list(state.objects["", "pods"].items())
            for number, (place, pod) in enumerate(todo, start=1):
                pod["status"]["phase"] = "Failed"
                pod["metadata"]["labels"]["turn"] = LAST if number == len(todo) else "some"
                state.write("MODIFIED", ("", "pods"), place, pod)
            pipe.send("changed")


async def ours(url: str, listed: Callable[[], None]) -> int:
    """The reflector, which keeps a parsed fact of every pod."""
    client = KubernetesClient(Access(url, None, FixedToken(TOKEN)), 60.0, lambda: UnixMs(0))
    last_event_received = asyncio.Event()

    def parse(item: Json) -> object | None:
        meta = item["metadata"]
        assert isinstance(meta, dict)
        if meta["labels"].get("turn") == LAST:
            last_event_received.set()
        return parse_pod(item, SETTINGS)

    watch: Reflector[object] = Reflector(client, PATH, parse)
    watch.start()
    await watch.settle()
    listed()
    await last_event_received.wait()
    kept = len(watch.facts)
    await watch.stop()
    await client.close()
    return kept


async def typed(url: str, listed: Callable[[], None]) -> int:
    """The library as its documentation shows it: classes for every object."""
    from kubernetes_asyncio import client, watch

    async with client.ApiClient(_configuration(url)) as api:
        core = client.CoreV1Api(api)
        kept: dict[str, object] = {}
        token = None
        while True:
            page = await core.list_pod_for_all_namespaces(limit=500, _continue=token)
            kept |= {pod.metadata.uid: pod for pod in page.items}
            token = page.metadata._continue
            if not token:
                break
        listed()
        version = page.metadata.resource_version
        async with watch.Watch().stream(core.list_pod_for_all_namespaces, resource_version=version) as events:
            async for event in events:
                pod = event["object"]
                kept[pod.metadata.uid] = pod
                if pod.metadata.labels.get("turn") == LAST:
                    return len(kept)
    return 0


async def raw(url: str, listed: Callable[[], None]) -> int:
    """The library without its classes, and our parsers behind it: the fastest way to use it."""
    from kubernetes_asyncio import client, watch

    async with client.ApiClient(_configuration(url)) as api:
        core = client.CoreV1Api(api)
        kept: dict[str, object] = {}
        token = None
        while True:
            answer = await core.list_pod_for_all_namespaces(limit=500, _continue=token, _preload_content=False)
            page = orjson.loads(await answer.read())
            kept |= {pod["metadata"]["uid"]: parse_pod(pod, SETTINGS) for pod in page["items"]}
            token = page["metadata"].get("continue")
            if not token:
                break
        listed()
        version = page["metadata"]["resourceVersion"]
        # "object" is the library's word for a plain dictionary.
        async with watch.Watch("object").stream(core.list_pod_for_all_namespaces, resource_version=version) as events:
            async for event in events:
                pod = event["raw_object"]
                kept[pod["metadata"]["uid"]] = parse_pod(pod, SETTINGS)
                if pod["metadata"]["labels"].get("turn") == LAST:
                    return len(kept)
    return 0


def _configuration(url: str) -> object:
    from kubernetes_asyncio import client

    return client.Configuration(host=url, api_key={"BearerToken": f"Bearer {TOKEN}"})


SIDES: dict[str, Callable[[str, Callable[[], None]], Awaitable[int]]] = {"ours": ours, "typed": typed, "raw": raw}


async def measure(side: str, url: str) -> dict[str, float]:
    """Seconds of the list and of the watch; tells the parent when the list is there."""
    if side != "ours":
        import kubernetes_asyncio.client
        import kubernetes_asyncio.watch  # noqa: F401  # the cost of importing is measured apart
    begun, busy = time.perf_counter(), time.process_time()
    at = SimpleNamespace()

    def listed() -> None:
        at.listed, at.listed_busy = time.perf_counter(), time.process_time()
        print("listed", flush=True)
        sys.stdin.readline()  # the changes are there now
        at.watched, at.watched_busy = time.perf_counter(), time.process_time()

    kept = await SIDES[side](url, listed)
    return {
        "kept": kept,
        "list_s": at.listed - begun,
        "list_cpu_s": at.listed_busy - busy,
        "watch_s": time.perf_counter() - at.watched,
        "watch_cpu_s": time.process_time() - at.watched_busy,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


def run(side: str, pods: int) -> dict[str, float]:
    """One side against a server of its own."""
    pipe, answered = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(pods, answered), daemon=True)
    server.start()
    words = [sys.executable, "-m", "benchmarks.libraries.kubernetes", "--side", side, "--url", pipe.recv()]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "listed\n"
        pipe.send("change")
        pipe.recv()
        child.stdin.write("go on\n")
        child.stdin.flush()
        measured: dict[str, float] = json.loads(child.stdout.readline())
    pipe.send("stop")
    server.join()
    return measured


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--url")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(asyncio.run(measure(options.side, options.url))), flush=True)
        return
    # In turns, so that other load on the machine affects all sides alike.
    rounds = [{side: run(side, options.pods) for side in SIDES} for _ in range(options.rounds)]
    for side in SIDES:
        best = {name: min(times[side][name] for times in rounds) for name in rounds[0][side]}
        print(side, {name: round(value, 2) for name, value in best.items()}, flush=True)


if __name__ == "__main__":
    main()
