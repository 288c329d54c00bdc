"""A shelf of answers as they are sent: each made once however many ask, and kept until what it was made from changes."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

from clusterscape.errors import ThrottledError
from clusterscape.model import UnixMs

STALE_MS = 20_000
"""Younger ones may be given while new ones are made, where that is allowed."""
MOST_ANSWERS = 512
MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Version:
    """``changes``: what of the stores' versions the answers depend on; ``step``: of time."""

    changes: tuple[Hashable, ...]
    history: int
    step: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is sent. ``route`` is what the inner app found, for those who note it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    etag: str
    route: object


@dataclass(frozen=True, slots=True)
class _Kept:
    version: Version
    made_at: UnixMs
    answer: Answer


@dataclass(slots=True)
class Counts:
    """How requests were answered: from what was kept, by waiting for another's, or anew."""

    kept: int = 0
    joined: int = 0
    made: int = 0


@dataclass(slots=True)
class AnswerShelf:
    """The kept answers, last used ones last. Lives in the server's event loop; nothing of it is bound to one loop."""

    clock: Callable[[], UnixMs]
    most_bytes: int = MOST_BYTES
    counts: Counts = field(default_factory=Counts)
    _kept: "OrderedDict[Hashable, _Kept]" = field(default_factory=OrderedDict)
    _flights: "dict[tuple[Hashable, Version], asyncio.Task[Answer]]" = field(default_factory=dict)
    size_bytes: int = 0

    async def find(
        self, key: Hashable, version: Version, make: Callable[[], Awaitable[Answer]], *, may_be_stale: bool = False
    ) -> Answer:
        """The answer for ``key`` at ``version``: kept, being made, or made by ``make``. A hang-up stops nobody else's."""
        kept = self._kept.get(key)
        if kept is not None and kept.version == version:
            self._kept.move_to_end(key)
            self.counts.kept += 1
            return kept.answer
        flight = self._flights.get((key, version))
        is_joined = flight is not None
        if flight is None:
            self.counts.made += 1
            flight = self._flights[key, version] = asyncio.create_task(self._make(key, version, make))
            flight.add_done_callback(_look_at)
        else:
            self.counts.joined += 1
        if may_be_stale and kept is not None and self._is_young(kept, version):
            return kept.answer
        answer = await asyncio.shield(flight)
        # Who asked first had too many requests; that is nobody else's fault.
        return await make() if is_joined and answer.status == ThrottledError.http_status else answer

    def _is_young(self, kept: _Kept, version: Version) -> bool:
        return kept.version.history == version.history and 0 <= self.clock() - kept.made_at < STALE_MS

    async def _make(self, key: Hashable, version: Version, make: Callable[[], Awaitable[Answer]]) -> Answer:
        asked_at = self.clock()
        try:
            answer = await make()
        finally:
            del self._flights[key, version]
        if answer.status == 200:
            self._keep(key, _Kept(version, asked_at, answer))
        return answer

    def _keep(self, key: Hashable, kept: _Kept) -> None:
        self._drop(key)
        self._kept[key] = kept
        self.size_bytes += len(kept.answer.body)
        while self._kept and (len(self._kept) > MOST_ANSWERS or self.size_bytes > self.most_bytes):
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self.size_bytes -= len(dropped.answer.body)


def _look_at(flight: "asyncio.Task[Answer]") -> None:
    """Whoever waited is told of a failure by awaiting it; where nobody did, the next one asks anew."""
    if not flight.cancelled():
        flight.exception()
