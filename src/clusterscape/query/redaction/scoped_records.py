"""A record store within one viewer scope. Reads are redacted; of writes only documents of one's own pass.

Questions by name (user, project, text) are asked by what the viewer reads: a foreign name matches nothing, its pseudonym does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NoReturn, TypedDict

import polars as pl

from clusterscape.errors import ForbiddenError
from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    NodeTurn,
    Partition,
    SourceStatus,
    Unit,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
)
from clusterscape.model.identity_fields import ProjectName, PublicText, UserName
from clusterscape.model.rules import Violation
from clusterscape.model.runs import RunRecord, StoredRun
from clusterscape.query.redaction.pseudonyms import PROJECT, USER
from clusterscape.query.redaction.redactor import Redactor
from clusterscape.query.redaction.scoped_documents import ScopedDocuments
from clusterscape.store.records.contract import Document, RecordStore, RunList, WorkloadFilter, WorkloadPage

MOST_KEPT = 200_000


class HistoryRow(TypedDict):
    """Texts in the columns of ``workload_history``. Ids stay: queries look workloads up by them."""

    id: PublicText
    kind: PublicText
    state: PublicText
    user: UserName
    project: ProjectName
    partition: PublicText


class AnonymousWorkloads:
    """Workloads as viewers read them who know nothing of the owner. The same record is redacted once, for all scopes."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._kept: dict[WorkloadId, tuple[Workload, Workload]] = {}

    def find(self, workload: Workload) -> Workload:
        """The record without names."""
        kept = self._kept.get(workload.id)
        if kept is not None and kept[0] is workload:
            return kept[1]
        redacted = replace(self._redactor.redact(workload), id=workload.id)
        if len(self._kept) >= MOST_KEPT:
            self._kept = {}
        self._kept[workload.id] = (workload, redacted)
        return redacted


class ScopedRecords:
    """A RecordStore over the site's own."""

    def __init__(self, records: RecordStore, redactor: Redactor, anonymous: AnonymousWorkloads) -> None:
        self.scope = redactor.scope
        self._records = records
        self._redactor = redactor
        self._anonymous = anonymous
        self._documents = ScopedDocuments(records, redactor)
        self._active: tuple[list[Workload], list[Workload]] | None = None

    def _redact(self, workload: Workload) -> Workload:
        return workload if self.scope.covers(workload.user, workload.project) else self._anonymous.find(workload)

    # workloads

    def workload(self, workload: WorkloadId) -> Workload | None:
        """One workload, or None."""
        record = self._records.workload(workload)
        return None if record is None else self._redact(record)

    def find_workloads(self, workloads: Iterable[WorkloadId]) -> list[Workload]:
        """Those of ``workloads`` that are known."""
        return [self._redact(workload) for workload in self._records.find_workloads(workloads)]

    def active_workloads(self) -> list[Workload]:
        """Everything waiting, running or suspended; the same list until it changes."""
        listed = self._records.active_workloads()
        kept = self._active
        if kept is None or kept[0] is not listed:
            kept = self._active = (listed, [self._redact(workload) for workload in listed])
        return kept[1]

    def workloads(self, where: WorkloadFilter, *, limit: int = 100, offset: int = 0) -> WorkloadPage:
        """A page of workloads that match by what is seen of them."""
        meant = self._translate(where)
        if meant is None:
            return WorkloadPage(workloads=[], total=0, limit=limit, offset=offset)
        page = self._records.workloads(meant, limit=limit, offset=offset)
        return replace(page, workloads=[self._redact(workload) for workload in page.workloads])

    def _translate(self, where: WorkloadFilter) -> WorkloadFilter | None:
        """The question that the store understands; None where nothing can match.

        A name is either known, and then only known workloads match, or a pseudonym, and then only others do.
        """
        names = self._redactor.names
        text = (where.text or "").strip()
        user, project = where.user, where.project
        sought_user, sought_project = names.real(USER, text), names.real(PROJECT, text)
        if sought_user is not None and user in (None, text):
            user, text = text, ""
        elif sought_project is not None and project in (None, text):
            project, text = text, ""
        foreign_user = None if user is None else names.real(USER, user)
        foreign_project = None if project is None else names.real(PROJECT, project)
        known = {
            foreign is None
            for asked, foreign in ((user, foreign_user), (project, foreign_project))
            if asked is not None
        }
        if len(known) == 2:
            return None
        return replace(
            where,
            user=foreign_user or user,
            project=foreign_project or project,
            text=text or None,
            known_to=(self.scope.user, self.scope.projects),
            is_known=next(iter(known), None),
        )

    def workload_history(self) -> pl.DataFrame:
        """Every workload as a row, with pseudonyms in place of foreign users and projects."""
        return self._redactor.redact_table(self._records.workload_history(), HistoryRow)

    def workload_spans(self, *, since_ms: UnixMs) -> pl.DataFrame:
        """When each workload asked for and held units: ids and times."""
        return self._records.workload_spans(since_ms=since_ms)

    # who held what, and what broke which rule: ids, units and numbers

    def open_allocations(self) -> list[Allocation]:
        """Who holds what now."""
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
        """What breaks a rule now."""
        return self._records.open_violations()

    def violations(
        self,
        *,
        rule: str | None = None,
        workload: WorkloadId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Violation]:
        """Violations that overlap [start, end), by since."""
        return self._records.violations(rule=rule, workload=workload, start_ms=start_ms, end_ms=end_ms)

    def violation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Violations that overlap [start, end) as columns."""
        return self._records.violation_spans(start_ms=start_ms, end_ms=end_ms)

    # the machines

    def nodes(self) -> list[Node]:
        """All nodes, by id; reasons name nobody."""
        return self._redactor.redact(self._records.nodes(), list[Node])

    def node_states(self, *, at_ms: UnixMs) -> list[NodeTurn]:
        """The last state of each node that was known at ``at_ms``; reasons name nobody."""
        return self._redactor.redact(self._records.node_states(at_ms=at_ms), list[NodeTurn])

    def node_turns(self, node: NodeId, *, start_ms: UnixMs) -> list[NodeTurn]:
        """How a node turned; reasons name nobody."""
        return self._redactor.redact(self._records.node_turns(node, start_ms=start_ms), list[NodeTurn])

    def partitions(self) -> list[Partition]:
        """All partitions, by name."""
        return self._records.partitions()

    def units(self) -> list[Unit]:
        """All GPUs and MIG instances, by node and index."""
        return self._records.units()

    def sources(self) -> list[SourceStatus]:
        """Last known state of every source."""
        return self._records.sources()

    # runs: their owner's workspace; others' show only as workloads that hold GPUs

    def _shows(self, record: RunRecord) -> bool:
        return self.scope.covers(record.owned_by, record.summary.about.workload)

    def run(self, run: str) -> StoredRun | None:
        """One tracked run that may be seen, or None."""
        stored = self._records.run(run)
        return stored if stored is not None and self._shows(stored.record) else None

    def run_record(self, run: str) -> RunRecord | None:
        """One tracked run that may be seen, as lists show it, or None."""
        record = self._records.run_record(run)
        return record if record is not None and self._shows(record) else None

    def runs(self, *, after: int = 0) -> RunList:
        """The tracked runs that may be seen, without their details."""
        everything = self._records.runs(after=after)
        shown = [record for record in everything.records if self._shows(record)]
        return replace(everything, records=shown, total=len(shown))

    # documents

    def document(self, kind: str, key: str) -> Document | None:
        """One document, as far as it may be seen, or None."""
        return self._documents.find(kind, key)

    def documents(self, kind: str) -> list[Document]:
        """Those of ``kind`` that may be seen, by key."""
        return self._documents.all(kind)

    def write_document(self, kind: str, key: str, body: Mapping[str, object], *, at_ms: UnixMs) -> None:
        """Insert or replace one's own document."""
        self._documents.check_free(kind, key)
        self._records.write_document(kind, key, body, at_ms=at_ms)

    def remove_document(self, kind: str, key: str) -> bool:
        """Forget a document that may be seen; returns whether there was one."""
        if self._documents.find(kind, key) is None:
            return False
        self._documents.check_free(kind, key)
        return self._records.remove_document(kind, key)

    # what only ingest and operators write

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ForbiddenError("this is written by operators only", hint="Ask one of them.")

    write_inventory = write_node_states = write_workloads = write_allocations = write_sources = write_violations = (
        _refuse
    )
    remove_nodes = remove_partitions = remove_units = remove_sources = remove_violations = _refuse
    replace_violations = remove_ended_before = remove_workload = write_run = remove_run = _refuse

    def close(self) -> None:
        """The site's own store is closed by the site."""
