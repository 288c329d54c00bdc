"""``clusterscape list``: workloads, units, nodes or sources of a running server; units also as a CSV or Parquet file."""

import io
import sys
import urllib.request
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer
from rich.table import Table

from clusterscape.cli.options import DEFAULT_URL, OUTPUT, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import count, listing_table, percent, print_json, print_text, stdout
from clusterscape.cli.status import fetch
from clusterscape.errors import QueryError
from clusterscape.model.quantities import format_duration, format_hours
from clusterscape.remote import open_url

if TYPE_CHECKING:
    import polars as pl


class Format(StrEnum):
    """Output formats of units."""

    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


SEARCH_COLUMNS = ("unit", "user", "project", "workload", "workload_name", "partition", "machine_type")
TABLE_COLUMNS = ("unit", "unit_state", "partition", "machine_type", "gpu_util_ratio", "user", "project", "workload")


def fetch_units(base: str, token: str | None) -> "pl.DataFrame":
    """Every unit with its latest metrics, from a running server."""
    import polars as pl

    with open_url(urllib.request.Request(f"{base}/api/v1/units.parquet"), token) as response:  # noqa: S310
        return pl.read_parquet(io.BytesIO(response.read()))


def filter_units(
    units: "pl.DataFrame", values: dict[str, str | None], states: list[str], text: str | None
) -> "pl.DataFrame":
    """Rows with these column values, in one of the states, and with the text in a name or id."""
    import polars as pl

    from clusterscape.query.picture import SHARED_MARK

    for column, value in values.items():
        if value is not None and column == "partition" and "node_partitions" in units.columns:
            # A unit of a node in several partitions belongs to all of them.
            partitions = pl.coalesce(pl.col("node_partitions").cast(pl.String), pl.col("partition").cast(pl.String))
            units = units.filter(partitions.str.split(SHARED_MARK).list.contains(value))
        elif value is not None:
            units = units.filter(pl.col(column).cast(pl.String) == value)
    if states:
        units = units.filter(pl.col("unit_state").cast(pl.String).is_in(states))
    if text is not None:
        matches = [pl.col(name).cast(pl.String).str.contains(text, literal=True) for name in SEARCH_COLUMNS]
        units = units.filter(pl.any_horizontal(*matches))
    return units


def write_units(units: "pl.DataFrame", output_format: Format, output: Path | None) -> None:
    """CSV or Parquet, to a file or to standard output."""
    if output_format is Format.PARQUET and output is None and sys.stdout.isatty():
        raise QueryError(
            "cannot print Parquet to a terminal", hint="Choose a file with --output, or redirect the output."
        )
    buffer = io.BytesIO()
    if output_format is Format.PARQUET:
        units.write_parquet(buffer, compression="zstd")
    else:
        units.write_csv(buffer)
    if output is None and output_format is Format.CSV:
        print_text(buffer.getvalue().decode())
    elif output is None:
        sys.stdout.buffer.write(buffer.getvalue())
        sys.stdout.buffer.flush()
    else:
        output.write_bytes(buffer.getvalue())
        stdout.print(f"{count(len(units), 'unit')} in {output}", soft_wrap=True)


def print_units(units: "pl.DataFrame", table: "Table", limit: int, *, as_json: bool) -> None:
    """Print the first ``limit`` rows as a table, or all as JSON."""
    if as_json:
        print_json(units.rows(named=True))
        return
    for row in units.head(limit).rows(named=True):
        table.add_row(*(_cell(name, row.get(name)) for name in TABLE_COLUMNS))
    stdout.print(table)
    if len(units) > limit:
        stdout.print(f"{limit:,} of {count(len(units), 'unit')}; --limit shows more.")


def _cell(name: str, value: Any) -> str:
    if name == "gpu_util_ratio":
        return percent(value)
    return "" if value is None else str(value)


class ListedKind(StrEnum):
    """What can be listed."""

    WORKLOADS = "workloads"
    UNITS = "units"
    NODES = "nodes"
    SOURCES = "sources"


def listing(
    what: Annotated[ListedKind, typer.Argument(help="What to list.")] = ListedKind.WORKLOADS,
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="Only workloads or units in this state; repeatable.",
            show_default="workloads: running and waiting; units: all",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Only workloads or units of this user.")] = None,
    project: Annotated[str | None, typer.Option(help="Only workloads or units of this project.")] = None,
    partition: Annotated[str | None, typer.Option(help="Only workloads or units in this partition.")] = None,
    text: Annotated[str | None, typer.Option(help="Only workloads or units with this text in a name or id.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of workloads or units.", rich_help_panel=OUTPUT)
    ] = 100,
    output_format: Annotated[
        Format,
        typer.Option("--format", help="Units only: a table, or a file with all columns.", rich_help_panel=OUTPUT),
    ] = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Units only: file to write.",
            show_default="standard output",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List workloads, units (GPUs), nodes or sources."""
    if what is ListedKind.UNITS:
        units = fetch_units(url.rstrip("/"), token)
        values = {"user": user, "project": project, "partition": partition}
        units = filter_units(units, values, state or [], text)
        if output_format is Format.TABLE:
            headings = ("unit", "state", "partition", "machine", "util", "user", "project", "workload")
            print_units(units, _table(*headings, right=("util",)), limit, as_json=as_json)
        else:
            write_units(units, output_format, output)
        return
    if output_format is not Format.TABLE or output is not None:
        raise QueryError(
            "--format and --output work with units only", hint=f"Use --json to get all fields of {what.value}."
        )
    base = f"{url.rstrip('/')}/api/v1/{what.value}"
    if what is ListedKind.WORKLOADS:
        filters = {"user": user, "project": project, "partition": partition, "text": text, "limit": limit}
        pairs = [(key, value) for key, value in filters.items() if value is not None]
        pairs += [("state", name) for name in state or ("running", "waiting")]
        base = f"{base}?{urlencode(pairs)}"
    response = fetch(base, token)
    if as_json:
        print_json(response)
        return
    {ListedKind.WORKLOADS: _print_workloads, ListedKind.NODES: _print_nodes, ListedKind.SOURCES: _print_sources}[what](
        response
    )


def _table(*headings: str, right: tuple[str, ...] = ()) -> Table:
    """A table whose last column takes the remaining width, so that the others are not truncated."""
    table = listing_table(expand=True)
    for heading in headings:
        is_last = heading == headings[-1]
        table.add_column(
            heading, justify="right" if heading in right else "left", no_wrap=True, ratio=1 if is_last else None
        )
    return table


def _print_workloads(page: Any) -> None:
    headings = ("workload", "name", "user", "project", "state", "GPUs", "GPU-h", "waited", "running")
    table = _table(*headings, right=("GPUs", "GPU-h"))
    for workload in page["workloads"]:
        table.add_row(
            workload["workload"],
            workload["name"] or "",
            workload["user"] or "",
            workload["project"] or "",
            workload["state"] + describe_exit(workload),
            str(workload["gpus_requested"]),
            format_hours(workload["gpu_hours"]),
            format_duration(workload["wait_s"]),
            workload["pending_reason_text"] or format_duration(workload["run_s"]),
        )
    stdout.print(table)
    if page["total"] > len(page["workloads"]):
        stdout.print(f"{len(page['workloads']):,} of {count(page['total'], 'workload')}; --limit shows more.")


def describe_exit(workload: dict[str, Any]) -> str:
    """Suffix of the state with the exit code: `` (code 3)``, `` (signal 9)``, `` (a step: code 5)``; empty on success."""
    if workload["exit_signal"]:
        return f" (signal {workload['exit_signal']})"
    if workload["exit_code"]:
        return f" (code {workload['exit_code']})"
    if workload["derived_exit_signal"]:
        return f" (a step: signal {workload['derived_exit_signal']})"
    return f" (a step: code {workload['derived_exit_code']})" if workload["derived_exit_code"] else ""


def _print_nodes(nodes: Any) -> None:
    table = _table("node", "state", "partitions", "machine", "held", "GPUs", "rack", "reason", right=("held", "GPUs"))
    for node in nodes:
        state = f"{node['state']}, stale" if node["is_stale"] else node["state"]
        held, gpus = str(node["gpus_allocated"]), str(node["gpu_count"])
        names, machine = ", ".join(node["partitions"]), node["machine_type"] or ""
        table.add_row(node["node"], state, names, machine, held, gpus, node["rack"] or "", node["reason"] or "")
    stdout.print(table)


def _print_sources(sources: Any) -> None:
    for group in sources["groups"]:
        stdout.print(f"{group['kind']}: {group['total'] - group['failing']:,} of {group['total']:,} respond")
        for failure in group["failures"]:
            stdout.print(
                f"  {failure['source']}: {failure['message']}", style="yellow", highlight=False, soft_wrap=True
            )
            stdout.print(f"  → {failure['hint']}", style="dim", highlight=False, soft_wrap=True)
    for row in sources["dropped"]:
        outcome = "stored although unusual" if row["is_stored"] else "not stored"
        stdout.print(
            f"{row['kind']}: {row['count']:,} rows {outcome}: {row['meaning'] or row['reason']}", soft_wrap=True
        )
    stdout.print(
        f"{sources['samples_total']:,} samples stored since the start; the store is {sources['store']['engine']}."
    )
