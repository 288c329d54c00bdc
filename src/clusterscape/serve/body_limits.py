"""Bodies of requests: how large they may be, how much of them is held in memory, and that they are text.

Stands within the gate: of whoever is not let in, only what signs in is read. Files of uploads pass through unchanged; how
large those may be is their routes' matter, how slow a body may be that of `serve/http_protocol.py`.
"""

import re
from enum import Enum

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.problems import ProblemError, answer_refusal
from clusterscape.serve.refusals import Refusal

_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_WHOLE_PAIRS = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F]).)*+", re.DOTALL
)
"""Text whose escapes have no half of a surrogate pair alone."""


class BodyKind(Enum):
    """What a body is read as, by the method and path of its request."""

    SESSION = re.compile(r"[A-Z]+ /api/v1/session(?:/.*)?")
    RUN_PIECE = re.compile(r"POST /api/v1/runs/[^/]+/files/[^/]+")
    FILE = re.compile(r"PUT /api/v1/traces/[^/]+/files/.+|POST /api/v1/job-traces", re.DOTALL)
    OTHER = re.compile(r".*", re.DOTALL)

    @classmethod
    def of(cls, method: str, path: str) -> "BodyKind":
        """The first that fits."""
        return next(kind for kind in cls if kind.value.fullmatch(f"{method} {path}"))


_SETTINGS = {
    BodyKind.SESSION: "limits.http.session_body_bytes",
    BodyKind.RUN_PIECE: "limits.runs.piece_bytes",
    BodyKind.OTHER: "limits.http.body_bytes",
}


class BodyLimits:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, guard: HttpGuard, run_piece_bytes: int) -> None:
        self._app = app
        self._guard = guard
        self._most_bytes = {
            BodyKind.SESSION: guard.limits.session_body_bytes,
            BodyKind.RUN_PIECE: run_piece_bytes,
            BodyKind.OTHER: guard.limits.body_bytes,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a body within its limits."""
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
            await answer_refusal(_too_large(most, kind))(scope, receive, send)
            return
        body = _HeldBody(self._guard, receive, most, kind)
        try:
            await self._app(scope, body.read_part if kind is BodyKind.RUN_PIECE else body.read_text, send)
        finally:
            body.release()


class _HeldBody:
    """One body. What was read of it counts as held until the request is over."""

    def __init__(self, guard: HttpGuard, receive: Receive, most_bytes: int, kind: BodyKind) -> None:
        self._kind = kind
        self._guard = guard
        self._receive = receive
        self._most_bytes = most_bytes
        self._size = 0
        self._is_read = False

    async def read_part(self) -> Message:
        """The next message. Raises ProblemError where the body becomes too large."""
        message = await self._receive()
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            if self._size + size > self._most_bytes:
                self._guard.refusals.note(Refusal.LARGE_BODY)
                raise _too_large(self._most_bytes, self._kind)
            if not self._guard.hold(size):
                self._guard.refusals.note(Refusal.MUCH_HELD)
                raise _problem(Refusal.MUCH_HELD)
            self._size += size
        return message

    async def read_text(self) -> Message:
        """The whole body as one message: what looks through it finds no character or name cut in two."""
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
        """The request is over."""
        self._guard.give_back(self._size)
        self._size = 0


def is_text(body: bytes) -> bool:
    """Whether it is UTF-8 without NUL (no text has one; UTF-16, which JSON parsers read too, does) and halves of pairs."""
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
    refused = _problem(Refusal.LARGE_BODY, f"the body of this request may have {most_bytes:,} bytes")
    refused.hint = f"Send less at once; {_SETTINGS[kind]} in the settings bounds it."
    return refused
