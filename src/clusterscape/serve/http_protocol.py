"""HTTP/1.1 over one connection, with limits on header size, time, pipelining, and clients that do not read their responses.

Extends uvicorn's protocol for httptools. Limits on the size of bodies are in `serve/request_limits.py`.
"""

import asyncio
from functools import cache
from http import HTTPStatus
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from clusterscape.serve.http_guard import MOST_LINGERING, HttpGuard, Transfer
from clusterscape.serve.identity.security_headers import ALWAYS
from clusterscape.serve.refusals import Refusal

LINGER_S = 5.0
LINGER_BYTES = 16 * 2**20
"""After the last response, input from the client is discarded for this time: closing a socket with unread data resets the
connection, and the client would never see the response."""
END_OF_HEADER = 4
"""Bytes of a header in addition to its name and value: colon, space, end of line."""

CHECKED_HEADERS = frozenset({b"content-length", b"transfer-encoding", b"host", b"expect"})


class HttpConfig(uvicorn.Config):
    """Uvicorn settings. Protocol and parser are fixed here, so they do not depend on installed packages."""

    def __init__(self, app: Any, guard: HttpGuard, **options: Any) -> None:
        """``options``: options of ``uvicorn.Config``, for tests and benchmarks."""
        fixed: dict[str, Any] = {
            "http": LimitedHttpProtocol,
            "ws": "none",
            "log_config": None,
            "access_log": False,
            "lifespan": "on",
            "timeout_graceful_shutdown": 5,
            "server_header": False,
            "proxy_headers": False,  # the gate reads them, and only from proxies that the settings trust
        }
        super().__init__(app, **{**fixed, **options})
        self.guard = guard


class CountingTransport(asyncio.Transport):
    """The transport of a connection: counts written bytes, and leaves closing to the protocol."""

    def __init__(self, socket_transport: asyncio.Transport, protocol: "LimitedHttpProtocol") -> None:
        super().__init__()
        self.socket_transport = socket_transport
        self.written_bytes = 0
        self._protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data, unless the last response has been sent."""
        if not self.is_closing():
            self.written_bytes += len(data)
            self.socket_transport.write(data)

    def close(self) -> None:
        """End the connection after the client could read what was sent."""
        self._protocol.end()

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._protocol.is_ending or self.socket_transport.is_closing()

    def abort(self) -> None:
        """End the connection at once."""
        self.socket_transport.abort()

    def get_write_buffer_size(self) -> int:
        """Bytes that the client has not received yet."""
        return self.socket_transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Addresses and other properties of the socket."""
        return self.socket_transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Stop reading; the kernel buffers further input."""
        self.socket_transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self.socket_transport.resume_reading()


class _RefusedError(Exception):
    """Stops the parser; ``LimitedHttpProtocol`` holds the reason."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection. The guard calls ``check`` periodically."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(config, HttpConfig)
        self.guard = config.guard
        self.limits = config.guard.limits
        self.is_ending = False
        """The last response is written; further input is discarded."""
        self._discards_input = False
        """No more requests are read."""
        self._refusal: Refusal | None = None
        self._counting: CountingTransport
        self._running: RequestResponseCycle | None = None
        self._resumes_pipeline = False
        self._head_since: float | None = None
        self._in_head = False
        self._has_body = False
        self._has_host = False
        self._header_count = 0
        self._header_bytes = 0
        self._unfinished_bytes = 0
        self._body: Transfer | None = None
        self._body_bytes = 0
        self._response: Transfer | None = None
        self._discarded_bytes = 0
        self._ends_at: float | None = None

    @property
    def address(self) -> str:
        """The address of the client's socket."""
        return self.client[0] if self.client else ""

    # Connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Read requests, or refuse if there are too many connections."""
        self._counting = CountingTransport(transport, self)
        super().connection_made(self._counting)
        self._head_since = self.guard.now
        if not self.guard.admit(self):
            self._refuse(Refusal.CONNECTIONS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify requests that are still running."""
        self.guard.release(self)
        if self._ends_at is not None:
            self.guard.lingering -= 1
        self.is_ending = True
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End gracefully."""
        if self._ends_at is not None:
            self._counting.abort()
        else:
            super().shutdown()

    def end(self) -> None:
        """Close the connection; if the client may still be sending, only after it could read its response."""
        transport = self._counting.socket_transport
        if self.is_ending:
            if self._ends_at is None:
                transport.close()
            return
        self.is_ending = True
        may_send = self._discards_input or (self.cycle is not None and self.cycle.more_body)
        can_linger = transport.can_write_eof() and self.guard.lingering < MOST_LINGERING
        if not may_send or transport.is_closing() or not can_linger:
            transport.close()
        else:
            self.guard.lingering += 1
            self._ends_at = self.guard.now + LINGER_S
            self._discards_input = True
            transport.write_eof()
            self.flow.resume_reading()

    # Requests

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._discards_input:
            self._discarded_bytes += len(data)
            if self._discarded_bytes > LINGER_BYTES:
                self._counting.socket_transport.close()
            return
        self._unset_keepalive_if_required()
        if self._head_since is None and self._body is None:
            self._head_since = self.guard.now
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # no upgrade is supported: answer it as a plain request, the last one
            self._discards_input = True
            self.cycle.keep_alive = False
        except httptools.HttpParserError:
            self._refuse(self._refusal or Refusal.MALFORMED)
        else:
            self._limit_unfinished(len(data))

    def on_message_begin(self) -> None:
        """Start of a request."""
        super().on_message_begin()
        if self._head_since is None:
            self._head_since = self.guard.now
        self._in_head = True
        self._has_body = self._has_host = False
        self._header_count = self._header_bytes = 0
        self._unfinished_bytes = -1

    def on_url(self, url: bytes) -> None:
        """A part of the URL."""
        if len(self.url) + len(url) > self.limits.url_bytes:
            raise self._stop(Refusal.LONG_URL)
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A whole header, or a trailer after a chunked body."""
        self._header_count += 1
        self._header_bytes += len(name) + len(value) + END_OF_HEADER
        if self._header_count > self.limits.headers or self._header_bytes > self.limits.header_bytes:
            raise self._stop(Refusal.LARGE_HEADERS)
        if not self._in_head:  # ignore trailers: a proxy that drops identity headers does not check them
            return
        name = name.lower()
        if name in CHECKED_HEADERS:
            self._check_header(name, value)
        self.headers.append((name, value))

    def _check_header(self, name: bytes, value: bytes) -> None:
        if name == b"expect":
            self.expect_100_continue = value.lower() == b"100-continue"
        elif name != b"host":
            self._has_body = True
        elif self._has_host:
            raise self._stop(Refusal.MALFORMED)
        else:
            self._has_host = True

    def on_headers_complete(self) -> None:
        """All headers have arrived: start the request."""
        if self._is_responding and len(self.pipeline) >= self.limits.pipelined:
            raise self._stop(Refusal.PIPELINED)
        super().on_headers_complete()
        self._in_head = False
        self._head_since = None
        if self._has_body:
            self._body_bytes = 0
            self._body = Transfer(
                self.guard.now, 0, stall_s=self.limits.body_timeout_s, bytes_per_s=self.limits.min_bytes_per_s
            )

    def on_body(self, body: bytes) -> None:
        """Count a part of the body and pass it on."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The whole request has arrived."""
        self._body = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next pipelined request, if there is one."""
        self._resumes_pipeline = True
        super().on_response_complete()
        self._resumes_pipeline = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if self._has_body or cycle is not self.cycle:
            app = _close_after_early_response(app, cycle)
        if self._resumes_pipeline:
            self.guard.start_pipelined(lambda: self._start_unless_disconnected(cycle, app))
        else:
            super()._start_asgi_task(cycle, app)

    def _start_unless_disconnected(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not cycle.disconnected:
            super()._start_asgi_task(cycle, app)

    @property
    def _is_responding(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def _limit_unfinished(self, size: int) -> None:
        """Limit a header without an end, which the parser buffers silently. Bytes received with the request line do not count."""
        if self._in_head:
            self._unfinished_bytes = 0 if self._unfinished_bytes < 0 else self._unfinished_bytes + size
            if self._unfinished_bytes > self.limits.header_bytes + self.limits.url_bytes:
                self._refuse(Refusal.LARGE_HEADERS)

    # Refusals

    def _stop(self, refusal: Refusal) -> Exception:
        self._refusal = refusal
        return _RefusedError()

    def _refuse(self, refusal: Refusal) -> None:
        """Send the refusal and end the connection, without mixing it into a response that is being sent."""
        self.guard.refusals.note(refusal)
        self._discards_input = True
        self._head_since = self._body = None
        running, last = self._running, self.cycle
        if running is None or not self._is_responding:
            self._write_refusal(refusal)
        elif not last.more_body:  # complete requests before the refused one are answered, it is not
            last.keep_alive = False
        elif last is not running:
            running.keep_alive = False
        else:
            running.disconnected = True
            running.message_event.set()
            if running.response_started:
                self.transport.close()
            else:
                self._write_refusal(refusal)

    def _write_refusal(self, refusal: Refusal) -> None:
        self.transport.write(encode_refusal(refusal))
        self.transport.close()

    # Time

    def check(self, now: float) -> None:
        """End the connection if the client is too slow to send headers or a body, or to read a response."""
        self._check_response(now)
        if self._ends_at is not None:
            if now >= self._ends_at:
                self._counting.socket_transport.close()
        elif self._body is not None:
            self._check_body(self._body, now)
        elif self._head_since is not None:
            if self._is_responding or self.flow.read_paused:
                self._head_since = now
            elif now - self._head_since > self.limits.header_timeout_s:
                self._end_slow_head()

    def _end_slow_head(self) -> None:
        if self._in_head:
            self._refuse(Refusal.SLOW_HEAD)
        else:  # no byte of a request: browsers open connections in advance
            self._head_since = None
            self.transport.close()

    def _check_body(self, body: Transfer, now: float) -> None:
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            body.hold(now)  # the server does not read yet
        elif body.is_too_slow(now, self._body_bytes):
            self._refuse(Refusal.SLOW_BODY)

    def _check_response(self, now: float) -> None:
        waiting_bytes = self._counting.get_write_buffer_size()
        sent_bytes = self._counting.written_bytes - waiting_bytes
        if not waiting_bytes:
            self._response = None
        elif self._response is None:
            self._response = Transfer(
                now, sent_bytes, stall_s=self.limits.write_timeout_s, bytes_per_s=self.limits.min_bytes_per_s
            )
        elif self._response.is_too_slow(now, sent_bytes):
            self._response = None
            self.guard.refusals.note(Refusal.SLOW_READER)
            self._counting.abort()


def _close_after_early_response(app: Any, cycle: RequestResponseCycle) -> Any:
    """A response that is sent before the whole body has arrived ends the connection: the rest of the body is not read."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        async def send_on(message: Any) -> None:
            if message["type"] == "http.response.start" and cycle.more_body:
                cycle.keep_alive = False
            await send(message)

        await app(scope, receive, send_on)

    return answer


@cache
def encode_refusal(refusal: Refusal) -> bytes:
    """The whole HTTP response to a refused request, as bytes."""
    content = refusal.content()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(content)),
        "connection": "close",
        **refusal.headers,
        **ALWAYS,
    }
    head = f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\n"
    return (head + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode() + content
