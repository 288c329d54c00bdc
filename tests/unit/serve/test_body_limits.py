"""Bodies: too large, too much of them at once, or no text."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from clusters.small import SmallCluster
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.serve.app import create_app
from clusterscape.serve.body_limits import BodyKind, is_text
from clusterscape.serve.costs import COSTS, Cost
from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.refusals import Refusal
from clusterscape.settings.limits import HttpLimits, RunLimits

JSON = {"Content-Type": "application/json"}


def in_parts(body: bytes, size: int = 1000) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def limited_client(cluster: SmallCluster, **limits: int) -> tuple[TestClient, HttpGuard]:
    guard = HttpGuard(HttpLimits(**limits))
    return TestClient(create_app(cluster.queries, guard=guard)), guard


@pytest.mark.parametrize("path", ["/api/v1/rules/read", "/api/v1/session", "/api/v1/runs/a/files/b"])
def test_body_is_refused_when_it_is_too_large_however_it_is_sent(small_cluster: SmallCluster, path: str) -> None:
    client, guard = limited_client(small_cluster, body_bytes=5000, session_body_bytes=5000, held_body_bytes=2**26)
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
    client, guard = limited_client(small_cluster, held_body_bytes=2**20)
    assert guard.hold(2**20 - 100)
    answer = client.post("/api/v1/rules/read", content=b'{"text": "' + b"a" * 1000 + b'"}', headers=JSON)
    assert answer.status_code == 429
    assert answer.headers["retry-after"]
    assert answer.json()["error"]["code"] == "throttled"
    guard.give_back(2**20 - 100)
    assert guard.held_bytes == 0
    assert client.post("/api/v1/rules/read", content=b'{"text": "a"}', headers=JSON).status_code == 200


def example_paths(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every operation that reads JSON, with some value for each part of its path."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if "application/json" in operation.get("requestBody", {}).get("content", {}):
                parts = {each["name"] for each in operation["parameters"]} if "parameters" in operation else set()
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
def test_text_is_told_from_halves_of_pairs_when_json_is_made_of_it(text: str, is_escaped: bool) -> None:
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
