"""The response cache: responses that every page asks for, made once and kept as they are sent, encoded and compressed.

Requests for a response that is being made wait for it. A response is shared only by viewers who may see the same: it is made
for a viewer of whom only what the key holds is left. What a response says is the route's matter; what is computed once below
the responses is in ``query/cache.py``. docs/design/caching.md has the reasons.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.errors import ThrottledError
from clusterscape.model import UnixMs
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.redaction.viewer_scope import strip_viewer
from clusterscape.serve.compression import CACHED_KEY, choose_encoding
from clusterscape.serve.identity.caller import CALLER_KEY, USER_KEY, VIEWER_KEY, WHENCE_KEY, name_user
from clusterscape.store.changes import Changes

STALE_MS = 20_000
"""Younger responses may be sent while new ones are made, where that is allowed."""
WITHIN_MS = 5_000
"""Responses that tell how long something has waited or run are at most this old while nothing changes."""
MOST_RESPONSES = 512
MOST_BYTES = 64 * 2**20
MOST_DIGITS = 15
"""Of a moment in Unix ms: longer ones are refused by the route."""


@dataclass(frozen=True, slots=True)
class Shared:
    """How the responses of one path are shared.

    ``follows``: the versions of the stores that they are made from; None: all, and the clock besides. ``names_nobody``: they
    hold no name and no id of a workload, so that viewers who may see different people share them. ``may_be_stale``: read from
    hours of samples, so the last response, if younger than STALE_MS and of the same past, is sent while a new one is made.
    """

    follows: tuple[str, ...] | None = None
    names_nobody: bool = False
    may_be_stale: bool = False


_UNTIL_ANY_CHANGE = """
    cluster nodes workloads sources metrics rules rule-language violations violations/units violations/timeline
    scheduling/queue scheduling/waiting
"""
_SLOW = "timeline waste waste/units"

SHARED: Mapping[str, Shared] = {
    "/api/v1/snapshot": Shared(follows=("inventory",)),
    "/api/v1/tick": Shared(follows=("inventory", "tick"), names_nobody=True),
    **{f"/api/v1/{path}": Shared() for path in _UNTIL_ANY_CHANGE.split()},
    **{f"/api/v1/{path}": Shared(may_be_stale=True) for path in _SLOW.split()},
}
"""What every page asks for. Routes of these paths know only what ``State`` holds of the viewer; a test checks it."""


@dataclass(frozen=True, slots=True)
class Version:
    """``changes``: the versions of the stores that a response depends on; ``step``: of the clock."""

    changes: tuple[Hashable, ...]
    history: int
    step: int


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response as it is sent. ``route`` is the one that the app matched, for telemetry."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    etag: str
    route: object


@dataclass(frozen=True, slots=True)
class _Entry:
    version: Version
    made_at: UnixMs
    response: CachedResponse


@dataclass(slots=True)
class Counts:
    """How requests were answered: from the cache, by waiting for another request's response, or by a new one."""

    hits: int = 0
    joined: int = 0
    misses: int = 0


@dataclass(slots=True)
class ResponseCache:
    """The responses, last used ones last. Lives in the server's event loop, but is not bound to one loop."""

    clock: Callable[[], UnixMs]
    most_bytes: int = MOST_BYTES
    counts: Counts = field(default_factory=Counts)
    _entries: "OrderedDict[Hashable, _Entry]" = field(default_factory=OrderedDict)
    _flights: "dict[tuple[Hashable, Version], asyncio.Task[CachedResponse]]" = field(default_factory=dict)
    size_bytes: int = 0

    async def get(
        self,
        key: Hashable,
        version: Version,
        make: Callable[[], Awaitable[CachedResponse]],
        *,
        may_be_stale: bool = False,
    ) -> CachedResponse:
        """The response for ``key`` at ``version``: cached, being made, or made by ``make``. A hang-up stops nobody else's."""
        entry = self._entries.get(key)
        if entry is not None and entry.version == version:
            self._entries.move_to_end(key)
            self.counts.hits += 1
            return entry.response
        flight = self._flights.get((key, version))
        is_joined = flight is not None
        if flight is None:
            self.counts.misses += 1
            flight = self._flights[key, version] = asyncio.create_task(self._make(key, version, make))
            flight.add_done_callback(_retrieve_exception)
        else:
            self.counts.joined += 1
        if may_be_stale and entry is not None and self._is_young(entry, version):
            return entry.response
        response = await asyncio.shield(flight)
        # The first to ask had too many requests; that is nobody else's fault.
        return await make() if is_joined and response.status == ThrottledError.http_status else response

    def _is_young(self, entry: _Entry, version: Version) -> bool:
        return entry.version.history == version.history and 0 <= self.clock() - entry.made_at < STALE_MS

    async def _make(
        self, key: Hashable, version: Version, make: Callable[[], Awaitable[CachedResponse]]
    ) -> CachedResponse:
        asked_at = self.clock()
        try:
            response = await make()
        finally:
            del self._flights[key, version]
        if response.status == 200:
            self._add(key, _Entry(version, asked_at, response))
        return response

    def _add(self, key: Hashable, entry: _Entry) -> None:
        self._drop(key)
        self._entries[key] = entry
        self.size_bytes += len(entry.response.body)
        while self._entries and (len(self._entries) > MOST_RESPONSES or self.size_bytes > self.most_bytes):
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        dropped = self._entries.pop(key, None)
        if dropped is not None:
            self.size_bytes -= len(dropped.response.body)


def _retrieve_exception(flight: "asyncio.Task[CachedResponse]") -> None:
    """Whoever waits gets a failure by awaiting it; where nobody waits, the next request tries again."""
    if not flight.cancelled():
        flight.exception()


class ShareResponses:
    """ASGI middleware inside the gate, which finds out who asks. ``is_personal``: browsers must not keep what they are sent.

    ``past_version``: changes when the picture of a past moment may have changed.
    """

    def __init__(
        self,
        app: ASGIApp,
        cache: ResponseCache,
        changes: Changes,
        past_version: Callable[[UnixMs], Hashable],
        *,
        is_private: bool,
        is_personal: bool,
    ) -> None:
        self._app = app
        self._cache = cache
        self._changes = changes
        self._past_version = past_version
        self._is_private = is_private
        self._is_personal = is_personal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the cache where the path is one of SHARED; else pass on."""
        shared = SHARED.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if shared is None:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        encoding = choose_encoding(headers.get("accept-encoding", ""))
        viewer = strip_viewer(
            cast(Viewer, scope.get(VIEWER_KEY, ANYONE_HERE)), is_private=self._is_private and not shared.names_nobody
        )
        response = await self._cache.get(
            (scope["path"], scope["query_string"], encoding, viewer),
            self._version(shared, scope["query_string"]),
            lambda: self._ask(scope, encoding, viewer),
            may_be_stale=shared.may_be_stale,
        )
        scope["route"] = response.route
        is_held = response.status == 200 and response.etag in headers.get("if-none-match", "")
        await _send(response, send, is_held=is_held)

    def _version(self, shared: Shared, query: bytes) -> Version:
        now = self._changes.versions
        if shared.follows is None:
            # Pieces of tracked runs (``runs``) are no part of these responses, and come many times a second.
            changes = (now.inventory, now.tick, now.rules, now.history_at, now.paused)
            return Version(changes, now.history, self._cache.clock() // WITHIN_MS)
        at = _find_moment(query)
        if at is not None:
            return Version((self._past_version(at),), now.history, 0)
        return Version(tuple(getattr(now, name) for name in shared.follows), 0, 0)

    async def _ask(self, scope: Scope, encoding: str, viewer: Viewer) -> CachedResponse:
        """Ask the app for everybody who has this key: with nothing of the request but its path and query."""
        asked = {
            **scope,
            "headers": [(b"accept-encoding", encoding.encode())],
            USER_KEY: name_user(cast(Viewer, scope.get(VIEWER_KEY, ANYONE_HERE)), scope.get(WHENCE_KEY)),
            VIEWER_KEY: viewer,
            CALLER_KEY: None,
            CACHED_KEY: True,
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
        headers = MutableHeaders(raw=list(head["headers"]))
        status = int(head["status"])
        if status == 200:
            headers["ETag"] = _etag(headers, body)
            if not self._is_personal:
                headers.setdefault("Cache-Control", "private, no-cache")
        return CachedResponse(status, headers.raw, body, headers.get("etag", ""), asked.get("route"))


def _find_moment(query: bytes) -> UnixMs | None:
    """The past moment that a request asks for."""
    at = dict(parse_qsl(query.decode("latin-1"))).get("at", "") if b"at=" in query else ""
    return UnixMs(int(at)) if at.isdecimal() and len(at) <= MOST_DIGITS else None


def _etag(headers: MutableHeaders, body: bytes) -> str:
    """Of what a response says, whatever it was made from: a tick that changes nothing costs the browser nothing."""
    digest = hashlib.blake2b(body, digest_size=12)
    for name, value in headers.items():
        if name.startswith("x-"):
            digest.update(f"{name}={value}\n".encode())
    return f'W/"{digest.hexdigest()}"'


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


async def _send(response: CachedResponse, send: Send, *, is_held: bool) -> None:
    """The lists are copied: outer middleware may add to the headers of the one response."""
    if is_held:
        headers = [header for header in response.headers if header[0] not in _OF_BODY]
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": response.status, "headers": list(response.headers)})
    await send({"type": "http.response.body", "body": response.body})
