"""Finds a scheduler's node by a name or an address: exact, short or fully qualified, in any case. Guesses nothing. Pure."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from clusterscape.model import NodeId

_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"})


def split_address(address: str) -> str:
    """The host of ``host``, ``host:port``, ``[v6]:port`` or a bare IPv6 address; what follows a slash is a path."""
    address = address.partition("/")[0]
    if address.startswith("["):
        return address[1:].partition("]")[0]
    host, colon, port = address.rpartition(":")
    return host if colon and ":" not in host and port.isdigit() else address


def is_ip(host: str) -> bool:
    """Whether it is an address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether it names whoever asks, and so no node."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shorten(host: str) -> str:
    """Without its domain; an address is kept whole."""
    return host if is_ip(host) else host.partition(".")[0]


class NodeNames:
    """All nodes that schedulers name, with their other names and addresses."""

    def __init__(self, nodes: Iterable[NodeId] = (), host_names: Mapping[NodeId, Sequence[str]] | None = None) -> None:
        self.nodes = frozenset(nodes)
        self._exact = _unique((str(node).lower(), node) for node in self.nodes)
        self._short = _unique((shorten(node).lower(), node) for node in self.nodes)
        self._addresses = _unique(
            (name.lower(), node)
            for node, names in (host_names or {}).items()
            for name in names
            if node in self.nodes and not is_loopback(name)
        )

    def find(self, name: str) -> NodeId | None:
        """The node of this name. Two full names that differ are two hosts; a short one may stand for a full one."""
        if name in self.nodes:
            return NodeId(name)
        folded = name.lower()
        found = self._exact.get(folded)
        if found is not None or is_ip(name):
            return found
        found = self._short.get(shorten(folded))
        is_other_host = found is not None and "." in found and "." in name
        return None if is_other_host else found

    def find_address(self, host: str) -> NodeId | None:
        """The only node that its scheduler reaches under this name or address."""
        return self._addresses.get(host.lower()) or (
            None if is_ip(host) else self._addresses.get(shorten(host.lower()))
        )


def _unique(pairs: Iterable[tuple[str, NodeId]]) -> dict[str, NodeId]:
    """A name that several nodes share leads nowhere."""
    found: dict[str, set[NodeId]] = {}
    for name, node in pairs:
        found.setdefault(name, set()).add(node)
    return {name: next(iter(nodes)) for name, nodes in found.items() if len(nodes) == 1}
