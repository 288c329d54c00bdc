"""Outages of nodes for simulations. Times are whole seconds since an origin that the caller chooses."""

from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What happens to the jobs of a node that leaves service."""

    FAIL = "fail"  # they end
    DRAIN = "drain"  # they keep running; no new job starts


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """A node out of service during [from_s, to_s); ``to_s`` None: permanently."""

    node: str
    kind: FaultKind
    from_s: int
    to_s: int | None = None
