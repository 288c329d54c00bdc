"""Acme's ``trace_seren.csv`` and ``trace_kalos.csv`` (Shanghai AI Lab), from their published schema."""

from clusterscape.collect.job_traces.helios import FIELDS, SHARED, read_gpu_log
from clusterscape.collect.job_traces.text import TraceSource
from clusterscape.model.jobs import JobTrace


def is_acme(start: str) -> bool:
    """Whether a file that begins like this is Acme's."""
    heading = start.splitlines()[0].split(",") if start.strip() else []
    return {*SHARED, "type", "gpu_time"} <= set(heading)


def read_acme(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """``type`` (pretraining, evaluation, …) is the project. Times carry their offset."""
    return read_gpu_log(source, name, "acme", FIELDS | {"project": "type"}, (*SHARED, "type"), timezone)
