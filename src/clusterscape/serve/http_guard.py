"""Limits that all connections of a server share: open connections, bytes of bodies in memory, and periodic checks that end slow
connections.

Independent of HTTP: `serve/http_protocol.py` holds the state of each connection, `serve/request_limits.py` reads bodies.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from clusterscape.serve.identity.addresses import rate_limit_network
from clusterscape.serve.refusals import Refusals
from clusterscape.settings.limits import HttpLimits

log = logging.getLogger(__name__)

LONGEST_ROUND_S = 1.0
PIPELINED_EVERY_S = 0.002
"""Pipelined requests of all connections start one by one: a thousand that start together would delay everybody else's requests
until all of them are done."""
MOST_LINGERING = 256
"""The most connections that stay open for a moment after a refusal, so that the client can read it."""


class Transfer:
    """The progress of a request body or a response: detects stalls and average rates below the minimum."""

    __slots__ = ("_begun_at", "_bytes_per_s", "_checked_at", "_done", "_first", "_moved_at", "_stall_s")

    def __init__(self, now: float, done: int, *, stall_s: float, bytes_per_s: int) -> None:
        """``done``: bytes transferred so far, a running count."""
        self._begun_at = self._moved_at = self._checked_at = now
        self._first = self._done = done
        self._stall_s = stall_s
        self._bytes_per_s = bytes_per_s

    def hold(self, now: float) -> None:
        """Do not count the time since the last check: the client did not cause the delay."""
        passed_s = now - self._checked_at
        self._begun_at += passed_s
        self._moved_at += passed_s
        self._checked_at = now

    def is_too_slow(self, now: float, done: int) -> bool:
        """Whether no byte moved for ``stall_s``, or the average rate after the first ``stall_s`` is below the minimum."""
        self._checked_at = now
        if done != self._done:
            self._done = done
            self._moved_at = now
        counted_s = now - self._begun_at - self._stall_s
        return now - self._moved_at > self._stall_s or done - self._first < self._bytes_per_s * counted_s


class Connection(Protocol):
    """The part of a connection that the guard needs."""

    @property
    def address(self) -> str:
        """The client's address."""
        ...

    def check(self, now: float) -> None:
        """End the connection if the client is too slow."""
        ...


class HttpGuard:
    """The limits of one server. Runs in its event loop."""

    def __init__(self, limits: HttpLimits | None = None, *, most_connections: int | None = None) -> None:
        """``most_connections``: the limit of the operating system, if it is lower than that of the settings."""
        self.limits = limits or HttpLimits()
        self.refusals = Refusals()
        self.held_bytes = 0
        self.lingering = 0
        self.now = 0.0
        """Seconds that the server has listened, accurate to one round. Time in which the event loop was blocked does not count:
        no socket could be read then, and timers run before sockets afterwards."""
        self._most = min(self.limits.connections, most_connections or self.limits.connections)
        self._watched: set[Connection] = set()
        self._admitted: dict[Connection, str] = {}
        self._by_address: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._pipelined: deque[Callable[[], None]] = deque()
        self._round_began_at = 0.0
        shortest_s = min(self.limits.header_timeout_s, self.limits.body_timeout_s, self.limits.write_timeout_s)
        self._round_s = min(LONGEST_ROUND_S, shortest_s / 4)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._admitted)

    def admit(self, connection: Connection) -> bool:
        """Watch a new connection; False if there are too many and it must be refused."""
        self._watched.add(connection)
        self._plan_round()
        address = rate_limit_network(connection.address)
        if len(self._admitted) >= self._most or self._by_address[address] >= self.limits.connections_per_address:
            return False
        self._admitted[connection] = address
        self._by_address[address] += 1
        return True

    def release(self, connection: Connection) -> None:
        """Stop watching a connection that has ended."""
        self._watched.discard(connection)
        address = self._admitted.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def hold(self, size: int) -> bool:
        """Count bytes of a body as held in memory; False if there are too many. The caller must release them."""
        if self.held_bytes + size > self.limits.buffered_body_bytes:
            return False
        self.held_bytes += size
        return True

    def release_bytes(self, size: int) -> None:
        """Count these bytes as no longer held."""
        self.held_bytes -= size

    def start_pipelined(self, start: Callable[[], None]) -> None:
        """Call ``start`` when it is its turn among the pipelined requests."""
        self._pipelined.append(start)
        if len(self._pipelined) == 1:
            asyncio.get_running_loop().call_later(PIPELINED_EVERY_S, self._start_next)

    def _start_next(self) -> None:
        start = self._pipelined.popleft()
        if self._pipelined:
            asyncio.get_running_loop().call_later(PIPELINED_EVERY_S, self._start_next)
        start()

    def _plan_round(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._round_began_at = loop.time()
            self._timer = loop.call_later(self._round_s, self._check_all)

    def _check_all(self) -> None:
        """Check all connections. One timer for all: thousands of timers that are reset with every packet would cost more."""
        self._timer = None
        passed_s = asyncio.get_running_loop().time() - self._round_began_at
        self.now += min(passed_s, 2 * self._round_s)
        for connection in tuple(self._watched):
            try:
                connection.check(self.now)
            except Exception:
                log.exception("the check of a connection failed; it is no longer watched")
                self.release(connection)
        self.refusals.write_log()
        if self._watched or self.refusals.has_unlogged:
            self._plan_round()
