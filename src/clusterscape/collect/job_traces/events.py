"""Collects rows that describe parts of jobs (tasks, events) and joins them to one row per job.

Rows are kept as columns, about 60 bytes each, because a job's rows may lie anywhere in its file.
"""

from collections.abc import Sequence

import polars as pl

from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.delimited import number_lines, split_cells
from clusterscape.collect.job_traces.text import TraceSource, find_heading, iter_blocks


def read_parts(source: TraceSource, cleaner: Cleaner, headings: Sequence[str], separator: str = ",") -> pl.DataFrame:
    """All rows of a table whose first line may be its heading (published files often have none), as text, with ``line``."""
    parts = []
    for number, lines in iter_blocks(source, cleaner.faults):
        if number == 1 and lines and set(find_heading(lines[0], separator)) & set(headings):
            number, lines = 2, lines[1:]
        source.check_rows(number + len(lines), len(headings))
        parts.append(split_cells(number_lines(number, lines), list(headings), separator, cleaner))
    columns = {"line": pl.Int64, **dict.fromkeys(headings, pl.String)}
    return pl.concat(parts) if parts else pl.DataFrame(schema=columns)


def has_columns(start: str, headings: Sequence[str], *numbers: int, separator: str = ",") -> bool:
    """Whether a file starts with these headings or, without them, with a row of as many fields, numeric at ``numbers``."""
    first = find_heading(start, separator)
    if set(headings) <= set(first):
        return True
    return bool(numbers) and len(first) == len(headings) and all(_is_number(first[at]) for at in numbers)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii()
