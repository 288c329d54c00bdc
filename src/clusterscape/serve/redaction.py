"""Answers leave redacted: every route is a RedactedRoute, and codes in requests become ids again.

A route whose answer holds a text without a marker cannot be defined: the server does not start with it.
"""

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Union, get_args, get_origin

import polars as pl
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.model.identity_fields import PublicText, UnitRef, WorkloadRef, access_checked
from clusterscape.query.redaction.plans import UnmarkedTextError, compile_plan
from clusterscape.query.redaction.redactor import Redactor, check_columns
from clusterscape.query.redaction.workload_codes import WorkloadCodes

REDACTOR_KEY = "clusterscape.redactor"
"""What hides names from who sent a request, in its scope; None: nothing does; missing: the sender is not known yet."""


REDACTED_ATTRIBUTE = "is_redacted"


class RedactedResponse(Response):
    """A body that was redacted before it was encoded."""


class RedactedStream(StreamingResponse):
    """A stream whose parts were redacted before they were encoded."""


@dataclass(frozen=True, slots=True)
class RedactedTable:
    """A table that may leave; ``redact_table`` makes them."""

    frame: pl.DataFrame


class NumbersOnly(TypedDict):
    """Columns of a table without texts."""


class SampleRow(TypedDict):
    """Texts in the columns of tables of samples."""

    metric: PublicText
    unit: UnitRef
    workload: WorkloadRef


@access_checked("trace or run")
class OpenedRow(TypedDict):
    """Texts in the columns of tables of a trace or run that the viewer was allowed to open."""


def redact_table(redactor: Redactor | None, frame: pl.DataFrame, row: type) -> RedactedTable:
    """``frame`` as the viewer may read it, by the markers of ``row``. Columns without a marker are refused for everybody."""
    if redactor is None:
        check_columns(frame, row)
        return RedactedTable(frame)
    return RedactedTable(redactor.redact_table(frame, row))


class RedactedRoute(APIRoute):
    """A route whose answer is redacted by the markers of its declared type, for the viewer of its ``state``."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _redact_answers(endpoint), **options)


def _redact_answers(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(endpoint, REDACTED_ATTRIBUTE):  # a router that is included in an app makes its routes again
        return endpoint
    kind = _answer_type(endpoint)
    if compile_plan(kind) is None:
        return endpoint
    if "state" not in inspect.signature(endpoint).parameters:
        raise UnmarkedTextError(f"{endpoint.__name__} has no `state`: it is not known who reads its answer")

    def redact(answer: Any, state: Any) -> Any:
        is_redacted = state.redactor is None or isinstance(answer, Response)
        return answer if is_redacted else state.redactor.redact(answer, kind)

    @functools.wraps(endpoint)
    def call(*args: Any, **kwargs: Any) -> Any:
        return redact(endpoint(*args, **kwargs), kwargs["state"])

    @functools.wraps(endpoint)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return redact(await endpoint(*args, **kwargs), kwargs["state"])

    wrapped: Callable[..., Any] = call_async if inspect.iscoroutinefunction(endpoint) else call
    setattr(wrapped, REDACTED_ATTRIBUTE, True)
    return wrapped


def _answer_type(endpoint: Callable[..., Any]) -> Any:
    """The declared type, without responses that were redacted when they were built. Other responses are refused."""
    declared = inspect.signature(endpoint, eval_str=True).return_annotation
    arms = get_args(declared) if get_origin(declared) in (Union, types.UnionType) else (declared,)
    kept = []
    for arm in arms:
        if not (isinstance(arm, type) and issubclass(arm, Response)):
            kept.append(arm)
        elif not issubclass(arm, RedactedResponse | RedactedStream | RedirectResponse):
            raise UnmarkedTextError(f"{endpoint.__name__} answers a {arm.__name__}, which nobody redacts")
    return Union[tuple(kept)] if kept else None  # noqa: UP007  # of types that are only known now


class RevealIds:
    """ASGI middleware of private sites: codes in the path, the query and JSON bodies become the ids that they stand for."""

    def __init__(self, app: ASGIApp, codes: WorkloadCodes) -> None:
        self._app = app
        self._codes = codes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with ids."""
        if scope["type"] == "http":
            scope["path"] = self._codes.reveal_in(scope["path"])
            query = scope["query_string"].decode("latin-1")
            scope["query_string"] = self._codes.reveal_in(query, is_encoded=True).encode("latin-1")
            if Headers(scope=scope).get("content-type", "").startswith("application/json"):
                receive = self._reveal_body(receive)
        await self._app(scope, receive, send)

    def _reveal_body(self, receive: Receive) -> Receive:
        """Read the body whole before codes are looked for: a read may end within a code, or within a character."""
        is_read = False

        async def receive_revealed() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            body = b""
            while not is_read:
                message = await receive()
                if message["type"] != "http.request":
                    return message
                body += message.get("body", b"")
                is_read = not message.get("more_body", False)
            # Bytes that are no text stay as they are: whoever reads the body says what is wrong with it.
            text = self._codes.reveal_in(body.decode(errors="surrogateescape"))
            return {"type": "http.request", "body": text.encode(errors="surrogateescape"), "more_body": False}

        return receive_revealed
