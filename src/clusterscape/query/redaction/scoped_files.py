"""Which files a viewer scope reads: traces of workloads that the scope covers, and those of one's own."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from clusterscape.errors import NotFoundError
from clusterscape.model.traces import TRACES_PREFIX, TraceAbout
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.store.artifacts.contract import ArtifactInfo, ArtifactStore
from clusterscape.store.artifacts.traces import read_about

UPLOADS_PREFIX = "job-traces/"
"""Files of these are found by their documents, which are scoped themselves (``scoped_documents.py``)."""


class ScopedFiles:
    """An ArtifactStore over the site's own. What may not be read does not exist; a new kind of file is not read."""

    def __init__(self, artifacts: ArtifactStore, redactor: Redactor) -> None:
        self._artifacts = artifacts
        self._redactor = redactor

    def put(self, key: str, chunks: Iterable[bytes]) -> int:
        """Store the chunks one after another."""
        self._check(key)
        return self._artifacts.put(key, chunks)

    def open(self, key: str) -> BinaryIO:
        """The content, to be closed by the caller."""
        self._check(key)
        return self._artifacts.open(key)

    def path(self, key: str) -> Path:
        """A local file with the content."""
        self._check(key)
        return self._artifacts.path(key)

    def list(self, prefix: str = "") -> "list[ArtifactInfo]":
        """All artifacts that the scope reads, by key."""
        is_readable: dict[str, bool] = {}
        readable = []
        for artifact in self._artifacts.list(prefix):
            folder = "/".join(artifact.key.split("/")[:2])
            if folder not in is_readable:
                is_readable[folder] = self._is_readable(artifact.key)
            if is_readable[folder]:
                readable.append(artifact)
        return readable

    def delete(self, key: str) -> bool:
        """Remove an artifact; False where there was none."""
        return self._is_readable(key) and self._artifacts.delete(key)

    def remove_unfinished(self) -> None:
        """Remove what writers left that were killed: of nobody in particular."""
        self._artifacts.remove_unfinished()

    def _check(self, key: str) -> None:
        if not self._is_readable(key):
            raise NotFoundError(f"there is no artifact {key}", hint="GET /api/v1/traces lists traces.")

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
    """Whether this user sent it."""
    return user is not None and about.owned_by == user
