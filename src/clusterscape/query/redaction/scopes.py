"""The queries of each viewer scope: viewers of the same scope share one set, and the latest sets are cached. Also the files that
a scope may read: traces of workloads that it covers, and own ones.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from clusterscape.errors import NotFoundError
from clusterscape.model.access import Viewer
from clusterscape.model.traces import TRACES_PREFIX, TraceAbout
from clusterscape.query.cache import CachePart, VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.redaction.pseudonyms import Pseudonyms, WorkloadCodes
from clusterscape.query.redaction.redactor import NOBODY, ScopeRedactor, ViewerScope, scope_of
from clusterscape.query.redaction.scoped_records import AnonymousWorkloads, ScopedRecords
from clusterscape.store.artifacts.contract import ArtifactInfo, ArtifactReader
from clusterscape.store.artifacts.traces import read_about

UPLOADS_PREFIX = "job-traces/"
"""These files are found only by their documents, which are scoped (``scoped_records.py``)."""


class ScopedFiles:
    """An ArtifactReader for one scope. Files outside of the scope, and new kinds of files, do not exist in it."""

    def __init__(self, artifacts: ArtifactReader, redactor: ScopeRedactor) -> None:
        self._artifacts = artifacts
        self._redactor = redactor

    def open(self, key: str) -> BinaryIO:
        """The content, to be closed by the caller."""
        self._check(key)
        return self._artifacts.open(key)

    def path(self, key: str) -> Path:
        """A local file with the content."""
        self._check(key)
        return self._artifacts.path(key)

    def list(self, prefix: str = "") -> "list[ArtifactInfo]":
        """All artifacts that the scope may read, by key."""
        is_readable: dict[str, bool] = {}
        readable = []
        for artifact in self._artifacts.list(prefix):
            folder = "/".join(artifact.key.split("/")[:2])
            if folder not in is_readable:
                is_readable[folder] = self._is_readable(artifact.key)
            if is_readable[folder]:
                readable.append(artifact)
        return readable

    def folders(self, prefix: str) -> Sequence[str]:
        """The folders that the scope may read, by name."""
        return [name for name in self._artifacts.folders(prefix) if self._is_readable(f"{prefix}{name}/")]

    def _check(self, key: str) -> None:
        if not self._is_readable(key):
            raise NotFoundError(f"no artifact {key}", hint="GET /api/v1/traces lists traces.")

    def _is_readable(self, key: str) -> bool:
        if key.startswith(UPLOADS_PREFIX):
            return True
        if not key.startswith(TRACES_PREFIX):
            return False
        try:
            about = read_about(self._artifacts, key.split("/")[1])
        except NotFoundError:
            return False
        return is_own_trace(about, self._redactor.scope.user) or (
            about.workload_id is not None and self._redactor.covers_workload(about.workload_id)
        )


def is_own_trace(about: TraceAbout, user: str | None) -> bool:
    """Whether this user uploaded the trace."""
    return user is not None and about.owned_by == user


MAX_SCOPES = 256
"""Queries are small: their data is in caches that all scopes share."""

T = TypeVar("T")


class Scopes(Generic[T]):
    """Builds and caches, for each scope, what ``make`` creates from scoped stores. Thread-safe. Scopes share their caches."""

    def __init__(self, context: QueryContext, make: Callable[[QueryContext, ScopeRedactor], T]) -> None:
        self._context = context
        self._make = make
        self._lock = threading.Lock()
        self._names = Pseudonyms(context.records, context.clock)
        self.codes = WorkloadCodes(self._names, context.records, context.clock)
        self.anonymous_redactor = ScopeRedactor(NOBODY, self._names, self.codes, context.records)
        self._anonymous = AnonymousWorkloads(self.anonymous_redactor)
        self._caches: dict[str, VersionedCache] = {}
        self._cached: OrderedDict[ViewerScope, T] = OrderedDict()

    def find(self, viewer: Viewer) -> T | None:
        """The queries of this viewer; None if the viewer sees all names."""
        scope = scope_of(viewer)
        if scope is None:
            return None
        with self._lock:
            if scope not in self._cached:
                redactor = ScopeRedactor(scope, self._names, self.codes, self._context.records)
                self._cached[scope] = self._make(self._narrow(scope, redactor), redactor)
            self._cached.move_to_end(scope)
            while len(self._cached) > MAX_SCOPES:
                self._cached.popitem(last=False)
            return self._cached[scope]

    def _narrow(self, scope: ViewerScope, redactor: ScopeRedactor) -> QueryContext:
        context = self._context
        records = ScopedRecords(context.records, redactor, self._anonymous)
        files = None if context.artifacts is None else ScopedFiles(context.artifacts, redactor)
        new_cache = partial(self._new_cache, scope)
        return replace(context, records=records, artifacts=files, cache=new_cache("answers", 64), new_cache=new_cache)

    def _new_cache(self, scope: ViewerScope, name: str, size: int) -> VersionedCache:
        shared = self._caches.setdefault(name, VersionedCache(size))
        return CachePart(shared, scope)
