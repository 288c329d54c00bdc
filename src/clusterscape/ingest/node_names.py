"""Finds a scheduler's node by a name (short or fully qualified, case-insensitive) or an address. Never guesses. Pure."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from clusterscape.model import NodeId

_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"})


def split_address(address: str) -> str:
    """The host of ``host``, ``host:port``, ``[v6]:port`` or a bare IPv6 address; anything after a slash is ignored."""
    address = address.partition("/")[0]
    if address.startswith("["):
        return address[1:].partition("]")[0]
    host, colon, port = address.rpartition(":")
    return host if colon and ":" not in host and port.isdigit() else address


def is_ip(host: str) -> bool:
    """Whether ``host`` is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether ``host`` is the local machine, and so identifies no node."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shorten(host: str) -> str:
    """The host name without its domain; an IP address unchanged."""
    return host if is_ip(host) else host.partition(".")[0]


class NodeNames:
    """All nodes of the schedulers, with their other names and addresses."""

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
        """The node of this name. Different full names are different hosts; a short name matches a full one."""
        if name in self.nodes:
            return NodeId(name)
        folded = name.lower()
        node = self._exact.get(folded)
        if node is not None or is_ip(name):
            return node
        node = self._short.get(shorten(folded))
        is_other_host = node is not None and "." in node and "." in name
        return None if is_other_host else node

    def find_address(self, host: str) -> NodeId | None:
        """The only node with this other name or address in its scheduler."""
        return self._addresses.get(host.lower()) or (
            None if is_ip(host) else self._addresses.get(shorten(host.lower()))
        )


def _unique(pairs: Iterable[tuple[str, NodeId]]) -> dict[str, NodeId]:
    """Nodes by name, without names that several nodes share."""
    nodes_by_name: dict[str, set[NodeId]] = {}
    for name, node in pairs:
        nodes_by_name.setdefault(name, set()).add(node)
    return {name: next(iter(nodes)) for name, nodes in nodes_by_name.items() if len(nodes) == 1}
