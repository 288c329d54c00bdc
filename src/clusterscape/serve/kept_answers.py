"""Answers that many ask for, made once: encoded, compressed and kept until something changes.

Who asks the same while an answer is being made waits for that one. An answer is shared only by viewers who may see the same:
it is made for a viewer of whom nothing is left but what the key holds. What the answers say is the routes' matter.
"""

import asyncio
import hashlib
from typing import cast

import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.redaction.viewer_scope import strip_viewer
from clusterscape.serve.answer_shelf import Answer, AnswerShelf, Version
from clusterscape.serve.identity.caller import CALLER_KEY, WHENCE_KEY
from clusterscape.serve.state import USER_KEY, VIEWER_KEY, name_user
from clusterscape.serve.wire import choose_encoding, compress
from clusterscape.store.changes import Changes

WITHIN_MS = 5_000
"""Answers tell how long something has waited or run: so old they may become while nothing changes."""
LEAST_COMPRESSED = 1024

_PATHS = """
    cluster nodes snapshot tick timeline waste waste/units workloads sources metrics
    rules rule-language violations violations/units violations/timeline scheduling/queue scheduling/waiting
"""
SHARED = frozenset(f"/api/v1/{path}" for path in _PATHS.split())
"""What every page asks for. Routes of these paths know of who asks only what ``State`` tells them; a test says so."""

SLOW = frozenset(f"/api/v1/{path}" for path in ("timeline", "waste", "waste/units"))
"""Read from hours of samples and worth waiting for once: who asks while they are made anew gets the last ones, if those are
younger than STALE_MS and no other past has been stored since."""


class KeepAnswers:
    """ASGI middleware within the gate, which says who asks. ``is_personal``: browsers are not to keep what they are sent."""

    def __init__(
        self, app: ASGIApp, shelf: AnswerShelf, changes: Changes, *, is_private: bool, is_personal: bool
    ) -> None:
        self._app = app
        self._shelf = shelf
        self._changes = changes
        self._is_private = is_private
        self._is_personal = is_personal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the shelf where the path is one of SHARED; else pass on."""
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in SHARED:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        encoding = choose_encoding(headers.get("accept-encoding", ""))
        viewer = strip_viewer(cast(Viewer, scope.get(VIEWER_KEY, ANYONE_HERE)), is_private=self._is_private)
        path = str(scope["path"])
        answer = await self._shelf.find(
            (path, scope["query_string"], encoding, viewer),
            self._version(),
            lambda: self._ask(scope, encoding, viewer),
            may_be_stale=path in SLOW,
        )
        scope["route"] = answer.route
        is_known = answer.status == 200 and answer.etag in headers.get("if-none-match", "")
        await _send(answer, send, is_known=is_known)

    def _version(self) -> Version:
        # Pieces of tracked runs (``runs``) are no part of these answers, and come many times a second.
        now = self._changes.versions
        changes = (now.inventory, now.tick, now.rules, now.history_at, now.paused)
        return Version(changes, now.history, self._shelf.clock() // WITHIN_MS)

    async def _ask(self, scope: Scope, encoding: str, viewer: Viewer) -> Answer:
        """Ask the app for everybody who has this key: with nothing of the request but its path and question."""
        asked = {
            **scope,
            "headers": [(b"accept-encoding", encoding.encode())],
            USER_KEY: name_user(cast(Viewer, scope.get(VIEWER_KEY, ANYONE_HERE)), scope.get(WHENCE_KEY)),
            VIEWER_KEY: viewer,
            CALLER_KEY: None,
        }
        head: Message = {"status": 500, "headers": []}
        parts: list[bytes] = []

        async def take(message: Message) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self._app(asked, _no_body(), take)
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return await self._finish(head, body, encoding, asked.get("route"))

    async def _finish(self, head: Message, body: bytes, encoding: str, route: object) -> Answer:
        headers = MutableHeaders(raw=list(head["headers"]))
        status = int(head["status"])
        if status == 200:
            if "etag" not in headers:
                # Of what it says, whatever it was made from: a tick that changes nothing costs the browser nothing.
                headers["ETag"] = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
                if not self._is_personal:
                    headers.setdefault("Cache-Control", "private, no-cache")
            headers.add_vary_header("Accept-Encoding")
            if "content-encoding" not in headers and encoding != "identity" and len(body) >= LEAST_COMPRESSED:
                body = await anyio.to_thread.run_sync(compress, body, encoding)
                headers["Content-Encoding"] = encoding
                headers["Content-Length"] = str(len(body))
        return Answer(status, headers.raw, body, headers.get("etag", ""), route)


def _no_body() -> Receive:
    is_read = False

    async def receive() -> Message:
        nonlocal is_read
        if is_read:
            await asyncio.get_running_loop().create_future()  # whoever waits for a hang-up waits until it is cancelled
        is_read = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive


_OF_BODY = (b"content-length", b"content-encoding", b"content-type")


async def _send(answer: Answer, send: Send, *, is_known: bool) -> None:
    """The lists are copied: whoever stands before may add to the headers of the one answer."""
    if is_known:
        headers = [each for each in answer.headers if each[0] not in _OF_BODY]
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)})
    await send({"type": "http.response.body", "body": answer.body})
