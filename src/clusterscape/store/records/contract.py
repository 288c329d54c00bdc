"""What a record store promises. SQLite and PostgreSQL both pass ``tests/contract/test_record_store.py``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

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
    WorkloadState,
)
from clusterscape.model.rules import Violation
from clusterscape.model.runs import RunRecord, StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFilter:
    """Which workloads; every given field must match. ``text`` looks into id, name, user, project and experiment.

    ``known_to`` is a user and projects: of workloads that are not theirs ``text`` looks into the id alone. ``is_known`` lets only
    theirs through, or only others'.
    """

    states: frozenset[WorkloadState] | None = None
    user: str | None = None
    project: str | None = None
    partition: str | None = None
    node: NodeId | None = None
    text: str | None = None
    active_between: tuple[UnixMs, UnixMs] | None = None  # waiting or running at some time in [from, to)
    known_to: tuple[str | None, frozenset[str]] | None = None
    is_known: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPage:
    """A page of workloads, newest submission first, and how many match in all."""

    workloads: Sequence[Workload]
    total: int
    limit: int = field(default=100)
    offset: int = field(default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Something a user keeps under a name: a saved view, a rule, a choice for the site. ``body`` is JSON."""

    kind: str
    key: str
    body: Mapping[str, object]
    written_at: UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """Runs as lists show them, in no order. ``revision`` is that of the newest write; ``total``: how many runs are stored."""

    records: Sequence[RunRecord]
    revision: int
    total: int


class RecordStore(Protocol):
    """Inventory, workloads, allocations, violations, source states, tracked runs and documents. Thread-safe.

    Every write is one transaction: when it returns, all of it is durable; when it raises, none of it is there.
    """

    def write_inventory(
        self, *, nodes: Iterable[Node], partitions: Iterable[Partition], units: Iterable[Unit], at_ms: UnixMs
    ) -> None:
        """Insert or replace these records (last seen ``at_ms``, kept to ten minutes); others stay."""
        ...

    def write_node_states(self, states: Iterable[NodeTurn]) -> None:
        """Insert or replace states of the past (an import, the demo's); ``write_inventory`` notes those of now by itself."""
        ...

    def node_turns(self, node: NodeId, *, start_ms: UnixMs) -> list[NodeTurn]:
        """How a node turned since ``start_ms``, oldest first; the state it was in then comes before."""
        ...

    def node_states(self, *, at_ms: UnixMs) -> list[NodeTurn]:
        """The last state of each node that was known at ``at_ms``, by node.

        Only going out of service and coming back is noted, not whether a node that serves was idle or held.
        """
        ...

    def remove_nodes(self, nodes: Iterable[NodeId]) -> None:
        """Forget nodes and their units; workloads and allocations stay as history."""
        ...

    def remove_partitions(self, names: Iterable[str]) -> None:
        """Forget partitions."""
        ...

    def remove_units(self, units: Iterable[UnitId]) -> None:
        """Forget units, such as MIG instances after a new partitioning; allocations stay as history."""
        ...

    def write_workloads(self, workloads: Iterable[Workload], *, at_ms: UnixMs) -> None:
        """Insert or replace."""
        ...

    def write_allocations(self, allocations: Iterable[Allocation]) -> None:
        """Insert or replace by (workload, unit, from_at); writing one with ``to_at`` closes it."""
        ...

    def write_sources(self, statuses: Iterable[SourceStatus]) -> None:
        """Insert or replace the state of sources."""
        ...

    def remove_sources(self, sources: Iterable[str]) -> None:
        """Forget sources, such as targets that are no longer configured."""
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
        """Those of ``workloads`` that are known, in no order."""
        ...

    def active_workloads(self) -> list[Workload]:
        """Everything waiting, running or suspended."""
        ...

    def workloads(self, where: WorkloadFilter, *, limit: int = 100, offset: int = 0) -> WorkloadPage:
        """A page of workloads that match."""
        ...

    def remove_workload(self, workload: WorkloadId) -> None:
        """Forget a workload with its allocations and violations, where there is one."""
        ...

    def open_allocations(self) -> list[Allocation]:
        """Who holds what now."""
        ...

    def allocations(
        self,
        *,
        workload: WorkloadId | None = None,
        unit: UnitId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Allocation]:
        """Allocations that overlap [start, end), by from_at; of one workload or unit where named."""
        ...

    def workload_spans(self, *, since_ms: UnixMs) -> pl.DataFrame:
        """When each workload that had not ended by ``since_ms`` asked for and held units, as columns, in no order.

        ``workload``, ``state`` (String), ``begins_at``, ``started_at``, ``ends_at``, ``gpus_requested`` (Int64). ``begins_at`` is
        the first time known of it; ``ends_at`` is null while it is active. An unknown time is that of the last writing.
        """
        ...

    def workload_history(self) -> pl.DataFrame:
        """Every execution of every workload as a row, in no order: what a job trace is made of.

        Columns ``id``, ``kind``, ``state``, ``user``, ``project``, ``partition`` (String), ``gpus_requested``,
        ``gpus_allocated``, ``nodes_requested``, ``time_limit_s``, ``submitted_at``, ``started_at``, ``ended_at``, ``suspended_s``
        (Int64). A workload that never started has one row, too.
        """
        ...

    def allocation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Allocations that overlap [start, end), in no order: columns ``workload``, ``unit``, ``from_at``, ``to_at`` (Int64)."""
        ...

    def write_violations(self, violations: Iterable[Violation]) -> None:
        """Insert or replace by (rule, workload, unit, since); writing one with ``until`` ends it."""
        ...

    def remove_violations(self, rule: str) -> int:
        """Forget all violations of a rule, because it is gone or judges differently now; returns how many."""
        ...

    def replace_violations(self, rule: str, violations: Iterable[Violation]) -> None:
        """Put these in place of all violations of a rule, because it judges differently now."""
        ...

    def open_violations(self) -> list[Violation]:
        """What breaks a rule now."""
        ...

    def violations(
        self,
        *,
        rule: str | None = None,
        workload: WorkloadId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Violation]:
        """Violations that overlap [start, end), by since; of one rule or workload where named."""
        ...

    def violation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Violations that overlap [start, end), in no order.

        Columns ``rule``, ``workload``, ``unit`` (String; null: the whole workload is blamed), ``since``, ``until``, ``gpus``
        (Int64).
        """
        ...

    def sources(self) -> list[SourceStatus]:
        """Last known state of every source."""
        ...

    def remove_ended_before(self, at_ms: UnixMs) -> int:
        """Drop workloads that ended before ``at_ms``, with their allocations and violations; returns how many.

        States of nodes that were over by then go, too.

        One whose end is not known counts from when it was last written. Allocations of unknown workloads go likewise.
        """
        ...

    def write_run(self, run: StoredRun, *, at_ms: UnixMs) -> int:
        """Insert or replace a tracked run with its detail; returns the revision of this write. Sets ``written_at``."""
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

    def remove_run(self, run: str) -> bool:
        """Forget a tracked run; returns whether there was one. Its workload stays."""
        ...

    def write_document(self, kind: str, key: str, body: Mapping[str, object], *, at_ms: UnixMs) -> None:
        """Insert or replace the document ``key`` of ``kind``."""
        ...

    def document(self, kind: str, key: str) -> Document | None:
        """One document, or None."""
        ...

    def documents(self, kind: str) -> list[Document]:
        """All documents of ``kind``, by key."""
        ...

    def remove_document(self, kind: str, key: str) -> bool:
        """Forget a document; returns whether there was one."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...
