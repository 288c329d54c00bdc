"""Reads ``cluster_job_log`` of Microsoft's Philly, a JSON list, by its published schema. All attempts of a job count once."""

from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl

from clusterscape.collect.job_traces.cleaning import PHILLY_STATUSES, Cleaner, check_zone
from clusterscape.collect.job_traces.json_objects import iter_row_batches
from clusterscape.collect.job_traces.text import TraceSource
from clusterscape.collect.slurm.values import as_list, as_object, read_text
from clusterscape.model.jobs import JobTrace


def is_philly(start: str) -> bool:
    """Whether a file that starts with ``start`` is a Philly log."""
    return start.lstrip().startswith("[") and '"submitted_time"' in start


def read_philly(source: TraceSource, name: str, timezone: str) -> JobTrace:
    """Read a Philly log. A job runs from the start of its first attempt to the end of its last; its size is the largest."""
    cleaner = Cleaner(PHILLY_STATUSES)
    zone = check_zone(timezone)
    for rows in iter_row_batches(source, None, lambda number, job: _to_row(number, job, zone), cleaner.faults):
        cleaner.add(pl.DataFrame(rows, infer_schema_length=None))
    return cleaner.finish(name, "philly", "gpus")


def _to_row(number: int, job: dict[str, object], zone: ZoneInfo) -> dict[str, object]:
    attempts = [as_object(attempt) for attempt in as_list(job.get("attempts"))]
    submit_s = _seconds(job.get("submitted_time"), zone)
    starts = [at for attempt in attempts if (at := _seconds(attempt.get("start_time"), zone)) is not None]
    end_s = _seconds(attempts[-1].get("end_time"), zone) if attempts else None
    sizes = [_count_gpus(attempt) for attempt in attempts]
    start_s = min(starts) if starts else None
    nodes = [len(as_list(attempt.get("detail"))) for attempt in attempts]
    return {
        "line": number,
        "job_id": read_text(job.get("jobid")),
        "user": read_text(job.get("user")),
        "project": None,
        "queue": read_text(job.get("vc")),
        "submit_s": submit_s,
        "wait_s": start_s - submit_s if start_s is not None and submit_s is not None else None,
        "run_s": end_s - start_s if end_s is not None and start_s is not None else None,
        "processors": None,
        "gpus": float(max(sizes)) if sizes else None,
        "nodes": float(max(nodes)) if nodes else None,
        "requested_s": None,
        "status": read_text(job.get("status")),
    }


def _seconds(value: object, zone: ZoneInfo) -> float | None:
    text = read_text(value)
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError):
        return None


def _count_gpus(attempt: dict[str, object]) -> int:
    return sum(len(as_list(as_object(host).get("gpus"))) for host in as_list(attempt.get("detail")))
