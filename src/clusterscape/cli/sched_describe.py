"""``clusterscape sched describe``: job traces in words, JSON, or a report, which ``sched_describe_page.py`` writes."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterscape.cli.options import DEFAULT_URL, JsonOption, TokenOption, UrlOption
from clusterscape.errors import QueryError

if TYPE_CHECKING:
    from clusterscape.model.jobs import JobTrace

MOST_TRACES = 4
OWN = "cluster"
_ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".csv", ".swf", ".txt", ".json", ".log")


def describe(
    traces: Annotated[
        list[str],
        typer.Argument(
            help="1 to 4 job traces, as `sched simulate` takes them; or `cluster`: a running server's history."
        ),
    ],
    html: Annotated[
        Path | None, typer.Option(help="Also write a report: one file, no server needed.", show_default=False)
    ] = None,
    total: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            help="Size of the machine, once for each trace in their order; 0: as the trace says.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of the traces, where it is not to be found out.", show_default=False)
    ] = None,
    timezone: Annotated[
        str, typer.Option(help="The zone of hours and weekdays, and of times that carry no offset.")
    ] = "UTC",
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe job traces, alone or side by side: run times, sizes, arrivals, occupation, waits, failures, users; and test
    what Zhang & Dai claim of such traces, each with effect, interval and verdict."""
    from clusterscape.cli.output import print_json
    from clusterscape.cli.sched_describe_text import print_description

    if len(traces) > MOST_TRACES:
        raise QueryError(f"{len(traces)} traces are too many", hint=f"Up to {MOST_TRACES} can stand side by side.")
    if total and len(total) != len(traces):
        raise QueryError(f"--total is given {len(total)} times for {len(traces)} traces", hint="Give it once for each.")
    if OWN in traces:
        document = _ask_server(traces, url, token, timezone)
    else:
        document = _describe_files(traces, total or [0] * len(traces), format, timezone)
    if html is not None:
        from clusterscape.cli.sched_describe_page import write_report

        write_report(html, document)
    if as_json:
        print_json(document)
        return
    print_description(document, html)


def _ask_server(traces: list[str], url: str, token: str | None, timezone: str) -> dict[str, Any]:
    from urllib.parse import quote

    from clusterscape.cli.status import fetch

    if traces != [OWN]:
        raise QueryError(
            "the history of a running server can only be described alone here",
            hint="Upload the other traces in the page to see them beside it.",
        )
    path = f"{url.rstrip('/')}/api/v1/job-traces/{OWN}/description?timezone={quote(timezone, safe='')}"
    found: dict[str, Any] = fetch(path, token)
    return found


def _describe_files(names: list[str], totals: list[int], format: str | None, timezone: str) -> dict[str, Any]:
    from clusterscape.analyze.jobs.describe import describe_traces
    from clusterscape.cli.sched_output import run_with_progress
    from clusterscape.model.samples import Int64s

    def work(done: Int64s) -> dict[str, Any]:
        traces = []
        for name, total, label in zip(names, totals, _labels(names), strict=True):
            trace = _read(Path(name), format, timezone)
            traces.append(replace(trace, name=label, total=total or trace.total))
            done[0] += 1

        def tell(count: int) -> None:
            done[0] = len(names) + count

        return asdict(describe_traces(traces, timezone=timezone, tell=tell))

    return run_with_progress("reading and describing", 2 * len(names), work)


def _read(path: Path, format: str | None, timezone: str) -> JobTrace:
    from clusterscape.collect.job_traces import read_trace

    return read_trace(path, format, timezone=timezone)


def _labels(names: list[str]) -> list[str]:
    """Names of files without their endings; those that are alike are numbered."""
    labels: list[str] = []
    for name in names:
        label = Path(name).name
        while label.lower().endswith(_ENDINGS):
            label = label[: label.rindex(".")]
        label = label or Path(name).name
        place = 2
        base = label
        while label in labels:
            label, place = f"{base} ({place})", place + 1
        labels.append(label)
    return labels
