"""The response cache: responses that every page requests, computed once and stored encoded and compressed.

Requests for a response that is being computed wait for it. Only viewers with the same scope share a response: it is computed
for a stripped viewer that holds only what the cache key holds. Values below the level of responses are cached in
``query/cache.py``. The reasons are in docs/design/caching.md.
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
from clusterscape.model.access import LOCAL_ADMIN, Viewer
from clusterscape.query.redaction.redactor import strip_viewer
from clusterscape.serve.identity.caller import CALLER_KEY, CLIENT_KEY, USER_KEY, VIEWER_KEY, user_key
from clusterscape.serve.wire import CACHED_KEY, choose_encoding
from clusterscape.store.changes import Changes

STALE_MS = 20_000
"""Responses younger than this may be sent while new ones are computed, if the path allows it."""
CLOCK_STEP_MS = 5_000
"""Responses that depend on the clock (such as how long a job has waited) are at most this old while nothing changes."""
MOST_RESPONSES = 512
MOST_BYTES = 64 * 2**20
MOST_DIGITS = 15
"""Digits of a time in Unix ms: the route refuses longer ones."""


@dataclass(frozen=True, slots=True)
class Shared:
    """How the responses of one path are shared.

    ``follows``: the versions of the stores that they depend on; None: all versions, and the clock. ``names_nobody``: they contain
    no name and no id of a workload, so viewers with different scopes share them. ``may_be_stale``: they take long to compute, so
    the last response, if younger than STALE_MS and of the same history, is sent while a new one is computed.
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
"""The paths that every page requests. Their routes know the viewer only through ``State``; a test checks it."""


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a response. ``changes``: versions of the stores that it depends on; ``step``: time in CLOCK_STEP_MS."""

    changes: tuple[Hashable, ...]
    history: int
    step: int


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response as it is sent. ``route``: the matched route, for telemetry."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    etag: str
    route: object


@dataclass(frozen=True, slots=True)
class _Entry:
    version: Version
    requested_at: UnixMs
    response: CachedResponse


@dataclass(slots=True)
class CacheCounts:
    """Cache statistics. ``joined``: requests that waited for the response of another request."""

    hits: int = 0
    joined: int = 0
    misses: int = 0


@dataclass(slots=True)
class ResponseCache:
    """An LRU cache of responses. Runs in the server's event loop, but is not bound to one loop."""

    clock: Callable[[], UnixMs]
    most_bytes: int = MOST_BYTES
    counts: CacheCounts = field(default_factory=CacheCounts)
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
        """The response for ``key`` at ``version``: cached, being computed, or computed by ``make``.

        A client that disconnects does not cancel the computation for the others.
        """
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
        if may_be_stale and entry is not None and self._is_fresh_enough(entry, version):
            return entry.response
        response = await asyncio.shield(flight)
        # The user of the first request was throttled; compute the response for this user.
        return await make() if is_joined and response.status == ThrottledError.http_status else response

    def _is_fresh_enough(self, entry: _Entry, version: Version) -> bool:
        return entry.version.history == version.history and 0 <= self.clock() - entry.requested_at < STALE_MS

    async def _make(
        self, key: Hashable, version: Version, make: Callable[[], Awaitable[CachedResponse]]
    ) -> CachedResponse:
        requested_at = self.clock()
        try:
            response = await make()
        finally:
            del self._flights[key, version]
        if response.status == 200:
            self._add(key, _Entry(version, requested_at, response))
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
    """Mark a failure as handled: waiting requests get it by awaiting; if there are none, the next request tries again."""
    if not flight.cancelled():
        flight.exception()


class ShareResponses:
    """ASGI middleware inside the gate: answers requests from the cache. ``is_personal``: browsers must not store responses.

    ``past_version``: the version of the cluster's state at a past time.
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
        """Answer from the cache if the path is in SHARED; else pass the request on."""
        shared = SHARED.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if shared is None:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        encoding = choose_encoding(headers.get("accept-encoding", ""))
        viewer = strip_viewer(
            cast(Viewer, scope.get(VIEWER_KEY, LOCAL_ADMIN)), is_private=self._is_private and not shared.names_nobody
        )
        response = await self._cache.get(
            (scope["path"], scope["query_string"], encoding, viewer),
            self._version(shared, scope["query_string"]),
            lambda: self._compute(scope, encoding, viewer),
            may_be_stale=shared.may_be_stale,
        )
        scope["route"] = response.route
        is_not_modified = response.status == 200 and response.etag in headers.get("if-none-match", "")
        await _send(response, send, is_not_modified=is_not_modified)

    def _version(self, shared: Shared, query: bytes) -> Version:
        now = self._changes.versions
        if shared.follows is None:
            # ``runs`` is left out: these responses do not depend on tracked runs, which change many times a second.
            changes = (now.inventory, now.tick, now.rules, now.history_at, now.paused)
            return Version(changes, now.history, self._cache.clock() // CLOCK_STEP_MS)
        at = _find_past_time(query)
        if at is not None:
            return Version((self._past_version(at),), now.history, 0)
        return Version(tuple(getattr(now, name) for name in shared.follows), 0, 0)

    async def _compute(self, scope: Scope, encoding: str, viewer: Viewer) -> CachedResponse:
        """Let the app compute the response for this key, from only the path and the query of the request."""
        shared_scope = {
            **scope,
            "headers": [(b"accept-encoding", encoding.encode())],
            USER_KEY: user_key(cast(Viewer, scope.get(VIEWER_KEY, LOCAL_ADMIN)), scope.get(CLIENT_KEY)),
            VIEWER_KEY: viewer,
            CALLER_KEY: None,
            CACHED_KEY: True,
        }
        head: Message = {"status": 500, "headers": []}
        parts: list[bytes] = []

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self._app(shared_scope, _no_body(), collect)
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        headers = MutableHeaders(raw=list(head["headers"]))
        status = int(head["status"])
        if status == 200:
            headers["ETag"] = _etag(headers, body)
            if not self._is_personal:
                headers.setdefault("Cache-Control", "private, no-cache")
        return CachedResponse(status, headers.raw, body, headers.get("etag", ""), shared_scope.get("route"))


def _find_past_time(query: bytes) -> UnixMs | None:
    """The past time that a request names; None: the present."""
    at = dict(parse_qsl(query.decode("latin-1"))).get("at", "") if b"at=" in query else ""
    return UnixMs(int(at)) if at.isdecimal() and len(at) <= MOST_DIGITS else None


def _etag(headers: MutableHeaders, body: bytes) -> str:
    """The ETag of the content, not of its version: a new version with the same content is not sent again."""
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
            await asyncio.get_running_loop().create_future()  # a disconnect never comes; the waiting task is cancelled
        is_read = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive


_BODY_HEADERS = (b"content-length", b"content-encoding", b"content-type")


async def _send(response: CachedResponse, send: Send, *, is_not_modified: bool) -> None:
    """Send a response with a copy of its headers, because outer middleware may add to them."""
    if is_not_modified:
        headers = [header for header in response.headers if header[0] not in _BODY_HEADERS]
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": response.status, "headers": list(response.headers)})
    await send({"type": "http.response.body", "body": response.body})
