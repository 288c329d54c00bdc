"""Live updates: one server-sent-event stream of version ticks. A slow client skips ticks; it never holds up the server.

Who is told comes to ask at once, so where many listen they are told one after another, each always at its own place in turn.
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
"""Proxies close silent streams; and a client that hears nothing for longer knows that it is cut off."""

FEW = 8
"""So many listeners are told at once, whoever they are: nobody waits on a quiet site."""

SPREAD_PER_CLIENT_S = 0.01
LONGEST_SPREAD_S = 2.0
"""From the first to the last who is told: time enough to answer a few questions of each before the next one comes."""


class LiveHub:
    """Tells every open stream that versions changed. Lives in the server's event loop."""

    def __init__(self, changes: Changes, clock: Callable[[], UnixMs]) -> None:
        self._changes = changes
        self._clock = clock
        self._wakers: set[asyncio.Event] = set()
        self._closing = asyncio.Event()
        self._places = itertools.count()
        self._stop: Callable[[], None] | None = None

    @property
    def clients(self) -> int:
        """Open streams."""
        return len(self._wakers)

    def open(self) -> None:
        """Begin to listen; called inside the event loop."""
        loop = asyncio.get_running_loop()

        def wake(_: Versions) -> None:
            loop.call_soon_threadsafe(self._wake)

        self._stop = self._changes.listen(wake)

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        self._closing.set()
        if self._stop:
            self._stop()
        self._wake()

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    async def stream(self) -> AsyncIterator[bytes]:
        """Events for one client: the versions at once, on every change, and at least every HEARTBEAT_S."""
        waker = asyncio.Event()
        self._wakers.add(waker)
        # Multiples of the golden ratio: however many come and go, those who are there stand evenly apart.
        turn = next(self._places) * (math.sqrt(5) - 1) / 2 % 1
        try:
            while not self._closing.is_set():
                waker.clear()
                yield self._event(self._changes.versions)
                try:
                    await asyncio.wait_for(waker.wait(), HEARTBEAT_S)
                except TimeoutError:
                    continue
                await self._wait(turn * spread_s(self.clients))
        finally:
            self._wakers.discard(waker)

    async def _wait(self, delay_s: float) -> None:
        """What changes meanwhile is told along; who waits for the end of the server does not wait for this."""
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
    """How long it takes to tell so many of a change."""
    return 0.0 if clients <= FEW else min(LONGEST_SPREAD_S, clients * SPREAD_PER_CLIENT_S)
