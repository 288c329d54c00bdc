"""Reads Google's Borg traces: ``task_events`` and ``job_events`` of 2011 (CSV without a heading), ``instance_events`` and
``collection_events`` of 2019 (JSON lines, or CSV with a heading). The events of a job are joined to one row.

A job's size is its number of tasks: the traces have no cores or GPUs.
"""

import json
from collections.abc import Iterator

import polars as pl

from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.events import has_columns, read_parts
from clusterscape.collect.job_traces.text import TraceSource, find_heading, iter_blocks
from clusterscape.model.jobs import JobStatus, JobTrace

TASK_EVENTS = (
    "time", "missing_info", "job_id", "task_index", "machine_id", "event_type", "user", "scheduling_class", "priority",
    "cpu_request", "memory_request", "disk_request", "different_machines",
)  # fmt: skip
JOB_EVENTS = (
    "time",
    "missing_info",
    "job_id",
    "event_type",
    "user",
    "scheduling_class",
    "job_name",
    "logical_job_name",
)
NEW_EVENTS = ("time", "type", "collection_id")
_NAMES_2011 = {0: "submit", 1: "schedule", 2: "evict", 3: "fail", 4: "finish", 5: "kill", 6: "lost"}
_NAMES_2019 = {0: "submit", 3: "schedule", 4: "evict", 5: "fail", 6: "finish", 7: "kill", 8: "lost"}
STATUSES = {
    "finish": JobStatus.COMPLETED,
    "fail": JobStatus.FAILED,
    "evict": JobStatus.FAILED,
    "kill": JobStatus.CANCELLED,
    "lost": JobStatus.UNKNOWN,
}
_ENDS = list(STATUSES)
_BEFORE, _AFTER_US = 0, 2**62
"""Times that stand for "before the trace" and, above the second, "after it"."""
_COLUMNS = ("line", "time", "job", "task", "event", "user")


def is_google_2011(start: str) -> bool:
    """Whether a file that starts with ``start`` is a part of ``task_events`` or ``job_events``."""
    return has_columns(start, TASK_EVENTS, 0, 2, 3, 5) or has_columns(start, JOB_EVENTS, 0, 2, 3)


def read_google_2011(source: TraceSource, name: str) -> JobTrace:
    """Read events of 2011."""
    cleaner = Cleaner(STATUSES)
    has_tasks = has_columns(_first_line(source), TASK_EVENTS, 0, 2, 3, 5)
    table = read_parts(source, cleaner, TASK_EVENTS if has_tasks else JOB_EVENTS)
    events = table.select(
        "line",
        "time",
        pl.col("job_id").alias("job"),
        (pl.col("task_index") if has_tasks else pl.lit(None, pl.String)).alias("task"),
        pl.col("event_type").alias("event"),
        "user",
    )
    return _join(events, cleaner, name, "google-2011", _NAMES_2011)


def _first_line(source: TraceSource) -> str:
    return next((line for _, lines in iter_blocks(source, Cleaner({}).faults) for line in lines if line.strip()), "")


def is_google_2019(start: str) -> bool:
    """Whether a file that starts with ``start`` is a part of ``instance_events`` or ``collection_events``."""
    first = next((line for line in start.split("\n") if line.strip()), "")
    if first.lstrip().startswith("{"):
        return '"collection_id"' in first and '"time"' in first
    return set(NEW_EVENTS) <= set(find_heading(start))


def read_google_2019(source: TraceSource, name: str) -> JobTrace:
    """Read events of 2019."""
    cleaner = Cleaner(STATUSES)
    parts = list(_iter_2019(source, cleaner))
    events = (
        pl.concat(parts) if parts else pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(_COLUMNS[1:], pl.String)})
    )
    return _join(events, cleaner, name, "google-2019", _NAMES_2019)


def _iter_2019(source: TraceSource, cleaner: Cleaner) -> Iterator[pl.DataFrame]:
    names = {"time": "time", "collection_id": "job", "instance_index": "task", "type": "event", "user": "user"}
    if not _first_line(source).lstrip().startswith("{"):
        headings = find_heading(_first_line(source))
        table = read_parts(source, cleaner, headings)
        columns = [
            (pl.col(old) if old in table.columns else pl.lit(None, pl.String)).alias(new) for old, new in names.items()
        ]
        yield table.select("line", *columns)
        return
    for number, lines in iter_blocks(source, cleaner.faults):
        rows: list[tuple[int, ...] | tuple[object, ...]] = []
        damaged: list[int] = []
        for line_number, line in enumerate(lines, start=number):
            if not line.strip():
                continue
            event = _parse_line(line)
            if event is None:
                damaged.append(line_number)
                continue
            # exports leave out what is not set: an event without a type is a submission.
            values = (
                event.get("time", 0),
                event.get("collection_id"),
                event.get("instance_index"),
                event.get("type", 0),
            )
            rows.append(
                (line_number, *(None if value is None else str(value) for value in (*values, event.get("user"))))
            )
        cleaner.notes.add("dropped", "the line is not a JSON object", len(damaged), damaged[:5])
        source.check_rows(number + len(lines))
        schema = {"line": pl.Int64, **dict.fromkeys(("time", "job", "task", "event", "user"), pl.String)}
        yield pl.DataFrame(rows, schema=schema, orient="row")


def _parse_line(line: str) -> dict[str, object] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _join(events: pl.DataFrame, cleaner: Cleaner, name: str, format: str, names: dict[int, str]) -> JobTrace:
    """One row per job: first submission, first start, last end, and how its tasks ended."""
    codes = {str(code): text for code, text in names.items()} | {text.upper(): text for text in names.values()}
    events = events.with_columns(
        pl.col("time").cast(pl.Float64, strict=False).alias("time"),
        pl.col("event")
        .str.strip_chars()
        .str.to_uppercase()
        .replace_strict(codes, default=None, return_dtype=pl.String),
    )
    events = cleaner.notes.drop("time cannot be read", events, pl.col("time").is_null() | ~pl.col("time").is_finite())
    events = cleaner.notes.drop("no job id", events, pl.col("job").is_null() | (pl.col("job") == ""))
    seconds = pl.col("time") / 1e6
    is_within = pl.col("time").is_between(_BEFORE, _AFTER_US, "none")
    is_end = pl.col("event").is_in(_ENDS)
    tasks = events.group_by("job", "task", maintain_order=True).agg(
        pl.col("line").first(),
        pl.col("user").drop_nulls().first(),
        seconds.filter((pl.col("event") == "submit") & is_within).min().alias("submit_s"),
        seconds.filter((pl.col("event") == "schedule") & is_within).min().alias("start_s"),
        seconds.filter(is_end & is_within).max().alias("end_s"),
        pl.col("event").filter(is_end).last().alias("ended"),
    )
    has_tasks = bool(events["task"].is_not_null().any())
    ended = pl.col("ended")
    jobs = tasks.group_by("job", maintain_order=True).agg(
        pl.col("line").first(),
        pl.col("user").drop_nulls().first(),
        pl.col("submit_s").min(),
        (pl.col("start_s").min() - pl.col("submit_s").min()).alias("wait_s"),
        # A job whose tasks have not all ended still runs.
        pl.when(ended.is_not_null().all()).then(pl.col("end_s").max() - pl.col("start_s").min()).alias("run_s"),
        pl.len().cast(pl.Float64).alias("processors"),
        pl.when(ended.is_null().any() | (ended == "lost").any())
        .then(pl.lit("lost"))
        .when(ended.is_in(["fail", "evict"]).any())
        .then(pl.lit("fail"))
        .when((ended == "kill").any())
        .then(pl.lit("kill"))
        .otherwise(pl.lit("finish"))
        .alias("status"),
    )
    jobs = cleaner.notes.drop(
        "submitted before the trace, or in another file of it", jobs, pl.col("submit_s").is_null()
    )
    note = "a job's size is its number of tasks" if has_tasks else "the file has no sizes: each job counts as 1"
    cleaner.notes.add("kept", note, jobs.height, [])
    cleaner.add(jobs.rename({"job": "job_id"}))
    return cleaner.finish(name, format, "processors")
