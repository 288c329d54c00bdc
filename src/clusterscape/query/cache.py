"""Answers kept until what they were made from changes; asked by many at once, they are made once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class VersionedCache:
    """At most ``size`` answers, each valid for one version. Thread-safe, and single-flight per key."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._entries: OrderedDict[Hashable, tuple[Hashable, object]] = OrderedDict()
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
        """The answer for ``key`` at ``version``, made by ``make`` where it is not there yet."""
        with self._lock:
            found = self._find(key, version)
            if found is not None:
                return cast(T, found[1])
            gate = self._locks.setdefault(key, threading.Lock())
        with gate:
            with self._lock:
                found = self._find(key, version)
            if found is not None:
                return cast(T, found[1])
            answer = make()
            with self._lock:
                self._entries[key] = (version, answer)
                self._entries.move_to_end(key)
                while len(self._entries) > self._size:
                    dropped, _ = self._entries.popitem(last=False)
                    self._locks.pop(dropped, None)
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
