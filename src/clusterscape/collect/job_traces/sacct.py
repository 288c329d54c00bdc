"""Reads the output of ``sacct -P``, with any ``--format`` that has submit time, state, a run time and a size (steps are skipped),
and of ``sacct --json``, for Slurm 21.08 to 24.11.
"""

import polars as pl

from clusterscape.collect.job_traces.cleaning import (
    SLURM_ACTIVE_STATES,
    SLURM_STATUSES,
    Cleaner,
    clock_seconds,
    unix_seconds,
)
from clusterscape.collect.job_traces.delimited import read_delimited
from clusterscape.collect.job_traces.json_objects import iter_row_batches
from clusterscape.collect.job_traces.text import TraceSource, find_heading
from clusterscape.collect.slurm.values import as_list, as_object, read_int, read_text, read_words
from clusterscape.model.jobs import JobTrace

# Column of the trace → names of sacct, the best first.
_NAMES = {
    "job_id": ("JobIDRaw", "JobID"),
    "name": ("JobName",),
    "user": ("User", "UID"),
    "project": ("Account",),
    "queue": ("Partition",),
    "processors": ("AllocCPUS", "NCPUS", "ReqCPUS"),
    "nodes": ("AllocNodes", "NNodes", "ReqNodes"),
}


def is_sacct(start: str) -> bool:
    """Whether a file that starts with ``start`` is a table of sacct."""
    return {"Submit", "State"} <= set(find_heading(start, "|"))


def read_sacct(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """Read a table of sacct. Times without an offset are in ``timezone`` (Slurm prints the cluster's local time)."""
    cleaner = Cleaner(SLURM_STATUSES)

    def reshape(frame: pl.DataFrame) -> pl.DataFrame:
        frame = _keep_ended_jobs(frame, cleaner)
        headings = set(frame.columns)
        columns = [unix_seconds("Submit", timezone).alias("submit_s"), _run_s(headings).alias("run_s")]
        if "Start" in headings:
            start_s = unix_seconds("Start", timezone).cast(pl.Float64, strict=False)
            wait_s = start_s - unix_seconds("Submit", timezone).cast(pl.Float64, strict=False)
            columns.append(wait_s.cast(pl.String).alias("wait_s"))
        if "TimelimitRaw" in headings:
            minutes = pl.col("TimelimitRaw").cast(pl.Float64, strict=False)
            columns.append((minutes * 60).cast(pl.String).alias("requested_s"))
        elif "Timelimit" in headings:
            columns.append(clock_seconds("Timelimit").alias("requested_s"))
        gpus = _gpus(headings)
        if gpus is not None:
            columns.append(gpus.cast(pl.String).alias("gpus"))
        for column, names in _NAMES.items():
            candidates = [pl.col(heading) for heading in names if heading in headings]
            if candidates:
                columns.append(candidates[0].alias(column))
        return frame.with_columns(columns)

    columns = ("submit_s", "run_s", "wait_s", "requested_s", "gpus", *_NAMES)
    fields = {column: column for column in columns} | {"status": "State"}
    read_delimited(source, cleaner, fields, required=("Submit", "State"), separator="|", reshape=reshape)
    return cleaner.finish(name, "sacct", "gpus" if cleaner.share_with("gpus") > 0.5 else "processors")


def _keep_ended_jobs(frame: pl.DataFrame, cleaner: Cleaner) -> pl.DataFrame:
    """Drop steps and jobs that have not ended; ``CANCELLED by 1000`` becomes ``CANCELLED``."""
    if "JobID" in frame.columns:
        frame = cleaner.notes.drop("a job step, not a job", frame, pl.col("JobID").str.contains(".", literal=True))
    state = pl.col("State").str.strip_chars().str.extract(r"^(\S+)", 1).str.strip_chars("+")
    frame = frame.with_columns(state.alias("State"))
    is_active = pl.col("State").str.to_lowercase().is_in(list(SLURM_ACTIVE_STATES))
    return cleaner.notes.drop("the job has not ended", frame, is_active)


def _gpus(headings: set[str]) -> pl.Expr | None:
    """GPUs of TRES (``gres/gpu=8``, or only ``gres/gpu:a100=8``) or, before Slurm 20.11, of GRES (``gpu:tesla:2``).

    Those of the request if nothing was allocated.
    """
    texts = [pl.col(heading).replace("", None) for heading in ("AllocTRES", "ReqTRES") if heading in headings]
    if texts:
        tres = pl.coalesce(texts)
        typed = tres.str.extract_all(r"gres/gpu:[^=,]+=(\d+)").list.eval(pl.element().str.extract(r"(\d{1,18})$", 1))
        total = tres.str.extract(r"gres/gpu=(\d+)", 1).cast(pl.Float64, strict=False)
        return total.fill_null(typed.list.eval(pl.element().cast(pl.Float64, strict=False)).list.sum()).fill_null(0)
    texts = [pl.col(heading).replace("", None) for heading in ("AllocGRES", "ReqGRES") if heading in headings]
    if not texts:
        return None
    counts = pl.coalesce(texts).str.extract_all(r"(?:^|,)gpu(?::[^,:(]+)*?:(\d+)(?:\(|,|$)")
    numbers = counts.list.eval(pl.element().str.extract(r":(\d{1,18})\D?$", 1).cast(pl.Float64, strict=False))
    return numbers.list.sum().fill_null(0)


def _run_s(headings: set[str]) -> pl.Expr:
    if "ElapsedRaw" in headings:
        elapsed = pl.col("ElapsedRaw")
    elif "Elapsed" in headings:
        elapsed = clock_seconds("Elapsed")
    else:
        elapsed = pl.lit(None, pl.String)
    if "Start" not in headings:
        return elapsed
    never_started = pl.col("Start").str.strip_chars().is_in(["Unknown", "None", ""])
    return pl.when(never_started).then(None).otherwise(elapsed)


def is_sacct_json(start: str) -> bool:
    """Whether a file that starts with ``start`` is JSON of sacct."""
    return start.lstrip().startswith("{") and '"jobs"' in start


def read_sacct_json(source: TraceSource, name: str) -> JobTrace:
    """Read JSON of sacct. ``line`` is the number of the job, because a job has many lines."""
    cleaner = Cleaner(SLURM_STATUSES)
    for rows in iter_row_batches(source, "jobs", _to_row, cleaner.faults):
        _add(rows, cleaner)
    return cleaner.finish(name, "sacct-json", "gpus" if cleaner.share_with("gpus") > 0.5 else "processors")


def _add(rows: list[dict[str, object]], cleaner: Cleaner) -> None:
    frame = pl.DataFrame(rows, infer_schema_length=None)
    is_active = pl.col("status").cast(pl.String).str.to_lowercase().is_in(list(SLURM_ACTIVE_STATES))
    cleaner.add(cleaner.notes.drop("the job has not ended", frame, is_active))


def _to_row(line: int, job: dict[str, object]) -> dict[str, object]:
    time = as_object(job.get("time"))
    submit, start = read_int(time.get("submission")), read_int(time.get("start"))
    state = job.get("state")
    states = read_words(as_object(state).get("current") if isinstance(state, dict) else state)
    minutes = read_int(time.get("limit"))
    counts = _counts(as_list(as_object(job.get("tres")).get("allocated")))
    counts = counts or _counts(as_list(as_object(job.get("tres")).get("requested")))
    required = as_object(job.get("required"))
    number = read_int(job.get("job_id"))
    return {
        "line": line,
        "job_id": None if number is None else str(number),
        "name": read_text(job.get("name")),
        "user": read_text(job.get("user")),
        "project": read_text(job.get("account")),
        "queue": read_text(job.get("partition")),
        "submit_s": _float(submit),
        "wait_s": _float(start - submit) if start and submit is not None else None,
        "run_s": _float(read_int(time.get("elapsed"))) if start else None,
        "processors": _float(counts.get("cpu", read_int(required.get("CPUs")))),
        "gpus": _float(counts.get("gpu", 0)),
        "nodes": _float(counts.get("node", read_int(job.get("allocation_nodes")))),
        "requested_s": None if minutes is None else float(minutes * 60),
        "status": states[0] if states else None,
    }


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _counts(entries: list[object]) -> dict[str, int]:
    """Parse cpu, node and gpu of a TRES list; typed GPUs (``gpu:a100``) are used only if the total is missing."""
    counts: dict[str, int] = {}
    typed_gpus = 0
    for entry in entries:
        tres = as_object(entry)
        kind, name, count = tres.get("type"), tres.get("name"), read_int(tres.get("count"))
        if count is None:
            continue
        if kind == "gres" and isinstance(name, str) and name.startswith("gpu"):
            if name == "gpu":
                counts["gpu"] = count
            else:
                typed_gpus += count
        elif kind in ("cpu", "node"):
            counts[str(kind)] = count
    if typed_gpus and "gpu" not in counts:
        counts["gpu"] = typed_gpus
    return counts
