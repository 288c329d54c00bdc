"""This cluster's history as a job trace: every workload that requested GPUs, ended, running or waiting.

A requeued or preempted workload has a row for each execution, as in ``sacct --duplicates``. Tracked runs are excluded: they run
inside jobs.
"""

import polars as pl

from clusterscape.model import UnitKind, UnixMs, WorkloadKind, WorkloadState
from clusterscape.model.jobs import JOB_COLUMNS, UNTIL_KEY, CleaningNote, JobStatus, JobTrace
from clusterscape.store.records.contract import RecordReader

FORMAT = "history"

_STATUSES = {
    WorkloadState.COMPLETED: JobStatus.COMPLETED,
    WorkloadState.FAILED: JobStatus.FAILED,
    WorkloadState.OUT_OF_MEMORY: JobStatus.FAILED,
    WorkloadState.NODE_FAILED: JobStatus.FAILED,
    WorkloadState.CANCELLED: JobStatus.CANCELLED,
    WorkloadState.PREEMPTED: JobStatus.CANCELLED,
    WorkloadState.TIMEOUT: JobStatus.TIMEOUT,
}


def read_history(records: RecordReader, *, name: str, now_ms: UnixMs) -> JobTrace:
    """The history up to now. A running job has no run time yet, a waiting job no waiting time; both have an unknown status."""
    frame = records.workload_history().filter(pl.col("kind") != WorkloadKind.RUN.value)
    frame = frame.sort("submitted_at", "id", nulls_last=True).with_row_index("line", offset=1)
    notes: list[CleaningNote] = []
    frame = _drop(frame, pl.col("submitted_at").is_null(), "no submit time", notes)
    frame = _drop(frame, pl.col("gpus_requested") <= 0, "requests no GPU", notes)
    _note(frame, pl.col("state") == WorkloadState.RUNNING.value, "still running: no run time yet", notes)
    _note(frame, pl.col("state") == WorkloadState.SUSPENDED.value, "suspended: no run time yet", notes)
    _note(frame, pl.col("state") == WorkloadState.WAITING.value, "still waiting", notes)
    _note(frame, pl.col("state") == WorkloadState.PREEMPTED.value, "preempted: counted as cancelled", notes)
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
    """The columns of a job trace; negative spans of skewed clocks count as 0."""
    statuses = {state.value: status.value for state, status in _STATUSES.items()}
    status = pl.col("state").replace_strict(statuses, default=JobStatus.UNKNOWN.value, return_dtype=pl.String)
    # The start of a waiting job is only predicted.
    started = pl.when(pl.col("state") != WorkloadState.WAITING.value).then(pl.col("started_at"))
    return frame.select(
        pl.col("line").cast(pl.Int64),
        pl.col("id").alias("job_id"),
        "name",
        "user",
        "project",
        pl.col("partition").alias("queue"),
        (pl.col("submitted_at") / 1000).alias("submit_s"),
        ((started - pl.col("submitted_at")).clip(0) / 1000).alias("wait_s"),
        ((pl.col("ended_at") - started) / 1000 - pl.col("suspended_s")).clip(0).alias("run_s"),
        pl.lit(None, pl.Int64).alias("processors"),
        pl.coalesce("gpus_allocated", "gpus_requested").alias("gpus"),
        pl.col("nodes_requested").alias("nodes"),
        pl.when(pl.col("time_limit_s") > 0).then(pl.col("time_limit_s")).alias("requested_s"),
        status.alias("status"),
    ).cast(pl.Schema(JOB_COLUMNS))
