"""``clusterscape diagnose``: which GPU of a run is odd, when, and what the odd ones share; in words, JSON, or a report."""

import json
import re
import time
import urllib.request
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import answers, count, print_json
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.quantities import format_duration, format_hours
from clusterscape.remote import open_url

TIMEOUT_S = 120.0
NAMED = 8
KILOWATT_HOUR = 3.6e6
_RELATIVE = re.compile(r"(start|end)(?:\s*([+-])\s*(.+))?")
_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}


class Way(StrEnum):
    """What GPUs are compared by."""

    HISTOGRAM = "histogram"
    EUCLIDEAN = "euclidean"
    CORRELATION = "correlation"


def diagnose(
    workload: Annotated[
        str,
        typer.Argument(help="The workload, as the scheduler names it (4711, 4711_3) or `list` does."),
    ],
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            help='Begin of the window: "2h ago", start+30m, end-1h, or "2026-11-14 09:41".',
            show_default="its start",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", help="End of the window, written likewise.", show_default="its end, or now")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What GPUs are compared by.", show_default="the first with samples")
    ] = None,
    by: Annotated[Way, typer.Option(help="Compare distributions, or timelines.")] = Way.HISTOGRAM,
    html: Annotated[Path | None, typer.Option(help="Also write a report: one file, no server needed.")] = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which GPUs of a workload differ from the others, when, and what they have in common."""
    site = Site(url.rstrip("/"), token, workload)
    asked = {"from": site.moment(since), "to": site.moment(until), "metric": metric, "by": by.value}
    found = site.ask("diagnosis", asked)
    if html is not None:
        _write_report(html, site, found)
    if as_json:
        print_json(found)
        return
    _print(found)
    if html is not None:
        answers.print(f"The report is in {html}.", style="dim", highlight=False)


class Site:
    """The running server, asked about one workload."""

    def __init__(self, url: str, token: str | None, workload: str) -> None:
        self._api = f"{url}/api/v1"
        self._token = token
        self._workload = workload

    def ask(self, what: str, parameters: dict[str, Any]) -> Any:
        """JSON about the workload; with an empty ``what`` its record."""
        path = f"workloads/{quote(self._workload, safe='')}" + (f"/{what}" if what else "")
        try:
            return json.loads(self._read(path, parameters))
        except ValueError:
            raise SourceError(f"{self._api} does not answer in JSON", hint="Is it a ClusterScape?") from None

    def table(self, what: str, parameters: dict[str, Any]) -> bytes:
        """An Arrow stream about the workload."""
        return self._read(f"workloads/{quote(self._workload, safe='')}/{what}", parameters)

    def series(self, parameters: dict[str, Any]) -> bytes:
        """Means of even steps of all its units, as an Arrow stream."""
        return self._read("series", {"workload": self._workload, **parameters})

    def moment(self, text: str | None) -> int | None:
        """Unix ms of a time as the options take it."""
        if text is None:
            return None
        relative = _RELATIVE.fullmatch(text.strip())
        if relative is None:
            return parse_moment(text, now_ms=int(time.time() * 1000))
        edge, sign, length = relative.groups()
        life = self.ask("", {})["workload"]
        at = life["started_at"] if edge == "start" else life["ended_at"] or int(time.time() * 1000)
        if at is None:
            raise QueryError(f"{self._workload} has not started", hint="Leave out --from and --to.")
        return int(at) + (0 if length is None else _duration_ms(length) * (1 if sign == "+" else -1))

    def _read(self, path: str, parameters: dict[str, Any]) -> bytes:
        pairs = {key: value for key, value in parameters.items() if value is not None}
        address = f"{self._api}/{path}" + (f"?{urlencode(pairs)}" if pairs else "")
        if not address.startswith(("http://", "https://")):
            raise SourceError(f"{address} is not an address", hint="Give --url http://HOST:PORT.")
        request = urllib.request.Request(address)  # noqa: S310 – the scheme is checked above
        with open_url(request, self._token, timeout_s=TIMEOUT_S) as response:
            return response.read()


def parse_moment(text: str, *, now_ms: int) -> int:
    """Unix ms of ``2h ago`` or of an ISO 8601 time, which is local where it names no zone."""
    words = text.strip()
    if words.endswith("ago"):
        return now_ms - _duration_ms(words.removesuffix("ago"))
    try:
        return int(datetime.fromisoformat(words).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise QueryError(
            f"{text!r} is not a time", hint='Write "2h ago", start+30m, end-1h or "2026-11-14 09:41".'
        ) from None


def _duration_ms(text: str) -> int:
    from clusterscape.analyze.rules.reading import parse_duration_ms

    return int(parse_duration_ms(text.strip()))


def _write_report(path: Path, site: Site, found: dict[str, Any]) -> None:
    from clusterscape.cli.diagnosis_report import write_report

    window, metric = found["window"], found["metric"]
    histograms = means = None
    if window is not None and metric is not None:
        span = {"from": window["start"], "to": window["end"]}
        histograms = site.table("histograms", {"metric": metric, **span})
        means = site.series({"metric": metric, "start": window["start"], "end": window["end"], "points": 400})
    write_report(path, found, histograms, means)


def _print(found: dict[str, Any]) -> None:
    for line in head_lines(found):
        answers.print(line, highlight=False, soft_wrap=True)
    _section("Findings", "Nothing stands out." if found["gpus"] and found["metric"] else None, len(found["findings"]))
    for finding in found["findings"]:
        answers.print(f"  {finding['title']}", style=_STYLES.get(finding["severity"], ""), highlight=False)
        answers.print(f"    {finding['reason']}", style="dim", highlight=False)
    _print_clusters(found)
    if found["odd"]:
        _section("Odd GPUs", None, len(found["odd"]))
        for odd in found["odd"][:NAMED]:
            answers.print(f"  {odd['sentence']}", highlight=False)
        if len(found["odd"]) > NAMED:
            answers.print(f"  and {len(found['odd']) - NAMED} more; --json has all", style="dim", highlight=False)
    for note in found["notes"]:
        answers.print(f"Note: {note}", style="dim", highlight=False)


def head_lines(found: dict[str, Any]) -> list[str]:
    """Who, what, when, and what it cost."""
    who = " of ".join(filter(None, (found["user"], found["project"])))
    lines = [" · ".join(filter(None, (found["workload"], found["name"], who, found["partition"], found["state"])))]
    if found["window"] is None:
        return lines
    span_s = (found["window"]["end"] - found["window"]["start"]) / 1000
    machines = ", ".join(found["machine_types"])
    lines.append(
        f"{count(found['gpus'], 'GPU')} on {count(found['nodes'], 'node')}"
        + (f" ({machines})" if machines else "")
        + f", {format_duration(span_s)} from {_local(found['window']['start'])}"
    )
    cost = [f"{format_hours(found['gpu_hours'])} GPU-hours"]
    if found["wasted_gpu_hours"] is not None:
        cost.append(f"{format_hours(found['wasted_gpu_hours'])} of them idle")
    if found["energy_joules"] is not None:
        source = "by the GPUs' counters" if found["energy_from"] == "counter" else "from mean power"
        cost.append(f"{found['energy_joules'] / KILOWATT_HOUR:,.1f} kWh ({source})")
    lines.append(", ".join(cost))
    return lines


def _print_clusters(found: dict[str, Any]) -> None:
    clusters = found["clusters"]
    if not clusters:
        return
    label = next((each["label"] for each in found["metrics"] if each["name"] == found["metric"]), found["metric"])
    what = "distribution" if found["by"] == "histogram" else "course"
    if len(clusters) == 1:
        answers.line()
        answers.print(f"By the {what} of {label}, all GPUs are alike.", style="bold", highlight=False)
        return
    answers.line()
    answers.print(f"Clusters by the {what} of {label}", style="bold", highlight=False)
    for cluster in clusters:
        names = ", ".join(cluster["units"][:NAMED]) + (" …" if cluster["size"] > NAMED else "")
        answers.print(f"  {cluster['label'] + 1}: {count(cluster['size'], 'GPU')}: {names}", highlight=False)
        if cluster["explanation"] is not None:
            answers.print(f"     {cluster['explanation']['sentence']}", highlight=False)


def _section(title: str, empty: str | None, size: int) -> None:
    if size:
        answers.line()
        answers.print(f"{title}", style="bold")
    elif empty:
        answers.line()
        answers.print(f"{empty}", style="bold")


def _local(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000).astimezone():%Y-%m-%d %H:%M %Z}"
