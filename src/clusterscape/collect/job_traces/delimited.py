"""Rows of separated text with a heading, block by block, each with the number of its line.

A line with another number of fields than the heading is counted, not guessed at. Quoted fields are understood.
"""

import csv
from collections import Counter
from collections.abc import Callable, Mapping

import polars as pl

from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.text import TraceSource, iter_blocks
from clusterscape.errors import SourceError

_OURS = ("", "line")
"""Headings that cannot be names of columns here."""

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
    """Feed a cleaner; ``fields``: column of the trace → heading of the file. Returns the headings.

    ``reshape`` gets each block with the file's own headings (text) and may add columns before ``fields`` are taken.
    """
    headings: list[str] = []
    for number, lines in iter_blocks(source, cleaner.faults):
        if not headings:
            place = next((at for at, line in enumerate(lines) if line.strip()), None)
            if place is None:
                continue
            headings = [heading.strip() for heading in _split(lines[place], separator)]
            source.check_rows(1, len(headings))
            _check(source, headings, required)
            number, lines = number + place + 1, lines[place + 1 :]
        source.check_rows(number + len(lines), len(headings))
        frame = _to_frame(number, lines, headings, separator, cleaner)
        frame = reshape(frame) if reshape else frame
        chosen = [pl.col(heading).alias(column) for column, heading in fields.items() if heading in frame.columns]
        cleaner.add(frame.select("line", *chosen))
    return headings


def _check(source: TraceSource, headings: list[str], required: tuple[str, ...]) -> None:
    missing = [heading for heading in required if heading not in headings]
    if missing:
        raise SourceError(
            f"{source}, line 1: there is no column {', '.join(missing)}",
            hint=f"Its columns are {', '.join(headings)[:300]}.",
        )
    twice = [heading for heading, count in Counter(filter(None, headings)).items() if count > 1]
    if twice:
        raise SourceError(f"{source}, line 1: there are two columns {twice[0][:80]!r}", hint="Rename one of them.")


def _split(line: str, separator: str) -> list[str]:
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:  # such as a field of more than 131,072 characters: dropped, for it is not as wide as the heading
        return []


def _to_frame(number: int, lines: list[str], headings: list[str], separator: str, cleaner: Cleaner) -> pl.DataFrame:
    width = len(headings)
    texts = pl.DataFrame(
        {"line": pl.int_range(number, number + len(lines), eager=True), "text": pl.Series(lines, dtype=pl.String)}
    ).filter(pl.col("text").str.strip_chars() != "")
    quoted = pl.col("text").str.contains('"', literal=True)
    # Counted before they are split: a line of nothing but separators is as many cells as it has bytes.
    count = pl.col("text").str.count_matches(separator, literal=True) + 1
    plain = texts.filter(~quoted)
    plain = cleaner.notes.drop(f"more than {width} fields", plain, count > width)
    plain = plain.select("line", pl.col("text").str.split(separator).alias("cells"))
    rest = texts.filter(quoted)
    if rest.height:
        cells = [_split(text, separator) for text in rest["text"].to_list()]
        more = pl.DataFrame({"line": rest["line"], "cells": pl.Series(cells, dtype=pl.List(pl.String))})
        plain = pl.concat([plain, more]).sort("line")
    # sacct -P ends lines with its separator in some versions; a heading that does so counts an empty field itself.
    count = pl.col("cells").list.len()
    plain = cleaner.notes.drop(f"fewer than {width} fields", plain, count < width)
    plain = cleaner.notes.drop(f"more than {width} fields", plain, count > width)
    columns = [
        pl.col("cells").list.get(at, null_on_oob=True).alias(f"_{at}" if heading in _OURS else heading)
        for at, heading in enumerate(headings)
    ]
    return plain.select("line", *columns)
