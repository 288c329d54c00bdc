"""Reads the bodies of uploads with timeouts, and passes them to the thread that stores them. Independent of their content."""

import asyncio
import queue
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from clusterscape.errors import ClusterScapeError, QueryError, TooLargeError, UploadStalledError
from clusterscape.executors import ThreadPool

T = TypeVar("T")

PIECE_BYTES = 64 * 1024
"""A client that sends less within the timeout counts as stalled."""
MOST_DIGITS = 19
"""Digits of Content-Length; a longer value is ignored, and bytes are counted as they arrive."""
DRAIN_BYTES = 256 * 2**20
DRAIN_S = 10.0
"""How many bytes of a refused upload are read and discarded, and for how long."""
PIECES_WAITING = 8
"""Pieces of an upload that may wait for the disk."""


async def read_pieces(request: Request, *, stall_s: float) -> AsyncIterator[bytes]:
    """Yield the body in pieces of at least PIECE_BYTES, except the last. Raises UploadStalledError if one takes ``stall_s``."""
    stream = request.stream()
    is_over = False
    while not is_over:
        piece = bytearray()
        try:
            async with asyncio.timeout(stall_s):
                while len(piece) < PIECE_BYTES and not is_over:
                    chunk = await anext(stream, None)
                    is_over = chunk is None
                    piece += chunk or b""
        except TimeoutError:
            raise UploadStalledError(
                f"less than {PIECE_BYTES:,} bytes arrived within {stall_s:g} s",
                hint="Send it again over a faster connection. The setting limits.work.upload_timeout_s sets the timeout.",
            ) from None
        except ClientDisconnect:
            raise _incomplete_error() from None
        if piece:
            yield bytes(piece)


async def read_body(request: Request, *, stall_s: float) -> bytes:
    """Read the whole body; `serve/request_limits.py` limits its size."""
    body = bytearray()
    async for piece in read_pieces(request, stall_s=stall_s):
        body += piece
    return bytes(body)


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """The maximum size of an upload, which ``setting`` sets. ``what``: the upload, in error messages."""

    what: str
    most_bytes: int
    setting: str = field(kw_only=True)
    hint: str = field(kw_only=True)

    def check_announced(self, request: Request) -> None:
        """Raise TooLargeError if Content-Length is too large, before the body is read."""
        length = request.headers.get("content-length", "")
        if length.isdecimal() and len(length) < MOST_DIGITS and int(length) > self.most_bytes:
            raise self._error()

    async def bound(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces; raises TooLargeError when they exceed the limit."""
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > self.most_bytes:
                raise self._error()
            yield piece

    def _error(self) -> TooLargeError:
        message = f"{self.what} may have at most {self.most_bytes:,} bytes"
        return TooLargeError(message, setting=self.setting, hint=self.hint)


@asynccontextmanager
async def drain_if_refused(request: Request) -> AsyncIterator[None]:
    """Receive an upload within the block. If it is refused, part of the rest is read and discarded: closing a connection while
    the client still sends resets it, and the client never sees the response.
    """
    try:
        yield
    except UploadStalledError:
        raise
    except ClusterScapeError:
        with suppress(TimeoutError, ClientDisconnect, RuntimeError):  # RuntimeError: the body has been read already
            async with asyncio.timeout(DRAIN_S):
                size = 0
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > DRAIN_BYTES:
                        break
        raise


async def stream_to_thread(
    threads: ThreadPool, pieces: AsyncIterator[bytes], store: Callable[[Iterable[bytes]], T], *, stall_s: float
) -> T:
    """Call ``store`` with the pieces in a thread; returns its result. The thread ends when the pieces end."""
    pipe: queue.Queue[bytes | None] = queue.Queue(PIECES_WAITING)
    storing = asyncio.ensure_future(threads.run(store, _iter_pipe(pipe, 2 * stall_s)))
    try:
        async for piece in pieces:
            await _put_piece(pipe, piece, storing)
            if storing.done():  # it failed: do not read the rest
                break
        await _put_piece(pipe, b"", storing)
    except BaseException:
        await _put_piece(pipe, None, storing)
        with suppress(Exception):  # the first error is the one to report
            await storing
        raise
    return await storing


async def _put_piece(pipe: "queue.Queue[bytes | None]", piece: bytes | None, storing: "asyncio.Future[T]") -> None:
    """Put a piece into the pipe without blocking the event loop; do nothing if the thread has ended."""
    while not storing.done():
        try:
            pipe.put_nowait(piece)
        except queue.Full:
            await asyncio.sleep(0.005)
        else:
            return


def _iter_pipe(pipe: "queue.Queue[bytes | None]", timeout_s: float) -> Iterator[bytes]:
    """Yield pieces until an empty one. Raises QueryError if they end with None, or none arrives within ``timeout_s``."""
    try:
        while piece := pipe.get(timeout=timeout_s):
            yield piece
    except queue.Empty:
        raise _incomplete_error() from None
    if piece is None:
        raise _incomplete_error()


def _incomplete_error() -> QueryError:
    return QueryError("the upload is incomplete", hint="Send the file again.")
