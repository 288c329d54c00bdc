"""``clusterscape diagnose``: finds GPUs of a workload that behave differently; as text, JSON, or an HTML report."""

import json
import re
import time
import urllib.request
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from http.client import HTTPResponse
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from clusterscape.cli.options import DEFAULT_URL, OUTPUT, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import capture_text, count, print_json, stdout
from clusterscape.cli.report import read_page, record_tables, write_report
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.quantities import format_duration, format_hours
from clusterscape.remote import open_url

TIMEOUT_S = 120.0
MAX_NAMED = 8
KILOWATT_HOUR = 3.6e6
MAX_METRICS = 3
"""Metrics that a report draws: the compared one, and those of findings."""
MAX_LINES = 64
"""Up to this many GPUs, a report has one line per GPU; above, one per cluster."""
MIN_POINTS, MAX_POINTS = 100, 800
TOTAL_POINTS = 20_000
"""Points of all lines of a report, to bound the size of its file."""
_RELATIVE = re.compile(r"(start|end)(?:\s*([+-])\s*(.+))?")
_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}


class ComparedBy(StrEnum):
    """Distance between GPUs."""

    HISTOGRAM = "histogram"
    EUCLIDEAN = "euclidean"
    CORRELATION = "correlation"


def diagnose(
    workload: Annotated[
        str,
        typer.Argument(help="Job id of the scheduler (4711, 4711_3), or id from `clusterscape list`."),
    ],
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            help='Start of the time range: "2h ago", start+30m, end-1h, or "2026-11-14 09:41".',
            show_default="start of the workload",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--to", help="End of the time range, in the same format.", show_default="end of the workload, or now"
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Metric to compare.", show_default="the first with samples")
    ] = None,
    by: Annotated[
        ComparedBy, typer.Option(help="Compare distributions (histogram), or time series (euclidean, correlation).")
    ] = ComparedBy.HISTOGRAM,
    html: Annotated[
        Path | None, typer.Option(help="Also write an HTML report, a single file.", rich_help_panel=OUTPUT)
    ] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find GPUs of a workload that differ from the others, when, and what they have in common."""
    if html is not None:
        read_page()  # fail before the work, not after it
    server = WorkloadServer(url.rstrip("/"), token, workload)
    query = {"from": server.parse_time(since), "to": server.parse_time(until), "metric": metric, "by": by.value}
    diagnosis = server.fetch("diagnosis", query)
    if html is not None:
        title = f"Diagnosis of {diagnosis['workload']} {diagnosis['name'] or ''}".strip()
        write_report(
            html, "diagnosis", title, _record(server, diagnosis, query), capture_text(lambda: _print(diagnosis))
        )
    if as_json:
        print_json(diagnosis)
        return
    _print(diagnosis)
    if html is not None:
        stdout.print(f"Report written to {html}.", style="dim", highlight=False)


class WorkloadServer:
    """The API of a running server for one workload."""

    def __init__(self, url: str, token: str | None, workload: str) -> None:
        self._api = f"{url}/api/v1"
        self._token = token
        self._workload = workload

    def fetch(self, what: str, parameters: dict[str, Any]) -> Any:
        """JSON of the workload; an empty ``what`` is its record."""
        path = f"workloads/{quote(self._workload, safe='')}" + (f"/{what}" if what else "")
        try:
            return json.loads(self._read(path, parameters))
        except ValueError:
            raise SourceError(f"the response of {self._api} is not JSON", hint="Is it a ClusterScape server?") from None

    def fetch_tables(self, what: str, parameters: dict[str, Any], *headers: str) -> dict[str, Any]:
        """An Arrow stream of the workload with some of its headers, packed for a report."""
        with self._open(f"workloads/{quote(self._workload, safe='')}/{what}", parameters) as response:
            body = response.read()
            return record_tables(body, {name: response.headers[name] for name in headers if name in response.headers})

    def parse_time(self, text: str | None) -> int | None:
        """Unix ms of a time as the options take it."""
        if text is None:
            return None
        relative = _RELATIVE.fullmatch(text.strip())
        if relative is None:
            return parse_moment(text, now_ms=int(time.time() * 1000))
        edge, sign, length = relative.groups()
        life = self.fetch("", {})["workload"]
        at = life["started_at"] if edge == "start" else life["ended_at"] or int(time.time() * 1000)
        if at is None:
            raise QueryError(f"{self._workload} has not started", hint="Leave out --from and --to.")
        return int(at) + (0 if length is None else _duration_ms(length) * (1 if sign == "+" else -1))

    def _read(self, path: str, parameters: dict[str, Any]) -> bytes:
        with self._open(path, parameters) as response:
            return response.read()

    def _open(self, path: str, parameters: dict[str, Any]) -> AbstractContextManager[HTTPResponse]:
        pairs = {key: value for key, value in parameters.items() if value is not None}
        address = f"{self._api}/{path}" + (f"?{urlencode(pairs)}" if pairs else "")
        if not address.startswith(("http://", "https://")):
            raise SourceError(f"{address} is not an HTTP URL", hint="Use --url http://HOST:PORT.")
        request = urllib.request.Request(address)  # noqa: S310 – the scheme is checked above
        return open_url(request, self._token, timeout_s=TIMEOUT_S)


def parse_moment(text: str, *, now_ms: int) -> int:
    """Unix ms of ``2h ago`` or of an ISO 8601 time; local time if it has no offset."""
    words = text.strip()
    if words.endswith("ago"):
        return now_ms - _duration_ms(words.removesuffix("ago"))
    try:
        return int(datetime.fromisoformat(words).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise QueryError(
            f"{text!r} is not a valid time", hint='Write "2h ago", start+30m, end-1h or "2026-11-14 09:41".'
        ) from None


def _duration_ms(text: str) -> int:
    from clusterscape.analyze.rules.reading import parse_duration_ms

    return int(parse_duration_ms(text.strip()))


def _record(server: WorkloadServer, diagnosis: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """The data of a report: the diagnosis, and the distribution and time series of each GPU."""
    window, metric = diagnosis["window"], diagnosis["metric"]
    recorded: dict[str, Any] = {"diagnosis": diagnosis, "events": [], "histograms": None, "lines": None, "metrics": []}
    if window is None or metric is None:
        return recorded
    span = {"from": window["start"], "to": window["end"]}
    named_metrics = [name for finding in diagnosis["findings"] for name in finding["metrics"]]
    with_samples = {entry["name"] for entry in diagnosis["metrics"] if entry["has_samples"]}
    metrics = [name for name in dict.fromkeys([metric, *named_metrics]) if name in with_samples][:MAX_METRICS]
    is_few = len(diagnosis["units"]) <= MAX_LINES
    lines = len(diagnosis["units"]) + 1 if is_few else 3 * (len(diagnosis["clusters"]) + 1)
    return recorded | {
        "events": server.fetch("events", span),
        "histograms": server.fetch_tables("histograms", {"metric": metric, **span}, "X-Domain"),
        "lines": server.fetch_tables(
            "lines",
            {
                **query,
                **span,
                "metric": metric,
                "metrics": ",".join(metrics),
                "points": max(MIN_POINTS, min(MAX_POINTS, TOTAL_POINTS // (lines * len(metrics)))),
                "summary": "median" if is_few else "clusters",
            },
        ),
        "metrics": metrics,
    }


def _print(diagnosis: dict[str, Any]) -> None:
    for line in head_lines(diagnosis):
        stdout.print(line, highlight=False, soft_wrap=True)
    _section(
        "Findings", "No findings." if diagnosis["gpus"] and diagnosis["metric"] else None, len(diagnosis["findings"])
    )
    for finding in diagnosis["findings"]:
        stdout.print(f"  {finding['title']}", style=_STYLES.get(finding["severity"], ""), highlight=False)
        stdout.print(f"    {finding['reason']}", style="dim", highlight=False)
    _print_clusters(diagnosis)
    if diagnosis["odd"]:
        _section("Odd GPUs", None, len(diagnosis["odd"]))
        for odd in diagnosis["odd"][:MAX_NAMED]:
            stdout.print(f"  {odd['sentence']}", highlight=False)
        if len(diagnosis["odd"]) > MAX_NAMED:
            stdout.print(
                f"  and {len(diagnosis['odd']) - MAX_NAMED} more; --json prints all", style="dim", highlight=False
            )
    for note in diagnosis["notes"]:
        stdout.print(f"Note: {note}", style="dim", highlight=False)


def head_lines(diagnosis: dict[str, Any]) -> list[str]:
    """Workload, time range and cost."""
    who = " of ".join(filter(None, (diagnosis["user"], diagnosis["project"])))
    lines = [
        " · ".join(
            filter(None, (diagnosis["workload"], diagnosis["name"], who, diagnosis["partition"], diagnosis["state"]))
        )
    ]
    if diagnosis["window"] is None:
        return lines
    span_s = (diagnosis["window"]["end"] - diagnosis["window"]["start"]) / 1000
    machines = ", ".join(diagnosis["machine_types"])
    lines.append(
        f"{count(diagnosis['gpus'], 'GPU')} on {count(diagnosis['nodes'], 'node')}"
        + (f" ({machines})" if machines else "")
        + f", {format_duration(span_s)} from {_local(diagnosis['window']['start'])}"
    )
    cost = [f"{format_hours(diagnosis['gpu_hours'])} GPU-hours"]
    if diagnosis["wasted_gpu_hours"] is not None:
        cost.append(f"{format_hours(diagnosis['wasted_gpu_hours'])} of them idle")
    if diagnosis["energy_joules"] is not None:
        source = "by the GPUs' counters" if diagnosis["energy_from"] == "counter" else "from mean power"
        cost.append(f"{diagnosis['energy_joules'] / KILOWATT_HOUR:,.1f} kWh ({source})")
    lines.append(", ".join(cost))
    return lines


def _print_clusters(diagnosis: dict[str, Any]) -> None:
    clusters = diagnosis["clusters"]
    if not clusters:
        return
    label = next(
        (entry["label"] for entry in diagnosis["metrics"] if entry["name"] == diagnosis["metric"]), diagnosis["metric"]
    )
    what = "distribution" if diagnosis["by"] == "histogram" else "time series"
    if len(clusters) == 1:
        stdout.line()
        stdout.print(f"All GPUs have a similar {what} of {label}.", style="bold", highlight=False)
        return
    stdout.line()
    stdout.print(f"Clusters by the {what} of {label}", style="bold", highlight=False)
    for cluster in clusters:
        names = ", ".join(cluster["units"][:MAX_NAMED]) + (" …" if cluster["size"] > MAX_NAMED else "")
        stdout.print(f"  {cluster['label'] + 1}: {count(cluster['size'], 'GPU')}: {names}", highlight=False)
        if cluster["explanation"] is not None:
            stdout.print(f"     {cluster['explanation']['sentence']}", highlight=False)


def _section(title: str, empty: str | None, size: int) -> None:
    if size:
        stdout.line()
        stdout.print(f"{title}", style="bold")
    elif empty:
        stdout.line()
        stdout.print(f"{empty}", style="bold")


def _local(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000).astimezone():%Y-%m-%d %H:%M %Z}"
