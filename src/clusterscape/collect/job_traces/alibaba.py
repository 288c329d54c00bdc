"""Reads ``pai_task_table.csv`` of Alibaba's GPU trace of 2020 (PAI), with or without its heading. A job counts once."""

import polars as pl

from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.events import has_columns, read_parts
from clusterscape.collect.job_traces.text import TraceSource, find_heading
from clusterscape.errors import SourceError
from clusterscape.model.jobs import JobStatus, JobTrace

TASKS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
STATUSES = {
    "terminated": JobStatus.COMPLETED,
    "failed": JobStatus.FAILED,
    "running": JobStatus.UNKNOWN,
    "waiting": JobStatus.UNKNOWN,
}
_STATES = ("Terminated", "Failed", "Running", "Waiting")


def is_alibaba_2020(start: str) -> bool:
    """Whether a file that starts with ``start`` is the table of tasks, or that of jobs, which ``read_alibaba_2020`` explains."""
    first = find_heading(start)
    if has_columns(start, TASKS) or has_columns(start, JOBS):
        return True
    return (len(first) == len(TASKS) or len(first) == len(JOBS)) and first[3] in _STATES


def read_alibaba_2020(source: TraceSource, name: str) -> JobTrace:
    """Read the tasks. A job runs from the start of its first task to the end of its last; its size is the sum of their GPUs.

    The table has no submissions, users or waits: a job counts as submitted when its first task starts.
    """
    cleaner = Cleaner(STATUSES)
    tasks = read_parts(source, cleaner, TASKS)
    if tasks.height == 0 and any(f"than {len(TASKS)} fields" in reason for _, reason in cleaner.notes.counts):
        raise SourceError(
            f"{name} does not have the {len(TASKS)} columns of pai_task_table.csv",
            hint="pai_job_table.csv and the other tables have no sizes of jobs: give pai_task_table.csv.",
        )
    start, end, instances = (
        pl.col(column).cast(pl.Float64, strict=False) for column in ("start_time", "end_time", "inst_num")
    )
    percent = [pl.col(column).cast(pl.Float64, strict=False).fill_null(0) for column in ("plan_cpu", "plan_gpu")]
    instances = instances.fill_null(1)
    status = pl.col("status").str.to_lowercase()
    jobs = tasks.group_by("job_name", maintain_order=True).agg(
        pl.col("line").first(),
        start.min().alias("submit_s"),
        (end.max() - start.min()).alias("run_s"),
        (instances * percent[0] / 100).sum().ceil().alias("processors"),
        (instances * percent[1] / 100).sum().alias("gpus"),
        (status == "failed").any().alias("has_failed"),
        (status == "terminated").all().alias("is_done"),
        status.first().alias("status"),
    )
    ended = pl.when("has_failed").then(pl.lit("failed")).when("is_done").then(pl.lit("terminated"))
    status = ended.when(pl.col("status").is_in(["terminated", "failed"])).then(pl.lit("running")).otherwise("status")
    cleaner.add(
        jobs.select("line", "submit_s", "run_s", "processors", "gpus", status.alias("status"), job_id="job_name")
    )
    return cleaner.finish(name, "alibaba-2020", "gpus")
