"""Reads any CSV of jobs by the usual names of its columns: the Philly workloads of Pollux and Sia, samples of Alibaba's traces
for simulators, tables that people export themselves.

The first name of a list that the file has is used; names are compared without case, spaces, dots and underscores.
"""

from collections.abc import Iterable

import polars as pl

from clusterscape.collect.job_traces.cleaning import (
    PHILLY_STATUSES,
    POD_STATUSES,
    SLURM_STATUSES,
    Cleaner,
    clock_seconds,
    unix_seconds,
)
from clusterscape.collect.job_traces.delimited import read_delimited
from clusterscape.collect.job_traces.text import TraceSource, find_heading, read_start
from clusterscape.errors import SourceError
from clusterscape.model.jobs import JobStatus, JobTrace, SizeUnit

NAMES: dict[str, tuple[str, ...]] = {
    "submit": (
        "submit_time", "submitted_time", "submission_time", "submit_s", "submit_ts", "submitted", "submit",
        "arrival_time", "arrive_time",
        "arrival", "creation_time", "create_time", "created_at", "queued_time", "timestamp", "time",
    ),
    "start": ("start_time", "started_at", "start_s", "start_ts", "started", "start", "scheduled_time"),
    "end": ("end_time", "ended_at", "end_s", "end_ts", "ended", "end", "finish_time", "finished_at",
    "completion_time", "deletion_time"),
    "run_s": ("duration", "duration_s", "run_time", "runtime", "run_s", "elapsed", "elapsed_s", "elapsedraw", "jct",
    "service_time"),
    "wait_s": ("wait_time", "wait_s", "waiting_time", "queue_time", "queueing_delay", "queuing_delay", "queue_delay"),
    "requested_s": ("walltime", "wall_time", "time_limit", "timelimit_s", "requested_s", "requested_time", "walltime_seconds"),
    "gpus": ("num_gpus", "num_gpu", "gpu_num", "gpus", "gpu_count", "n_gpus", "ngpus", "gpu", "num_replicas", "gpu_request"),
    "gpu_milli": ("gpu_milli",),
    "processors": ("num_cpus", "num_cpu", "cpu_num", "cpus", "ncpus", "n_cpus", "num_cores", "cores", "processors",
    "num_procs"),
    "nodes": ("num_nodes", "node_num", "nodes", "nnodes", "n_nodes", "nodes_used"),
    "user": ("user", "user_id", "userid", "username", "user_name"),
    "project": ("project", "project_name", "account", "group"),
    "queue": ("queue", "queue_name", "partition", "vc", "virtual_cluster"),
    "job_id": ("job_id", "jobid", "id", "job", "job_name", "jobname", "name"),
    "status": ("status", "state", "job_status", "job_state", "exit_status"),
}  # fmt: skip
_STATUSES = (
    SLURM_STATUSES
    | PHILLY_STATUSES
    | POD_STATUSES
    | {
        "success": JobStatus.COMPLETED,
        "successful": JobStatus.COMPLETED,
        "complete": JobStatus.COMPLETED,
        "done": JobStatus.COMPLETED,
        "finished": JobStatus.COMPLETED,
        "terminated": JobStatus.COMPLETED,
        "passed": JobStatus.COMPLETED,
        "fail": JobStatus.FAILED,
        "error": JobStatus.FAILED,
        "canceled": JobStatus.CANCELLED,
        "stopped": JobStatus.CANCELLED,
    }
)
_TIMES = ("submit", "start", "end")
_SEPARATORS = (",", "|", "\t", ";")


def find_columns(headings: Iterable[str]) -> dict[str, str]:
    """The heading of each property that is recognized."""
    plain = {_plain(heading): heading for heading in reversed(list(headings)) if heading}
    heading_of = {}
    for key, names in _PLAIN_NAMES.items():
        heading = next((plain[name] for name in names if name in plain), None)
        if heading is not None:
            heading_of[key] = heading
    return heading_of


def _plain(heading: str) -> str:
    return "".join(letter for letter in heading.lower() if letter.isalnum())


_PLAIN_NAMES = {key: [_plain(name) for name in names] for key, names in NAMES.items()}


def find_separator(start: str) -> str | None:
    """The separator of a table that has submissions, and sizes or run times; None if it is not such a table."""
    for separator in _SEPARATORS:
        heading_of = find_columns(find_heading(start, separator))
        has_work = bool({"run_s", "end", "gpus", "processors", "nodes"} & set(heading_of))
        if "submit" in heading_of and has_work and len(heading_of) > 2:
            return separator
    return None


def is_table(start: str) -> bool:
    """Whether a file that starts with ``start`` is a table of jobs."""
    return find_separator(start) is not None


def read_table(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """Read a table. Sizes are GPUs if most jobs have some, else processors or nodes; without any, each job counts as 1."""
    start = read_start(source)
    separator = find_separator(start) or ","
    heading_of = find_columns(find_heading(start, separator))
    if "submit" not in heading_of:
        names = ", ".join(NAMES["submit"][:4])
        raise SourceError(f"{source}, line 1: no column with the time of submission", hint=f"Name it {names}, …")
    cleaner = Cleaner(_STATUSES)
    sizes = [size for size in ("gpus", "processors", "nodes") if size in heading_of]
    computed = _compute(heading_of, timezone, has_sizes=bool(sizes))

    def reshape(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(column.alias(_MADE + key) for key, column in computed.items())

    fields = {key: heading for key, heading in heading_of.items() if key not in (*_TIMES, "gpu_milli")}
    fields |= {key: _MADE + key for key in computed}
    read_delimited(source, cleaner, fields, required=(heading_of["submit"],), separator=separator, reshape=reshape)
    if not sizes:
        cleaner.notes.add("kept", "the file has no sizes: each job counts as 1", 1, [])
    if "end" in heading_of and not {"start", "run_s"} & set(heading_of):
        cleaner.notes.add("kept", "the file has no starts: run times are from submission to end, waits included", 1, [])
    unit: SizeUnit = "processors" if "processors" in sizes else "nodes"
    if sizes == ["gpus"] or cleaner.share_with("gpus") > 0.5:
        unit = "gpus"
    return cleaner.finish(name, "table", unit)


_MADE = "\1"
"""Begins the names of columns that are computed: no file has such a heading."""


def _compute(heading_of: dict[str, str], timezone: str, *, has_sizes: bool) -> dict[str, pl.Expr]:
    """The columns of a trace that follow from several of the file, or from texts in other forms."""
    times = {key: unix_seconds(heading_of[key], timezone) for key in _TIMES if key in heading_of}
    seconds = {key: text.cast(pl.Float64, strict=False) for key, text in times.items()}
    columns: dict[str, pl.Expr] = {"submit_s": times["submit"]}
    for key in ("run_s", "wait_s", "requested_s"):
        if key in heading_of:
            text = pl.col(heading_of[key])
            has_colon = text.str.contains(":", literal=True)
            columns[key] = pl.when(has_colon).then(clock_seconds(heading_of[key])).otherwise(text)
    if "run_s" not in heading_of and "end" in heading_of:
        columns["run_s"] = seconds["end"] - seconds.get("start", seconds["submit"])
    if "wait_s" not in heading_of and "start" in heading_of:
        columns["wait_s"] = seconds["start"] - seconds["submit"]
    if "gpu_milli" in heading_of and "gpus" in heading_of:
        gpus, share = (pl.col(heading_of[key]).cast(pl.Float64, strict=False) for key in ("gpus", "gpu_milli"))
        columns["gpus"] = pl.when(gpus == 1).then(share / 1000).otherwise(gpus)
    if not has_sizes:
        columns["nodes"] = pl.lit(1.0)
    return columns
