"""What all connections of a server share: how many are open, how much of their bodies is held, and the rounds that end slow ones.

Knows nothing of HTTP: `serve/http_protocol.py` has each connection's state, `serve/body_limits.py` reads bodies.
"""

import asyncio
import logging
from collections import Counter
from typing import Protocol

from clusterscape.serve.identity.addresses import neighborhood
from clusterscape.serve.refusals import Refusals
from clusterscape.settings.limits import HttpLimits

log = logging.getLogger(__name__)

LONGEST_ROUND_S = 1.0
MOST_LINGERING = 256
"""Connections that are kept for a moment after a refusal, so that the client can read it."""


class Transfer:
    """How a body or an answer progresses: whether it stands still, or is slower than it may be on average."""

    __slots__ = ("_begun_at", "_bytes_per_s", "_checked_at", "_done", "_first", "_moved_at", "_stall_s")

    def __init__(self, now: float, done: int, *, stall_s: float, bytes_per_s: int) -> None:
        """``done``: bytes transferred so far, of a count that goes on."""
        self._begun_at = self._moved_at = self._checked_at = now
        self._first = self._done = done
        self._stall_s = stall_s
        self._bytes_per_s = bytes_per_s

    def hold(self, now: float) -> None:
        """The other side is not to blame for the time since the last check."""
        passed_s = now - self._checked_at
        self._begun_at += passed_s
        self._moved_at += passed_s
        self._checked_at = now

    def is_too_slow(self, now: float, done: int) -> bool:
        """Whether nothing moved for ``stall_s``, or the average without the first ``stall_s`` is below the least rate."""
        self._checked_at = now
        if done != self._done:
            self._done = done
            self._moved_at = now
        counted_s = now - self._begun_at - self._stall_s
        return now - self._moved_at > self._stall_s or done - self._first < self._bytes_per_s * counted_s


class Connection(Protocol):
    """One connection, as the guard sees it."""

    @property
    def address(self) -> str:
        """Of its other end."""
        ...

    def check(self, now: float) -> None:
        """End what takes too long."""
        ...


class HttpGuard:
    """Limits of one server. Lives in its event loop."""

    def __init__(self, limits: HttpLimits | None = None, *, most_connections: int | None = None) -> None:
        """``most_connections``: where the system grants fewer than the settings."""
        self.limits = limits or HttpLimits()
        self.refusals = Refusals()
        self.held_bytes = 0
        self.lingering = 0
        self.now = 0.0
        """Seconds that the server listened, to within a round. While something else holds up the event loop nobody can be
        read, and nobody is too slow: after such a time timers come before sockets."""
        self._most = min(self.limits.connections, most_connections or self.limits.connections)
        self._watched: set[Connection] = set()
        self._admitted: dict[Connection, str] = {}
        self._by_address: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._round_began_at = 0.0
        shortest_s = min(self.limits.head_s, self.limits.body_stall_s, self.limits.write_stall_s)
        self._round_s = min(LONGEST_ROUND_S, shortest_s / 4)

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._admitted)

    def admit(self, connection: Connection) -> bool:
        """Watch a new connection; False where there are too many, and it is to be refused."""
        self._watched.add(connection)
        self._plan_round()
        address = neighborhood(connection.address)
        if len(self._admitted) >= self._most or self._by_address[address] >= self.limits.connections_per_address:
            return False
        self._admitted[connection] = address
        self._by_address[address] += 1
        return True

    def release(self, connection: Connection) -> None:
        """The connection is over."""
        self._watched.discard(connection)
        address = self._admitted.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def hold(self, size: int) -> bool:
        """Count bytes of a body as held; False where there are too many. Whoever holds them gives them back."""
        if self.held_bytes + size > self.limits.held_body_bytes:
            return False
        self.held_bytes += size
        return True

    def give_back(self, size: int) -> None:
        """These bytes are no longer held."""
        self.held_bytes -= size

    def _plan_round(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._round_began_at = loop.time()
            self._timer = loop.call_later(self._round_s, self._check_all)

    def _check_all(self) -> None:
        """One timer for all connections: thousands of timers that are moved with every packet would cost more."""
        self._timer = None
        passed_s = asyncio.get_running_loop().time() - self._round_began_at
        self.now += min(passed_s, 2 * self._round_s)
        for connection in tuple(self._watched):
            try:
                connection.check(self.now)
            except Exception:
                log.exception("a connection could not be checked")
                self.release(connection)
        self.refusals.write_log()
        if self._watched or self.refusals.has_unlogged:
            self._plan_round()
