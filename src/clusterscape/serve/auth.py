"""Who may ask: with a static token set, every request but the page itself and /healthz must carry it."""

import hmac
import ipaddress

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from clusterscape.errors import AccessError, ConfigError
from clusterscape.serve.problems import problem
from clusterscape.settings import ServerSettings

COOKIE = "clusterscape_token"


def refuse_open_address(server: ServerSettings) -> None:
    """Raise unless the server listens on loopback only or a token is set."""
    if server.token is not None or is_loopback(server.host):
        return
    raise ConfigError(
        f"refusing to listen on {server.host} without authentication",
        hint="Set server.token (at least 16 characters), or keep server.host at 127.0.0.1.",
    )


def is_loopback(host: str) -> bool:
    """Whether ``host`` can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def matches(token: str, given: str | None) -> bool:
    """Compared in constant time."""
    return given is not None and hmac.compare_digest(token.encode(), given.encode())


class TokenGate:
    """ASGI middleware: 401 in the one error shape where the token is missing or wrong."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on where it may."""
        if scope["type"] == "http" and _is_guarded(scope["path"]) and not self._may(Request(scope)):
            refusal = AccessError(
                "a token is needed", hint="Send it as `Authorization: Bearer …`, or sign in on the page."
            )
            response = problem(refusal.http_status, refusal.code, refusal.message, refusal.hint)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _may(self, request: Request) -> bool:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        bearer = value.strip() if scheme.lower() == "bearer" else None
        return matches(self._token, bearer) or matches(self._token, request.cookies.get(COOKIE))


def _is_guarded(path: str) -> bool:
    return (path.startswith("/api/") and path != "/api/v1/session") or path in ("/metrics", "/openapi.json")
