"""This cluster's own history as a job trace: every workload that asked for GPUs, ended, running or waiting.

Decides what of a workload's record becomes a job's columns. Tracked runs are left out: they run inside jobs.
"""

from collections.abc import Iterator

import polars as pl

from clusterscape.model import UnitKind, UnixMs, Workload, WorkloadKind, WorkloadState
from clusterscape.model.jobs import JOB_COLUMNS, UNTIL_KEY, CleaningNote, JobStatus, JobTrace
from clusterscape.store.records.contract import RecordStore, WorkloadFilter

FORMAT = "history"
PAGE = 10_000

_STATUSES = {
    WorkloadState.COMPLETED: JobStatus.COMPLETED,
    WorkloadState.FAILED: JobStatus.FAILED,
    WorkloadState.OUT_OF_MEMORY: JobStatus.FAILED,
    WorkloadState.NODE_FAILED: JobStatus.FAILED,
    WorkloadState.CANCELLED: JobStatus.CANCELLED,
    WorkloadState.PREEMPTED: JobStatus.CANCELLED,
    WorkloadState.TIMEOUT: JobStatus.TIMEOUT,
}
_READ = ("id", "user", "project", "partition", "gpus", "nodes", "limit_s", "state", "submitted", "started", "ended")


def read_history(records: RecordStore, *, name: str, now_ms: UnixMs) -> JobTrace:
    """The history up to now. A job that still runs has no run time yet, one that waits no wait; both end in no way."""
    rows = [_cells(workload) for workload in _iter_workloads(records) if workload.kind is not WorkloadKind.RUN]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row").sort("submitted", "id", nulls_last=True)
    frame = frame.with_row_index("line", offset=1)
    notes: list[CleaningNote] = []
    frame = _drop(frame, pl.col("submitted").is_null(), "no submit time", notes)
    frame = _drop(frame, pl.col("gpus") <= 0, "asks for no GPU", notes)
    _note(frame, pl.col("state") == WorkloadState.RUNNING, "still running: no run time yet", notes)
    _note(frame, pl.col("state") == WorkloadState.SUSPENDED, "suspended: no run time yet", notes)
    _note(frame, pl.col("state") == WorkloadState.WAITING, "still waiting", notes)
    _note(frame, pl.col("state") == WorkloadState.PREEMPTED, "pre-empted: counted as cancelled", notes)
    total = sum(unit.kind is UnitKind.GPU for unit in records.units())
    return JobTrace(
        name=name,
        format=FORMAT,
        frame=_to_columns(frame),
        size_unit="gpus",
        total=total or None,
        header={UNTIL_KEY: str(now_ms / 1000)},
        notes=tuple(notes),
    )


_SCHEMA = dict(
    zip(_READ, [pl.String] * 4 + [pl.Float64, pl.Int64, pl.Float64, pl.String] + [pl.Int64] * 3, strict=True)
)


def _iter_workloads(records: RecordStore) -> Iterator[Workload]:
    """Page by page. What is submitted meanwhile moves pages on: a workload may come twice, none is left out."""
    seen: set[str] = set()
    offset = 0
    while True:
        page = records.workloads(WorkloadFilter(), limit=PAGE, offset=offset)
        for workload in page.workloads:
            if workload.id not in seen:
                seen.add(workload.id)
                yield workload
        offset += PAGE
        if len(page.workloads) < PAGE:
            return


def _cells(workload: Workload) -> tuple[str | float | int | None, ...]:
    return (
        workload.id,
        workload.user,
        workload.project,
        workload.partition,
        workload.gpus_requested,
        workload.nodes_requested,
        workload.time_limit_s,
        workload.state.value,
        workload.submitted_at,
        None if workload.state is WorkloadState.WAITING else workload.started_at,
        workload.ended_at,
    )


def _drop(frame: pl.DataFrame, where: pl.Expr, reason: str, notes: list[CleaningNote]) -> pl.DataFrame:
    count = frame.filter(where).height
    if count:
        notes.append(CleaningNote("dropped", reason, count))
    return frame.filter(~where.fill_null(False))


def _note(frame: pl.DataFrame, where: pl.Expr, reason: str, notes: list[CleaningNote]) -> None:
    count = frame.filter(where).height
    if count:
        notes.append(CleaningNote("kept", reason, count))


def _to_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """A skewed clock's negative span counts as none."""
    statuses = {state.value: status.value for state, status in _STATUSES.items()}
    status = pl.col("state").replace_strict(statuses, default=JobStatus.UNKNOWN.value, return_dtype=pl.String)
    return frame.select(
        pl.col("line").cast(pl.Int64),
        pl.col("id").alias("job_id"),
        "user",
        "project",
        pl.col("partition").alias("queue"),
        (pl.col("submitted") / 1000).alias("submit_s"),
        ((pl.col("started") - pl.col("submitted")).clip(0) / 1000).alias("wait_s"),
        ((pl.col("ended") - pl.col("started")).clip(0) / 1000).alias("run_s"),
        pl.lit(None, pl.Int64).alias("processors"),
        "gpus",
        "nodes",
        pl.when(pl.col("limit_s") > 0).then(pl.col("limit_s")).alias("requested_s"),
        status.alias("status"),
    ).cast(pl.Schema(JOB_COLUMNS))
