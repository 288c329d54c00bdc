"""Reads delimited text with a header, block by block, with line numbers.

A line with a different number of fields than the header is dropped and counted. Quoted fields are supported.
"""

from collections import Counter
from collections.abc import Callable, Mapping

import polars as pl

from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.text import TraceSource, iter_blocks, split_line
from clusterscape.errors import SourceError

_RESERVED_NAMES = ("", "line")
"""Headings that cannot be used as column names."""

Reshape = Callable[[pl.DataFrame], pl.DataFrame]


def read_delimited(
    source: TraceSource,
    cleaner: Cleaner,
    fields: Mapping[str, str],
    *,
    required: tuple[str, ...],
    separator: str = ",",
    reshape: Reshape | None = None,
) -> list[str]:
    """Read a file into ``cleaner`` and return its headings. ``fields`` maps columns of the trace to headings of the file.

    ``reshape`` gets each block with the file's own headings (text) and may add columns before ``fields`` are selected.
    """
    headings: list[str] = []
    for number, lines in iter_blocks(source, cleaner.faults):
        if not headings:
            header_line = next((index for index, line in enumerate(lines) if line.strip()), None)
            if header_line is None:
                continue
            headings = [heading.strip() for heading in split_line(lines[header_line], separator)]
            source.check_rows(1, len(headings))
            _check(source, headings, required)
            number, lines = number + header_line + 1, lines[header_line + 1 :]
        source.check_rows(number + len(lines), len(headings))
        frame = split_cells(number_lines(number, lines), headings, separator, cleaner)
        frame = reshape(frame) if reshape else frame
        columns = [pl.col(heading).alias(column) for column, heading in fields.items() if heading in frame.columns]
        cleaner.add(frame.select("line", *columns))
    return headings


def _check(source: TraceSource, headings: list[str], required: tuple[str, ...]) -> None:
    missing = [heading for heading in required if heading not in headings]
    if missing:
        raise SourceError(
            f"{source}, line 1: missing columns: {', '.join(missing)}",
            hint=f"Its columns are {', '.join(headings)[:300]}.",
        )
    duplicates = [heading for heading, count in Counter(filter(None, headings)).items() if count > 1]
    if duplicates:
        raise SourceError(f"{source}, line 1: duplicate column {duplicates[0][:80]!r}", hint="Rename one of them.")


def number_lines(number: int, lines: list[str]) -> pl.DataFrame:
    """The lines with their numbers, from ``number``."""
    return pl.DataFrame(
        {"line": pl.int_range(number, number + len(lines), eager=True), "text": pl.Series(lines, dtype=pl.String)}
    )


def split_cells(texts: pl.DataFrame, headings: list[str], separator: str, cleaner: Cleaner) -> pl.DataFrame:
    """The fields of each line that is not empty, by heading. Lines with another number of fields are dropped and counted."""
    width = len(headings)
    texts = texts.filter(pl.col("text").str.strip_chars() != "")
    is_quoted = pl.col("text").str.contains('"', literal=True)
    # Counted before splitting: a line of separators only has as many cells as bytes.
    count = pl.col("text").str.count_matches(separator, literal=True) + 1
    plain = texts.filter(~is_quoted)
    plain = cleaner.notes.drop(f"more than {width} fields", plain, count > width)
    plain = plain.select("line", pl.col("text").str.split(separator).alias("cells"))
    quoted_texts = texts.filter(is_quoted)
    if quoted_texts.height:
        cells = [split_line(text, separator) for text in quoted_texts["text"].to_list()]
        quoted_rows = pl.DataFrame({"line": quoted_texts["line"], "cells": pl.Series(cells, dtype=pl.List(pl.String))})
        plain = pl.concat([plain, quoted_rows]).sort("line")
    # In some versions sacct -P ends lines with the separator; then the header has an empty last field, too.
    count = pl.col("cells").list.len()
    plain = cleaner.notes.drop(f"fewer than {width} fields", plain, count < width)
    plain = cleaner.notes.drop(f"more than {width} fields", plain, count > width)
    # Of equal headings only the first can be selected.
    names = [
        f"\0{index}" if heading in (*_RESERVED_NAMES, *headings[:index]) else heading
        for index, heading in enumerate(headings)
    ]
    columns = [pl.col("cells").list.get(index, null_on_oob=True).alias(name) for index, name in enumerate(names)]
    return plain.select("line", *columns)
