"""Bodies of uploads: read within time-outs, and handed to the thread that keeps them. Knows nothing of what they hold."""

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
"""A client that sends less within the time-out counts as stalled."""
MOST_DIGITS = 19
"""Of an announced size; a longer one is not believed, and counted as it comes."""
DRAIN_BYTES = 256 * 2**20
DRAIN_S = 10.0
"""How much of an upload that was refused is read, and for how long."""
PIECES_WAITING = 8
"""Pieces of an upload that wait for the disk."""


async def read_pieces(request: Request, *, stall_s: float) -> AsyncIterator[bytes]:
    """The body in pieces of at least PIECE_BYTES, but for the last. Raises UploadStalledError after ``stall_s`` without one."""
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
                f"less than {PIECE_BYTES:,} bytes came within {stall_s:g} s",
                hint="Send it again over a faster connection; limits.work.upload_stall_s in the settings bounds this.",
            ) from None
        except ClientDisconnect:
            raise _cut_off() from None
        if piece:
            yield bytes(piece)


async def read_body(request: Request, *, stall_s: float) -> bytes:
    """The whole body; how large it may be is for `serve/body_limits.py` to say."""
    body = bytearray()
    async for piece in read_pieces(request, stall_s=stall_s):
        body += piece
    return bytes(body)


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """How large the body of an upload may be; ``setting`` says so. Raises TooLargeError."""

    what: str
    most_bytes: int
    setting: str = field(kw_only=True)
    hint: str = field(kw_only=True)

    def check_announced(self, request: Request) -> None:
        """Refuse a body whose announced size is too large, before any of it is read."""
        length = request.headers.get("content-length", "")
        if length.isdecimal() and len(length) < MOST_DIGITS and int(length) > self.most_bytes:
            raise self._error()

    async def bound(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The pieces, until they are too many bytes, whatever was announced."""
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > self.most_bytes:
                raise self._error()
            yield piece

    def _error(self) -> TooLargeError:
        message = f"{self.what} may have {self.most_bytes:,} bytes"
        return TooLargeError(message, setting=self.setting, hint=self.hint)


@asynccontextmanager
async def answer_refusal(request: Request) -> AsyncIterator[None]:
    """Around receiving an upload. Where it is refused, some of the rest is read and thrown away: a connection that is closed
    while the client still sends is reset, and the client never sees the answer.
    """
    try:
        yield
    except UploadStalledError:
        raise
    except ClusterScapeError:
        with suppress(TimeoutError, ClientDisconnect, RuntimeError):  # RuntimeError: all of it had been read
            async with asyncio.timeout(DRAIN_S):
                size = 0
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > DRAIN_BYTES:
                        break
        raise


async def stream_to_thread(
    threads: ThreadPool, pieces: AsyncIterator[bytes], keep: Callable[[Iterable[bytes]], T], *, stall_s: float
) -> T:
    """What ``keep`` returns, called with the pieces in a thread, which ends whenever the pieces do."""
    pipe: queue.Queue[bytes | None] = queue.Queue(PIECES_WAITING)
    keeping = asyncio.ensure_future(threads.run(keep, _iter_pipe(pipe, 2 * stall_s)))
    try:
        async for piece in pieces:
            await _hand_over(pipe, piece, keeping)
            if keeping.done():  # it failed: the rest is not read
                break
        await _hand_over(pipe, b"", keeping)
    except BaseException:
        await _hand_over(pipe, None, keeping)
        with suppress(Exception):  # the first error is the one to report
            await keeping
        raise
    return await keeping


async def _hand_over(pipe: "queue.Queue[bytes | None]", piece: bytes | None, keeping: "asyncio.Future[T]") -> None:
    """Wait for room without holding up the event loop; a thread that has ended takes nothing more."""
    while not keeping.done():
        try:
            pipe.put_nowait(piece)
        except queue.Full:
            await asyncio.sleep(0.005)
        else:
            return


def _iter_pipe(pipe: "queue.Queue[bytes | None]", patience_s: float) -> Iterator[bytes]:
    """Pieces until an empty one. Raises QueryError where they end with None, or none comes within ``patience_s``."""
    try:
        while piece := pipe.get(timeout=patience_s):
            yield piece
    except queue.Empty:
        raise _cut_off() from None
    if piece is None:
        raise _cut_off()


def _cut_off() -> QueryError:
    return QueryError("the file did not come whole", hint="Send it again.")
