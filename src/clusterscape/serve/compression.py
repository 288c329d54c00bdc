"""The one place where responses are compressed: which encoding, how hard, and in which thread."""

import gzip
import re

import anyio.to_thread
import zstandard
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CACHED_KEY = "clusterscape.cached"
"""Set in the scope of a request whose response is cached for many clients, so that it is worth compressing harder."""
LEAST_BYTES = 1024
THREAD_BYTES = 32 * 1024
"""Bytes from which a response is compressed in a thread: half a millisecond of the event loop."""
# Levels of zstd. On 10,000 units a snapshot is a sixth smaller than gzip's in half its time; higher levels gain under 2 %.
CACHED_LEVEL = 6
# A picture of 30,000 spans (3.5 MB): 12 ms and 1.2 MB, where level 6 takes 52 ms for 0.8 MB. Whoever brushes waits for it.
ONCE_LEVEL = 1

_COMPRESSIBLE = (
    "application/json",
    "application/javascript",
    "application/vnd.apache.arrow.stream",
    "image/svg",
    "text/",
)


def choose_encoding(accepted: str) -> str:
    """The best that a client accepts and we speak: ``zstd``, ``gzip`` or ``identity``."""
    names = {
        m.group(1).lower()
        for m in re.finditer(r"([A-Za-z0-9*-]+)\s*(?:;\s*q=(?!0(?:\.0*)?(?:,|$))[\d.]+)?(?:,|$)", accepted)
    }
    return next((name for name in ("zstd", "gzip") if name in names), "identity")


def compress(body: bytes, encoding: str, level: int = CACHED_LEVEL) -> bytes:
    """``body`` in that encoding; ``level`` is zstd's."""
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=level).compress(body)
    if encoding == "gzip":
        return gzip.compress(body, compresslevel=5, mtime=0)
    return body


class Compress:
    """ASGI middleware inside the response cache. Streams pass as they are: their events must not wait for a full block."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response back compressed."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        encoding = choose_encoding(Headers(scope=scope).get("accept-encoding", ""))
        level = CACHED_LEVEL if scope.get(CACHED_KEY) else ONCE_LEVEL
        head: Message | None = None

        async def send_compressed(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
                return
            if head is not None:
                start, head = head, None
                if message["type"] == "http.response.body" and not message.get("more_body") and _vary(start):
                    message = {**message, "body": await _encode(start, message.get("body", b""), encoding, level)}
                await send(start)
            await send(message)

        await self._app(scope, receive, send_compressed)


def _vary(start: Message) -> bool:
    """Whether a response may be compressed; says so to caches on its way."""
    headers = MutableHeaders(scope=start)
    if "content-encoding" in headers or "content-range" in headers:
        return False
    if not headers.get("content-type", "").startswith(_COMPRESSIBLE):
        return False
    headers.add_vary_header("Accept-Encoding")
    return True


async def _encode(start: Message, body: bytes, encoding: str, level: int) -> bytes:
    if encoding == "identity" or len(body) < LEAST_BYTES:
        return body
    headers = MutableHeaders(scope=start)
    headers["Content-Encoding"] = encoding
    if len(body) < THREAD_BYTES:
        packed = compress(body, encoding, level)
    else:
        packed = await anyio.to_thread.run_sync(compress, body, encoding, level)
    headers["Content-Length"] = str(len(packed))
    return packed
