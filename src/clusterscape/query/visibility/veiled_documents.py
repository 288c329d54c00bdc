"""Documents as one sight may see them.

A kind that is not named here is not seen at all: what is new is hidden until somebody says how it is seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from clusterscape.errors import ForbiddenError
from clusterscape.model import WorkloadId
from clusterscape.model.exporter_names import EXPORTER_QUESTIONS
from clusterscape.model.observations import PRIORITY_PARTS
from clusterscape.model.stored_runs import DETAIL_KIND, RUN_KIND, owner_of
from clusterscape.query.ownership import OWNER
from clusterscape.query.visibility.pseudonyms import USER
from clusterscape.query.visibility.sights import Sight
from clusterscape.query.visibility.veil import HIDDEN, Veil
from clusterscape.store.records.contract import Document, RecordStore

_OWNERS = {"mute": "author", "rule-comment": "author"}
"""Kinds that name their owner otherwise."""

PUBLIC_SITE_KEYS = frozenset({"start-view"})


class VeiledDocuments:
    """Reads documents for a sight. ``knows``: whether a workload is shown as it is."""

    def __init__(self, records: RecordStore, sight: Sight, veil: Veil, knows: Callable[[WorkloadId], bool]) -> None:
        self._records = records
        self._sight = sight
        self._veil = veil
        self._knows = knows
        self._ways: Mapping[str, Callable[[Document], Document | None]] = {
            "view": self._see_view,
            "insight": self._see_view,
            "site": self._see_site,
            RUN_KIND: self._see_run,
            DETAIL_KIND: self._see_run_detail,
            "mute": self._see_mute,
            "rule-comment": self._see_comment,
            "job_trace": self._see_upload,
            PRIORITY_PARTS: lambda document: document,
            EXPORTER_QUESTIONS: lambda document: document,
        }

    def find(self, kind: str, key: str) -> Document | None:
        """One document, or None."""
        way = self._ways.get(kind)
        found = None if way is None else self._records.document(kind, key)
        return None if found is None or way is None else way(found)

    def all(self, kind: str) -> list[Document]:
        """Those that may be seen, by key."""
        way = self._ways.get(kind)
        if way is None:
            return []
        return [seen for each in self._records.documents(kind) if (seen := way(each)) is not None]

    def check_free(self, kind: str, key: str) -> None:
        """Raise ForbiddenError where a document is there that belongs to somebody else, or to everybody."""
        if kind not in self._ways:
            raise ForbiddenError("this is written by operators only", hint="Ask one of them.")
        found = self._records.document(kind, key)
        if found is not None and not self._is_own(found):
            raise ForbiddenError("this name is taken", hint="Choose another, or ask an operator to change it.")

    def _is_own(self, document: Document) -> bool:
        user = self._sight.user
        return user is not None and user == document.body.get(_OWNERS.get(document.kind, OWNER))

    def _see_view(self, document: Document) -> Document | None:
        """One's own as it is, everybody's without names, others' not at all."""
        if self._is_own(document):
            return document
        if document.body.get(OWNER) is not None:
            return None
        return replace(document, body={key: self._scrub(value) for key, value in document.body.items()})

    def _see_site(self, document: Document) -> Document | None:
        return document if document.key in PUBLIC_SITE_KEYS else None

    def _see_run(self, document: Document) -> Document | None:
        """Runs are their owner's workspace: others' show only as workloads that hold GPUs."""
        about: Any = document.body.get("about")
        project = about.get("workload") if isinstance(about, Mapping) else None
        is_known = self._sight.knows(owner_of(document.body), project if isinstance(project, str) else None)
        return document if is_known else None

    def _see_run_detail(self, document: Document) -> Document | None:
        return None if self.find(RUN_KIND, document.key) is None else document

    def _see_mute(self, document: Document) -> Document:
        """That a rule is mute is for all to know; who asked for it and why only where the workload is known."""
        body, workload = document.body, document.body.get("workload")
        if self._is_own(document) or (isinstance(workload, str) and self._knows(WorkloadId(workload))):
            return document
        reason = self._veil.names.scrub(str(body.get("reason"))) if workload is None else HIDDEN
        return replace(
            document, body={**body, "author": self._veil.names.of(USER, str(body.get("author"))), "reason": reason}
        )

    def _see_comment(self, document: Document) -> Document | None:
        is_known = self._knows(WorkloadId(str(document.body.get("workload"))))
        return document if is_known or self._is_own(document) else None

    def _see_upload(self, document: Document) -> Document | None:
        return document if self._is_own(document) else None

    def _scrub(self, value: object) -> object:
        """Names replaced in every text of a document."""
        if isinstance(value, str):
            return self._veil.names.scrub(value, self._kept)
        if isinstance(value, Mapping):
            return {self._veil.names.scrub(str(key), self._kept): self._scrub(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._scrub(each) for each in value]
        return value

    @property
    def _kept(self) -> frozenset[str]:
        return frozenset({self._sight.user} if self._sight.user else ()) | self._sight.projects
