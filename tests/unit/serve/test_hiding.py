"""Codes in place of ids, whatever pieces bodies and answers come in."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest
from clusters.small import NOW, SmallCluster
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from clusterscape.query.visibility.hidden_ids import HiddenIds
from clusterscape.query.visibility.pseudonyms import Pseudonyms
from clusterscape.serve.hiding import HideIds

ID = "kubernetes:team/job-1"


@pytest.fixture
def ids(small_cluster: SmallCluster) -> HiddenIds:
    records = small_cluster.records
    return HiddenIds(Pseudonyms(records, lambda: NOW), records, lambda: NOW)


def streaming(ids: HiddenIds, parts: list[bytes]) -> FastAPI:
    app = FastAPI()

    @app.get("/")
    async def get() -> StreamingResponse:
        async def stream() -> AsyncIterator[bytes]:
            for part in parts:
                yield part

        return StreamingResponse(stream(), media_type="application/x-ndjson")

    app.add_middleware(HideIds, ids=ids)
    return app


def every_cut(body: bytes) -> Iterator[list[bytes]]:
    yield [body[at : at + 1] for at in range(len(body))]
    for at in range(len(body)):
        yield [body[:at], body[at:]]


async def read_through(ids: HiddenIds, parts: list[bytes]) -> bytes:
    """What a route reads of a body that comes in these parts; the test client would join them."""
    waiting = [
        {"type": "http.request", "body": part, "more_body": at < len(parts)} for at, part in enumerate(parts, start=1)
    ]
    body = b""

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal body
        body = await Request(scope, receive).body()

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        raise AssertionError(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    await HideIds(route, ids)(scope, receive, send)
    return body


async def test_codes_and_characters_stay_whole_when_a_body_is_cut_anywhere(ids: HiddenIds) -> None:
    body = json.dumps({"größe": "日本 🚀", "unit": ids.hide(ID)}, ensure_ascii=False).encode()
    revealed = json.dumps({"größe": "日本 🚀", "unit": ID}, ensure_ascii=False).encode()
    for parts in every_cut(body):
        assert await read_through(ids, parts) == revealed


async def test_bytes_stay_as_they_are_when_they_are_no_text(ids: HiddenIds) -> None:
    body = b'{"a": "\xff\xed\xa0\x80"}'
    assert await read_through(ids, [body]) == body


def test_ids_stay_hidden_when_a_streamed_answer_is_cut_anywhere(ids: HiddenIds) -> None:
    body = f'{{"a": "{ID}"}}\n{{"b": "ü"}}\n{{"c": "{ID}"}}'.encode()
    expected = body.replace(ID.encode(), ids.hide(ID).encode())
    for parts in every_cut(body):
        answer = TestClient(streaming(ids, parts)).get("/")
        assert answer.content == expected
