"""The client's address and the requested host, as far as they can be trusted; and which addresses the server may listen on."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from clusterscape.errors import ConfigError
from clusterscape.settings import AuthSettings, ServerSettings

UNKNOWN = "unknown"


def refuse_open_address(server: ServerSettings, auth: AuthSettings | None = None) -> None:
    """Raise ConfigError unless the server listens on loopback only or requires authentication."""
    if server.token is not None or is_loopback(server.host) or (auth is not None and auth.modes):
        return
    raise ConfigError(
        f"refusing to listen on {server.host} without authentication",
        hint="Set auth.modes or server.token (at least 16 characters), or keep server.host at 127.0.0.1.",
    )


def is_loopback(host: str) -> bool:
    """Whether ``host`` can be reached from this machine only."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def strip_port(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """The address of a client, and the host that it requested."""

    address: str
    origin: str
    """Scheme, host and port of the page, as the browser sees them."""
    host: str
    is_proxied: bool
    """Whether a trusted proxy forwarded the request."""

    @property
    def is_https(self) -> bool:
        """Whether the browser uses https."""
        return self.origin.startswith("https://")


class Addresses:
    """Reads the address of clients. Forwarded headers count only from trusted proxies."""

    def __init__(self, trusted_proxies: Sequence[str], public_url: str | None) -> None:
        self._trusted = [ipaddress.ip_network(network, strict=False) for network in trusted_proxies]
        self._public_url = public_url

    def read_client(self, scope: Scope) -> ClientInfo:
        """The client that sent a request."""
        headers = Headers(scope=scope)
        socket_address = scope.get("client")
        peer = str(socket_address[0]) if socket_address else UNKNOWN
        is_proxied = self._is_trusted(peer)
        scheme, host = str(scope.get("scheme", "http")), headers.get("host", "")
        address = peer
        if is_proxied:
            address = self._find_client_hop(headers.getlist("x-forwarded-for")) or peer
            scheme = _last(headers.getlist("x-forwarded-proto")) or scheme
            host = _last(headers.getlist("x-forwarded-host")) or host
        origin = self._public_url or f"{'https' if scheme == 'https' else 'http'}://{host}"
        return ClientInfo(address=address, origin=origin, host=host, is_proxied=is_proxied)

    def is_public_host(self, host: str) -> bool:
        """Whether it is the host of ``auth.public_url``."""
        return self._public_url is not None and self._public_url.partition("://")[2] == host

    def _find_client_hop(self, forwarded: Sequence[str]) -> str | None:
        """The last hop that is not a trusted proxy; the client may have written anything to the left of it."""
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


def rate_limit_network(address: str) -> str:
    """The network that limits count as one client: an IPv4 address, or the /64 of an IPv6 address (one customer owns it)."""
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
    """The value that the proxy appended, after any value that the client sent in the same header or in another line of it."""
    return lines[-1].rpartition(",")[2].strip().lower() or None if lines else None
