"""Live updates: one server-sent-event stream of version ticks. A slow client skips ticks; it never blocks the server.

Clients refetch when notified, so notifications to many clients are staggered, each client always with the same relative delay.
"""

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import orjson

from clusterscape.model import UnixMs
from clusterscape.store.changes import Changes, Versions

HEARTBEAT_S = 15.0
"""Proxies close silent streams; and a client that receives nothing for longer knows that the connection is lost."""

UNSTAGGERED_CLIENTS = 8
"""The most clients that are notified without delay."""

SPREAD_PER_CLIENT_S = 0.01
LONGEST_SPREAD_S = 2.0
"""Between the first and the last notification: enough time to answer a few requests of each client before the next refetches."""


class LiveHub:
    """Notifies every open stream of new versions. Runs in the server's event loop."""

    def __init__(self, changes: Changes, clock: Callable[[], UnixMs]) -> None:
        self._changes = changes
        self._clock = clock
        self._wakers: set[asyncio.Event] = set()
        self._closing = asyncio.Event()
        self._client_numbers = itertools.count()
        self._stop: Callable[[], None] | None = None

    @property
    def clients(self) -> int:
        """Number of open streams."""
        return len(self._wakers)

    def open(self) -> None:
        """Start listening for changes; called inside the event loop."""
        loop = asyncio.get_running_loop()

        def wake(_: Versions) -> None:
            loop.call_soon_threadsafe(self._wake)

        self._stop = self._changes.listen(wake)

    def close(self) -> None:
        """Close all streams, so that the server can stop."""
        self._closing.set()
        if self._stop:
            self._stop()
        self._wake()

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    async def stream(self) -> AsyncIterator[bytes]:
        """Events for one client: the current versions at once, on every change, and at least every HEARTBEAT_S."""
        waker = asyncio.Event()
        self._wakers.add(waker)
        # Multiples of the golden ratio: the delays stay evenly spread while clients connect and disconnect.
        relative_delay = next(self._client_numbers) * (math.sqrt(5) - 1) / 2 % 1
        try:
            while not self._closing.is_set():
                waker.clear()
                yield self._event(self._changes.versions)
                try:
                    await asyncio.wait_for(waker.wait(), HEARTBEAT_S)
                except TimeoutError:
                    continue
                await self._wait(relative_delay * spread_s(self.clients))
        finally:
            self._wakers.discard(waker)

    async def _wait(self, delay_s: float) -> None:
        """Wait before a notification, which then includes later changes; closing the hub ends the wait."""
        if delay_s > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), delay_s)

    def _event(self, versions: Versions) -> bytes:
        data = orjson.dumps(
            {
                "inventory_version": versions.inventory,
                "tick_version": versions.tick,
                "rules_version": versions.rules,
                "at": self._clock(),
                "newest_sample_at": versions.newest_sample_at,
                "paused": versions.paused,
            }
        )
        return b"event: version\ndata: " + data + b"\n\n"


def spread_s(clients: int) -> float:
    """Seconds over which notifications of a change are staggered."""
    return 0.0 if clients <= UNSTAGGERED_CLIENTS else min(LONGEST_SPREAD_S, clients * SPREAD_PER_CLIENT_S)
