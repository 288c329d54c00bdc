"""``clusterscape status``: the cluster in the terminal, asked from a running server."""

import json
import urllib.request
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from clusterscape.cli.options import JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import answers, count, listing_table, percent, print_json, styled_line
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.quantities import format_hours
from clusterscape.remote import check_address, open_url


def status(
    url: UrlOption = "http://127.0.0.1:8321",
    token: TokenOption = None,
    at: Annotated[
        str | None,
        typer.Option(help='A past minute, such as "2026-11-14 09:41" (local time, unless it names a zone).'),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is used, free, broken and waiting; now or at a past minute."""
    moment = "" if at is None else f"?at={parse_moment(at)}"
    api = f"{url.rstrip('/')}/api/v1"
    summary = fetch(f"{api}/cluster{moment}", token)
    waste = fetch(f"{api}/waste{moment}", token)
    if as_json:
        print_json({**summary, "waste": waste})
        return
    _print(summary, waste)


def parse_moment(text: str) -> int:
    """Unix ms of an ISO 8601 time; in local time where it names no zone."""
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise QueryError(
            f"--at {text!r} is not a time", hint='Write it as "2026-11-14 09:41" or 2026-11-14T08:41Z.'
        ) from None


def fetch(url: str, token: str | None) -> Any:
    """The JSON answer of ``url``; every failure says what to do."""
    check_address(url)
    request = urllib.request.Request(url)  # noqa: S310 – the scheme is checked above
    try:
        with open_url(request, token) as response:
            return json.load(response)
    except ValueError:
        raise SourceError(f"{url} does not answer in JSON", hint="Is it a ClusterScape?") from None


def send(method: str, url: str, body: Any, token: str | None, *, timeout_s: float = 10.0) -> Any:
    """Send JSON to a running server; its JSON answer, or None where it says nothing."""
    check_address(url)
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 – checked above
    with open_url(request, token, timeout_s=timeout_s) as response:
        answer = response.read()
    return json.loads(answer) if answer else None


def _print(summary: dict[str, Any], waste: dict[str, Any]) -> None:
    units = summary["units"]
    name = f"{summary['cluster']} (demo)" if summary["is_demo"] else summary["cluster"]
    if summary["is_past"]:
        moment = datetime.fromtimestamp(summary["at"] / 1000).astimezone()
        past = (f"{moment:%Y-%m-%d %H:%M %Z}", "bold")
        unknown = "; whether nodes were in service then is not known." if summary["nodes_unavailable"] is None else ""
        answers.print(styled_line(past, unknown))
    answers.print(
        styled_line(
            (name, "bold"),
            f"  {count(units['total'], 'GPU')} on {count(summary['nodes'], 'node')}: "
            f"{units['allocated']:,} allocated, {units['free']:,} free, {units['unavailable']:,} out of service, "
            f"{units['stale']:,} stale"
            + (f" ({units['silent']:,} GPUs of silent exporters)" if units["silent"] else ""),
        ),
        soft_wrap=True,
    )
    if awaited := describe_awaited(summary["awaited"]):
        answers.print(f"The server has just started: {awaited}.", style="yellow")
    power = summary["power_watts"]
    answers.print(
        f"{percent(summary['gpu_util_ratio'])} utilization of allocated GPUs · "
        f"{'–' if power is None else f'{power / 1000:,.0f} kW'} · {summary['running']:,} running · "
        f"{summary['waiting']:,} waiting for {count(summary['waiting_gpus'], 'GPU')}",
        soft_wrap=True,
    )
    answers.print(
        f"{format_hours(waste['wasted_gpu_hours'])} of {format_hours(waste['held_gpu_hours'])} GPU-hours wasted in 24 hours · "
        f"{count(summary['stranded'], 'free GPU')} stranded",
        soft_wrap=True,
    )
    table = listing_table()
    # Short words: with them the table fits a terminal of 80 columns.
    is_stale = units["stale"] > 0
    states = ("held", "free", "block", "stranded", "out", *(("stale",) if is_stale else ()))
    for heading in ("partition", "GPUs", *states, "util", "run", "wait", "asked"):
        table.add_column(heading, justify="left" if heading == "partition" else "right", no_wrap=True)
    for part in summary["partitions"]:
        own = part["units"]
        table.add_row(
            part["name"] + ("" if part["is_up"] else " (closed)"),
            f"{own['total']:,}",
            f"{own['allocated']:,}",
            f"{own['free']:,}",
            f"{part['largest_free_block']:,}",
            f"{part['stranded']:,}",
            f"{own['unavailable']:,}",
            *((f"{own['stale']:,}",) if is_stale else ()),
            percent(part["gpu_util_ratio"]),
            f"{part['running']:,}",
            f"{part['waiting']:,}",
            f"{part['waiting_gpus']:,}",
        )
    answers.print(table)
    shared = [part for part in summary["partitions"] if part["shared_nodes"]]
    if shared:
        # Of nodes in several partitions each row counts the GPUs: the rows sum up to more than there are.
        names = ", ".join(part["name"] for part in shared)
        answers.print(
            f"{names} share nodes, whose GPUs each of them counts.", style="dim", soft_wrap=True, highlight=False
        )
    for line in describe_startable(summary["partitions"]):
        answers.print(line, soft_wrap=True, highlight=False)
    for reservation in describe_reservations(summary["reservations"]):
        answers.print(reservation, soft_wrap=True, highlight=False)
    if summary["paused"]:
        answers.print(styled_line(("Nothing is stored now:", "bold red"), f" {summary['paused']}"))
    if summary["failing_sources"]:
        failing = (f"{count(summary['failing_sources'], 'source')} failing", "yellow")
        answers.print(styled_line(failing, "; the page says which."))
    if summary["open_questions"]:
        open_names = (f"{count(summary['open_questions'], 'open question')} about names of nodes", "yellow")
        answers.print(styled_line(open_names, "; clusterscape doctor lists them with proposed answers."))


def describe_awaited(kinds: list[str]) -> str | None:
    """Which sources have not answered since the server started; None where all have."""
    return f"{' and '.join(kinds)} {'has' if len(kinds) == 1 else 'have'} not answered yet" if kinds else None


def describe_reservations(reservations: list[dict[str, Any]]) -> list[str]:
    """Each reservation in a line: from when to when, on how many nodes and GPUs."""
    lines = []
    for each in reservations:
        start, end = (
            datetime.fromtimestamp(at / 1000).astimezone().strftime("%a %d %b %H:%M")
            for at in (each["starts_at"], each["ends_at"])
        )
        kind = "Maintenance" if each["is_maintenance"] else "Reservation"
        when = f"until {end}" if each["is_active"] else f"{start} – {end}"
        size = f"{count(len(each['nodes']), 'node')} with {count(each['gpus'], 'GPU')}"
        lines.append(f"{kind} {each['name']} {when}: {size}")
    return lines


def describe_startable(partitions: list[dict[str, Any]]) -> list[Text]:
    """For each partition and machine type the largest job that could start now, in words."""
    lines = []
    for part in partitions:
        for place in part["largest_startable"]:
            where = " ".join(filter(None, (part["name"], place["machine_type"])))
            size = place["gpus_per_node"]
            if place["one_node_gpus"] < size <= place["free"] and part["is_up"]:
                blocked = f"{where}: no {size}-GPU job can start although {place['free']:,} GPUs are free;"
                largest = f" at most {count(place['one_node_gpus'], 'GPU')} on one node"
                lines.append(styled_line((blocked, "yellow"), largest))
            elif place["whole_nodes"] > 1:
                whole = f"{place['whole_node_gpus']:,} GPUs on {place['whole_nodes']} whole nodes"
                lines.append(styled_line(f"{where}: {whole} can start"))
            else:
                lines.append(styled_line(f"{where}: at most {count(place['one_node_gpus'], 'GPU')} can start"))
    return lines
