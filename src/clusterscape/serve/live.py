"""Live updates: one server-sent-event stream of version ticks. A slow client skips ticks; it never holds up the server."""

import asyncio
from collections.abc import AsyncIterator, Callable

import orjson

from clusterscape.model import UnixMs
from clusterscape.store.changes import Changes, Versions

HEARTBEAT_S = 15.0
"""Proxies close silent streams; and a client that hears nothing for longer knows that it is cut off."""


class LiveHub:
    """Tells every open stream that versions changed. Lives in the server's event loop."""

    def __init__(self, changes: Changes, clock: Callable[[], UnixMs]) -> None:
        self._changes = changes
        self._clock = clock
        self._wakers: set[asyncio.Event] = set()
        self._closing = False
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
        self._closing = True
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
        try:
            while not self._closing:
                waker.clear()
                yield self._event(self._changes.versions)
                try:
                    await asyncio.wait_for(waker.wait(), HEARTBEAT_S)
                except TimeoutError:
                    continue
        finally:
            self._wakers.discard(waker)

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
