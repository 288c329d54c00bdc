"""Builds and keeps what each sight asks: one set of queries for all viewers of the same sight, the last used ones kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from clusterscape.model.viewers import Viewer
from clusterscape.query.cache import CachePart, VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.visibility.hidden_ids import HiddenIds
from clusterscape.query.visibility.pseudonyms import Pseudonyms
from clusterscape.query.visibility.sights import Sight, sight_of
from clusterscape.query.visibility.veil import Veil
from clusterscape.query.visibility.veiled_files import VeiledFiles
from clusterscape.query.visibility.veiled_records import VeiledRecords

KEPT_SIGHTS = 256
"""Queries are light: what they keep is in caches that all sights share."""

T = TypeVar("T")


class Sights(Generic[T]):
    """Veiled stores by sight, and what ``make`` builds over them. Thread-safe. All sights together keep as much as the whole."""

    def __init__(self, context: QueryContext, make: Callable[[tuple[QueryContext, VeiledRecords, Veil]], T]) -> None:
        self._context = context
        self._make = make
        self._lock = threading.Lock()
        names = Pseudonyms(context.records, context.clock)
        self.ids = HiddenIds(names, context.records, context.clock)
        self._veil = Veil(names)
        self._caches: dict[str, VersionedCache] = {}
        self._kept: OrderedDict[Sight, T] = OrderedDict()

    def find(self, viewer: Viewer) -> T | None:
        """What this viewer asks; None where they see everything as it is."""
        sight = sight_of(viewer)
        if sight is None:
            return None
        with self._lock:
            if sight not in self._kept:
                self._kept[sight] = self._make(self._see(sight))
            self._kept.move_to_end(sight)
            while len(self._kept) > KEPT_SIGHTS:
                self._kept.popitem(last=False)
            return self._kept[sight]

    def _see(self, sight: Sight) -> tuple[QueryContext, VeiledRecords, Veil]:
        context = self._context
        records = VeiledRecords(context.records, sight, self._veil)
        files = None if context.artifacts is None else VeiledFiles(context.artifacts, sight, records.knows)
        new_cache = partial(self._new_cache, sight)
        seen = replace(context, records=records, artifacts=files, cache=new_cache("answers", 64), new_cache=new_cache)
        return seen, records, self._veil

    def _new_cache(self, sight: Sight, name: str, size: int) -> VersionedCache:
        shared = self._caches.setdefault(name, VersionedCache(size))
        return CachePart(shared, sight)
