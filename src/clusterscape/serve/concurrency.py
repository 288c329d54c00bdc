"""Concurrency limits for requests: a bounded number run, a bounded number wait, and users take turns.

Lives in the server's event loop: a request that waits holds no thread. Which routes are limited is `serve/costs.py`'s.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from clusterscape.errors import ThrottledError
from clusterscape.query.fair_queue import FairQueue

RETRY_AFTER_S = 5


@dataclass(slots=True, kw_only=True)
class ConcurrencyLimit:
    """``at_once`` run, ``at_once_per_user`` of one user; ``per_user``: running and waiting; ``waiting``: of all users."""

    what: str
    at_once: int
    at_once_per_user: int
    per_user: int
    waiting: int
    wait_s: float
    refused: int = 0
    """Requests that were answered with 429."""
    _running: Counter[str] = field(default_factory=Counter)
    _queue: FairQueue[asyncio.Future[None]] = field(default_factory=FairQueue)

    @property
    def running(self) -> int:
        """Requests that have a slot."""
        return self._running.total()

    @property
    def queued(self) -> int:
        """Requests that wait for a slot."""
        return len(self._queue)

    @asynccontextmanager
    async def slot(self, user: str, hang_up: Callable[[], Awaitable[object]] | None = None) -> AsyncIterator[None]:
        """Hold a slot within the block. Raises ThrottledError where the user, or all together, have too many.

        ``hang_up`` returns when the client went away: then the request leaves the queue.
        """
        await self._acquire(user, hang_up)
        try:
            yield
        finally:
            self._release(user)

    async def _acquire(self, user: str, hang_up: Callable[[], Awaitable[object]] | None) -> None:
        if self._running[user] + self._queue.count(user) >= self.per_user:
            raise self._refuse(f"{self.per_user} {self.what} of yours are running or waiting")
        if self._is_eligible(user):
            self._running[user] += 1
            return
        if len(self._queue) >= self.waiting:
            raise self._refuse(f"{self.waiting} {self.what} are waiting")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(user, turn)
        try:
            await self._wait(turn, hang_up)
        except BaseException:
            self._queue.remove(user, turn)
            if turn.done() and not turn.cancelled():  # the slot came in the same moment
                self._release(user)
            raise

    async def _wait(self, turn: "asyncio.Future[None]", hang_up: Callable[[], Awaitable[object]] | None) -> None:
        leaving: asyncio.Future[Any] = asyncio.ensure_future(_never() if hang_up is None else hang_up())
        try:
            done, _ = await asyncio.wait({turn, leaving}, timeout=self.wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await leaving
        if turn in done:
            return
        if leaving in done:
            raise ThrottledError("the client has left", retry_after_s=RETRY_AFTER_S)  # nobody reads it
        raise self._refuse(f"no slot for {self.what} came free within {self.wait_s:g} s")

    def _is_eligible(self, user: str) -> bool:
        return self.running < self.at_once and self._running[user] < self.at_once_per_user

    def _release(self, user: str) -> None:
        self._running[user] -= 1
        if not self._running[user]:
            del self._running[user]
        while (entry := self._queue.pop(self._is_eligible)) is not None:
            waiting_user, turn = entry
            if not turn.done():
                self._running[waiting_user] += 1
                turn.set_result(None)

    def _refuse(self, message: str) -> ThrottledError:
        self.refused += 1
        hint = "Wait for the answers to your other requests, then try again; limits.work in the settings bounds this."
        return ThrottledError(message, retry_after_s=RETRY_AFTER_S, hint=hint)


async def _never() -> None:
    await asyncio.get_running_loop().create_future()
