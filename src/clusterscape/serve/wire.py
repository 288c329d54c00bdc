"""Encoding of responses: tables as Arrow IPC streams and Parquet files, and compression (encoding, level, thread)."""

import gzip
import io
import re
from collections.abc import Mapping, Sequence

import anyio.to_thread
import polars as pl
import zstandard
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterscape.serve.redaction import RedactedResponse, RedactedTable

CACHED_KEY = "clusterscape.cached"
"""Set in the scope of a request whose response is cached for many clients, so that a higher compression level pays off."""
MIN_COMPRESSED_BYTES = 1024
THREAD_BYTES = 32 * 1024
"""Responses of at least this size are compressed in a thread: smaller ones block the event loop for under half a millisecond."""
# Levels of zstd. On 10,000 units a snapshot is a sixth smaller than gzip's in half its time; higher levels gain under 2 %.
CACHED_LEVEL = 6
# A picture of 30,000 spans (3.5 MB) takes 12 ms (1.2 MB) at level 1 and 52 ms (0.8 MB) at level 6; users who zoom wait for it.
UNCACHED_LEVEL = 1

_COMPRESSIBLE = (
    "application/json",
    "application/javascript",
    "application/vnd.apache.arrow.stream",
    "image/svg",
    "text/",
)


def choose_encoding(accepted: str) -> str:
    """The best encoding that the client accepts: ``zstd``, ``gzip`` or ``identity``."""
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
    """ASGI middleware inside the response cache. Streams pass uncompressed: their events must not wait for a full block."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and compress its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        encoding = choose_encoding(Headers(scope=scope).get("accept-encoding", ""))
        level = CACHED_LEVEL if scope.get(CACHED_KEY) else UNCACHED_LEVEL
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
    """Whether a response may be compressed; then adds a Vary header for caches."""
    headers = MutableHeaders(scope=start)
    if "content-encoding" in headers or "content-range" in headers:
        return False
    if not headers.get("content-type", "").startswith(_COMPRESSIBLE):
        return False
    headers.add_vary_header("Accept-Encoding")
    return True


async def _encode(start: Message, body: bytes, encoding: str, level: int) -> bytes:
    if encoding == "identity" or len(body) < MIN_COMPRESSED_BYTES:
        return body
    headers = MutableHeaders(scope=start)
    headers["Content-Encoding"] = encoding
    if len(body) < THREAD_BYTES:
        packed = compress(body, encoding, level)
    else:
        packed = await anyio.to_thread.run_sync(compress, body, encoding, level)
    headers["Content-Length"] = str(len(packed))
    return packed


ARROW = "application/vnd.apache.arrow.stream"
ARROW_RESPONSE: dict[int | str, dict[str, object]] = {
    200: {"content": {ARROW: {}}, "description": "An Arrow IPC stream."}
}
PARQUET = "application/vnd.apache.parquet"
NO_STORE = "no-store"
REVALIDATE = "private, no-cache"
"""A browser may store the response, and revalidates it before each use."""


def arrow_response(
    table: RedactedTable, headers: Mapping[str, str] | None = None, *, cache_control: str = NO_STORE
) -> RedactedResponse:
    """The table as Arrow IPC."""
    return RedactedResponse(
        to_ipc(table.frame), media_type=ARROW, headers={"Cache-Control": cache_control, **(headers or {})}
    )


def arrow_tables_response(
    tables: Sequence[RedactedTable], headers: Mapping[str, str] | None = None
) -> RedactedResponse:
    """Several tables in one body, one Arrow IPC stream after another. ``X-Tables``: the bytes of each, separated by commas."""
    body, lengths = join_tables([table.frame for table in tables])
    return RedactedResponse(
        body, media_type=ARROW, headers={"Cache-Control": NO_STORE, "X-Tables": lengths, **(headers or {})}
    )


def join_tables(frames: Sequence[pl.DataFrame]) -> tuple[bytes, str]:
    """The concatenated streams of the tables, and their lengths in bytes before compression."""
    streams = [to_ipc(frame) for frame in frames]
    return b"".join(streams), ",".join(str(len(stream)) for stream in streams)


def parquet_response(table: RedactedTable, name: str) -> RedactedResponse:
    """The table as a Parquet file."""
    buffer = io.BytesIO()
    table.frame.clone().write_parquet(buffer, compression="zstd")
    headers = {"Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{name}"'}
    return RedactedResponse(buffer.getvalue(), media_type=PARQUET, headers=headers)


def to_ipc(frame: pl.DataFrame) -> bytes:
    """The bytes of an Arrow IPC stream, at the oldest compatibility level: every reader supports plain (not view) strings."""
    buffer = io.BytesIO()
    # A frame is locked while it is written, and the writer needs the GIL for the buffer: another thread that holds the GIL
    # and reads the same frame would deadlock. A clone shares the data but has its own lock.
    frame.clone().write_ipc_stream(buffer, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()
