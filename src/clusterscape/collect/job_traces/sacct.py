"""What ``sacct -P`` prints, with any ``--format`` that names submission, state, a run time and a size. Steps are not jobs."""

import polars as pl

from clusterscape.collect.job_traces import statuses
from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.delimited import read_delimited
from clusterscape.collect.job_traces.text import TraceSource
from clusterscape.collect.job_traces.times import clock_seconds, unix_seconds
from clusterscape.model.jobs import JobTrace

# Column of the trace → sacct's names for it, the best first.
_NAMES = {
    "job_id": ("JobIDRaw", "JobID"),
    "user": ("User", "UID"),
    "project": ("Account",),
    "queue": ("Partition",),
    "processors": ("AllocCPUS", "NCPUS", "ReqCPUS"),
    "nodes": ("AllocNodes", "NNodes", "ReqNodes"),
}


def is_sacct(start: str) -> bool:
    """Whether a file that begins like this is sacct's."""
    heading = start.splitlines()[0].split("|") if start.strip() else []
    return "Submit" in heading and "State" in heading


def read_sacct(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """Times without an offset are in ``timezone`` (Slurm prints the cluster's own)."""
    cleaner = Cleaner(statuses.SLURM)

    def reshape(frame: pl.DataFrame) -> pl.DataFrame:
        frame = _drop_others(frame, cleaner)
        has = set(frame.columns)
        columns = [unix_seconds("Submit", timezone).alias("submit_s"), _run_s(has).alias("run_s")]
        if "Start" in has:
            start_s = unix_seconds("Start", timezone).cast(pl.Float64, strict=False)
            waited = start_s - unix_seconds("Submit", timezone).cast(pl.Float64, strict=False)
            columns.append(waited.cast(pl.String).alias("wait_s"))
        if "TimelimitRaw" in has:
            minutes = pl.col("TimelimitRaw").cast(pl.Float64, strict=False)
            columns.append((minutes * 60).cast(pl.String).alias("requested_s"))
        elif "Timelimit" in has:
            columns.append(clock_seconds("Timelimit").alias("requested_s"))
        tres = next((heading for heading in ("AllocTRES", "ReqTRES") if heading in has), None)
        if tres:
            gpus = pl.col(tres).str.extract(r"gres/gpu=(\d+)", 1)
            columns.append(gpus.fill_null("0").alias("gpus"))
        for column, names in _NAMES.items():
            given = [pl.col(heading) for heading in names if heading in has]
            if given:
                columns.append(given[0].alias(column))
        return frame.with_columns(columns)

    columns = ("submit_s", "run_s", "wait_s", "requested_s", "gpus", *_NAMES)
    fields = {column: column for column in columns} | {"status": "State"}
    read_delimited(source, cleaner, fields, required=("Submit", "State"), separator="|", reshape=reshape)
    return cleaner.finish(name, "sacct", "gpus" if cleaner.share_with("gpus") > 0.5 else "processors")


def _drop_others(frame: pl.DataFrame, cleaner: Cleaner) -> pl.DataFrame:
    """Steps and jobs that have not ended go; ``CANCELLED by 1000`` becomes one word."""
    if "JobID" in frame.columns:
        frame = cleaner.notes.drop("a job step, not a job", frame, pl.col("JobID").str.contains(".", literal=True))
    state = pl.col("State").str.strip_chars().str.extract(r"^(\S+)", 1).str.strip_chars("+")
    frame = frame.with_columns(state.alias("State"))
    active = pl.col("State").str.to_lowercase().is_in(list(statuses.SLURM_ACTIVE))
    return cleaner.notes.drop("the job has not ended", frame, active)


def _run_s(has: set[str]) -> pl.Expr:
    if "ElapsedRaw" in has:
        elapsed = pl.col("ElapsedRaw")
    elif "Elapsed" in has:
        elapsed = clock_seconds("Elapsed")
    else:
        elapsed = pl.lit(None, pl.String)
    if "Start" not in has:
        return elapsed
    never = pl.col("Start").str.strip_chars().is_in(["Unknown", "None", ""])
    return pl.when(never).then(None).otherwise(elapsed)
