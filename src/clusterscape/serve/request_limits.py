"""Refuses requests before a route reads them: bodies that are too large or not text, and URLs with control characters or
invalid UTF-8.

``BodyLimits`` runs inside the gate: of callers who are not signed in, only sign-in requests are read. Uploaded files pass
unchanged; their routes limit their size, and `serve/http_protocol.py` limits how slow a body may be.
"""

import re
from enum import Enum
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.identity.security_headers import secure
from clusterscape.serve.problems import ProblemError, problem, refusal_response
from clusterscape.serve.refusals import Refusal

_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_WHOLE_PAIRS = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F]).)*+", re.DOTALL
)
"""Text without unpaired surrogates in its escapes."""


class BodyKind(Enum):
    """The kind of a request body, by the method and path of the request."""

    SESSION = re.compile(r"[A-Z]+ /api/v1/session(?:/.*)?")
    RUN_PIECE = re.compile(r"POST /api/v1/runs/[^/]+/files/[^/]+")
    FILE = re.compile(r"PUT /api/v1/traces/[^/]+/files/.+|POST /api/v1/job-traces", re.DOTALL)
    OTHER = re.compile(r".*", re.DOTALL)

    @classmethod
    def of(cls, method: str, path: str) -> "BodyKind":
        """The first kind that matches."""
        return next(kind for kind in cls if kind.value.fullmatch(f"{method} {path}"))


_SETTINGS = {
    BodyKind.SESSION: "limits.http.session_body_bytes",
    BodyKind.RUN_PIECE: "limits.runs.piece_bytes",
    BodyKind.OTHER: "limits.http.body_bytes",
}


class BodyLimits:
    """ASGI middleware that limits request bodies."""

    def __init__(self, app: ASGIApp, guard: HttpGuard, run_piece_bytes: int) -> None:
        self._app = app
        self._guard = guard
        self._most_bytes = {
            BodyKind.SESSION: guard.limits.session_body_bytes,
            BodyKind.RUN_PIECE: run_piece_bytes,
            BodyKind.OTHER: guard.limits.body_bytes,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it if its body is too large or not text."""
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        kind = BodyKind.of(scope["method"], scope["path"])
        most = self._most_bytes.get(kind)
        if most is None:
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length) > most:
            self._guard.refusals.note(Refusal.LARGE_BODY)
            await refusal_response(_too_large(most, kind))(scope, receive, send)
            return
        body = _HeldBody(self._guard, receive, most, kind)
        try:
            await self._app(scope, body.read_part if kind is BodyKind.RUN_PIECE else body.read_text, send)
        finally:
            body.release()


class _HeldBody:
    """One request body. Bytes that were read count as held until the request is done."""

    def __init__(self, guard: HttpGuard, receive: Receive, most_bytes: int, kind: BodyKind) -> None:
        self._kind = kind
        self._guard = guard
        self._receive = receive
        self._most_bytes = most_bytes
        self._size = 0
        self._is_read = False

    async def read_part(self) -> Message:
        """The next message. Raises ProblemError if the body becomes too large."""
        message = await self._receive()
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            if self._size + size > self._most_bytes:
                self._guard.refusals.note(Refusal.LARGE_BODY)
                raise _too_large(self._most_bytes, self._kind)
            if not self._guard.hold(size):
                self._guard.refusals.note(Refusal.HELD_BODIES)
                raise _problem(Refusal.HELD_BODIES)
            self._size += size
        return message

    async def read_text(self) -> Message:
        """The whole body as one message, so that no character or name is split."""
        if self._is_read:
            return await self._receive()
        parts: list[bytes] = []
        has_more = True
        while has_more:
            message = await self.read_part()
            if message["type"] != "http.request":
                return message
            parts.append(message.get("body", b""))
            has_more = message.get("more_body", False)
        self._is_read = True
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        if not is_text(body):
            self._guard.refusals.note(Refusal.BAD_TEXT)
            raise _problem(Refusal.BAD_TEXT)
        return {"type": "http.request", "body": body, "more_body": False}

    def release(self) -> None:
        """Stop counting the body as held."""
        self._guard.release_bytes(self._size)
        self._size = 0


def is_text(body: bytes) -> bool:
    """Whether it is UTF-8 without NUL and unpaired surrogates. (NUL bytes also occur in UTF-16, which JSON parsers accept.)"""
    if b"\0" in body:
        return False
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            return False
    return _SURROGATE.search(body) is None or _WHOLE_PAIRS.fullmatch(body) is not None


def _problem(refusal: Refusal, message: str | None = None) -> ProblemError:
    return ProblemError(
        refusal.status, refusal.code, message or refusal.message, refusal.hint, headers=dict(refusal.headers)
    )


def _too_large(most_bytes: int, kind: BodyKind) -> ProblemError:
    error = _problem(Refusal.LARGE_BODY, f"the request body is larger than {most_bytes:,} bytes")
    error.hint = f"Send less at once. The setting {_SETTINGS[kind]} sets the limit."
    return error


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_QUERY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Tabs and line ends are allowed: users paste them into form fields."""


class CheckTarget:
    """ASGI middleware before the gate: invalid URLs reach neither the audit log nor the file system."""

    def __init__(self, app: ASGIApp, guard: HttpGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if its URL is valid text."""
        if scope["type"] != "http" or is_text_target(scope):
            await self._app(scope, receive, send)
            return
        refusal = Refusal.BAD_URL
        self._guard.refusals.note(refusal)
        response = problem(refusal.status, refusal.code, refusal.message, refusal.hint)
        secure(response.headers, is_https=False, is_personal=True)
        await response(scope, receive, send)


def is_text_target(scope: Scope) -> bool:
    """Whether path and query are UTF-8 without control characters."""
    path, query = scope["path"], scope["query_string"]
    if _CONTROL.search(path):
        return False
    encoded = scope.get("raw_path") or b""
    try:
        if b"%" in encoded:
            unquote_to_bytes(encoded).decode()
        return b"%" not in query or _CONTROL_IN_QUERY.search(unquote_to_bytes(query).decode()) is None
    except UnicodeDecodeError:
        return False
