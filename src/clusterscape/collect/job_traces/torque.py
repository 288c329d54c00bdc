"""Reads accounting logs of Torque and PBS Professional (``server_priv/accounting/YYYYMMDD``), also of several days in one file.

Blue Waters (NCSA) published its job log in this format: https://bluewaters.ncsa.illinois.edu/data-sets describes it, and its
Globus collection has it under ``torque_logs_anonimized``, one archive of daily files per year. Only jobs that ended have a
record with everything (``E``); a job that was deleted before it started has only ``Q`` and ``D``.
"""

import polars as pl

from clusterscape.collect.job_traces.cleaning import Cleaner, clock_seconds
from clusterscape.collect.job_traces.text import TraceSource, iter_blocks
from clusterscape.model.jobs import JobStatus, JobTrace

_RECORD = r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];[^;]+;"
_ENDED = "E"
# Of Torque and PBS: killed by the server for exceeding its walltime; negative codes say that the job never ran or was aborted.
_TIME_LIMIT_CODES = (-11, -29)
_SIGNAL_CODES = (256 + 9, 256 + 15, 128 + 9, 128 + 15)  # SIGKILL and SIGTERM, as a user's qdel sends
_STATUSES = {status.value: status for status in JobStatus}


def is_torque(start: str) -> bool:
    """Whether a file that starts with ``start`` is an accounting log of Torque or PBS."""
    lines = pl.Series([line for line in start.splitlines() if line.strip()][:1], dtype=pl.String)
    return bool(lines.len() and lines.str.contains(_RECORD).all())


def read_torque(source: TraceSource, name: str) -> JobTrace:
    """Read an accounting log. Sizes are nodes. The run time is ``end`` − ``start``, which does not depend on the time zone.

    A job that was requeued has one record per execution. Records of other types only count as such.
    """
    cleaner = Cleaner(_STATUSES)
    for number, lines in iter_blocks(source, cleaner.faults):
        source.check_rows(number + len(lines))
        texts = pl.DataFrame(
            {"line": pl.int_range(number, number + len(lines), eager=True), "text": pl.Series(lines, dtype=pl.String)}
        ).filter(pl.col("text").str.strip_chars() != "")
        texts = cleaner.notes.drop("no accounting record", texts, ~pl.col("text").str.contains(_RECORD))
        parts = texts.with_columns(pl.col("text").str.splitn(";", 4).alias("part")).unnest("part")
        parts = parts.rename({"field_0": "at", "field_1": "type", "field_2": "job_id", "field_3": "message"})
        cleaner.add(_to_columns(parts.filter(pl.col("type") == _ENDED)))
    return cleaner.finish(name, "torque", "nodes")


def _to_columns(ended: pl.DataFrame) -> pl.DataFrame:
    def value(key: str) -> pl.Expr:
        escaped = key.replace(".", r"\.")
        return pl.col("message").str.extract(rf"(?:^|\s){escaped}=(\S*)", 1)

    moments = {name: value(name).cast(pl.Float64, strict=False) for name in ("qtime", "start", "end")}
    frame = ended.with_columns(
        *(moment.alias(name) for name, moment in moments.items()),
        value("Resource_List.nodes").alias("nodes_text"),
        value("Resource_List.nodect").cast(pl.Int64, strict=False).alias("nodect"),
        value("Resource_List.walltime").alias("walltime"),
        value("Exit_status").cast(pl.Int64, strict=False).alias("exit"),
    )
    run = pl.col("end") - pl.col("start")
    # ``nodes=16:ppn=32:xe``, ``nodes=1:ppn=8+2:ppn=4``, ``nodes=n1+n2``: chunks, each a number of nodes or one name.
    chunks = (
        pl.col("nodes_text")
        .str.split("+")
        .list.eval(pl.element().str.extract(r"^(\d+)(?::|$)", 1).cast(pl.Int64, strict=False).fill_null(1))
    )
    walltime = pl.col("walltime")
    limit = pl.when(walltime.str.contains(r"^\d+$")).then(walltime).otherwise(clock_seconds("walltime"))
    return frame.select(
        "line",
        "job_id",
        value("jobname").alias("name"),
        value("user").alias("user"),
        value("account").alias("project"),
        value("queue").alias("queue"),
        pl.col("qtime").alias("submit_s"),
        (pl.col("start") - pl.col("qtime")).alias("wait_s"),
        run.alias("run_s"),
        value("Resource_List.ncpus").alias("processors"),
        pl.coalesce("nodect", chunks.list.sum()).alias("nodes"),
        limit.alias("requested_s"),
        _status(run >= limit.cast(pl.Float64, strict=False)).alias("status"),
    )


def _status(has_reached_limit: pl.Expr) -> pl.Expr:
    """A job that was killed at its limit timed out; killed before, it was cancelled."""
    code = pl.col("exit")
    is_late = code.is_in(_TIME_LIMIT_CODES) | (code.is_in(_SIGNAL_CODES) & has_reached_limit.fill_null(False))
    return (
        pl.when(code.is_null())
        .then(pl.lit(JobStatus.UNKNOWN.value))
        .when(code == 0)
        .then(pl.lit(JobStatus.COMPLETED.value))
        .when(is_late)
        .then(pl.lit(JobStatus.TIMEOUT.value))
        .when(code.is_in(_SIGNAL_CODES))
        .then(pl.lit(JobStatus.CANCELLED.value))
        .otherwise(pl.lit(JobStatus.FAILED.value))
    )
