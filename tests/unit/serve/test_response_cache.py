"""The response cache: computed once, shared by viewers with the same scope, and never older than the stores."""

import asyncio
import gzip
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest
import zstandard
from clusters.opened import open_services
from clusters.small import NOW, SmallCluster
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from httpx2 import Response

from clusterscape.model import UnixMs
from clusterscape.model.access import Role, Viewer
from clusterscape.query.redaction.redactor import strip_viewer
from clusterscape.serve.app import ROUTES, create_app
from clusterscape.serve.response_cache import SHARED, STALE_MS, CachedResponse, ResponseCache, Version
from clusterscape.serve.state import State, find_viewer

FIRST, SECOND = Version((1,), 0, 0), Version((2,), 0, 0)
OTHER_PAST = Version((2,), 1, 0)


def answer(text: str, status: int = 200) -> CachedResponse:
    return CachedResponse(status, [], text.encode(), f'"{text}"', None)


def made(text: str, status: int = 200) -> Callable[[], Awaitable[CachedResponse]]:
    async def make() -> CachedResponse:
        return answer(text, status)

    return make


class Slow:
    """A response that is computed when the test allows it."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.begun = 0

    async def make(self) -> CachedResponse:
        self.begun += 1
        await self.may_end.wait()
        return answer(f"made {self.begun}")


async def test_response_is_computed_once_when_many_request_it_concurrently() -> None:
    cache, slow = ResponseCache(lambda: NOW), Slow()
    requests = [asyncio.create_task(cache.get("key", FIRST, slow.make)) for _ in range(50)]
    await asyncio.sleep(0)
    slow.may_end.set()
    assert {response.body for response in await asyncio.gather(*requests)} == {b"made 1"}
    assert (cache.counts.misses, cache.counts.joined) == (1, 49)
    assert (await cache.get("key", FIRST, slow.make)).body == b"made 1"
    assert cache.counts.hits == 1


async def test_response_is_computed_again_when_the_state_changed() -> None:
    cache = ResponseCache(lambda: NOW)
    bodies = [(await cache.get("key", version, made(str(version)))).body for version in (FIRST, SECOND, SECOND)]
    assert bodies == [str(version).encode() for version in (FIRST, SECOND, SECOND)]
    assert (cache.counts.misses, cache.counts.hits) == (2, 1)


async def test_other_clients_get_a_response_when_the_first_disconnects() -> None:
    cache, slow = ResponseCache(lambda: NOW), Slow()
    first, other = (asyncio.create_task(cache.get("key", FIRST, slow.make)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    slow.may_end.set()
    assert (await other).body == b"made 1"
    assert slow.begun == 1


async def test_failure_is_raised_and_not_cached_when_a_response_cannot_be_computed() -> None:
    cache = ResponseCache(lambda: NOW)

    async def fail() -> CachedResponse:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await cache.get("key", FIRST, fail)
    assert (await cache.get("key", FIRST, made("refused", 503))).status == 503
    assert (await cache.get("key", FIRST, made("well"))).body == b"well"


async def test_least_used_responses_are_evicted_when_there_are_too_many_bytes() -> None:
    cache = ResponseCache(lambda: NOW, most_bytes=10)
    for key in "aba":
        await cache.get(key, FIRST, made("12345"))
    await cache.get("c", FIRST, made("12345"))
    assert cache.size_bytes == 10
    before = cache.counts.misses
    for key in "cab":
        await cache.get(key, FIRST, made("12345"))
    assert cache.counts.misses == before + 1


async def test_stale_response_is_served_when_a_new_one_takes_long() -> None:
    now = [NOW]
    cache, slow = ResponseCache(lambda: now[0]), Slow()
    await cache.get("key", FIRST, made("last"))
    assert (await cache.get("key", SECOND, slow.make, may_be_stale=True)).body == b"last"
    other_past = asyncio.create_task(cache.get("key", OTHER_PAST, slow.make, may_be_stale=True))
    now[0] = UnixMs(NOW + STALE_MS)
    too_late = asyncio.create_task(cache.get("key", SECOND, slow.make, may_be_stale=True))
    await asyncio.sleep(0)
    assert not other_past.done()
    assert not too_late.done()
    slow.may_end.set()
    assert {(await request).body for request in (other_past, too_late)} <= {b"made 1", b"made 2"}


@pytest.fixture
def client(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[TestClient]:
    queries = small_cluster.queries
    with TestClient(create_app(queries, services=open_services(queries), static=tmp_path)) as client:
        yield client


def test_shared_routes_depend_only_on_the_state_when_routes_are_read() -> None:
    dependencies = {}
    for router in ROUTES:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.path in SHARED and "GET" in (route.methods or ()):
                dependencies[route.path] = {dependency.call for dependency in route.dependant.dependencies}
    assert set(dependencies) == set(SHARED), "a cached path is no route"
    of_state = get_args(State)[1].dependency
    assert all(calls == {of_state} for calls in dependencies.values()), (
        "the response depends on the viewer: it cannot be shared"
    )
    assert find_viewer not in set().union(*dependencies.values())


def test_viewers_see_the_same_people_when_they_share_a_cache_key() -> None:
    people, projects = (None, "ada", "bob"), (frozenset[str](), frozenset({"p"}), frozenset({"p", "q"}))
    viewers = [
        Viewer(login=login, role=role, projects=of, title=f"{login} {role}")
        for login, role, of in itertools.product(people, Role, projects)
    ]
    owners = list(itertools.product((None, "ada", "bob", "eve"), (None, "p", "q", "r")))
    for first, second in itertools.product(viewers, viewers):
        if strip_viewer(first, is_private=True) == strip_viewer(second, is_private=True):
            assert first.role is second.role
            assert [first.may_see(*owner) for owner in owners] == [second.may_see(*owner) for owner in owners]
    for viewer in viewers:
        stripped = strip_viewer(viewer, is_private=True)
        assert stripped.title is None
        assert [stripped.may_see(*owner) for owner in owners] == [viewer.may_see(*owner) for owner in owners]
        assert strip_viewer(viewer, is_private=False) == Viewer(login=None, role=viewer.role)


def test_nothing_is_sent_again_when_the_browser_has_it(client: TestClient, small_cluster: SmallCluster) -> None:
    first = client.get("/api/v1/nodes")
    assert first.headers["cache-control"] == "private, no-cache"
    held = {"If-None-Match": first.headers["etag"]}
    small_cluster.changes.bump_tick(NOW)  # which changes nothing of the nodes
    again = client.get("/api/v1/nodes", headers=held)
    assert (again.status_code, again.content) == (304, b"")
    assert "content-length" not in again.headers
    assert client.get("/api/v1/nodes", headers={"If-None-Match": '"other"'}).json() == first.json()


UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda body: zstandard.ZstdDecompressor().decompress(body),
    "gzip": gzip.decompress,
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", UNPACK)
def test_response_is_the_same_when_it_is_compressed(client: TestClient, encoding: str) -> None:
    plain = client.get("/api/v1/rules", headers={"Accept-Encoding": "identity"})
    for _ in range(2):
        with client.stream("GET", "/api/v1/rules", headers={"Accept-Encoding": encoding}) as answer:
            raw = b"".join(answer.iter_raw())
        assert answer.headers.get("content-encoding", "identity") == encoding
        assert UNPACK[encoding](raw) == plain.content
        assert "Accept-Encoding" in answer.headers["vary"]


def test_change_is_seen_at_once_when_it_is_made_by_a_request(client: TestClient) -> None:
    before = {rule["key"] for rule in client.get("/api/v1/rules").json()["rules"]}
    client.put("/api/v1/rules/mine", json={"text": "gpu_util p95 < 5%", "name": "Mine"})
    after = {rule["key"] for rule in client.get("/api/v1/rules").json()["rules"]}
    assert after - before == {"mine"}


def test_cached_responses_are_counted_by_route_when_they_are_sent(client: TestClient) -> None:
    for _ in range(3):
        client.get("/api/v1/nodes")
    metrics = client.get("/metrics").text
    assert 'clusterscape_query_seconds_count{route="/api/v1/nodes",status="200"} 3.0' in metrics
    assert 'clusterscape_shared_answers_total{how="kept"} 2.0' in metrics
    assert 'clusterscape_shared_answers_total{how="made"} 1.0' in metrics


def ask_tick(client: TestClient, **question: str | int) -> Response:
    return client.get("/api/v1/tick", params={"metrics": "gpu_util_ratio", **question})


def count_misses(client: TestClient) -> int:
    text = client.get("/metrics").text
    line = next(line for line in text.splitlines() if line.startswith('clusterscape_shared_answers_total{how="made"}'))
    return int(float(line.split()[-1]))


def test_snapshot_is_cached_until_the_inventory_changes_when_values_and_rules_change(
    client: TestClient, small_cluster: SmallCluster
) -> None:
    client.get("/api/v1/snapshot")
    small_cluster.changes.bump_tick(NOW)
    small_cluster.changes.bump_rules()
    client.get("/api/v1/snapshot")
    assert count_misses(client) == 1
    small_cluster.changes.bump_inventory()
    client.get("/api/v1/snapshot")
    assert count_misses(client) == 2


def test_past_minute_is_cached_until_the_past_changes_when_new_values_come(
    client: TestClient, small_cluster: SmallCluster
) -> None:
    long_ago = NOW - 3_600_000
    first = ask_tick(client, at=long_ago)
    assert first.status_code == 200
    small_cluster.changes.bump_tick(NOW)
    small_cluster.changes.bump_inventory()
    assert ask_tick(client, at=long_ago).content == first.content
    assert count_misses(client) == 1
    small_cluster.changes.bump_history(NOW)
    ask_tick(client, at=long_ago)
    assert count_misses(client) == 2


def test_moment_is_refused_by_the_route_when_it_is_no_time(client: TestClient) -> None:
    for at in ("9" * 5000, "-1", "tomorrow", "1e9"):
        assert ask_tick(client, at=at).status_code in (400, 422), at
