"""The cache below the answers: values kept until what they were made from changes; asked for by many at once, made once.

The responses that clients share are kept above it, by ``serve/response_cache.py``. docs/design/caching.md has the reasons.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar, cast

T = TypeVar("T")


@dataclass(slots=True)
class _Flight:
    """Serializes those who want the same key; ``users``: threads that hold or wait for the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class SameObjects:
    """A version of lists that a store hands out again until they change: equal where they are the same objects."""

    __slots__ = ("_objects",)

    def __init__(self, *objects: object) -> None:
        # Held, so that no later object can have the identity of one of these.
        self._objects = objects

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SameObjects) or len(self._objects) != len(other._objects):
            return False
        return all(mine is theirs for mine, theirs in zip(self._objects, other._objects, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._objects)))


class VersionedCache:
    """At most ``size`` answers, each valid for one version. Thread-safe, and single-flight per key."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._entries: OrderedDict[Hashable, tuple[Hashable, object]] = OrderedDict()
        self._flights: dict[Hashable, _Flight] = {}
        self._lock = threading.Lock()

    @property
    def locks(self) -> int:
        """Keys that are locked now: none while nobody computes an answer."""
        return len(self._flights)

    def get(self, key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
        """The answer for ``key`` at ``version``, made by ``make`` where it is not there yet."""
        with self._lock:
            found = self._find(key, version)
            if found is not None:
                return cast(T, found[1])
            flight = self._flights.setdefault(key, _Flight())
            flight.users += 1
        try:
            with flight.lock:
                return self._make(key, version, make)
        finally:
            with self._lock:
                flight.users -= 1
                if not flight.users:
                    del self._flights[key]

    def _make(self, key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            found = self._find(key, version)
        if found is not None:
            return cast(T, found[1])
        answer = make()
        with self._lock:
            self._entries[key] = (version, answer)
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
        return answer

    def _find(self, key: Hashable, version: Hashable) -> tuple[Hashable, object] | None:
        entry = self._entries.get(key)
        if entry is None or entry[0] != version:
            return None
        self._entries.move_to_end(key)
        return entry


class CachePart(VersionedCache):
    """What one owner keeps in a cache that several share: all of them together keep no more than its size."""

    def __init__(self, shared: VersionedCache, owner: Hashable) -> None:
        self._shared = shared
        self._owner = owner

    def get(self, key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
        """The owner's answer for ``key`` at ``version``."""
        return self._shared.get((self._owner, key), version, make)


def new_cache(_: str, size: int) -> VersionedCache:
    """A cache of one's own."""
    return VersionedCache(size)
