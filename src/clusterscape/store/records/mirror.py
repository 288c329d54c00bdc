"""A record store that caches all current records in memory, so that reading them costs nothing.

Writes go to the store first, then to the cache, so everything read is durable. Writes of other processes appear after
``refresh``. Returned lists are shared and stay the same object until they change: readers cache by identity and must not modify
them.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import polars as pl

from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    NodeStateChange,
    Partition,
    SourceStatus,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
)
from clusterscape.model.job_summaries import JobSummary
from clusterscape.model.rules import Violation
from clusterscape.model.runs import RunRecord, StoredRun
from clusterscape.store.records.contract import Document, RecordStore, RunList, WorkloadFilter, WorkloadPage
from clusterscape.store.records.rows import storable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


class _RecordCache(Generic[Record]):
    """Records by key, and their list, which is rebuilt only after a change. Thread-safe."""

    def __init__(
        self,
        records: Iterable[Record],
        key: Callable[[Record], object],
        *,
        order: Callable[[Record], tuple[str | int, ...]] | None = None,
        keeps: Callable[[Record], bool] = lambda _: True,
    ) -> None:
        self._key = key
        self._order = order
        self._keeps = keeps
        self._lock = threading.Lock()
        self._records: dict[object, Record] = {key(record): record for record in records}
        self._listed: list[Record] | None = None

    def list(self) -> list[Record]:
        with self._lock:
            if self._listed is None:
                records = self._records.values()
                self._listed = sorted(records, key=self._order) if self._order else [*records]
            return self._listed

    def find(self, key: object) -> Record | None:
        return self._records.get(key)

    def put(self, records: Collection[Record]) -> None:
        """Insert or replace; a record that is not cached (an ended workload) is removed."""
        if not records:
            return
        with self._lock:
            for record in records:
                if self._keeps(record):
                    self._records[self._key(record)] = _as_stored(record)
                else:
                    self._records.pop(self._key(record), None)
            self._listed = None

    def replace(self, records: Iterable[Record]) -> None:
        """Replace all records; keeps the list if nothing changed."""
        replaced = {self._key(record): record for record in records}
        with self._lock:
            if replaced != self._records:
                self._records, self._listed = replaced, None

    def keep_only(self, stays: Callable[[Record], bool]) -> None:
        with self._lock:
            self._records = {key: record for key, record in self._records.items() if stays(record)}
            self._listed = None


class _RunCache:
    """Cache of all tracked runs without details: loaded on first use, then updated incrementally. Not thread-safe."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._records: dict[str, RunRecord] | None = None
        self._revision = 0
        self._list: RunList | None = None

    def list(self) -> RunList:
        if self._records is None:
            self.refresh()
        records = self._records or {}
        if self._list is None:
            self._list = RunList(records=[*records.values()], revision=self._revision, total=len(records))
        return self._list

    def refresh(self) -> None:
        """Read changes of other processes."""
        update = self._store.runs(after=0 if self._records is None else self._revision)
        records = (self._records or {}) | {record.run: record for record in update.records}
        if len(records) != update.total:  # some were removed by another process
            update = self._store.runs()
            records = {record.run: record for record in update.records}
        self._records, self._revision, self._list = records, update.revision, None

    def put(self, record: RunRecord, revision: int) -> None:
        """Add a written run. If other processes wrote in between, the next refresh reads their runs."""
        if self._records is not None:
            self._records[record.run] = record
            self._revision = revision if revision == self._revision + 1 else self._revision
            self._list = None

    def remove(self, run: str) -> None:
        """Remove a run."""
        if self._records is not None and self._records.pop(run, None) is not None:
            self._list = None


class MirroredRecordStore:
    """A RecordStore that caches current records of another one."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._writing = threading.RLock()  # a write and its caching are atomic for ``refresh``
        self._nodes = _RecordCache(store.nodes(), lambda node: node.id, order=lambda node: (node.id,))
        self._partitions = _RecordCache(store.partitions(), lambda part: part.name, order=lambda part: (part.name,))
        self._units = _RecordCache(
            store.units(),
            lambda unit: unit.id,
            order=_place,
            keeps=lambda unit: unit.kind is not UnitKind.REQUESTED,
        )
        self._sources = _RecordCache(
            store.sources(), lambda status: status.source, order=lambda status: (status.source,)
        )
        self._active = _RecordCache(
            store.active_workloads(), lambda workload: workload.id, keeps=lambda workload: workload.state.is_active
        )
        self._open = _RecordCache(
            store.open_allocations(),
            lambda held: (held.workload, held.unit, held.from_at),
            keeps=lambda held: held.to_at is None,
        )

        self._violations = _RecordCache(
            store.open_violations(),
            lambda violation: (violation.rule, violation.workload, violation.unit, violation.since),
            keeps=lambda violation: violation.until is None,
        )
        self._runs = _RunCache(store)

    def refresh_runs(self) -> None:
        """Read runs that another process has written."""
        with self._writing:
            self._runs.refresh()

    def refresh(self) -> None:
        """Read all current records again, because another process has written."""
        store = self._store
        with self._writing:
            self._nodes.replace(store.nodes())
            self._partitions.replace(store.partitions())
            self._units.replace(store.units())
            self._sources.replace(store.sources())
            self._active.replace(store.active_workloads())
            self._open.replace(store.open_allocations())
            self._violations.replace(store.open_violations())

    # current records, from memory

    def nodes(self) -> list[Node]:
        """All nodes, by id."""
        return self._nodes.list()

    def partitions(self) -> list[Partition]:
        """All partitions, by name."""
        return self._partitions.list()

    def units(self) -> list[Unit]:
        """All GPUs and MIG instances, by node and index."""
        return self._units.list()

    def active_workloads(self) -> list[Workload]:
        """Everything waiting, running or suspended."""
        return self._active.list()

    def open_allocations(self) -> list[Allocation]:
        """All open allocations."""
        return self._open.list()

    def open_violations(self) -> list[Violation]:
        """All ongoing violations."""
        return self._violations.list()

    def sources(self) -> list[SourceStatus]:
        """The latest status of every source."""
        return self._sources.list()

    def runs(self, *, after: int = 0) -> RunList:
        """Tracked runs, without their details; those after a revision are read from the store."""
        if after:
            return self._store.runs(after=after)
        with self._writing:
            return self._runs.list()

    # writes, to the store and then to memory

    def write_run(self, run: StoredRun, *, at_ms: UnixMs) -> int:
        """Insert or replace a tracked run with its detail; returns the revision of this write."""
        with self._writing:
            revision = self._store.write_run(run, at_ms=at_ms)
            self._runs.put(run.record, revision)
            return revision

    def remove_run(self, run: str) -> bool:
        """Remove a tracked run; returns whether it existed."""
        with self._writing:
            was_there = self._store.remove_run(run)
            self._runs.remove(run)
            return was_there

    def write_inventory(
        self, *, nodes: Iterable[Node], partitions: Iterable[Partition], units: Iterable[Unit], at_ms: UnixMs
    ) -> None:
        """Insert or replace these records; others are kept."""
        with self._writing:
            nodes, partitions, units = [*nodes], [*partitions], [*units]
            self._store.write_inventory(nodes=nodes, partitions=partitions, units=units, at_ms=at_ms)
            self._nodes.put(nodes)
            self._partitions.put(partitions)
            self._units.put(units)

    def remove_nodes(self, nodes: Iterable[NodeId]) -> None:
        """Remove nodes and their units; workloads and allocations are kept as history."""
        with self._writing:
            removed = set(nodes)
            self._store.remove_nodes(removed)
            self._nodes.keep_only(lambda node: node.id not in removed)
            self._units.keep_only(lambda unit: unit.node not in removed)

    def remove_partitions(self, names: Iterable[str]) -> None:
        """Remove partitions."""
        with self._writing:
            removed = set(names)
            self._store.remove_partitions(removed)
            self._partitions.keep_only(lambda partition: partition.name not in removed)

    def remove_units(self, units: Iterable[UnitId]) -> None:
        """Remove units; allocations are kept as history."""
        with self._writing:
            removed = set(units)
            self._store.remove_units(removed)
            self._units.keep_only(lambda unit: unit.id not in removed)

    def write_workloads(self, workloads: Iterable[Workload], *, at_ms: UnixMs) -> None:
        """Insert or replace."""
        with self._writing:
            written = [*workloads]
            self._store.write_workloads(written, at_ms=at_ms)
            self._active.put(written)

    def remove_workload(self, workload: WorkloadId) -> None:
        """Remove a workload with its allocations and violations."""
        with self._writing:
            self._store.remove_workload(workload)
            self._active.keep_only(lambda active: active.id != workload)
            self._open.keep_only(lambda held: held.workload != workload)
            self._violations.keep_only(lambda violation: violation.workload != workload)

    def write_allocations(self, allocations: Iterable[Allocation]) -> None:
        """Insert or replace by (workload, unit, from_at)."""
        with self._writing:
            written = [*allocations]
            self._store.write_allocations(written)
            self._open.put(written)

    def write_violations(self, violations: Iterable[Violation]) -> None:
        """Insert or replace by (rule, workload, unit, since)."""
        with self._writing:
            written = [*violations]
            self._store.write_violations(written)
            self._violations.put(written)

    def remove_violations(self, rule: str) -> int:
        """Remove all violations of a rule; returns their number."""
        with self._writing:
            removed = self._store.remove_violations(rule)
            self._violations.keep_only(lambda violation: violation.rule != rule)
            return removed

    def replace_violations(self, rule: str, violations: Iterable[Violation]) -> None:
        """Replace all violations of a rule."""
        with self._writing:
            written = [*violations]
            self._store.replace_violations(rule, written)
            self._violations.keep_only(lambda violation: violation.rule != rule)
            self._violations.put(written)

    def write_sources(self, statuses: Iterable[SourceStatus]) -> None:
        """Insert or replace statuses of sources."""
        with self._writing:
            written = [*statuses]
            self._store.write_sources(written)
            self._sources.put(written)

    def remove_sources(self, sources: Iterable[str]) -> None:
        """Remove sources."""
        with self._writing:
            removed = set(sources)
            self._store.remove_sources(removed)
            self._sources.keep_only(lambda status: status.source not in removed)

    def remove_ended_before(self, at_ms: UnixMs) -> int:
        """Remove workloads that ended before ``at_ms``, with their allocations and violations; returns their number."""
        with self._writing:
            removed = self._store.remove_ended_before(at_ms)
            still_open = {(held.workload, held.unit) for held in self._store.open_allocations()}
            self._open.keep_only(lambda held: (held.workload, held.unit) in still_open)
            ongoing = {(violation.rule, violation.workload) for violation in self._store.open_violations()}
            self._violations.keep_only(lambda violation: (violation.rule, violation.workload) in ongoing)
            return removed

    # history and documents, from the store

    def workload(self, workload: WorkloadId) -> Workload | None:
        """One workload, or None."""
        return self._active.find(workload) or self._store.workload(workload)

    def find_workloads(self, workloads: Iterable[WorkloadId]) -> list[Workload]:
        """Those of ``workloads`` that are stored."""
        return self._store.find_workloads(workloads)

    def workloads(self, where: WorkloadFilter, *, limit: int = 100, offset: int = 0) -> WorkloadPage:
        """A page of workloads that match."""
        return self._store.workloads(where, limit=limit, offset=offset)

    def allocations(
        self,
        *,
        workload: WorkloadId | None = None,
        unit: UnitId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Allocation]:
        """Allocations that overlap [start, end), by from_at."""
        return self._store.allocations(workload=workload, unit=unit, start_ms=start_ms, end_ms=end_ms)

    def workload_spans(self, *, since_ms: UnixMs) -> pl.DataFrame:
        """When each workload that had not ended by ``since_ms`` requested and held units, as columns."""
        return self._store.workload_spans(since_ms=since_ms)

    def workload_history(self) -> pl.DataFrame:
        """Every workload as a row of a job trace."""
        return self._store.workload_history()

    def iter_executions(self, *, start_ms: UnixMs, end_ms: UnixMs) -> Iterator[pl.DataFrame]:
        """Every execution of workloads that waited or ran in [start, end)."""
        return self._store.iter_executions(start_ms=start_ms, end_ms=end_ms)

    def allocation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Allocations that overlap [start, end) as columns."""
        return self._store.allocation_spans(start_ms=start_ms, end_ms=end_ms)

    def violations(
        self,
        *,
        rule: str | None = None,
        workload: WorkloadId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Violation]:
        """Violations that overlap [start, end), by since."""
        return self._store.violations(rule=rule, workload=workload, start_ms=start_ms, end_ms=end_ms)

    def violation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Violations that overlap [start, end) as columns."""
        return self._store.violation_spans(start_ms=start_ms, end_ms=end_ms)

    def job_summary(self, workload: WorkloadId) -> JobSummary | None:
        """The summary of an ended job, or None."""
        return self._store.job_summary(workload)

    def similar_summaries(self, user: str, family: str, *, limit: int) -> list[JobSummary]:
        """The latest summaries of a user's jobs of one family, newest first."""
        return self._store.similar_summaries(user, family, limit=limit)

    def summary_columns(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Summaries of jobs that ended in [start, end) as columns."""
        return self._store.summary_columns(start_ms=start_ms, end_ms=end_ms)

    def unsummarized(self, *, start_ms: UnixMs, end_ms: UnixMs, limit: int) -> list[Workload]:
        """Workloads that ran, ended in [start, end), and have no summary of that end; the newest first."""
        return self._store.unsummarized(start_ms=start_ms, end_ms=end_ms, limit=limit)

    def write_summaries(self, summaries: Iterable[JobSummary]) -> int:
        """Insert or replace; returns how many."""
        return self._store.write_summaries(summaries)

    def remove_summaries_before(self, at_ms: UnixMs) -> int:
        """Remove summaries of jobs that ended before ``at_ms``; returns their number."""
        return self._store.remove_summaries_before(at_ms)

    def write_node_states(self, states: Iterable[NodeStateChange]) -> None:
        """Insert or replace states of the past."""
        self._store.write_node_states(states)

    def node_state_changes(self, node: NodeId, *, start_ms: UnixMs) -> list[NodeStateChange]:
        """State changes of a node since ``start_ms``, oldest first, preceded by its state at ``start_ms``."""
        return self._store.node_state_changes(node, start_ms=start_ms)

    def node_states(self, *, at_ms: UnixMs) -> list[NodeStateChange]:
        """The state of each node at ``at_ms``, by node."""
        return self._store.node_states(at_ms=at_ms)

    def run(self, run: str) -> StoredRun | None:
        """One tracked run with its detail, or None."""
        return self._store.run(run)

    def run_record(self, run: str) -> RunRecord | None:
        """One tracked run as lists show it, or None."""
        return self._store.run_record(run)

    def write_document(self, kind: str, key: str, body: Mapping[str, object], *, at_ms: UnixMs) -> None:
        """Insert or replace the document ``key`` of ``kind``."""
        self._store.write_document(kind, key, body, at_ms=at_ms)

    def document(self, kind: str, key: str) -> Document | None:
        """One document, or None."""
        return self._store.document(kind, key)

    def documents(self, kind: str) -> list[Document]:
        """All documents of ``kind``, by key."""
        return self._store.documents(kind)

    def remove_document(self, kind: str, key: str) -> bool:
        """Remove a document; returns whether it existed."""
        return self._store.remove_document(kind, key)

    def close(self) -> None:
        """Release the connections."""
        self._store.close()


def _as_stored(record: Record) -> Record:
    """``record`` as it would be read back from the database, without characters that cannot be stored."""
    cleaned: dict[str, Any] = {}
    for name in (f.name for f in fields(record)):
        value = getattr(record, name)
        if isinstance(value, str) and not isinstance(value, Enum) and storable(value) != value:
            cleaned[name] = storable(value)
        elif isinstance(value, Mapping) and any(storable(f"{k}{v}") != f"{k}{v}" for k, v in value.items()):
            cleaned[name] = {storable(str(k)): storable(str(v)) for k, v in value.items()}
    return replace(record, **cleaned) if cleaned else record


def _place(unit: Unit) -> tuple[str | int, ...]:
    return (unit.node or "", -1 if unit.index is None else unit.index, unit.id)
