"""Endpoints on real sockets of loopback: an HTTP server and an SMTP server that can be down, slow or refuse."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiohttp import web
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from servers.programs import free_port


@dataclass(frozen=True, slots=True)
class Request:
    """What an HTTP endpoint received."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass
class HttpEndpoint:
    """Answers with ``status`` and ``headers``. ``received`` are all requests, ``accepted`` those answered 2xx."""

    port: int = field(default_factory=free_port)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    received: list[Request] = field(default_factory=list)
    accepted: list[Request] = field(default_factory=list)
    delay_s: float = 0.0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def until_received(self, number: int) -> None:
        """Wait for this many requests in total."""
        while len(self.received) < number:
            self._arrived.clear()
            await self._arrived.wait()

    @property
    def url(self) -> str:
        """Its address, even before it listens."""
        return f"http://127.0.0.1:{self.port}/hook"

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Listens inside; outside, connections are refused."""
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        try:
            yield
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        received = Request(request.path, {k.lower(): v for k, v in request.headers.items()}, await request.read())
        self.received.append(received)
        self._arrived.set()
        status = self.status
        if 200 <= status < 300:
            self.accepted.append(received)
        await asyncio.sleep(self.delay_s)
        return web.Response(status=status, headers=self.headers, text="ok" if status < 300 else "no")


@dataclass
class SmtpEndpoint:
    """A mail server; ``refuse`` names recipients and the reply they get. ``login`` (user, password) asks for one."""

    port: int = field(default_factory=free_port)
    refuse: dict[str, str] = field(default_factory=dict)
    login: tuple[str, str] | None = None
    tls: ssl.SSLContext | None = None
    is_tls_from_start: bool = False
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Listens inside; outside, connections are refused."""
        loop = asyncio.get_running_loop()
        from_start = self.tls if self.is_tls_from_start else None
        server = await loop.create_server(self._session, "127.0.0.1", self.port, ssl=from_start)
        try:
            yield
        finally:
            server.close()
            await server.wait_closed()

    def _session(self) -> SMTP:
        return SMTP(
            self,
            hostname="mail.test",
            authenticator=self._authenticate if self.login else None,
            # It does not see that a connection is protected from the start, and warns where it may not ask for that.
            auth_required=self.login is not None and not self.is_tls_from_start,
            auth_require_tls=not self.is_tls_from_start,
            require_starttls=self.tls is not None and not self.is_tls_from_start,
            tls_context=None if self.is_tls_from_start else self.tls,
        )

    def _authenticate(self, server: SMTP, session: Session, envelope: Envelope, how: str, data: object) -> AuthResult:
        assert isinstance(data, LoginPassword)
        return AuthResult(success=(data.login.decode(), data.password.decode()) == self.login, handled=False)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append((list(envelope.rcpt_tos), mail))
        return "250 accepted"
