"""Reads the CSV files of Lumos (DIR-LAB): ALCF's Mira, Theta and ThetaGPU, and four columns of Philly."""

from clusterscape.collect.job_traces.cleaning import PHILLY_STATUSES, Cleaner
from clusterscape.collect.job_traces.delimited import read_delimited
from clusterscape.collect.job_traces.text import TraceSource, find_heading
from clusterscape.model.jobs import JobTrace, SizeUnit

_FIELDS = {
    "job_id": "job",
    "user": "user",
    "project": "project",
    "submit_s": "submit_time",
    "wait_s": "wait_time",
    "run_s": "run_time",
    "requested_s": "wall_time",
    "processors": "cpu_num",
    "gpus": "gpu_num",
    "nodes": "node_num",
    "status": "new_status",
}


def is_lumos(start: str) -> bool:
    """Whether a file that starts with ``start`` is a Lumos CSV."""
    return {"submit_time", "run_time", "wait_time", "gpu_num"} <= set(find_heading(start))


def read_lumos(source: TraceSource, name: str) -> JobTrace:
    """Read a Lumos CSV. Sizes are GPUs if most jobs have GPUs, else nodes if given, else processors."""
    cleaner = Cleaner(PHILLY_STATUSES)
    headings = read_delimited(source, cleaner, _FIELDS, required=("submit_time", "run_time", "wait_time", "gpu_num"))
    unit: SizeUnit = "nodes" if "node_num" in headings else "processors"
    if cleaner.share_with("gpus") > 0.5:
        unit = "gpus"
    return cleaner.finish(name, "lumos", unit)
