"""Reads ``cluster_log.csv`` of Helios (SenseTime), and ``trace_seren.csv`` and ``trace_kalos.csv`` of Acme (Shanghai AI Lab),
which have most of its columns; by their published schemas.
"""

import polars as pl

from clusterscape.collect.job_traces.cleaning import SLURM_STATUSES, Cleaner, unix_seconds
from clusterscape.collect.job_traces.delimited import read_delimited
from clusterscape.collect.job_traces.text import TraceSource, find_heading
from clusterscape.model.jobs import JobTrace

FIELDS = {
    "job_id": "job_id",
    "user": "user",
    "submit_s": "submit_s",
    "wait_s": "queue",
    "run_s": "duration",
    "processors": "cpu_num",
    "gpus": "gpu_num",
    "nodes": "node_num",
    "status": "state",
}
SHARED = ("job_id", "submit_time", "duration", "queue", "gpu_num", "state")


def is_helios(start: str) -> bool:
    """Whether a file that starts with ``start`` is a Helios log."""
    return {*SHARED, "vc"} <= set(find_heading(start))


def read_helios(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """Read a Helios log. ``vc`` (virtual cluster) is the queue. CPU jobs have 0 GPUs."""
    return read_gpu_log(source, name, "helios", FIELDS | {"queue": "vc"}, (*SHARED, "vc"), timezone)


def read_gpu_log(
    source: TraceSource, name: str, format: str, fields: dict[str, str], required: tuple[str, ...], timezone: str
) -> JobTrace:
    """Read a CSV with columns of Helios, mapped by ``fields``. CPU jobs have 0 GPUs."""
    cleaner = Cleaner(SLURM_STATUSES)

    def reshape(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(unix_seconds("submit_time", timezone).alias("submit_s"))

    read_delimited(source, cleaner, fields, required=required, reshape=reshape)
    return cleaner.finish(name, format, "gpus")


def is_acme(start: str) -> bool:
    """Whether a file that starts with ``start`` is an Acme trace."""
    return {*SHARED, "type", "gpu_time"} <= set(find_heading(start))


def read_acme(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """Read an Acme trace. ``type`` (pretraining, evaluation, …) is the project. Times have an offset."""
    return read_gpu_log(source, name, "acme", FIELDS | {"project": "type"}, (*SHARED, "type"), timezone)
