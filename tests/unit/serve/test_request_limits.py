"""Concurrency limits: requests that run, wait or are refused; and uploads that stall."""

import ast
import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters.small import SmallCluster
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from clusterscape.errors import QueryError, ThrottledError, UploadStalledError
from clusterscape.executors import ThreadPool
from clusterscape.serve.app import ROUTES, create_app
from clusterscape.serve.costs import COSTS, ConcurrencyLimit, Cost, build_request_limits
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.refusals import Refusal
from clusterscape.serve.request_limits import BodyKind, is_text
from clusterscape.serve.response_cache import SHARED
from clusterscape.serve.uploads import PIECE_BYTES, read_pieces, stream_to_thread
from clusterscape.settings.limits import HttpLimits, RunLimits, WorkLimits

SOURCES = Path(__file__).parents[3] / "src/clusterscape"


def a_limit(**changes: float) -> ConcurrencyLimit:
    limits = {"at_once": 3, "at_once_per_user": 2, "per_user": 4, "waiting": 4, "wait_s": 60.0} | changes
    return ConcurrencyLimit(what="requests", **limits)  # type: ignore[arg-type]  # integers except the last


class Ongoing:
    """Requests that run until the test ends them."""

    def __init__(self, limit: ConcurrencyLimit) -> None:
        self.limit = limit
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str) -> None:
        """A request of the user that the name begins with."""
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._run(name))
        await settle()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await settle()

    async def _run(self, name: str) -> None:
        async with self.limit.slot(name.split("-")[0]):
            self.begun.append(name)
            await self.ends[name].wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_users_take_turns_and_one_never_has_the_last_slot_when_many_wait() -> None:
    ongoing = Ongoing(a_limit())
    for name in ("ada-1", "ada-2", "ada-3", "ada-4", "eve-1"):
        await ongoing.begin(name)
    assert ongoing.begun == ["ada-1", "ada-2", "eve-1"]
    await ongoing.begin("bob-1")
    await ongoing.end("ada-1")
    await ongoing.end("eve-1")
    assert ongoing.begun == ["ada-1", "ada-2", "eve-1", "ada-3", "bob-1"]
    for name in ("ada-2", "ada-3", "ada-4", "bob-1"):
        await ongoing.end(name)
    assert (ongoing.limit.running, ongoing.limit.queued) == (0, 0)


async def test_surplus_is_refused_when_a_user_or_all_have_too_many() -> None:
    ongoing = Ongoing(a_limit(at_once=1, per_user=2, waiting=2))
    for name in ("ada-1", "ada-2", "ada-3", "eve-1", "bob-1"):
        await ongoing.begin(name)
    refused = [name for name, task in ongoing.tasks.items() if task.done() and task.exception()]
    assert refused == ["ada-3", "bob-1"]
    assert isinstance(ongoing.tasks["bob-1"].exception(), ThrottledError)
    assert ongoing.limit.refused == 2
    for name in ("ada-1", "ada-2", "eve-1"):
        await ongoing.end(name)


async def test_slot_is_released_when_the_client_leaves_or_the_task_is_cancelled() -> None:
    limit = a_limit(at_once=1)
    ongoing = Ongoing(limit)
    await ongoing.begin("ada-1")
    left = asyncio.Event()

    async def wait() -> None:
        async with limit.slot("eve", left.wait):
            raise AssertionError("it never has a slot")

    waiting = asyncio.create_task(wait())
    await ongoing.begin("bob-1")
    assert limit.queued == 2
    left.set()
    with pytest.raises(ThrottledError):
        await waiting
    ongoing.tasks["bob-1"].cancel()
    await settle()
    assert (limit.queued, limit.running) == (0, 1)
    await ongoing.end("ada-1")
    assert limit.running == 0


async def test_request_is_refused_when_it_has_waited_too_long() -> None:
    limit = a_limit(at_once=1, wait_s=0.01)
    async with limit.slot("ada"):
        with pytest.raises(ThrottledError) as caught:
            async with limit.slot("eve"):
                pass
    assert caught.value.hint
    assert (limit.running, limit.queued) == (0, 0)


async def test_slot_is_free_again_when_the_request_fails() -> None:
    limit = a_limit(at_once=1)
    with pytest.raises(QueryError):
        async with limit.slot("ada"):
            raise QueryError("no")
    async with limit.slot("eve"):
        assert limit.running == 1


def test_every_route_has_a_cost_when_routes_are_read() -> None:
    routes = {route.name: route for router in ROUTES for route in router.routes if isinstance(route, APIRoute)}
    assert set(routes) == set(COSTS), "name the route in serve/costs.py"
    shared = {name for name, cost in COSTS.items() if cost is Cost.SHARED}
    assert {name for name, route in routes.items() if route.path in SHARED} >= shared
    light_questions = {
        name for name, route in routes.items() if "POST" in (route.methods or ()) and COSTS[name] is Cost.LIGHT
    }
    assert light_questions == {
        "get_chosen_units", "read_rule", "complete_rule", "mute_rule", "write_comment", "create_trace", "import_trace",
        "sign_in", "create_token", "add_account",
    }, "what is POSTed is expensive unless it takes milliseconds"  # fmt: skip


def test_one_user_leaves_half_of_the_slots_to_others_when_limits_are_built() -> None:
    limits = build_request_limits(WorkLimits(concurrent_requests=4)).by_cost
    assert limits[Cost.EXPENSIVE].at_once_per_user == 2
    assert (limits[Cost.SIMULATION].at_once, limits[Cost.SIMULATION].at_once_per_user) == (2, 1)
    assert build_request_limits(WorkLimits(concurrent_requests=1)).by_cost[Cost.EXPENSIVE].at_once_per_user == 1


def a_request(chunks: Iterable[bytes], *, then_stalls: bool = False) -> Request:
    messages: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if not then_stalls:
        messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        if not messages:
            await asyncio.get_running_loop().create_future()
        return messages.pop(0)

    return Request({"type": "http", "headers": []}, receive)


async def test_pieces_are_the_body_when_it_comes_in_any_parts() -> None:
    chunks = [b"a" * 10, b"b" * PIECE_BYTES, b"", b"c" * 3]
    pieces = [piece async for piece in read_pieces(a_request(chunks), stall_s=30)]
    assert b"".join(pieces) == b"".join(chunks)
    assert all(len(piece) >= PIECE_BYTES for piece in pieces[:-1])


async def test_upload_ends_when_it_stalls_and_when_it_trickles() -> None:
    with pytest.raises(UploadStalledError):
        async for _ in read_pieces(a_request([b"a"], then_stalls=True), stall_s=0.01):
            pass

    async def trickle() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(UploadStalledError):
        async for _ in read_pieces(Request({"type": "http", "headers": []}, trickle), stall_s=0.1):
            pass


async def test_thread_is_released_when_the_upload_it_reads_stalls() -> None:
    threads, ended = ThreadPool("test", 1), threading.Event()

    def keep(pieces: Iterable[bytes]) -> int:
        try:
            return sum(len(piece) for piece in pieces)
        finally:
            ended.set()

    stalled = read_pieces(a_request([b"a" * PIECE_BYTES], then_stalls=True), stall_s=0.05)
    with pytest.raises(UploadStalledError):
        await stream_to_thread(threads, stalled, keep, stall_s=60)
    assert ended.is_set()

    async def whole() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"b" * 100

    assert await stream_to_thread(threads, whole(), keep, stall_s=60) == 5000
    threads.close()


async def test_error_of_the_thread_is_reported_when_it_stops_reading() -> None:
    threads = ThreadPool("test", 1)

    def refuse(pieces: Iterable[bytes]) -> int:
        raise QueryError("no room")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"b" * 100
            await asyncio.sleep(0)

    with pytest.raises(QueryError, match="no room"):
        await asyncio.wait_for(stream_to_thread(threads, endless(), refuse, stall_s=60), 30)
    threads.close()


def test_nothing_uses_the_default_executor_when_sources_are_read() -> None:
    """The default executor resolves names for collectors; work of requests would delay it."""
    wrong = []
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            is_default = node.func.attr == "run_in_executor" and (
                isinstance(node.args[0], ast.Constant) and node.args[0].value is None
            )
            if node.func.attr == "to_thread" or is_default:
                wrong.append(f"{path.relative_to(SOURCES)}:{node.lineno}")
    assert not wrong, "use a pool of executors.py"


async def test_slot_is_held_until_the_end_when_a_trial_of_a_rule_is_streamed(small_cluster: SmallCluster) -> None:
    app = create_app(small_cluster.queries)
    limit: ConcurrencyLimit = app.state.clusterscape.limits.by_cost[Cost.EXPENSIVE]
    body = b'{"text": "gpu_util p95 < 5%", "hours": 1}'
    has_begun, may_go_on = asyncio.Event(), asyncio.Event()
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.get_running_loop().create_future()
        return messages.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        else:
            has_begun.set()
            await may_go_on.wait()

    headers = [(b"content-type", b"application/json"), (b"accept", b"application/x-ndjson"), (b"host", b"localhost")]
    scope = {
        "type": "http", "method": "POST", "path": "/api/v1/rules/try", "raw_path": b"/api/v1/rules/try", "scheme": "http",
        "query_string": b"", "headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80), "http_version": "1.1",
    }  # fmt: skip
    asking = asyncio.create_task(app(scope, receive, send))
    await asyncio.wait_for(has_begun.wait(), 60)
    assert limit.running == 1
    may_go_on.set()
    await asyncio.wait_for(asking, 60)
    assert limit.running == 0


JSON = {"Content-Type": "application/json"}


def in_parts(body: bytes, size: int = 1000) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def limited_client(cluster: SmallCluster, **limits: int) -> tuple[TestClient, HttpGuard]:
    guard = HttpGuard(HttpLimits(**limits))
    return TestClient(create_app(cluster.queries, guard=guard)), guard


@pytest.mark.parametrize("path", ["/api/v1/rules/read", "/api/v1/session", "/api/v1/runs/a/files/b"])
def test_body_is_refused_when_it_is_too_large_however_it_is_sent(small_cluster: SmallCluster, path: str) -> None:
    client, guard = limited_client(small_cluster, body_bytes=5000, session_body_bytes=5000, buffered_body_bytes=2**26)
    body = b"a" * (RunLimits().piece_bytes + 1)
    for content in (body, in_parts(body)):
        answer = client.post(path, content=content, headers=JSON)
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "too_large"
        assert "bytes" in answer.json()["error"]["message"]
    assert guard.refusals.counts[Refusal.LARGE_BODY] == 2
    assert guard.held_bytes == 0


def test_body_is_read_when_it_has_just_the_size_that_is_allowed(small_cluster: SmallCluster) -> None:
    client, guard = limited_client(small_cluster, body_bytes=5000)
    body = b'{"text": "a"}'.ljust(5000)
    for content in (body, in_parts(body)):
        assert client.post("/api/v1/rules/read", content=content, headers=JSON).status_code == 200
    assert client.post("/api/v1/rules/read", content=body + b" ", headers=JSON).status_code == 413
    assert guard.held_bytes == 0


def test_body_is_refused_when_others_hold_all_that_may_be_held(small_cluster: SmallCluster) -> None:
    client, guard = limited_client(small_cluster, buffered_body_bytes=2**20)
    assert guard.hold(2**20 - 100)
    answer = client.post("/api/v1/rules/read", content=b'{"text": "' + b"a" * 1000 + b'"}', headers=JSON)
    assert answer.status_code == 429
    assert answer.headers["retry-after"]
    assert answer.json()["error"]["code"] == "throttled"
    guard.release_bytes(2**20 - 100)
    assert guard.held_bytes == 0
    assert client.post("/api/v1/rules/read", content=b'{"text": "a"}', headers=JSON).status_code == 200


def example_paths(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every operation that reads JSON, with some value for each part of its path."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if "application/json" in operation.get("requestBody", {}).get("content", {}):
                parts = (
                    {parameter["name"] for parameter in operation["parameters"]} if "parameters" in operation else set()
                )
                yield method.upper(), path.format(**dict.fromkeys(parts, "1"))


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": "\\ud800"}',
        b'["\\uDC00\\uD800"]',
        b'{"\\uD83D x": 1}',
        b'{"a": "\xed\xa0\x80"}',
        b"\xff\xfe{}",
        b'{"a": "\x00"}',
    ],
    ids=["high", "swapped", "key", "encoded", "bytes", "nul"],
)
def test_every_body_is_refused_when_it_is_not_unicode(small_cluster: SmallCluster, body: bytes) -> None:
    client, _ = limited_client(small_cluster)
    operations = list(example_paths(client.get("/openapi.json").json()))
    assert len(operations) > 10
    for method, path in operations:
        answer = client.request(method, path, content=body, headers=JSON)
        assert answer.status_code == 422, f"{method} {path}: {answer.text}"
        assert answer.json()["error"]["hint"]


def test_body_is_refused_when_it_is_json_of_another_encoding(small_cluster: SmallCluster) -> None:
    client, _ = limited_client(small_cluster)
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        body = '{"text": "\\ud800"}'.encode(encoding)
        assert client.post("/api/v1/rules/read", content=body, headers=JSON).status_code == 422


@given(st.text(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_lone_surrogates_are_detected_when_text_becomes_json(text: str, is_escaped: bool) -> None:
    half = any("\ud800" <= sign <= "\udfff" for sign in text)
    body = json.dumps({"a": text}, ensure_ascii=is_escaped).encode("utf-8", "surrogatepass")
    assert is_text(body) is not half


@given(st.lists(st.sampled_from([r"\\", r"\n", r"\ud800", r"\udc00", r"\u00e9", "u", "d800", "x"]), max_size=12))
@settings(max_examples=500, deadline=None)
def test_text_is_judged_as_json_reads_it_when_escapes_follow_each_other(parts: list[str]) -> None:
    body = f'"{"".join(parts)}"'
    is_whole = not any("\ud800" <= sign <= "\udfff" for sign in json.loads(body))
    assert is_text(body.encode()) is is_whole


def test_every_upload_has_a_limit_of_its_own_when_routes_are_listed(small_cluster: SmallCluster) -> None:
    client, _ = limited_client(small_cluster)
    uploads = [
        (method.upper(), path)
        for path, operations in client.get("/openapi.json").json()["paths"].items()
        for method, operation in operations.items()
        if COSTS.get(operation["operationId"]) is Cost.UPLOAD
    ]
    assert len(uploads) == sum(cost is Cost.UPLOAD for cost in COSTS.values())
    for method, path in uploads:
        assert BodyKind.of(method, path) in (BodyKind.FILE, BodyKind.RUN_PIECE), path
