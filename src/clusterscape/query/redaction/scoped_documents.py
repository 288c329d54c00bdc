"""Which documents a viewer scope reads: one's own, those of workloads that the scope covers, and what is everybody's.

A kind that is not listed here is not read at all: a new one is hidden until somebody says who reads it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from clusterscape.errors import ForbiddenError
from clusterscape.model.exporter_names import EXPORTER_QUESTIONS
from clusterscape.model.observations import PRIORITY_PARTS
from clusterscape.query.ownership import OWNER
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.store.records.contract import Document, RecordStore

_OWNERS = {"mute": "author", "rule-comment": "author"}
"""Kinds that name their owner otherwise."""

PUBLIC_SITE_KEYS = frozenset({"start-view"})


class ScopedDocuments:
    """Reads documents within a scope."""

    def __init__(self, records: RecordStore, redactor: Redactor) -> None:
        self._records = records
        self._redactor = redactor
        self._scope = redactor.scope
        self._readers: Mapping[str, Callable[[Document], Document | None]] = {
            "view": self._read_view,
            "insight": self._read_view,
            "site": self._read_site,
            "mute": lambda document: document,
            "rule-comment": self._read_comment,
            "job_trace": self._read_upload,
            PRIORITY_PARTS: lambda document: document,
            EXPORTER_QUESTIONS: lambda document: document,
        }

    def find(self, kind: str, key: str) -> Document | None:
        """One document, or None."""
        read = self._readers.get(kind)
        document = None if read is None else self._records.document(kind, key)
        return None if document is None or read is None else read(document)

    def all(self, kind: str) -> list[Document]:
        """Those that the scope reads, by key."""
        read = self._readers.get(kind)
        if read is None:
            return []
        return [shown for document in self._records.documents(kind) if (shown := read(document)) is not None]

    def check_free(self, kind: str, key: str) -> None:
        """Raise ForbiddenError where a document exists that belongs to somebody else, or to everybody."""
        if kind not in self._readers:
            raise ForbiddenError("this is written by operators only", hint="Ask one of them.")
        document = self._records.document(kind, key)
        if document is not None and not self._is_own(document):
            raise ForbiddenError("this name is taken", hint="Choose another, or ask an operator to change it.")

    def _is_own(self, document: Document) -> bool:
        user = self._scope.user
        return user is not None and user == document.body.get(_OWNERS.get(document.kind, OWNER))

    def _read_view(self, document: Document) -> Document | None:
        """One's own as it is, everybody's without names, others' not at all."""
        if self._is_own(document):
            return document
        if document.body.get(OWNER) is not None:
            return None
        return replace(document, body=self._redactor.free_text(document.body))

    def _read_site(self, document: Document) -> Document | None:
        return document if document.key in PUBLIC_SITE_KEYS else None

    def _read_comment(self, document: Document) -> Document | None:
        is_covered = self._redactor.covers_workload(str(document.body.get("workload")))
        return document if is_covered or self._is_own(document) else None

    def _read_upload(self, document: Document) -> Document | None:
        return document if self._is_own(document) else None
