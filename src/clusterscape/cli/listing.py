"""``clusterscape list``: workloads, units, nodes or sources of a running server, as the page's tables show them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from rich.table import Table

from clusterscape.cli.options import JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import answers, count, listing_table, print_json
from clusterscape.cli.status import fetch
from clusterscape.cli.unit_listing import Format, fetch_units, narrow, print_units, write_units
from clusterscape.errors import QueryError
from clusterscape.model.quantities import format_duration, format_hours


class Subject(StrEnum):
    """What can be listed."""

    WORKLOADS = "workloads"
    UNITS = "units"
    NODES = "nodes"
    SOURCES = "sources"


def listing(
    what: Annotated[Subject, typer.Argument(help="What to list.")] = Subject.WORKLOADS,
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="Only workloads or units in this state; may be given several times.",
            show_default="running and waiting workloads",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Only what this user has.")] = None,
    project: Annotated[str | None, typer.Option(help="Only what this project has.")] = None,
    partition: Annotated[str | None, typer.Option(help="Only what is in this partition.")] = None,
    text: Annotated[str | None, typer.Option(help="Only what holds this text in a name or id.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="At most so many workloads, or units of a table for people.")
    ] = 100,
    how: Annotated[
        Format, typer.Option("--format", help="Of units: a table for people, or all their columns as a file.")
    ] = Format.TABLE,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write a file.")] = None,
    url: UrlOption = "http://127.0.0.1:8321",
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List workloads, units, nodes or sources."""
    if what is Subject.UNITS:
        units = fetch_units(url.rstrip("/"), token)
        wanted = {"user": user, "project": project, "partition": partition}
        units = narrow(units, wanted, state or [], text)
        if how is Format.TABLE:
            headings = ("unit", "state", "partition", "machine", "util", "user", "project", "workload")
            print_units(units, _table(*headings, right=("util",)), limit, as_json=as_json)
        else:
            write_units(units, how, output)
        return
    if how is not Format.TABLE or output is not None:
        raise QueryError(f"{what.value} have no file format", hint="--json writes everything there is of them.")
    base = f"{url.rstrip('/')}/api/v1/{what.value}"
    if what is Subject.WORKLOADS:
        asked = {"user": user, "project": project, "partition": partition, "text": text, "limit": limit}
        pairs = [(key, value) for key, value in asked.items() if value is not None]
        pairs += [("state", each) for each in state or ("running", "waiting")]
        base = f"{base}?{urlencode(pairs)}"
    found = fetch(base, token)
    if as_json:
        print_json(found)
        return
    {Subject.WORKLOADS: _print_workloads, Subject.NODES: _print_nodes, Subject.SOURCES: _print_sources}[what](found)


def _table(*headings: str, right: tuple[str, ...] = ()) -> Table:
    """The last column takes what room is left, so that the others are never cut."""
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
    for one in page["workloads"]:
        table.add_row(
            one["workload"],
            one["name"] or "",
            one["user"] or "",
            one["project"] or "",
            one["state"] + describe_exit(one),
            str(one["gpus_requested"]),
            format_hours(one["gpu_hours"]),
            format_duration(one["wait_s"]),
            one["pending_reason_text"] or format_duration(one["run_s"]),
        )
    answers.print(table)
    if page["total"] > len(page["workloads"]):
        answers.print(f"{len(page['workloads']):,} of {count(page['total'], 'workload')}; --limit shows more.")


def describe_exit(one: dict[str, Any]) -> str:
    """How a workload ended, after its state: `` (code 3)``, `` (signal 9)``, `` (a step: code 5)``; nothing where all is well."""
    if one["exit_signal"]:
        return f" (signal {one['exit_signal']})"
    if one["exit_code"]:
        return f" (code {one['exit_code']})"
    if one["derived_exit_signal"]:
        return f" (a step: signal {one['derived_exit_signal']})"
    return f" (a step: code {one['derived_exit_code']})" if one["derived_exit_code"] else ""


def _print_nodes(nodes: Any) -> None:
    table = _table("node", "state", "partitions", "machine", "held", "GPUs", "rack", "reason", right=("held", "GPUs"))
    for one in nodes:
        state = f"{one['state']}, stale" if one["is_stale"] else one["state"]
        held, gpus = str(one["gpus_allocated"]), str(one["gpu_count"])
        names, machine = ", ".join(one["partitions"]), one["machine_type"] or ""
        table.add_row(one["node"], state, names, machine, held, gpus, one["rack"] or "", one["reason"] or "")
    answers.print(table)


def _print_sources(sources: Any) -> None:
    for group in sources["groups"]:
        answers.print(f"{group['kind']}: {group['total'] - group['failing']:,} of {group['total']:,} answer")
        for failure in group["failures"]:
            answers.print(
                f"  {failure['source']}: {failure['message']}", style="yellow", highlight=False, soft_wrap=True
            )
            answers.print(f"  → {failure['hint']}", style="dim", highlight=False, soft_wrap=True)
    for row in sources["dropped"]:
        fate = "stored though odd" if row["is_stored"] else "not stored"
        answers.print(f"{row['kind']}: {row['count']:,} rows {fate}: {row['meaning'] or row['reason']}", soft_wrap=True)
    answers.print(
        f"{sources['samples_total']:,} samples stored since the start; the store is {sources['store']['engine']}."
    )
