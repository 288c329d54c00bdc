"""The record store on SQLite and PostgreSQL, with the same statements for both."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import polars as pl
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Delete,
    Double,
    Engine,
    Label,
    Select,
    Subquery,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    union_all,
)

from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    NodeState,
    NodeStateChange,
    Partition,
    SourceStatus,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadKind,
)
from clusterscape.model.job_summaries import JobSummary, SummarySource
from clusterscape.model.rules import Violation
from clusterscape.model.runs import RunRecord, StoredRun
from clusterscape.store.records import rows, tables
from clusterscape.store.records.advisory_locks import Fence
from clusterscape.store.records.contract import Document, RunList, WorkloadFilter, WorkloadPage
from clusterscape.store.records.engines import database_errors
from clusterscape.store.records.statements import (
    IS_ACTIVE,
    IS_ONGOING,
    IS_OPEN,
    Stored,
    changed,
    delete_each,
    matching,
    overlapping,
    overlapping_anywhere,
    upsert,
    violated_between,
)

Record = TypeVar("Record")
HISTORY_COLUMNS = (
    *(
        "id",
        "kind",
        "state",
        "name",
        "user",
        "project",
        "partition",
        "gpus_requested",
        "nodes_requested",
        "time_limit_s",
    ),
    *("submitted_at", "started_at", "ended_at", "gpus_allocated", "suspended_s", "earlier"),
)
EXECUTIONS_AT_ONCE = 100_000
IDS_PER_QUERY = 500
AVAILABLE = "serves"
RUNS = "runs"
NEVER_REPORTED = (NodeState.UNKNOWN.value, None)
Query = Select[Any] | CompoundSelect[Any]


class SqlRecordStore:
    """A RecordStore over ``engine``, whose schema must be up to date. Caches nothing."""

    def __init__(self, engine: Engine, *, where: str, fence: Fence | None = None) -> None:
        self._engine = engine
        self._fence = fence
        self._writer = engine.execution_options(
            writes=True
        )  # same pool; ``engines`` starts such transactions as writers
        self._where = where
        self._write_lock = threading.Lock()  # threads wait here instead of polling the database's lock

    def write_inventory(
        self, *, nodes: Iterable[Node], partitions: Iterable[Partition], units: Iterable[Unit], at_ms: UnixMs
    ) -> None:
        """Insert or replace these records (seen at ``at_ms``, with a precision of ten minutes); others are kept."""
        written = (
            (tables.nodes, [rows.node_row(node, at_ms) for node in nodes]),
            (tables.partitions, [rows.partition_row(partition, at_ms) for partition in partitions]),
            (tables.units, [rows.unit_row(unit, at_ms) for unit in units]),
        )
        with self._writing() as connection:
            for table, records in written:
                new_rows = changed(connection, table, records)[0]
                if table is tables.nodes:
                    upsert(connection, tables.node_states, _find_state_changes(connection, new_rows, at_ms))
                upsert(connection, table, new_rows)

    def write_node_states(self, states: Iterable[NodeStateChange]) -> None:
        """Insert or replace states of the past."""
        with self._writing() as connection:
            upsert(connection, tables.node_states, [rows.node_state_row(turn) for turn in states])

    def node_states(self, *, at_ms: UnixMs) -> list[NodeStateChange]:
        """The state of each node at ``at_ms``, by node."""
        table = tables.node_states
        last = _last_states_before(at_ms)
        is_last = and_(table.c.node == last.c.node, table.c.from_at == last.c.from_at)
        query = select(*rows.NODE_STATE_COLUMNS).join(last, is_last).order_by(table.c.node)
        return self._read(query, rows.node_state_of)

    def node_state_changes(self, node: NodeId, *, start_ms: UnixMs) -> list[NodeStateChange]:
        """State changes of a node since ``start_ms``, oldest first, preceded by its state at ``start_ms``."""
        table = tables.node_states
        before = select(func.max(table.c.from_at)).where(table.c.node == node, table.c.from_at <= start_ms)
        query = select(*rows.NODE_STATE_COLUMNS).where(
            table.c.node == node, table.c.from_at >= func.coalesce(before.scalar_subquery(), start_ms)
        )
        return self._read(query.order_by(table.c.from_at), rows.node_state_of)

    def remove_nodes(self, nodes: Iterable[NodeId]) -> None:
        """Remove nodes and their units; workloads and allocations are kept as history."""
        names = list(nodes)
        with self._writing() as connection:
            delete_each(connection, tables.units.c.node, names)
            delete_each(connection, tables.nodes.c.id, names)

    def remove_partitions(self, names: Iterable[str]) -> None:
        """Remove partitions."""
        with self._writing() as connection:
            delete_each(connection, tables.partitions.c.name, names)

    def remove_units(self, units: Iterable[UnitId]) -> None:
        """Remove units; allocations are kept as history."""
        with self._writing() as connection:
            delete_each(connection, tables.units.c.id, units)

    def write_workloads(self, workloads: Iterable[Workload], *, at_ms: UnixMs) -> None:
        """Insert or replace."""
        newest = {workload.id: workload for workload in workloads}
        records = [rows.workload_row(workload, at_ms) for workload in newest.values()]
        with self._writing() as connection:
            new_rows, stored = changed(connection, tables.workloads, records, among=IS_ACTIVE)
            upsert(connection, tables.workloads, new_rows)
            moved = [newest[WorkloadId(str(row["id"]))] for row in new_rows if _nodes_changed(row, stored)]
            delete_each(connection, tables.workload_nodes.c.workload, [workload.id for workload in moved])
            places = [
                {"node": node, "workload": workload.id} for workload in moved for node in dict.fromkeys(workload.nodes)
            ]
            if places:
                connection.execute(tables.workload_nodes.insert(), places)

    def write_allocations(self, allocations: Iterable[Allocation]) -> None:
        """Insert or replace by (workload, unit, from_at); writing one with ``to_at`` closes it."""
        records = [rows.allocation_row(allocation) for allocation in allocations]
        with self._writing() as connection:
            upsert(connection, tables.allocations, changed(connection, tables.allocations, records, among=IS_OPEN)[0])

    def write_sources(self, statuses: Iterable[SourceStatus]) -> None:
        """Insert or replace statuses of sources."""
        newest = {status.source: rows.source_row(status) for status in statuses}
        with self._writing() as connection:
            upsert(connection, tables.sources, list(newest.values()))

    def remove_sources(self, sources: Iterable[str]) -> None:
        """Remove sources."""
        with self._writing() as connection:
            delete_each(connection, tables.sources.c.source, sources)

    def nodes(self) -> list[Node]:
        """All nodes, by id."""
        return self._read(select(*rows.NODE_COLUMNS).order_by(tables.nodes.c.id), rows.node_of)

    def partitions(self) -> list[Partition]:
        """All partitions, by name."""
        return self._read(select(*rows.PARTITION_COLUMNS).order_by(tables.partitions.c.name), rows.partition_of)

    def units(self) -> list[Unit]:
        """All GPUs and MIG instances, by node and index."""
        query = select(*rows.UNIT_COLUMNS).where(tables.units.c.kind != UnitKind.REQUESTED.value)
        order = (tables.units.c.node, tables.units.c.index, tables.units.c.id)
        return self._read(query.order_by(*order), rows.unit_of)

    def workload(self, workload: WorkloadId) -> Workload | None:
        """One workload, or None."""
        records = self._read(select(*rows.WORKLOAD_COLUMNS).where(tables.workloads.c.id == workload), rows.workload_of)
        return records[0] if records else None

    def find_workloads(self, workloads: Iterable[WorkloadId]) -> list[Workload]:
        """Those of ``workloads`` that are stored."""
        query, ids = select(*rows.WORKLOAD_COLUMNS), list(workloads)
        records: list[Workload] = []
        for start in range(0, len(ids), IDS_PER_QUERY):
            batch = ids[start : start + IDS_PER_QUERY]
            records += self._read(query.where(tables.workloads.c.id.in_(batch)), rows.workload_of)
        return records

    def active_workloads(self) -> list[Workload]:
        """Everything waiting, running or suspended."""
        return self._read(select(*rows.WORKLOAD_COLUMNS).where(IS_ACTIVE), rows.workload_of)

    def workloads(self, where: WorkloadFilter, *, limit: int = 100, offset: int = 0) -> WorkloadPage:
        """A page of workloads that match, newest submission first."""
        conditions = matching(where)
        order = (tables.workloads.c.begins_at.desc(), tables.workloads.c.id.desc())
        page = select(*rows.WORKLOAD_COLUMNS).where(*conditions).order_by(*order).limit(limit).offset(offset)
        count = select(func.count()).select_from(tables.workloads).where(*conditions)
        with self._reading() as connection:
            records = [rows.workload_of(row) for row in connection.execute(page).fetchall()]
            total = connection.execute(count).scalar_one()
        return WorkloadPage(workloads=records, total=total, limit=limit, offset=offset)

    def open_allocations(self) -> list[Allocation]:
        """All open allocations."""
        return self._read(select(*rows.ALLOCATION_COLUMNS).where(IS_OPEN), rows.allocation_of)

    def allocations(
        self,
        *,
        workload: WorkloadId | None = None,
        unit: UnitId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Allocation]:
        """Allocations that overlap [start, end), by from_at; optionally of one workload or unit."""
        table = tables.allocations
        if workload is None and unit is None and start_ms is not None and end_ms is not None:
            records = self._read(overlapping_anywhere(rows.ALLOCATION_COLUMNS, start_ms, end_ms), rows.allocation_of)
            return sorted(records, key=lambda held: (held.from_at, held.unit, held.workload))
        query = select(*rows.ALLOCATION_COLUMNS).where(*overlapping(start_ms, end_ms))
        if workload is not None:
            query = query.where(table.c.workload == workload)
        if unit is not None:
            query = query.where(table.c.unit == unit)
        return self._read(query.order_by(table.c.from_at, table.c.unit, table.c.workload), rows.allocation_of)

    def workload_spans(self, *, since_ms: UnixMs) -> pl.DataFrame:
        """When each workload that had not ended by ``since_ms`` requested and held units, as columns."""
        table = tables.workloads
        columns = [
            table.c.id.label("workload"),
            *(
                table.c[name]
                for name in ("state", "begins_at", "started_at", "ends_at", "gpus_requested", "resource_type")
            ),
        ]
        return self._read_columns(select(*columns).where(or_(IS_ACTIVE, table.c.ends_at > since_ms)))

    def workload_history(self) -> pl.DataFrame:
        """Every execution of every workload as a row of a job trace."""
        table = self._read_columns(select(*(tables.workloads.c[name] for name in HISTORY_COLUMNS)))
        return rows.list_executions(table)

    def iter_executions(self, *, start_ms: UnixMs, end_ms: UnixMs) -> Iterator[pl.DataFrame]:
        """Every execution of workloads that waited or ran in [start, end), in tables of at most EXECUTIONS_AT_ONCE workloads."""
        begins_at, ends_at = tables.workloads.c.begins_at, tables.workloads.c.ends_at
        # "or" would keep SQLite from using the index of ends.
        has_begun = and_(begins_at + 0 < end_ms, tables.workloads.c.kind != WorkloadKind.RUN.value)
        columns = rows.EXECUTION_COLUMNS
        query = union_all(
            select(*columns).where(IS_ACTIVE, has_begun), select(*columns).where(ends_at > start_ms, has_begun)
        )
        with self._reading() as connection:
            for batch in _fetch_batches(connection, query, EXECUTIONS_AT_ONCE):
                yield rows.executions_table(batch)

    def allocation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Allocations that overlap [start, end) as columns."""
        columns = [tables.allocations.c[name] for name in ("workload", "unit", "from_at", "to_at")]
        return self._read_columns(overlapping_anywhere(columns, start_ms, end_ms))

    def write_violations(self, violations: Iterable[Violation]) -> None:
        """Insert or replace by (rule, workload, unit, since); writing one with ``until`` ends it."""
        records = [rows.violation_row(violation) for violation in violations]
        with self._writing() as connection:
            upsert(connection, tables.violations, changed(connection, tables.violations, records, among=IS_ONGOING)[0])

    def remove_violations(self, rule: str) -> int:
        """Remove all violations of a rule; returns their number."""
        with self._writing() as connection:
            return connection.execute(delete(tables.violations).where(tables.violations.c.rule == rule)).rowcount

    def replace_violations(self, rule: str, violations: Iterable[Violation]) -> None:
        """Replace all violations of a rule."""
        records = [rows.violation_row(violation) for violation in violations]
        with self._writing() as connection:
            connection.execute(delete(tables.violations).where(tables.violations.c.rule == rule))
            upsert(connection, tables.violations, records)

    def open_violations(self) -> list[Violation]:
        """All ongoing violations."""
        return self._read(select(*rows.VIOLATION_COLUMNS).where(IS_ONGOING), rows.violation_of)

    def violations(
        self,
        *,
        rule: str | None = None,
        workload: WorkloadId | None = None,
        start_ms: UnixMs | None = None,
        end_ms: UnixMs | None = None,
    ) -> list[Violation]:
        """Violations that overlap [start, end), by since; optionally of one rule or workload."""
        table = tables.violations
        query = select(*rows.VIOLATION_COLUMNS).where(*violated_between(start_ms, end_ms))
        if rule is not None:
            query = query.where(table.c.rule == rule)
        if workload is not None:
            query = query.where(table.c.workload == workload)
        return self._read(
            query.order_by(table.c.since, table.c.rule, table.c.workload, table.c.unit), rows.violation_of
        )

    def violation_spans(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Violations that overlap [start, end) as columns."""
        columns = [tables.violations.c[name] for name in ("rule", "workload", "unit", "since", "until", "gpus")]
        spans = self._read_columns(select(*columns).where(*violated_between(start_ms, end_ms)))
        return spans.with_columns(pl.col("unit").replace("", None))

    def job_summary(self, workload: WorkloadId) -> JobSummary | None:
        """The summary of an ended job, or None."""
        table = tables.job_summaries
        records = self._read(select(*rows.SUMMARY_COLUMNS).where(table.c.workload == workload), rows.summary_of)
        return records[0] if records else None

    def similar_summaries(self, user: str, family: str, *, limit: int) -> list[JobSummary]:
        """The latest summaries of a user's jobs of one family, newest first."""
        table = tables.job_summaries
        query = select(*rows.SUMMARY_COLUMNS).where(table.c.user == user, table.c.family == family)
        return self._read(query.order_by(table.c.ended_at.desc(), table.c.workload).limit(limit), rows.summary_of)

    def summary_columns(self, *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Summaries of jobs that ended in [start, end) as columns."""
        columns = [column for column in rows.SUMMARY_COLUMNS if column.name not in ("name", "detail")]
        ended_at = tables.job_summaries.c.ended_at
        return self._read_columns(select(*columns).where(ended_at >= start_ms, ended_at < end_ms))

    def unsummarized(self, *, start_ms: UnixMs, end_ms: UnixMs, limit: int) -> list[Workload]:
        """Workloads that ran, ended in [start, end), and have no summary of that end; the newest first."""
        table, summaries = tables.workloads, tables.job_summaries
        is_summarized = exists().where(summaries.c.workload == table.c.id, summaries.c.ended_at >= table.c.ended_at)
        query = select(*rows.WORKLOAD_COLUMNS).where(
            table.c.ends_at >= start_ms,
            table.c.ends_at < end_ms,
            table.c.started_at.is_not(None),
            table.c.ended_at.is_not(None),
            table.c.kind != WorkloadKind.RUN.value,
            ~is_summarized,
        )
        return self._read(query.order_by(table.c.ends_at.desc()).limit(limit), rows.workload_of)

    def write_summaries(self, summaries: Iterable[JobSummary]) -> int:
        """Insert or replace; returns how many. A stored summary of the same end stays if it has numbers."""
        table, newest = tables.job_summaries, {summary.workload: summary for summary in summaries}
        ids = list(newest)
        with self._writing() as connection:
            for start in range(0, len(ids), IDS_PER_QUERY):
                stored = select(table.c.workload, table.c.ended_at, table.c.source).where(
                    table.c.workload.in_(ids[start : start + IDS_PER_QUERY])
                )
                for workload, ended_at, source in connection.execute(stored).fetchall():
                    if newest[workload].ended_at == ended_at and source != SummarySource.ACCOUNTING:
                        del newest[workload]
            upsert(connection, table, [rows.summary_row(summary) for summary in newest.values()])
        return len(newest)

    def remove_summaries_before(self, at_ms: UnixMs) -> int:
        """Remove summaries of jobs that ended before ``at_ms``; returns their number."""
        table = tables.job_summaries
        with self._writing() as connection:
            return connection.execute(delete(table).where(table.c.ended_at < at_ms)).rowcount

    def sources(self) -> list[SourceStatus]:
        """The latest status of every source, by name."""
        return self._read(select(*rows.SOURCE_COLUMNS).order_by(tables.sources.c.source), rows.source_of)

    def remove_ended_before(self, at_ms: UnixMs) -> int:
        """Remove workloads that ended before ``at_ms``, with their allocations and violations; returns their number."""
        workloads, held, ended_violations = tables.workloads, tables.allocations, tables.violations
        is_old = workloads.c.ends_at < at_ms
        is_known = exists().where(workloads.c.id == held.c.workload)
        with self._writing() as connection:
            for table in (held, ended_violations):
                connection.execute(delete(table).where(table.c.workload.in_(select(workloads.c.id).where(is_old))))
            connection.execute(delete(held).where(held.c.to_at < at_ms, ~is_known))
            is_hardware = or_(
                *(ended_violations.c.workload.startswith(kind) for kind in ("node:", "source:", "user:", "project:"))
            )
            connection.execute(delete(ended_violations).where(ended_violations.c.until < at_ms, is_hardware))
            connection.execute(_delete_states_before(at_ms))
            return connection.execute(delete(workloads).where(is_old)).rowcount

    def remove_workload(self, workload: WorkloadId) -> None:
        """Remove a workload with its allocations and violations."""
        with self._writing() as connection:
            for table in (tables.allocations, tables.violations):
                connection.execute(delete(table).where(table.c.workload == workload))
            connection.execute(delete(tables.workloads).where(tables.workloads.c.id == workload))

    def write_run(self, run: StoredRun, *, at_ms: UnixMs) -> int:
        """Insert or replace a tracked run with its detail; returns the revision of this write."""
        run.record.written_at = at_ms
        with self._writing() as connection:
            # Writes are serialized, so a reader of a revision has read all lower ones.
            revision = _read_revision(connection) + 1
            upsert(connection, tables.runs, [rows.run_row(run, revision)])
            upsert(connection, tables.revisions, [{"kind": RUNS, "revision": revision}])
        return revision

    def run(self, run: str) -> StoredRun | None:
        """One tracked run with its detail, or None."""
        matches = self._read(select(*rows.RUN_DETAIL_COLUMNS).where(tables.runs.c.run == run), rows.run_of)
        return matches[0] if matches else None

    def run_record(self, run: str) -> RunRecord | None:
        """One tracked run as lists show it, or None."""
        matches = self._read(select(*rows.RUN_COLUMNS).where(tables.runs.c.run == run), rows.run_record_of)
        return matches[0] if matches else None

    def runs(self, *, after: int = 0) -> RunList:
        """Tracked runs, without their details: those written after the revision ``after``."""
        table = tables.runs
        query = select(*rows.RUN_COLUMNS).where(table.c.revision > after)
        with self._reading() as connection:
            revision = _read_revision(connection)  # first: concurrent writes are read again next time
            records = [rows.run_record_of(row) for row in connection.execute(query).fetchall()]
            total = int(connection.scalar(select(func.count()).select_from(table)) or 0)
        return RunList(records=records, revision=revision, total=total)

    def remove_run(self, run: str) -> bool:
        """Remove a tracked run; returns whether it existed."""
        with self._writing() as connection:
            return connection.execute(delete(tables.runs).where(tables.runs.c.run == run)).rowcount > 0

    def write_document(self, kind: str, key: str, body: Mapping[str, object], *, at_ms: UnixMs) -> None:
        """Insert or replace the document ``key`` of ``kind``."""
        row: rows.Row = {"kind": kind, "key": key, "body": rows.json_text(body), "written_at": at_ms}
        with self._writing() as connection:
            upsert(connection, tables.documents, [row])

    def document(self, kind: str, key: str) -> Document | None:
        """One document, or None."""
        table = tables.documents
        query = select(*rows.DOCUMENT_COLUMNS).where(table.c.kind == kind, table.c.key == key)
        records = self._read(query, rows.document_of)
        return records[0] if records else None

    def documents(self, kind: str) -> list[Document]:
        """All documents of ``kind``, by key."""
        table = tables.documents
        return self._read(
            select(*rows.DOCUMENT_COLUMNS).where(table.c.kind == kind).order_by(table.c.key), rows.document_of
        )

    def remove_document(self, kind: str, key: str) -> bool:
        """Remove a document; returns whether it existed."""
        table = tables.documents
        with self._writing() as connection:
            return connection.execute(delete(table).where(table.c.kind == kind, table.c.key == key)).rowcount > 0

    def close(self) -> None:
        """Release the connections."""
        self._engine.dispose()

    def _read(self, query: Query, build: Callable[[Sequence[Any]], Record]) -> list[Record]:
        with self._reading() as connection:
            return [build(row) for row in connection.execute(query).fetchall()]

    def _read_columns(self, query: Query) -> pl.DataFrame:
        """The result of a query over columns of texts and numbers as a data frame."""
        schema = {
            column.name: _column_type(column) for column in query.selected_columns if isinstance(column, Column | Label)
        }
        with self._reading() as connection:
            return pl.DataFrame(connection.execute(query).fetchall(), schema=schema, orient="row")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with database_errors(self._where), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction: committed and durable at the end of the block, rolled back on errors."""
        with self._write_lock, database_errors(self._where), self._writer.begin() as connection:
            if self._fence is not None:
                self._fence.check(connection)
            yield connection


def _fetch_batches(connection: Connection, query: Query, size: int) -> Iterator[Sequence[rows.Values]]:
    if connection.dialect.name != "sqlite":  # PostgreSQL's driver would load the whole result
        yield from connection.execution_options(yield_per=size).execute(query).partitions(size)
        return
    cursor = connection.execute(query).cursor  # the driver's tuples: rows of SQLAlchemy take as long again
    assert cursor is not None
    while batch := cursor.fetchmany(size):
        yield batch


def _column_type(column: ColumnElement[Any]) -> pl.DataType:
    if isinstance(column.type, BigInteger):
        return pl.Int64()
    return pl.Float64() if isinstance(column.type, Double) else pl.String()


def _read_revision(connection: Connection) -> int:
    """The revision of the last write of a run."""
    table = tables.revisions
    return int(connection.scalar(select(table.c.revision).where(table.c.kind == RUNS)) or 0)


def _nodes_changed(row: rows.Row, stored: Stored) -> bool:
    before = stored.get((row["id"],))
    return before is None or before.nodes != row["nodes"]


def _find_state_changes(connection: Connection, nodes: Sequence[rows.Row], at_ms: UnixMs) -> list[rows.Row]:
    """New states of nodes that went out of service or came back, or whose reason changed.

    Changes between available states are frequent and not stored; neither are unknown states of nodes without a scheduler.
    """
    if not nodes:
        return []
    columns = tables.nodes.c
    stored = connection.execute(select(columns.id, columns.state, columns.reason)).fetchall()
    before = {row[0]: _service_of(row[1], row[2]) for row in stored}
    return [
        {"node": row["id"], "from_at": at_ms, "state": row["state"], "reason": row["reason"]}
        for row in nodes
        if before.get(str(row["id"]), NEVER_REPORTED) != _service_of(str(row["state"]), row["reason"])
    ]


def _service_of(state: str, reason: object) -> tuple[str, object]:
    return (AVAILABLE, None) if NodeState(state).is_available else (state, reason)


def _last_states_before(at_ms: UnixMs) -> Subquery:
    table = tables.node_states
    last = select(table.c.node, func.max(table.c.from_at).label("from_at"))
    return last.where(table.c.from_at <= at_ms).group_by(table.c.node).subquery()


def _delete_states_before(at_ms: UnixMs) -> Delete:
    """Delete states that were replaced by then."""
    table, last = tables.node_states, _last_states_before(at_ms)
    newer = select(last.c.from_at).where(last.c.node == table.c.node).scalar_subquery()
    return delete(table).where(table.c.from_at < newer)
