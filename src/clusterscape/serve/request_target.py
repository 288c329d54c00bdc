"""Refuses addresses that no page asks for: with control characters, or not in UTF-8. What they name is for routes to say."""

import re
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from clusterscape.serve.http_guard import HttpGuard
from clusterscape.serve.identity.security_headers import secure
from clusterscape.serve.problems import problem
from clusterscape.serve.refusals import Refusal

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_QUERY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""People paste text with tabs and line ends into fields."""


class CheckTarget:
    """ASGI middleware before the gate: what it refuses reaches neither the audit log nor a file system."""

    def __init__(self, app: ASGIApp, guard: HttpGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on where its address is text."""
        if scope["type"] != "http" or is_text_target(scope):
            await self._app(scope, receive, send)
            return
        refusal = Refusal.BAD_URL
        self._guard.refusals.note(refusal)
        answer = problem(refusal.status, refusal.code, refusal.message, refusal.hint)
        secure(answer.headers, is_https=False, is_personal=True)
        await answer(scope, receive, send)


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
