"""Reads the Standard Workload Format (SWF 2.2) of the Parallel Workloads Archive: 18 numbers per line, a header in comments."""

import polars as pl

from clusterscape.collect.job_traces.cleaning import MAX_SIZE, SWF_STATUSES, Cleaner
from clusterscape.collect.job_traces.delimited import number_lines
from clusterscape.collect.job_traces.text import TraceSource, iter_blocks
from clusterscape.model.jobs import JobTrace

FIELDS = 18
# Field index → column.
_COLUMNS = {
    0: "job_id",
    1: "submit_s",
    2: "wait_s",
    3: "run_s",
    8: "requested_s",
    10: "status",
    11: "user",
    12: "project",
}
MAX_HEADER_LINES = 10_000
"""Header lines that are kept. Real files have dozens, plus one per queue."""
_ALLOCATED, _REQUESTED, _EXECUTABLE, _QUEUE = 4, 7, 13, 14


def is_swf(start: str) -> bool:
    """Whether a file that starts with ``start`` is SWF."""
    lines = [line for line in start.splitlines() if line.strip()]
    body = next((line for line in lines if not line.lstrip().startswith(";")), None)
    if body is None:
        return bool(lines)
    cells = body.split()
    return (
        len(lines) > 0
        and ("," not in body and "|" not in body)
        and (lines[0].lstrip().startswith(";") or len(cells) == FIELDS)
    )


def read_swf(source: TraceSource, name: str) -> JobTrace:
    """Read SWF. −1 means missing. The size of a job is its allocated processors or, if missing, the requested ones."""
    cleaner = Cleaner(SWF_STATUSES, missing=-1)
    header: dict[str, str] = {}
    queues: dict[str, str] = {}
    for number, lines in iter_blocks(source, cleaner.faults):
        texts = number_lines(number, lines).with_columns(pl.col("text").str.strip_chars())
        for line in texts.filter(pl.col("text").str.starts_with(";"))["text"]:
            _read_header(line, header, queues)
        rows = texts.filter((pl.col("text") != "") & ~pl.col("text").str.starts_with(";"))
        cleaner.add(_to_columns(rows, cleaner, queues))
    cleaner.forget_failures_without_successes("status 0 (failed), but no job completed: treated as unknown")
    total = next((int(header[key]) for key in ("MaxProcs", "MaxNodes") if _is_count(header.get(key))), None)
    return cleaner.finish(name, "swf", "processors", total=total, header=header)


def _is_count(text: str | None) -> bool:
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SIZE))
    return is_number and 0 < int(text or 0) <= MAX_SIZE


def _read_header(line: str, header: dict[str, str], queues: dict[str, str]) -> None:
    key, colon, value = line.lstrip("; \t").partition(":")
    key, value = key.strip(), value.strip()
    if not colon or not key or " " in key:
        return
    if len(header) + len(queues) >= MAX_HEADER_LINES:
        return
    if key == "Queue":
        code, _, queue = value.partition(" ")
        queues[code] = queue.strip() or code
    else:
        header.setdefault(key, value)


def _to_columns(rows: pl.DataFrame, cleaner: Cleaner, queues: dict[str, str]) -> pl.DataFrame:
    cells = rows.select("line", pl.col("text").str.extract_all(r"\S+").alias("cells"))
    count = pl.col("cells").list.len()
    cells = cleaner.notes.drop(f"fewer than {FIELDS} fields", cells, count < FIELDS)
    cells = cleaner.notes.drop(f"more than {FIELDS} fields", cells, count > FIELDS)

    def cell(index: int) -> pl.Expr:
        return pl.col("cells").list.get(index, null_on_oob=True)

    allocated = cell(_ALLOCATED)
    size = pl.when(allocated == "-1").then(cell(_REQUESTED)).otherwise(allocated)
    ids = {index: pl.when(cell(index) != "-1").then(cell(index)) for index in (11, 12, _EXECUTABLE, _QUEUE)}
    queue = ids[_QUEUE].replace(queues) if queues else ids[_QUEUE]
    return cells.select(
        "line",
        *(ids.get(index, cell(index)).alias(column) for index, column in _COLUMNS.items()),
        size.alias("processors"),
        queue.alias("queue"),
        ids[_EXECUTABLE].alias("name"),
    )
