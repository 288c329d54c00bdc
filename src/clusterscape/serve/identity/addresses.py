"""Where a request comes from and was sent to, as far as that can be believed; and which addresses may be listened on."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from clusterscape.errors import ConfigError
from clusterscape.settings import AuthSettings, ServerSettings

UNKNOWN = "unknown"


def refuse_open_address(server: ServerSettings, auth: AuthSettings | None = None) -> None:
    """Raise unless the server listens on loopback only or wants to know who asks."""
    if server.token is not None or is_loopback(server.host) or (auth is not None and auth.modes):
        return
    raise ConfigError(
        f"refusing to listen on {server.host} without authentication",
        hint="Set auth.modes or server.token (at least 16 characters), or keep server.host at 127.0.0.1.",
    )


def is_loopback(host: str) -> bool:
    """Whether ``host`` can be reached from this machine alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whence:
    """Where a request comes from, and how it was addressed."""

    address: str
    origin: str
    """Scheme, host and port of the page as its browser knows it."""
    host: str
    is_proxied: bool
    """It was passed on by a trusted proxy."""

    @property
    def is_https(self) -> bool:
        """Whether the browser speaks https."""
        return self.origin.startswith("https://")


class Addresses:
    """Reads where requests come from. Forwarded headers count only from proxies that are trusted."""

    def __init__(self, trusted_proxies: Sequence[str], public_url: str | None) -> None:
        self._trusted = [ipaddress.ip_network(each, strict=False) for each in trusted_proxies]
        self._public_url = public_url

    def whence(self, scope: Scope) -> Whence:
        """Of one request."""
        headers = Headers(scope=scope)
        client = scope.get("client")
        peer = str(client[0]) if client else UNKNOWN
        is_proxied = self._is_trusted(peer)
        scheme, host = str(scope.get("scheme", "http")), headers.get("host", "")
        address = peer
        if is_proxied:
            address = self._first_foreign(headers.getlist("x-forwarded-for")) or peer
            scheme = _last(headers.getlist("x-forwarded-proto")) or scheme
            host = _last(headers.getlist("x-forwarded-host")) or host
        origin = self._public_url or f"{'https' if scheme == 'https' else 'http'}://{host}"
        return Whence(address=address, origin=origin, host=host, is_proxied=is_proxied)

    def is_public_host(self, host: str) -> bool:
        """Whether it is the host of the address that people are said to reach the page at."""
        return self._public_url is not None and self._public_url.partition("://")[2] == host

    def _first_foreign(self, forwarded: Sequence[str]) -> str | None:
        """The last hop that is not a trusted proxy: what stands left of it anybody may have written."""
        hops = [hop.strip() for line in forwarded for hop in line.split(",") if hop.strip()]
        return next((hop for hop in reversed(hops) if not self._is_trusted(hop)), hops[0] if hops else None)

    def _is_trusted(self, address: str) -> bool:
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        return any(ip in network for network in self._trusted)


def neighborhood(address: str) -> str:
    """What counts as one place: an IPv4 address, the /64 of an IPv6 address (one customer has all of it)."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


def _last(lines: Sequence[str]) -> str | None:
    """What the proxy added: it stands behind what the client may have sent, in the same header or in one of its own."""
    return lines[-1].rpartition(",")[2].strip().lower() or None if lines else None
