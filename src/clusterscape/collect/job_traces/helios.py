"""Helios ``cluster_log.csv`` of SenseTime, from its published schema; Acme's logs have most of its columns."""

import polars as pl

from clusterscape.collect.job_traces import statuses
from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.delimited import read_delimited
from clusterscape.collect.job_traces.text import TraceSource
from clusterscape.collect.job_traces.times import unix_seconds
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
    """Whether a file that begins like this is Helios'."""
    heading = start.splitlines()[0].split(",") if start.strip() else []
    return {*SHARED, "vc"} <= set(heading)


def read_helios(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """``vc`` (virtual cluster) is the queue. CPU jobs have 0 GPUs."""
    return read_gpu_log(source, name, "helios", FIELDS | {"queue": "vc"}, (*SHARED, "vc"), timezone)


def read_gpu_log(
    source: TraceSource, name: str, format: str, fields: dict[str, str], required: tuple[str, ...], timezone: str
) -> JobTrace:
    """A CSV with Helios' columns, ``fields`` saying which is which. CPU jobs have 0 GPUs."""
    cleaner = Cleaner(statuses.SLURM)

    def reshape(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(unix_seconds("submit_time", timezone).alias("submit_s"))

    read_delimited(source, cleaner, fields, required=required, reshape=reshape)
    return cleaner.finish(name, format, "gpus")
