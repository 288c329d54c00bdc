"""Records to table rows and back, as pure functions. Column order of reading is that of the ``*_COLUMNS`` lists."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, overload

import orjson
import polars as pl
from sqlalchemy import Column, Label, Table, case, func, not_

from clusterscape.model import (
    Allocation,
    AllocationSource,
    Execution,
    Node,
    NodeState,
    NodeStateChange,
    Partition,
    SourceStatus,
    Unit,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadKind,
    WorkloadState,
)
from clusterscape.model.job_summaries import JobSummary, SummarySource
from clusterscape.model.rules import Violation
from clusterscape.model.runs import RunRecord, StoredRun, decode_detail, decode_summary, encode
from clusterscape.store.records import tables
from clusterscape.store.records.contract import Document

Row = dict[str, object]
Values = Sequence[Any]  # a row of the driver

# A dictionary is four times as fast as calling the enum, which matters for 10,000 rows.
_NODE_STATES = {state.value: state for state in NodeState}
_UNIT_KINDS = {kind.value: kind for kind in UnitKind}
_WORKLOAD_STATES = {state.value: state for state in WorkloadState}
_WORKLOAD_KINDS = {kind.value: kind for kind in WorkloadKind}
_ALLOCATION_SOURCES = {source.value: source for source in AllocationSource}


def _columns(table: Table, record: type) -> list[Column[Any]]:
    return [table.c[field.name] for field in fields(record)]


NODE_COLUMNS = _columns(tables.nodes, Node)
PARTITION_COLUMNS = _columns(tables.partitions, Partition)
UNIT_COLUMNS = _columns(tables.units, Unit)
WORKLOAD_COLUMNS = _columns(tables.workloads, Workload)
ALLOCATION_COLUMNS = _columns(tables.allocations, Allocation)
NODE_STATE_COLUMNS = _columns(tables.node_states, NodeStateChange)
VIOLATION_COLUMNS = _columns(tables.violations, Violation)
SUMMARY_COLUMNS = _columns(tables.job_summaries, JobSummary)
SOURCE_COLUMNS = list(tables.sources.c)  # without the exporter's address, which only ingest uses
DOCUMENT_COLUMNS = _columns(tables.documents, Document)
_RUN_SCALARS = ("run", "owned_by", "received_at", "written_at", "bytes", "series_count")
RUN_COLUMNS = [tables.runs.c[name] for name in (*_RUN_SCALARS, "summary")]
RUN_DETAIL_COLUMNS = [*RUN_COLUMNS, tables.runs.c.detail]


def node_row(node: Node, seen_at: UnixMs) -> Row:
    """The row of ``node``."""
    return {
        "id": node.id,
        "partitions": json_text(node.partitions),
        "machine_type": storable(node.machine_type),
        "state": node.state.value,
        "reason": storable(node.reason),
        "gpu_count": node.gpu_count,
        "cpu_count": node.cpu_count,
        "memory_bytes": node.memory_bytes,
        "features": json_text(node.features),
        "rack": storable(node.rack),
        "driver_version": storable(node.driver_version),
        "seen_at": seen_at,
    }


def node_of(row: Values) -> Node:
    """The node of a row of NODE_COLUMNS."""
    return Node(
        id=row[0],
        partitions=_tuple(row[1]),
        machine_type=row[2],
        state=_NODE_STATES[row[3]],
        reason=row[4],
        gpu_count=row[5],
        cpu_count=row[6],
        memory_bytes=row[7],
        features=_tuple(row[8]),
        rack=row[9],
        driver_version=row[10],
    )


def partition_row(partition: Partition, seen_at: UnixMs) -> Row:
    """The row of ``partition``."""
    return {
        "name": partition.name,
        "nodes": json_text(partition.nodes),
        "is_up": partition.is_up,
        "is_default": partition.is_default,
        "max_time_s": partition.max_time_s,
        "seen_at": seen_at,
    }


def partition_of(row: Values) -> Partition:
    """The partition of a row of PARTITION_COLUMNS."""
    return Partition(name=row[0], nodes=_tuple(row[1]), is_up=row[2], is_default=row[3], max_time_s=row[4])


def unit_row(unit: Unit, seen_at: UnixMs) -> Row:
    """The row of ``unit``."""
    return {
        "id": unit.id,
        "kind": unit.kind.value,
        "node": unit.node,
        "index": unit.index,
        "uuid": storable(unit.uuid),
        "machine_type": storable(unit.machine_type),
        "memory_bytes": unit.memory_bytes,
        "power_limit_watts": unit.power_limit_watts,
        "pci_bus_id": storable(unit.pci_bus_id),
        "parent": unit.parent,
        "mig_profile": storable(unit.mig_profile),
        "workload": unit.workload,
        "seen_at": seen_at,
    }


def unit_of(row: Values) -> Unit:
    """The unit of a row of UNIT_COLUMNS."""
    return Unit(
        id=row[0],
        kind=_UNIT_KINDS[row[1]],
        node=row[2],
        index=row[3],
        uuid=row[4],
        machine_type=row[5],
        memory_bytes=row[6],
        power_limit_watts=row[7],
        pci_bus_id=row[8],
        parent=row[9],
        mig_profile=row[10],
        workload=row[11],
    )


def workload_row(workload: Workload, seen_at: UnixMs) -> Row:
    """The row of ``workload``.

    ``begins_at``: first known time; ``ends_at``: when it ended (null while active, at least 1 ms after the begin, so that even an
    instantaneous workload overlaps a range). An unknown time is replaced by ``seen_at``.
    """
    w = workload
    times = (w.submitted_at, w.eligible_at, w.started_at, w.ended_at)
    begins_at = next((at for at in times if at is not None), seen_at)
    ended_at = seen_at if w.ended_at is None else w.ended_at
    ends_at = None if w.state.is_active else max(begins_at + 1, ended_at)
    return {
        "id": w.id,
        "state": w.state.value,
        "kind": w.kind.value,
        "name": storable(w.name),
        "user": storable(w.user),
        "project": storable(w.project),
        "experiment": storable(w.experiment),
        "partition": storable(w.partition),
        "resource_type": storable(w.resource_type),
        "qos": storable(w.qos),
        "priority": w.priority,
        "gpus_requested": w.gpus_requested,
        "nodes_requested": w.nodes_requested,
        "time_limit_s": w.time_limit_s,
        "submitted_at": w.submitted_at,
        "eligible_at": w.eligible_at,
        "started_at": w.started_at,
        "ended_at": w.ended_at,
        "expected_start_at": w.expected_start_at,
        "pending_reason": storable(w.pending_reason),
        "exit_code": w.exit_code,
        "exit_signal": w.exit_signal,
        "restarts": w.restarts,
        "nodes": json_text(w.nodes),
        "tags": json_text(w.tags),
        "gpus_allocated": w.gpus_allocated,
        "suspended_s": w.suspended_s,
        "suspended_at": w.suspended_at,
        "earlier": _executions_text(w.earlier),
        "derived_exit_code": w.derived_exit_code,
        "derived_exit_signal": w.derived_exit_signal,
        "cpus": w.cpus,
        "memory_requested_bytes": w.memory_requested_bytes,
        "begins_at": begins_at,
        "ends_at": ends_at,
        "search": search_text(w.id, w.name, w.user, w.project, w.experiment, _number_text(w.tags.get("job_id"))),
        "seen_at": seen_at,
    }


def workload_of(row: Values) -> Workload:
    """The workload of a row of WORKLOAD_COLUMNS."""
    return Workload(
        id=row[0],
        state=_WORKLOAD_STATES[row[1]],
        kind=_WORKLOAD_KINDS[row[2]],
        name=row[3],
        user=row[4],
        project=row[5],
        experiment=row[6],
        partition=row[7],
        resource_type=row[8],
        qos=row[9],
        priority=row[10],
        gpus_requested=row[11],
        nodes_requested=row[12],
        time_limit_s=row[13],
        submitted_at=row[14],
        eligible_at=row[15],
        started_at=row[16],
        ended_at=row[17],
        expected_start_at=row[18],
        pending_reason=row[19],
        exit_code=row[20],
        exit_signal=row[21],
        restarts=row[22],
        nodes=_tuple(row[23]),
        tags=orjson.loads(row[24]),
        gpus_allocated=row[25],
        suspended_s=row[26],
        suspended_at=row[27],
        earlier=executions_of(row[28]),
        derived_exit_code=row[29],
        derived_exit_signal=row[30],
        cpus=row[31],
        memory_requested_bytes=row[32],
    )


def _executions_text(executions: Sequence[Execution]) -> str:
    return orjson.dumps(executions).decode() if executions else "[]"


def executions_of(text: str) -> tuple[Execution, ...]:
    """The executions of a column ``earlier``."""
    if text == "[]":
        return ()
    return tuple(Execution(**{**fields, "state": _WORKLOAD_STATES[fields["state"]]}) for fields in orjson.loads(text))


def list_executions(table: pl.DataFrame) -> pl.DataFrame:
    """Workloads with a column ``earlier`` as rows of one execution each, without that column."""
    restarted = table.filter(pl.col("earlier") != "[]")
    former = [
        {**row, **_execution_columns(execution)}
        for row in restarted.iter_rows(named=True)
        for execution in executions_of(row["earlier"])
    ]
    return pl.concat([table, pl.DataFrame(former, schema=table.schema)]).drop("earlier")


def _execution_columns(execution: Execution) -> dict[str, object]:
    return {
        "state": execution.state.value,
        "submitted_at": execution.submitted_at if execution.submitted_at is not None else execution.started_at,
        "started_at": execution.started_at,
        "ended_at": execution.ended_at,
        "gpus_allocated": execution.gpus,
        "suspended_s": execution.suspended_s,
    }


_W = tables.workloads.c
_IS_ACTIVE = _W.state.in_([state.value for state in WorkloadState if state.is_active])
EXECUTION_COLUMNS: list[Label[Any]] = [
    *(_W[name].label(name) for name in ("id", "user", "project", "partition", "qos", "resource_type")),
    case((_W.resource_type.is_(None), func.substr(_W.nodes, 1, 256))).label("first_node"),
    _W.state.label("end_state"),
    func.nullif(_W.earlier, "[]").label("earlier"),
    func.coalesce(_W.gpus_allocated, _W.gpus_requested).label("gpus"),
    _W.cpus.label("cpus"),
    _W.submitted_at.label("submitted_at"),
    func.nullif(_W.eligible_at, _W.submitted_at).label("eligible_at"),
    case((_W.state != WorkloadState.WAITING.value, _W.started_at)).label("started_at"),
    case((not_(_IS_ACTIVE), func.coalesce(_W.ended_at, _W.ends_at))).label("ended_at"),
    func.nullif(_W.suspended_s, 0).label("suspended_s"),
    _W.suspended_at.label("suspended_at"),
]
"""The columns that ``executions_table`` takes. What is mostly the same is null: nulls are read faster."""

_FIRST_INTEGER = 9
_END_STATES = {"REQUEUED": "requeued", "RESIZING": "resized"}
_ACTIVE_STATES = [state.value for state in WorkloadState if state.is_active]


def executions_table(batch: Sequence[Values]) -> pl.DataFrame:
    """Rows of EXECUTION_COLUMNS as the table of ``RecordReader.iter_executions``."""
    table = pl.DataFrame(
        [
            pl.Series(column.name, values, pl.String if index < _FIRST_INTEGER else pl.Int64)
            for index, (column, values) in enumerate(zip(EXECUTION_COLUMNS, zip(*batch, strict=True), strict=True))
        ]
    )
    latest = table.drop("earlier").with_columns(
        first_node=pl.col("first_node").str.extract(r'^\["((?:[^"\\]|\\.)*)"'),
        eligible_at=pl.coalesce("eligible_at", "submitted_at"),
        suspended_s=pl.col("suspended_s").fill_null(0),
        is_active=pl.col("end_state").is_in(_ACTIVE_STATES),
        is_first=table["earlier"].is_null(),
        is_last=pl.lit(True),
    )
    restarted = table["earlier"].is_not_null().arg_true()
    if not len(restarted):
        return latest
    former: list[tuple[object, ...]] = []
    begun: list[int | None] = []
    for place, text, started_at in zip(
        restarted, table["earlier"].gather(restarted), latest["started_at"].gather(restarted), strict=True
    ):
        executions = executions_of(text)
        former += [(place, index == 0, *_former_values(value)) for index, value in enumerate(executions)]
        # After a resize the queue still reports the first start (see ``Workload.run_s``).
        ends = [e.ended_at for e in executions if started_at is not None and e.started_at >= started_at]
        begun.append(max(ends) if ends else started_at)
    latest = latest.with_columns(latest["started_at"].scatter(restarted, begun))
    values = pl.DataFrame(former, schema=_FORMER, orient="row")
    columns = latest[values["place"]].with_columns(
        values.drop("place").get_columns(),
        suspended_at=pl.lit(None, pl.Int64),
        is_active=pl.lit(False),
        is_last=pl.lit(False),
    )
    return pl.concat([latest, columns])


_FORMER = {
    "place": pl.UInt32,
    "is_first": pl.Boolean,
    "end_state": pl.String,
    **dict.fromkeys(("submitted_at", "eligible_at", "started_at", "ended_at", "gpus", "suspended_s"), pl.Int64),
}


def _former_values(execution: Execution) -> tuple[object, ...]:
    submitted_at = execution.submitted_at if execution.submitted_at is not None else execution.started_at
    return (
        _END_STATES.get(execution.word or "", execution.state.value),
        submitted_at,
        submitted_at,
        execution.started_at,
        execution.ended_at,
        execution.gpus,
        execution.suspended_s,
    )


def allocation_row(allocation: Allocation) -> Row:
    """The row of ``allocation``."""
    return {
        "workload": allocation.workload,
        "unit": allocation.unit,
        "from_at": allocation.from_at,
        "to_at": allocation.to_at,
        "source": allocation.source.value,
        "confidence": allocation.confidence,
    }


def allocation_of(row: Values) -> Allocation:
    """The allocation of a row of ALLOCATION_COLUMNS."""
    return Allocation(
        workload=row[0],
        unit=row[1],
        from_at=row[2],
        to_at=row[3],
        source=_ALLOCATION_SOURCES[row[4]],
        confidence=row[5],
    )


def node_state_row(change: NodeStateChange) -> Row:
    """The row of ``change``."""
    return {
        "node": change.node,
        "from_at": change.from_at,
        "state": change.state.value,
        "reason": storable(change.reason),
    }


def node_state_of(row: Values) -> NodeStateChange:
    """The state change of a row of NODE_STATE_COLUMNS."""
    return NodeStateChange(node=row[0], from_at=row[1], state=_NODE_STATES[row[2]], reason=row[3])


def violation_row(violation: Violation) -> Row:
    """The row of ``violation``."""
    return {
        "rule": violation.rule,
        "workload": violation.workload,
        "unit": violation.unit or "",
        "since": violation.since,
        "until": violation.until,
        "gpus": violation.gpus,
        "values": json_text(violation.values),
    }


def violation_of(row: Values) -> Violation:
    """The violation of a row of VIOLATION_COLUMNS."""
    return Violation(
        rule=row[0],
        workload=row[1],
        unit=row[2] or None,
        since=row[3],
        until=row[4],
        gpus=row[5],
        values=orjson.loads(row[6]),
    )


def summary_row(summary: JobSummary) -> Row:
    """The row of ``summary``."""
    values = {column.name: getattr(summary, column.name) for column in SUMMARY_COLUMNS}
    return {name: storable(value) if isinstance(value, str) else value for name, value in values.items()}


def summary_of(row: Values) -> JobSummary:
    """The summary of a row of SUMMARY_COLUMNS."""
    values = dict(zip((column.name for column in SUMMARY_COLUMNS), row, strict=True))
    values |= {
        "state": _WORKLOAD_STATES[values["state"]],
        "kind": _WORKLOAD_KINDS[values["kind"]],
        "source": SummarySource(values["source"]),
    }
    return JobSummary(**values)


def source_row(status: SourceStatus) -> Row:
    """The row of ``status``."""
    return {
        "source": status.source,
        "kind": status.kind,
        "is_ok": status.is_ok,
        "at": status.at,
        "node": status.node,
        "message": storable(status.message),
        "hint": storable(status.hint),
        "duration_s": status.duration_s,
    }


def source_of(row: Values) -> SourceStatus:
    """The status of a row of SOURCE_COLUMNS."""
    return SourceStatus(
        source=row[0],
        kind=row[1],
        is_ok=row[2],
        at=row[3],
        node=row[4],
        message=row[5],
        hint=row[6],
        duration_s=row[7],
    )


def document_of(row: Values) -> Document:
    """The document of a row of DOCUMENT_COLUMNS."""
    return Document(kind=row[0], key=row[1], body=orjson.loads(row[2]), written_at=row[3])


def _number_text(number: str | None) -> str | None:
    """The raw job number of an array task, so that a search finds the task by it."""
    return None if number is None else f"job_id={number};"


def search_text(*parts: str | None) -> str:
    """The text that searches use, case-folded by Unicode rules, which LIKE does not fully support in either engine."""
    return "\n".join(storable(part) for part in parts if part).casefold()


def run_row(run: StoredRun, revision: int) -> Row:
    """The row of ``run``."""
    return {
        **{name: getattr(run.record, name) for name in _RUN_SCALARS},
        "revision": revision,
        "summary": encode(run.summary),
        "detail": encode(run.detail),
    }


def run_record_of(row: Values) -> RunRecord:
    """The run of a row of RUN_COLUMNS."""
    summary, damage = decode_summary(row[6])
    return RunRecord(
        run=row[0],
        owned_by=row[1],
        received_at=row[2],
        written_at=row[3],
        bytes=row[4],
        series_count=row[5],
        summary=summary,
        damage=damage,
    )


def run_of(row: Values) -> StoredRun:
    """The run of a row of RUN_DETAIL_COLUMNS."""
    record = run_record_of(row)
    detail, damage = decode_detail(row[7])
    return StoredRun(record=record, detail=detail, damage=record.damage or damage)


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
@overload
def storable(text: str | None) -> str | None: ...
def storable(text: str | None) -> str | None:
    """``text`` without characters that cannot be stored: NUL (PostgreSQL) and lone surrogates (both)."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def json_text(value: Mapping[str, object] | Sequence[str]) -> str:
    """``value`` as JSON text."""
    try:
        return orjson.dumps(value).decode("utf-8")
    except TypeError:  # lone surrogates, or a mapping that is not a dict
        return orjson.dumps(_plain(value)).decode("utf-8")


def _plain(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return value


def _tuple(text: str) -> tuple[Any, ...]:
    return () if text == "[]" else tuple(orjson.loads(text))
