"""Routes redact their responses or cannot be defined; codes in requests become ids, however bodies are split."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest
from clusters.small import NOW, SmallCluster
from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from clusterscape.model.identity_fields import UnitRef, UserName
from clusterscape.query.redaction import ScopeRedactor, UnmarkedTextError, ViewerScope
from clusterscape.query.redaction.pseudonyms import Pseudonyms, WorkloadCodes
from clusterscape.query.rule_answers import TrialAnswer
from clusterscape.serve.app import ROUTES
from clusterscape.serve.redaction import RedactedRoute, RevealIds
from clusterscape.serve.routes.rules import _encode_progress
from clusterscape.serve.state import AppState, State
from clusterscape.services.site_secret import ensure_secret

ID = "kubernetes:team/job-1"


@pytest.fixture
def codes(small_cluster: SmallCluster) -> WorkloadCodes:
    records = small_cluster.records
    ensure_secret(records, lambda: NOW)
    return WorkloadCodes(Pseudonyms(records, lambda: NOW), records, lambda: NOW)


def every_cut(body: bytes) -> Iterator[list[bytes]]:
    yield [body[at : at + 1] for at in range(len(body))]
    for at in range(len(body)):
        yield [body[:at], body[at:]]


async def read_through(codes: WorkloadCodes, parts: list[bytes]) -> bytes:
    """The body that a route reads when it arrives in these parts; the test client would join them."""
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
    await RevealIds(route, codes)(scope, receive, send)
    return body


async def test_codes_and_characters_stay_whole_when_a_body_is_cut_anywhere(codes: WorkloadCodes) -> None:
    body = json.dumps({"größe": "日本 🚀", "unit": codes.hide(ID)}, ensure_ascii=False).encode()
    revealed = json.dumps({"größe": "日本 🚀", "unit": ID}, ensure_ascii=False).encode()
    for parts in every_cut(body):
        assert await read_through(codes, parts) == revealed


async def test_bytes_stay_as_they_are_when_they_are_no_text(codes: WorkloadCodes) -> None:
    body = b'{"a": "\xff\xed\xa0\x80"}'
    assert await read_through(codes, [body]) == body


@dataclass(frozen=True)
class Answer:
    user: UserName
    unit: UnitRef


@dataclass(frozen=True)
class Unmarked:
    answers: list[Answer]
    submitted_by: str


def test_answers_are_redacted_when_routes_are_plain_or_coroutines(codes: WorkloadCodes) -> None:
    router = APIRouter(route_class=RedactedRoute)

    @router.get("/plain")
    def get_plain(state: State) -> list[Answer]:
        return [Answer("ada", ID)]

    @router.get("/awaited")
    async def get_awaited(state: State) -> Answer | None:
        return Answer("ada", ID)

    redactor = ScopeRedactor(ViewerScope("bob"), codes._names, codes, codes._records)
    state = cast(AppState, SimpleNamespace(redactor=redactor))
    hidden = Answer(redactor.names.of("user", "ada"), codes.hide(ID))
    plain, awaited = (route for route in router.routes if isinstance(route, RedactedRoute))
    assert plain.endpoint(state=state) == [hidden]
    assert asyncio.run(awaited.endpoint(state=state)) == hidden
    everything = cast(AppState, SimpleNamespace(redactor=None))
    assert plain.endpoint(state=everything) == [Answer("ada", ID)]


def test_route_is_refused_when_its_answer_has_a_text_without_a_marker() -> None:
    router = APIRouter(route_class=RedactedRoute)

    def get_unmarked(state: State) -> Unmarked | None:
        raise AssertionError

    def get_text(state: State) -> str:
        raise AssertionError

    def get_bytes(state: State) -> Response:
        raise AssertionError

    def get_stream(state: State) -> Answer | StreamingResponse:
        raise AssertionError

    def get_for_nobody() -> Answer:
        raise AssertionError

    for endpoint in (get_unmarked, get_text, get_bytes, get_stream, get_for_nobody):
        with pytest.raises(UnmarkedTextError):
            router.get("/")(endpoint)


def test_every_route_redacts_its_answer_when_the_server_is_built() -> None:
    routes = [route for router in ROUTES for route in router.routes]
    assert [route for route in routes if not isinstance(route, RedactedRoute)] == []


def test_streamed_trials_are_redacted_when_they_are_sent_line_by_line(codes: WorkloadCodes) -> None:
    redactor = ScopeRedactor(ViewerScope("bob"), codes._names, codes, codes._records)
    trial = TrialAnswer(
        text=f"about {ID}",
        start=0,
        end=1,
        step_ms=1,
        lives=0,
        judged=0,
        times=0,
        workloads=0,
        gpu_hours=0,
        violations=[],
    )
    lines = b"".join(_encode_progress(iter([0.5, trial]), redactor))
    assert ID.encode() not in lines
    assert codes.hide(ID).encode() in lines
