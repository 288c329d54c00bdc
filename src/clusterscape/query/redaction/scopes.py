"""The queries of each viewer scope: viewers of the same scope share one set, and the last used sets are kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from clusterscape.model.viewers import Viewer
from clusterscape.query.cache import CachePart, VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.redaction.pseudonyms import Pseudonyms
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.query.redaction.scoped_files import ScopedFiles
from clusterscape.query.redaction.scoped_records import AnonymousWorkloads, ScopedRecords
from clusterscape.query.redaction.viewer_scope import NOBODY, ViewerScope, scope_of
from clusterscape.query.redaction.workload_codes import WorkloadCodes

KEPT_SCOPES = 256
"""Queries are light: what they keep is in caches that all scopes share."""

T = TypeVar("T")


class Scopes(Generic[T]):
    """Scoped stores, and what ``make`` builds over them. Thread-safe. All scopes together keep as much as the whole site."""

    def __init__(self, context: QueryContext, make: Callable[[QueryContext, Redactor], T]) -> None:
        self._context = context
        self._make = make
        self._lock = threading.Lock()
        self._names = Pseudonyms(context.records, context.clock)
        self.codes = WorkloadCodes(self._names, context.records, context.clock)
        self.nobody = Redactor(NOBODY, self._names, self.codes, context.records)
        self._anonymous = AnonymousWorkloads(self.nobody)
        self._caches: dict[str, VersionedCache] = {}
        self._kept: OrderedDict[ViewerScope, T] = OrderedDict()

    def find(self, viewer: Viewer) -> T | None:
        """The queries of this viewer; None where they read every name."""
        scope = scope_of(viewer)
        if scope is None:
            return None
        with self._lock:
            if scope not in self._kept:
                redactor = Redactor(scope, self._names, self.codes, self._context.records)
                self._kept[scope] = self._make(self._narrow(scope, redactor), redactor)
            self._kept.move_to_end(scope)
            while len(self._kept) > KEPT_SCOPES:
                self._kept.popitem(last=False)
            return self._kept[scope]

    def _narrow(self, scope: ViewerScope, redactor: Redactor) -> QueryContext:
        context = self._context
        records = ScopedRecords(context.records, redactor, self._anonymous)
        files = None if context.artifacts is None else ScopedFiles(context.artifacts, redactor)
        new_cache = partial(self._new_cache, scope)
        return replace(context, records=records, artifacts=files, cache=new_cache("answers", 64), new_cache=new_cache)

    def _new_cache(self, scope: ViewerScope, name: str, size: int) -> VersionedCache:
        shared = self._caches.setdefault(name, VersionedCache(size))
        return CachePart(shared, scope)
