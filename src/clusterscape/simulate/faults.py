"""Outages of nodes, as simulations take them. Times are whole seconds since an origin of the caller's."""

from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What happens to the jobs of a node that leaves service."""

    FAIL = "fail"  # they end
    DRAIN = "drain"  # they run on; nothing new starts


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """A node out of service during [from_s, to_s); ``to_s`` None: for good."""

    node: str
    kind: FaultKind
    from_s: int
    to_s: int | None = None
