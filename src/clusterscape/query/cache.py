"""Cache of query results, invalidated by version. Concurrent requests for the same value compute it once (single-flight).

Encoded responses that clients share are cached above it, by ``serve/response_cache.py``. docs/design/caching.md has the reasons.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar, cast

T = TypeVar("T")


@dataclass(slots=True)
class _Flight:
    """Serializes threads that compute the same key; ``users``: threads that hold or wait for the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class SameObjects:
    """A version made of object identities: equal while a store returns the same list objects, which it does until they change."""

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
    """An LRU cache of at most ``size`` values, each valid for one version. Thread-safe, and single-flight per key."""

    def __init__(self, size: int = 64, *, max_weight: int | None = None) -> None:
        """``max_weight``: of all values together (see ``get``); one value is kept whatever its weight."""
        self._size = size
        self._max_weight = max_weight
        self._entries: OrderedDict[Hashable, tuple[Hashable, object, int]] = OrderedDict()
        self._flights: dict[Hashable, _Flight] = {}
        self._lock = threading.Lock()

    @property
    def locks(self) -> int:
        """The number of keys that are being computed now."""
        return len(self._flights)

    def get(self, key: Hashable, version: Hashable, make: Callable[[], T], *, weight: int = 0) -> T:
        """The value of ``key`` at ``version``, computed by ``make`` if it is not cached. ``weight``: its share of the limit."""
        with self._lock:
            entry = self._find(key, version)
            if entry is not None:
                return cast(T, entry[1])
            flight = self._flights.setdefault(key, _Flight())
            flight.users += 1
        try:
            with flight.lock:
                return self._make(key, version, make, weight)
        finally:
            with self._lock:
                flight.users -= 1
                if not flight.users:
                    del self._flights[key]

    def _make(self, key: Hashable, version: Hashable, make: Callable[[], T], weight: int) -> T:
        with self._lock:
            entry = self._find(key, version)
        if entry is not None:
            return cast(T, entry[1])
        value = make()
        with self._lock:
            self._entries[key] = (version, value, weight)
            self._entries.move_to_end(key)
            while len(self._entries) > self._size or (len(self._entries) > 1 and self._is_too_heavy()):
                self._entries.popitem(last=False)
        return value

    def _is_too_heavy(self) -> bool:
        return self._max_weight is not None and sum(entry[2] for entry in self._entries.values()) > self._max_weight

    def _find(self, key: Hashable, version: Hashable) -> tuple[Hashable, object, int] | None:
        entry = self._entries.get(key)
        if entry is None or entry[0] != version:
            return None
        self._entries.move_to_end(key)
        return entry


class CachePart(VersionedCache):
    """One owner's keys in a cache that several owners share; ``size`` limits all of them together."""

    def __init__(self, shared: VersionedCache, owner: Hashable) -> None:
        self._shared = shared
        self._owner = owner

    def get(self, key: Hashable, version: Hashable, make: Callable[[], T], *, weight: int = 0) -> T:
        """The owner's value of ``key`` at ``version``."""
        return self._shared.get((self._owner, key), version, make, weight=weight)


def new_cache(_: str, size: int) -> VersionedCache:
    """A cache that is not shared."""
    return VersionedCache(size)
