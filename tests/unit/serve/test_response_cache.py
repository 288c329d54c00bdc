"""The response cache: made once, shared by those who may see the same, and never older than the stores."""

import asyncio
import gzip
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest
import zstandard
from clusters.small import NOW, SmallCluster
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from httpx2 import Response

from clusterscape.model import UnixMs
from clusterscape.model.viewers import Role, Viewer
from clusterscape.query.redaction.viewer_scope import strip_viewer
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
    """An answer that is made when told."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.begun = 0

    async def make(self) -> CachedResponse:
        self.begun += 1
        await self.may_end.wait()
        return answer(f"made {self.begun}")


async def test_answer_is_made_once_when_many_ask_at_once() -> None:
    cache, slow = ResponseCache(lambda: NOW), Slow()
    asked = [asyncio.create_task(cache.get("key", FIRST, slow.make)) for _ in range(50)]
    await asyncio.sleep(0)
    slow.may_end.set()
    assert {each.body for each in await asyncio.gather(*asked)} == {b"made 1"}
    assert (cache.counts.misses, cache.counts.joined) == (1, 49)
    assert (await cache.get("key", FIRST, slow.make)).body == b"made 1"
    assert cache.counts.hits == 1


async def test_answer_is_made_anew_when_something_changed() -> None:
    cache = ResponseCache(lambda: NOW)
    bodies = [(await cache.get("key", version, made(str(version)))).body for version in (FIRST, SECOND, SECOND)]
    assert bodies == [str(version).encode() for version in (FIRST, SECOND, SECOND)]
    assert (cache.counts.misses, cache.counts.hits) == (2, 1)


async def test_others_are_answered_when_the_one_who_asked_first_hangs_up() -> None:
    cache, slow = ResponseCache(lambda: NOW), Slow()
    first, other = (asyncio.create_task(cache.get("key", FIRST, slow.make)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    slow.may_end.set()
    assert (await other).body == b"made 1"
    assert slow.begun == 1


async def test_failure_is_told_and_not_kept_when_an_answer_cannot_be_made() -> None:
    cache = ResponseCache(lambda: NOW)

    async def fail() -> CachedResponse:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await cache.get("key", FIRST, fail)
    assert (await cache.get("key", FIRST, made("refused", 503))).status == 503
    assert (await cache.get("key", FIRST, made("well"))).body == b"well"


async def test_least_used_answers_go_when_there_are_too_many_bytes() -> None:
    cache = ResponseCache(lambda: NOW, most_bytes=10)
    for key in "aba":
        await cache.get(key, FIRST, made("12345"))
    await cache.get("c", FIRST, made("12345"))
    assert cache.size_bytes == 10
    before = cache.counts.misses
    for key in "cab":
        await cache.get(key, FIRST, made("12345"))
    assert cache.counts.misses == before + 1


async def test_last_answer_is_given_when_a_slow_one_is_being_made_anew() -> None:
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
    assert {(await each).body for each in (other_past, too_late)} <= {b"made 1", b"made 2"}


@pytest.fixture
def client(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(small_cluster.queries, static=tmp_path)) as client:
        yield client


def test_shared_routes_know_only_what_the_state_tells_them_when_routes_are_read() -> None:
    found = {}
    for area in ROUTES:
        for route in area.router.routes:
            if isinstance(route, APIRoute) and route.path in SHARED and "GET" in (route.methods or ()):
                found[route.path] = {each.call for each in route.dependant.dependencies}
    assert set(found) == set(SHARED), "a path that is kept is no route"
    of_state = get_args(State)[1].dependency
    assert all(calls == {of_state} for calls in found.values()), "who asks is part of the answer: it cannot be shared"
    assert find_viewer not in set().union(*found.values())


def test_viewers_know_the_same_people_when_they_are_taken_for_the_same() -> None:
    people, projects = (None, "ada", "bob"), (frozenset[str](), frozenset({"p"}), frozenset({"p", "q"}))
    viewers = [
        Viewer(login=login, role=role, projects=of, title=f"{login} {role}")
        for login, role, of in itertools.product(people, Role, projects)
    ]
    asked = list(itertools.product((None, "ada", "bob", "eve"), (None, "p", "q", "r")))
    for one, other in itertools.product(viewers, viewers):
        if strip_viewer(one, is_private=True) == strip_viewer(other, is_private=True):
            assert one.role is other.role
            assert [one.knows(*each) for each in asked] == [other.knows(*each) for each in asked]
    for viewer in viewers:
        stripped = strip_viewer(viewer, is_private=True)
        assert stripped.title is None
        assert [stripped.knows(*each) for each in asked] == [viewer.knows(*each) for each in asked]
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
def test_answer_says_the_same_when_it_is_compressed(client: TestClient, encoding: str) -> None:
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
    told = client.get("/metrics").text
    assert 'clusterscape_query_seconds_count{route="/api/v1/nodes",status="200"} 3.0' in told
    assert 'clusterscape_shared_answers_total{how="kept"} 2.0' in told
    assert 'clusterscape_shared_answers_total{how="made"} 1.0' in told


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
