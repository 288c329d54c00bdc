"""Redaction of responses: every route is a RedactedRoute, and pseudonyms in requests are replaced by ids.

A route whose response contains a text without a marker cannot be defined: the server does not start with it.
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
from clusterscape.query.redaction.pseudonyms import WorkloadCodes
from clusterscape.query.redaction.redactor import ScopeRedactor, check_columns

REDACTOR_KEY = "clusterscape.redactor"
"""The viewer's redactor, in the scope of a request; None: no redaction; missing: the viewer is not known yet."""


REDACTED_ATTRIBUTE = "is_redacted"


class RedactedResponse(Response):
    """A body that was redacted before it was encoded."""


class RedactedStream(StreamingResponse):
    """A stream whose parts were redacted before they were encoded."""


@dataclass(frozen=True, slots=True)
class RedactedTable:
    """A table that may be sent; created by ``redact_table``."""

    frame: pl.DataFrame


class NumbersOnly(TypedDict):
    """A table without text columns."""


class SampleRow(TypedDict):
    """The text columns of tables of samples."""

    metric: PublicText
    unit: UnitRef
    workload: WorkloadRef


@access_checked("trace or run")
class OpenedRow(TypedDict):
    """The text columns of tables of a trace or run that the viewer may open."""


def redact_table(redactor: ScopeRedactor | None, frame: pl.DataFrame, row: type) -> RedactedTable:
    """Redact ``frame`` by the markers of ``row``. Text columns without a marker raise an error, even without a redactor."""
    if redactor is None:
        check_columns(frame, row)
        return RedactedTable(frame)
    return RedactedTable(redactor.redact_table(frame, row))


class RedactedRoute(APIRoute):
    """A route whose response is redacted by the markers of its return type, for the viewer of its ``state``."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _redact_responses(endpoint), **options)


def _redact_responses(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(endpoint, REDACTED_ATTRIBUTE):  # including a router in an app creates its routes again
        return endpoint
    kind = _response_type(endpoint)
    if compile_plan(kind) is None:
        return endpoint
    if "state" not in inspect.signature(endpoint).parameters:
        raise UnmarkedTextError(
            f"{endpoint.__name__} has no parameter `state`, so the viewer of its response is not known"
        )

    def redact(response: Any, state: Any) -> Any:
        is_redacted = state.redactor is None or isinstance(response, Response)
        return response if is_redacted else state.redactor.redact(response, kind)

    @functools.wraps(endpoint)
    def call(*args: Any, **kwargs: Any) -> Any:
        return redact(endpoint(*args, **kwargs), kwargs["state"])

    @functools.wraps(endpoint)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return redact(await endpoint(*args, **kwargs), kwargs["state"])

    wrapped: Callable[..., Any] = call_async if inspect.iscoroutinefunction(endpoint) else call
    setattr(wrapped, REDACTED_ATTRIBUTE, True)
    return wrapped


def _response_type(endpoint: Callable[..., Any]) -> Any:
    """The return type, without Response classes that are redacted already. Other Response classes raise an error."""
    annotation = inspect.signature(endpoint, eval_str=True).return_annotation
    arms = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    kept = []
    for arm in arms:
        if not (isinstance(arm, type) and issubclass(arm, Response)):
            kept.append(arm)
        elif not issubclass(arm, RedactedResponse | RedactedStream | RedirectResponse):
            raise UnmarkedTextError(f"{endpoint.__name__} returns a {arm.__name__}, which is not redacted")
    return Union[tuple(kept)] if kept else None  # noqa: UP007  # the types are known only at run time


class RevealIds:
    """ASGI middleware of private sites: replaces pseudonyms in the path, the query and JSON bodies by ids."""

    def __init__(self, app: ASGIApp, codes: WorkloadCodes) -> None:
        self._app = app
        self._codes = codes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with ids instead of pseudonyms."""
        if scope["type"] == "http":
            scope["path"] = self._codes.reveal_in(scope["path"])
            query = scope["query_string"].decode("latin-1")
            scope["query_string"] = self._codes.reveal_in(query, is_encoded=True).encode("latin-1")
            if Headers(scope=scope).get("content-type", "").startswith("application/json"):
                receive = self._reveal_body(receive)
        await self._app(scope, receive, send)

    def _reveal_body(self, receive: Receive) -> Receive:
        """Read the whole body before replacing: a chunk may end within a pseudonym, or within a character."""
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
            # Invalid UTF-8 stays as it is: the route reports the error.
            text = self._codes.reveal_in(body.decode(errors="surrogateescape"))
            return {"type": "http.request", "body": text.encode(errors="surrogateescape"), "more_body": False}

        return receive_revealed
