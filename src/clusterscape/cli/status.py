"""``clusterscape status``: a summary of the cluster; also HTTP helpers of other commands."""

import json
import urllib.request
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import count, listing_table, percent, print_json, stdout, styled_line
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.quantities import format_hours
from clusterscape.remote import check_address, open_url


def status(
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    at: Annotated[
        str | None,
        typer.Option(help='A time in the past, such as "2026-11-14 09:41"; local time by default.', show_default="now"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show allocated, free and unavailable GPUs, waiting workloads and waste, now or at a time in the past."""
    moment = "" if at is None else f"?at={parse_moment(at)}"
    api = f"{url.rstrip('/')}/api/v1"
    summary = fetch(f"{api}/cluster{moment}", token)
    waste = fetch(f"{api}/waste{moment}", token)
    if as_json:
        print_json({**summary, "waste": waste})
        return
    _print(summary, waste)


def parse_moment(text: str) -> int:
    """Unix ms of an ISO 8601 time; local time if it has no offset."""
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise QueryError(
            f"--at {text!r} is not a valid time", hint='Write it as "2026-11-14 09:41" or 2026-11-14T08:41Z.'
        ) from None


def fetch(url: str, token: str | None) -> Any:
    """The JSON response of ``url``; errors have a hint."""
    check_address(url)
    request = urllib.request.Request(url)  # noqa: S310 – the scheme is checked above
    try:
        with open_url(request, token) as response:
            return json.load(response)
    except ValueError:
        raise SourceError(f"the response of {url} is not JSON", hint="Is it a ClusterScape server?") from None


def send(method: str, url: str, body: Any, token: str | None, *, timeout_s: float = 10.0) -> Any:
    """Send JSON to a running server; returns its JSON response, or None if the response is empty."""
    check_address(url)
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 – checked above
    with open_url(request, token, timeout_s=timeout_s) as response:
        content = response.read()
    return json.loads(content) if content else None


def _print(summary: dict[str, Any], waste: dict[str, Any]) -> None:
    units = summary["units"]
    name = f"{summary['cluster']} (demo)" if summary["is_demo"] else summary["cluster"]
    if summary["is_past"]:
        moment = datetime.fromtimestamp(summary["at"] / 1000).astimezone()
        past = (f"{moment:%Y-%m-%d %H:%M %Z}", "bold")
        caveat = "; the state of nodes at that time is unknown." if summary["nodes_unavailable"] is None else ""
        stdout.print(styled_line(past, caveat))
    stdout.print(
        styled_line(
            (name, "bold"),
            f"  {count(units['total'], 'GPU')} on {count(summary['nodes'], 'node')}: "
            f"{units['allocated']:,} allocated, {units['free']:,} free, {units['unavailable']:,} out of service, "
            f"{units['stale']:,} stale"
            + (f" ({units['silent']:,} GPUs of exporters that do not respond)" if units["silent"] else ""),
        ),
        soft_wrap=True,
    )
    if awaited := describe_awaited(summary["awaited"]):
        stdout.print(f"The server has just started: {awaited}.", style="yellow")
    power = summary["power_watts"]
    stdout.print(
        f"{percent(summary['gpu_util_ratio'])} utilization of allocated GPUs · "
        f"{'–' if power is None else f'{power / 1000:,.0f} kW'} · {summary['running']:,} running · "
        f"{summary['waiting']:,} waiting for {count(summary['waiting_gpus'], 'GPU')}",
        soft_wrap=True,
    )
    stdout.print(
        f"{format_hours(waste['wasted_gpu_hours'])} of {format_hours(waste['held_gpu_hours'])} GPU-hours wasted in 24 hours · "
        f"{count(summary['stranded'], 'free GPU')} stranded",
        soft_wrap=True,
    )
    table = listing_table()
    # Short headings: the table fits 80 columns.
    is_stale = units["stale"] > 0
    states = ("held", "free", "block", "stranded", "out", *(("stale",) if is_stale else ()))
    for heading in ("partition", "GPUs", *states, "util", "run", "wait", "asked"):
        table.add_column(heading, justify="left" if heading == "partition" else "right", no_wrap=True)
    for part in summary["partitions"]:
        counts = part["units"]
        table.add_row(
            part["name"] + ("" if part["is_up"] else " (closed)"),
            f"{counts['total']:,}",
            f"{counts['allocated']:,}",
            f"{counts['free']:,}",
            f"{part['largest_free_block']:,}",
            f"{part['stranded']:,}",
            f"{counts['unavailable']:,}",
            *((f"{counts['stale']:,}",) if is_stale else ()),
            percent(part["gpu_util_ratio"]),
            f"{part['running']:,}",
            f"{part['waiting']:,}",
            f"{part['waiting_gpus']:,}",
        )
    stdout.print(table)
    shared = [part for part in summary["partitions"] if part["shared_nodes"]]
    if shared:
        # Rows of overlapping partitions count the same GPUs: their sum exceeds the total.
        names = ", ".join(part["name"] for part in shared)
        stdout.print(
            f"{names} share nodes; each of them counts the shared GPUs.", style="dim", soft_wrap=True, highlight=False
        )
    for line in describe_startable(summary["partitions"]):
        stdout.print(line, soft_wrap=True, highlight=False)
    for reservation in describe_reservations(summary["reservations"]):
        stdout.print(reservation, soft_wrap=True, highlight=False)
    if summary["paused"]:
        stdout.print(styled_line(("Ingest is paused:", "bold red"), f" {summary['paused']}"))
    if summary["failing_sources"]:
        failing = (f"{count(summary['failing_sources'], 'source')} failing", "yellow")
        stdout.print(styled_line(failing, "; see `clusterscape list sources`."))
    if summary["open_questions"]:
        open_names = (f"{count(summary['open_questions'], 'open question')} about names of nodes", "yellow")
        stdout.print(styled_line(open_names, "; `clusterscape doctor` lists them with proposed answers."))


def describe_awaited(kinds: list[str]) -> str | None:
    """Which sources have not responded since the server started; None if all have."""
    return f"{' and '.join(kinds)} {'has' if len(kinds) == 1 else 'have'} not responded yet" if kinds else None


def describe_reservations(reservations: list[dict[str, Any]]) -> list[str]:
    """One line per reservation: time, nodes and GPUs."""
    lines = []
    for reservation in reservations:
        start, end = (
            datetime.fromtimestamp(at / 1000).astimezone().strftime("%a %d %b %H:%M")
            for at in (reservation["starts_at"], reservation["ends_at"])
        )
        kind = "Maintenance" if reservation["is_maintenance"] else "Reservation"
        when = f"until {end}" if reservation["is_active"] else f"{start} – {end}"
        size = f"{count(len(reservation['nodes']), 'node')} with {count(reservation['gpus'], 'GPU')}"
        lines.append(f"{kind} {reservation['name']} {when}: {size}")
    return lines


def describe_startable(partitions: list[dict[str, Any]]) -> list[Text]:
    """The largest job that could start now, for each partition and machine type."""
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
