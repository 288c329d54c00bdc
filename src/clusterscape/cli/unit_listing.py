"""``clusterscape list units``: the table of units in the terminal, or as a CSV or Parquet file, as the page exports it."""

import io
import sys
import urllib.request
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterscape.cli.output import answers, count, percent, print_json, print_text
from clusterscape.errors import QueryError
from clusterscape.remote import open_url

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table


class Format(StrEnum):
    """How a table leaves the program."""

    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


SEARCHED = ("unit", "user", "project", "workload", "workload_name", "partition", "machine_type")
SHOWN = ("unit", "unit_state", "partition", "machine_type", "gpu_util_ratio", "user", "project", "workload")


def fetch_units(base: str, token: str | None) -> "pl.DataFrame":
    """Every unit with its latest metrics, from a running server."""
    import polars as pl

    with open_url(urllib.request.Request(f"{base}/api/v1/units.parquet"), token) as response:  # noqa: S310
        return pl.read_parquet(io.BytesIO(response.read()))


def narrow(units: "pl.DataFrame", wanted: dict[str, str | None], states: list[str], text: str | None) -> "pl.DataFrame":
    """The rows whose columns are as wanted, in one of the states, and that hold the text."""
    import polars as pl

    from clusterscape.query.picture import SHARED_MARK

    for column, value in wanted.items():
        if value is not None and column == "partition" and "node_partitions" in units.columns:
            # A unit of a node in several partitions belongs to each of them, whoever holds it.
            places = pl.coalesce(pl.col("node_partitions").cast(pl.String), pl.col("partition").cast(pl.String))
            units = units.filter(places.str.split(SHARED_MARK).list.contains(value))
        elif value is not None:
            units = units.filter(pl.col(column).cast(pl.String) == value)
    if states:
        units = units.filter(pl.col("unit_state").cast(pl.String).is_in(states))
    if text is not None:
        found = [pl.col(name).cast(pl.String).str.contains(text, literal=True) for name in SEARCHED]
        units = units.filter(pl.any_horizontal(*found))
    return units


def write_units(units: "pl.DataFrame", how: Format, output: Path | None) -> None:
    """CSV or Parquet, to a file or to standard output."""
    if how is Format.PARQUET and output is None and sys.stdout.isatty():
        raise QueryError("Parquet is not for a terminal", hint="Name a file with --output, or redirect the output.")
    buffer = io.BytesIO()
    if how is Format.PARQUET:
        units.write_parquet(buffer, compression="zstd")
    else:
        units.write_csv(buffer)
    if output is None and how is Format.CSV:
        print_text(buffer.getvalue().decode())
    elif output is None:
        sys.stdout.buffer.write(buffer.getvalue())
        sys.stdout.buffer.flush()
    else:
        output.write_bytes(buffer.getvalue())
        answers.print(f"{count(len(units), 'unit')} in {output}", soft_wrap=True)


def print_units(units: "pl.DataFrame", table: "Table", limit: int, *, as_json: bool) -> None:
    """The first ``limit`` rows for people, or all as JSON."""
    if as_json:
        print_json(units.rows(named=True))
        return
    for row in units.head(limit).rows(named=True):
        table.add_row(*(_cell(name, row.get(name)) for name in SHOWN))
    answers.print(table)
    if len(units) > limit:
        answers.print(f"{limit:,} of {count(len(units), 'unit')}; --limit shows more.")


def _cell(name: str, value: Any) -> str:
    if name == "gpu_util_ratio":
        return percent(value)
    return "" if value is None else str(value)
