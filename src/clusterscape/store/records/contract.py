"""The interface of record stores. SQLite and PostgreSQL both pass ``tests/contract/test_record_store.py``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)
from clusterscape.model.job_summaries import JobSummary
from clusterscape.model.rules import Violation
from clusterscape.model.runs import RunRecord, StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFilter:
    """Filter of workloads; all fields that are set must match. ``text`` searches id, name, user, project and experiment.

    ``visible_to`` is a user and projects: of other workloads ``text`` searches only the id. ``is_known`` selects only theirs, or
    only others.
    """

    states: frozenset[WorkloadState] | None = None
    user: str | None = None
    project: str | None = None
    partition: str | None = None
    node: NodeId | None = None
    text: str | None = None
    active_between: tuple[UnixMs, UnixMs] | None = None  # waiting or running at some time in [from, to)
    visible_to: tuple[str | None, frozenset[str]] | None = None
    is_known: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPage:
    """A page of workloads, newest submission first, and the number of matches."""

    workloads: Sequence[Workload]
    total: int
    limit: int = field(default=100)
    offset: int = field(default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A JSON document under a kind and a key: a saved view, a rule, a site preference."""

    kind: str
    key: str
    body: Mapping[str, object]
    written_at: UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """Runs as lists show them, in no order. ``revision`` is that of the latest write; ``total``: number of stored runs."""

    records: Sequence[RunRecord]
    revision: int
    total: int


class RecordReader(Protocol):
    """Reads inventory, workloads, allocations, violations, source states, tracked runs and documents. Thread-safe."""

    def node_state_changes(self, node: NodeId, *, start_ms: UnixMs) -> list[NodeStateChange]:
        """State changes of a node since ``start_ms``, oldest first, preceded by its state at ``start_ms``."""
        ...

    def node_states(self, *, at_ms: UnixMs) -> list[NodeStateChange]:
        """The state of each node at ``at_ms``, by node.

        Only changes out of service and back are stored, not whether an available node was idle or allocated.
        """
        ...

    def nodes(self) -> list[Node]:
        """All nodes, by id."""
        ...

    def partitions(self) -> list[Partition]:
        """All partitions, by name."""
        ...

    def units(self) -> list[Unit]:
        """All GPUs and MIG instances, by node and index."""
        ...

    def workload(self, workload: WorkloadId) -> Workload | None:
        """One workload, or None."""
        ...

    def find_workloads(self, workloads: Iterable[WorkloadId]) -> list[Workload]:
        """Those of ``workloads`` that are stored, in no order."""
        ...

    def active_workloads(self) -> list[Workload]:
        """Everything waiting, running or suspended."""
        ...

    def workloads(self, where: WorkloadFilter, *, limit: int = 100, offset: int = 0) -> WorkloadPage:
        """A page of workloads that match."""
        ...

    def open_allocations(self) -> list[Allocation]:
        """All open allocations."""
        ...

    def allocations(
        self,
        *,
        workload: WorkloadId | None = None,
        unit: UnitId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Allocation]:
        """Allocations that overlap [start, end), by from_at; optionally of one workload or unit."""
        ...

    def workload_spans(self, *, since_ms: UnixMs) -> pl.DataFrame:
        """When each workload that had not ended by ``since_ms`` requested and held units, as columns, in no order.

        ``workload``, ``state``, ``resource_type`` (String), ``begins_at``, ``started_at``, ``ends_at``, ``gpus_requested``
        (Int64). ``begins_at`` is its first known time; ``ends_at`` is null while it is active. An unknown time is replaced by
        that of the last write.
        """
        ...

    def workload_history(self) -> pl.DataFrame:
        """Every execution of every workload as a row, in no order; the basis of job traces.

        Columns ``id``, ``kind``, ``state``, ``name``, ``user``, ``project``, ``partition`` (String), ``gpus_requested``,
        ``gpus_allocated``, ``nodes_requested``, ``time_limit_s``, ``submitted_at``, ``started_at``, ``ended_at``, ``suspended_s``
        (Int64). A workload that never started has one row, too.
        """
        ...

    def iter_executions(self, *, start_ms: UnixMs, end_ms: UnixMs) -> Iterator[pl.DataFrame]:
        """Every execution of workloads that waited or ran in [start, end), in tables of bounded size; the basis of usage.

        Tracked runs are excluded: they run inside jobs. All executions of a workload are in one table. Columns ``id``, ``user``,
        ``project``, ``partition``, ``qos``, ``resource_type``, ``first_node`` (if the resource type is unknown), ``end_state``
        (the state, ``requeued`` or ``resized``) (String), ``gpus``, ``cpus``, ``submitted_at``, ``eligible_at``, ``started_at``,
        ``ended_at``, ``suspended_s``, ``suspended_at`` (Int64), ``is_active``, ``is_first``, ``is_last`` (Boolean). A waiting
        workload has no ``started_at``; the end of an inactive one is replaced by its last write if it is unknown.
        """
        ...

    def allocation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Allocations that overlap [start, end), in no order: columns ``workload``, ``unit``, ``from_at``, ``to_at`` (Int64)."""
        ...

    def open_violations(self) -> list[Violation]:
        """All ongoing violations."""
        ...

    def violations(
        self,
        *,
        rule: str | None = None,
        workload: WorkloadId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Violation]:
        """Violations that overlap [start, end), by since; optionally of one rule or workload."""
        ...

    def violation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Violations that overlap [start, end), in no order.

        Columns ``rule``, ``workload``, ``unit`` (String; null: of the whole workload), ``since``, ``until``, ``gpus``
        (Int64).
        """
        ...

    def job_summary(self, workload: WorkloadId) -> JobSummary | None:
        """The summary of an ended job, or None."""
        ...

    def similar_summaries(self, user: str, family: str, *, limit: int) -> list[JobSummary]:
        """The latest summaries of a user's jobs of one family, newest first."""
        ...

    def summary_columns(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Summaries of jobs that ended in [start, end), in no order, as columns: all but ``name`` and ``detail``."""
        ...

    def unsummarized(self, *, start_ms: UnixMs, end_ms: UnixMs, limit: int) -> list[Workload]:
        """Workloads that ran, ended in [start, end), and have no summary of that end; the newest first."""
        ...

    def sources(self) -> list[SourceStatus]:
        """The latest status of every source."""
        ...

    def run(self, run: str) -> StoredRun | None:
        """One tracked run with its detail, or None."""
        ...

    def run_record(self, run: str) -> RunRecord | None:
        """One tracked run as lists show it, or None."""
        ...

    def runs(self, *, after: int = 0) -> RunList:
        """Tracked runs, without their details: those written after the revision ``after``, by default all."""
        ...

    def document(self, kind: str, key: str) -> Document | None:
        """One document, or None."""
        ...

    def documents(self, kind: str) -> list[Document]:
        """All documents of ``kind``, by key."""
        ...


class RecordStore(RecordReader, Protocol):
    """Also writes records. Thread-safe.

    Every write is one durable transaction: after an error nothing is written.
    """

    def write_inventory(
        self, *, nodes: Iterable[Node], partitions: Iterable[Partition], units: Iterable[Unit], at_ms: UnixMs
    ) -> None:
        """Insert or replace these records (seen at ``at_ms``, with a precision of ten minutes); others are kept."""
        ...

    def write_node_states(self, states: Iterable[NodeStateChange]) -> None:
        """Insert or replace states of the past (import, demo); ``write_inventory`` stores current ones by itself."""
        ...

    def remove_nodes(self, nodes: Iterable[NodeId]) -> None:
        """Remove nodes and their units; workloads and allocations are kept as history."""
        ...

    def remove_partitions(self, names: Iterable[str]) -> None:
        """Remove partitions."""
        ...

    def remove_units(self, units: Iterable[UnitId]) -> None:
        """Remove units, such as MIG instances after a reconfiguration; allocations are kept as history."""
        ...

    def write_workloads(self, workloads: Iterable[Workload], *, at_ms: UnixMs) -> None:
        """Insert or replace."""
        ...

    def write_allocations(self, allocations: Iterable[Allocation]) -> None:
        """Insert or replace by (workload, unit, from_at); writing one with ``to_at`` closes it."""
        ...

    def write_sources(self, statuses: Iterable[SourceStatus]) -> None:
        """Insert or replace statuses of sources."""
        ...

    def remove_sources(self, sources: Iterable[str]) -> None:
        """Remove sources, such as targets that are no longer configured."""
        ...

    def remove_workload(self, workload: WorkloadId) -> None:
        """Remove a workload with its allocations and violations, if it exists."""
        ...

    def write_violations(self, violations: Iterable[Violation]) -> None:
        """Insert or replace by (rule, workload, unit, since); writing one with ``until`` ends it."""
        ...

    def remove_violations(self, rule: str) -> int:
        """Remove all violations of a rule, because it was deleted or changed; returns their number."""
        ...

    def replace_violations(self, rule: str, violations: Iterable[Violation]) -> None:
        """Replace all violations of a rule, because it changed."""
        ...

    def remove_ended_before(self, at_ms: UnixMs) -> int:
        """Remove workloads that ended before ``at_ms``, with their allocations and violations; returns their number.

        Also removes node states that were replaced by then, and allocations of unknown workloads. A workload whose end is
        unknown counts from its last write.
        """
        ...

    def write_summaries(self, summaries: Iterable[JobSummary]) -> int:
        """Insert or replace; returns how many. A stored summary of the same end stays if it has numbers."""
        ...

    def remove_summaries_before(self, at_ms: UnixMs) -> int:
        """Remove summaries of jobs that ended before ``at_ms``; returns their number."""
        ...

    def write_run(self, run: StoredRun, *, at_ms: UnixMs) -> int:
        """Insert or replace a tracked run with its detail; returns the revision of this write. Sets ``written_at``."""
        ...

    def remove_run(self, run: str) -> bool:
        """Remove a tracked run; returns whether it existed. Its workload is kept."""
        ...

    def write_document(self, kind: str, key: str, body: Mapping[str, object], *, at_ms: UnixMs) -> None:
        """Insert or replace the document ``key`` of ``kind``."""
        ...

    def remove_document(self, kind: str, key: str) -> bool:
        """Remove a document; returns whether it existed."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...
