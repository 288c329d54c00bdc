"""A record store within one viewer scope. Records are redacted. Of documents, a viewer sees the own ones, those on workloads
that the scope covers, and those shared by all users.

Kinds of documents that are not listed here are hidden, so a new kind is hidden until it is added.

Queries by name (user, project, text) match what the viewer sees: a hidden name matches nothing, its pseudonym does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypedDict

import polars as pl

from clusterscape.errors import ForbiddenError
from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    NodeStateChange,
    Partition,
    SourceStatus,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
)
from clusterscape.model.identity_fields import FreeText, OwnerText, ProjectName, PublicText, UserName
from clusterscape.model.inventory import EXPORTER_QUESTIONS
from clusterscape.model.job_summaries import JobSummary
from clusterscape.model.observations import PRIORITY_PARTS
from clusterscape.model.rules import Violation, find_owner
from clusterscape.model.runs import RunRecord, StoredRun
from clusterscape.query.ownership import OWNER
from clusterscape.query.redaction.pseudonyms import PROJECT, USER
from clusterscape.query.redaction.redactor import ScopeRedactor
from clusterscape.store.records.contract import Document, RecordReader, RunList, WorkloadFilter, WorkloadPage

_OWNERS = {"mute": "author", "rule-comment": "author"}
"""The field of the owner, for kinds where it is not OWNER."""

PUBLIC_SITE_KEYS = frozenset({"start-view"})


class ScopedDocuments:
    """Reads documents within a scope."""

    def __init__(self, records: RecordReader, redactor: ScopeRedactor) -> None:
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
            "mail-choice": self._read_upload,
            PRIORITY_PARTS: lambda document: document,
            EXPORTER_QUESTIONS: lambda document: document,
        }

    def find(self, kind: str, key: str) -> Document | None:
        """One document, or None."""
        read = self._readers.get(kind)
        document = None if read is None else self._records.document(kind, key)
        return None if document is None or read is None else read(document)

    def all(self, kind: str) -> list[Document]:
        """The documents that the scope may read, by key."""
        read = self._readers.get(kind)
        if read is None:
            return []
        return [shown for document in self._records.documents(kind) if (shown := read(document)) is not None]

    def check_free(self, kind: str, key: str) -> None:
        """Raise ForbiddenError if a document of this key exists and belongs to another user, or to all."""
        if kind not in self._readers:
            raise ForbiddenError("only operators may write this", hint="Ask an operator.")
        document = self._records.document(kind, key)
        if document is not None and not self._is_own(document):
            raise ForbiddenError(
                "this name is already in use", hint="Choose another name, or ask an operator to change it."
            )

    def _is_own(self, document: Document) -> bool:
        user = self._scope.user
        return user is not None and user == document.body.get(_OWNERS.get(document.kind, OWNER))

    def _read_view(self, document: Document) -> Document | None:
        """Own views unchanged, shared views without names, views of other users not at all."""
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


MAX_CACHED = 200_000


class HistoryRow(TypedDict):
    """The text columns of ``workload_history``. Ids are not redacted here, since queries look workloads up by them."""

    id: PublicText
    kind: PublicText
    state: PublicText
    name: OwnerText
    user: UserName
    project: ProjectName
    partition: PublicText


class ExecutionNames(TypedDict):
    """The columns of ``iter_executions`` that may be redacted."""

    user: UserName
    project: ProjectName
    qos: FreeText
    partition: PublicText


class SummaryRow(TypedDict):
    """The text columns of ``summary_columns``."""

    workload: PublicText
    state: PublicText
    kind: PublicText
    family: OwnerText
    user: UserName
    project: ProjectName
    partition: PublicText
    qos: FreeText
    resource_type: PublicText
    source: PublicText


class AnonymousWorkloads:
    """Workloads for viewers whose scope does not cover the owner. Each record is redacted once, for all scopes."""

    def __init__(self, redactor: ScopeRedactor) -> None:
        self._redactor = redactor
        self._cached: dict[WorkloadId, tuple[Workload, Workload]] = {}

    def find(self, workload: Workload) -> Workload:
        """The record without names."""
        cached = self._cached.get(workload.id)
        if cached is not None and cached[0] is workload:
            return cached[1]
        redacted = replace(self._redactor.redact(workload), id=workload.id)
        if len(self._cached) >= MAX_CACHED:
            self._cached = {}
        self._cached[workload.id] = (workload, redacted)
        return redacted


class ScopedRecords:
    """A RecordReader that redacts what the unscoped reader returns."""

    def __init__(self, records: RecordReader, redactor: ScopeRedactor, anonymous: AnonymousWorkloads) -> None:
        self.scope = redactor.scope
        self._records = records
        self._redactor = redactor
        self._anonymous = anonymous
        self._documents = ScopedDocuments(records, redactor)
        self._active: tuple[list[Workload], list[Workload]] | None = None

    def _redact(self, workload: Workload) -> Workload:
        return workload if self.scope.covers(workload.user, workload.project) else self._anonymous.find(workload)

    def workload(self, workload: WorkloadId) -> Workload | None:
        """One workload, or None."""
        record = self._records.workload(workload)
        return None if record is None else self._redact(record)

    def find_workloads(self, workloads: Iterable[WorkloadId]) -> list[Workload]:
        """Those of ``workloads`` that exist."""
        return [self._redact(workload) for workload in self._records.find_workloads(workloads)]

    def active_workloads(self) -> list[Workload]:
        """Everything waiting, running or suspended; the same list until it changes."""
        listed = self._records.active_workloads()
        cached = self._active
        if cached is None or cached[0] is not listed:
            cached = self._active = (listed, [self._redact(workload) for workload in listed])
        return cached[1]

    def workloads(self, where: WorkloadFilter, *, limit: int = 100, offset: int = 0) -> WorkloadPage:
        """A page of workloads that match by their redacted fields."""
        translated = self._translate(where)
        if translated is None:
            return WorkloadPage(workloads=[], total=0, limit=limit, offset=offset)
        page = self._records.workloads(translated, limit=limit, offset=offset)
        return replace(page, workloads=[self._redact(workload) for workload in page.workloads])

    def _translate(self, where: WorkloadFilter) -> WorkloadFilter | None:
        """The filter with real names; None if nothing can match.

        A visible name matches only workloads that the scope covers, a pseudonym only others.
        """
        names = self._redactor.names
        text = (where.text or "").strip()
        user, project = where.user, where.project
        if names.real(USER, text) is not None and user in (None, text):
            user, text = text, ""
        elif names.real(PROJECT, text) is not None and project in (None, text):
            project, text = text, ""
        real_user = None if user is None else names.real(USER, user)
        real_project = None if project is None else names.real(PROJECT, project)
        is_visible = {real is None for name, real in ((user, real_user), (project, real_project)) if name is not None}
        if len(is_visible) == 2:
            return None
        return replace(
            where,
            user=real_user or user,
            project=real_project or project,
            text=text or None,
            visible_to=(self.scope.user, self.scope.projects),
            is_known=next(iter(is_visible), None),
        )

    def workload_history(self) -> pl.DataFrame:
        """Every workload as a row, with pseudonyms of users and projects outside of the scope."""
        return self._redactor.redact_table(self._records.workload_history(), HistoryRow)

    def iter_executions(self, *, start_ms: UnixMs, end_ms: UnixMs) -> Iterator[pl.DataFrame]:
        """Every execution, with pseudonyms of users and projects outside of the scope."""
        for table in self._records.iter_executions(start_ms=start_ms, end_ms=end_ms):
            names = table.select("user", "project", "qos", "partition")
            yield table.with_columns(self._redactor.redact_table(names, ExecutionNames).get_columns())

    def workload_spans(self, *, since_ms: UnixMs) -> pl.DataFrame:
        """When each workload waited and ran: ids and times."""
        return self._records.workload_spans(since_ms=since_ms)

    # Allocations and violations contain only ids, units and numbers; those by users and projects are filtered.

    def open_allocations(self) -> list[Allocation]:
        """Current allocations."""
        return self._records.open_allocations()

    def allocations(
        self,
        *,
        workload: WorkloadId | None = None,
        unit: UnitId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Allocation]:
        """Allocations that overlap [start, end), by from_at."""
        return self._records.allocations(workload=workload, unit=unit, start_ms=start_ms, end_ms=end_ms)

    def allocation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Allocations that overlap [start, end) as columns."""
        return self._records.allocation_spans(start_ms=start_ms, end_ms=end_ms)

    def open_violations(self) -> list[Violation]:
        """Current violations."""
        return [violation for violation in self._records.open_violations() if self._may_name(violation.workload)]

    def violations(
        self,
        *,
        rule: str | None = None,
        workload: WorkloadId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Violation]:
        """Violations that overlap [start, end), by since."""
        violations = self._records.violations(rule=rule, workload=workload, start_ms=start_ms, end_ms=end_ms)
        return [violation for violation in violations if self._may_name(violation.workload)]

    def _may_name(self, subject: str) -> bool:
        """Whether a violation may be shown: one by the jobs of a user or project names these."""
        user, project = find_owner(subject)
        return (user is None and project is None) or self.scope.covers(user, project)

    def violation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Violations that overlap [start, end) as columns."""
        spans = self._records.violation_spans(start_ms=start_ms, end_ms=end_ms)
        named = [name for name in spans["workload"].unique() if not self._may_name(name)]
        return spans.filter(~pl.col("workload").is_in(named)) if named else spans

    # Summaries are read with a user's name, and hidden from everybody else.

    def job_summary(self, workload: WorkloadId) -> JobSummary | None:
        """The summary of an ended job, or None if it does not exist or is hidden."""
        summary = self._records.job_summary(workload)
        return summary if summary is not None and self.scope.covers(summary.user, summary.project) else None

    def similar_summaries(self, user: str, family: str, *, limit: int) -> list[JobSummary]:
        """The visible summaries of a user's jobs of one family, newest first."""
        similar = self._records.similar_summaries(user, family, limit=limit)
        return [summary for summary in similar if self.scope.covers(summary.user, summary.project)]

    def summary_columns(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Summaries as columns, with pseudonyms of users and projects outside of the scope."""
        return self._redactor.redact_table(self._records.summary_columns(start_ms=start_ms, end_ms=end_ms), SummaryRow)

    def unsummarized(self, *, start_ms: UnixMs, end_ms: UnixMs, limit: int) -> list[Workload]:
        """Ended workloads without a summary."""
        ended = self._records.unsummarized(start_ms=start_ms, end_ms=end_ms, limit=limit)
        return [self._redact(workload) for workload in ended]

    # Inventory.

    def nodes(self) -> list[Node]:
        """All nodes, by id; names in reasons are redacted."""
        return self._redactor.redact(self._records.nodes(), list[Node])

    def node_states(self, *, at_ms: UnixMs) -> list[NodeStateChange]:
        """The last recorded state of each node at ``at_ms``; names in reasons are redacted."""
        return self._redactor.redact(self._records.node_states(at_ms=at_ms), list[NodeStateChange])

    def node_state_changes(self, node: NodeId, *, start_ms: UnixMs) -> list[NodeStateChange]:
        """State changes of a node; names in reasons are redacted."""
        return self._redactor.redact(self._records.node_state_changes(node, start_ms=start_ms), list[NodeStateChange])

    def partitions(self) -> list[Partition]:
        """All partitions, by name."""
        return self._records.partitions()

    def units(self) -> list[Unit]:
        """All GPUs and MIG instances, by node and index."""
        return self._records.units()

    def sources(self) -> list[SourceStatus]:
        """Last known state of every source."""
        return self._records.sources()

    # Runs of other users are visible only as workloads that hold GPUs.

    def _is_visible(self, record: RunRecord) -> bool:
        return self.scope.covers(record.owned_by, record.summary.about.workload)

    def run(self, run: str) -> StoredRun | None:
        """One tracked run, or None if it does not exist or is hidden."""
        stored = self._records.run(run)
        return stored if stored is not None and self._is_visible(stored.record) else None

    def run_record(self, run: str) -> RunRecord | None:
        """One tracked run as in lists, or None if it does not exist or is hidden."""
        record = self._records.run_record(run)
        return record if record is not None and self._is_visible(record) else None

    def runs(self, *, after: int = 0) -> RunList:
        """The visible tracked runs, without their details."""
        run_list = self._records.runs(after=after)
        visible = [record for record in run_list.records if self._is_visible(record)]
        return replace(run_list, records=visible, total=len(visible))

    def document(self, kind: str, key: str) -> Document | None:
        """One document, redacted, or None if it does not exist or is hidden."""
        return self._documents.find(kind, key)

    def documents(self, kind: str) -> list[Document]:
        """The visible documents of ``kind``, redacted, by key."""
        return self._documents.all(kind)
