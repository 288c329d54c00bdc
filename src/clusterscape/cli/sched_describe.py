"""``clusterscape sched describe``: statistics of job traces as text, JSON, or an HTML report."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from clusterscape.cli.options import (
    DEFAULT_URL,
    OUTPUT,
    FormatOption,
    JsonOption,
    TimezoneOption,
    TokenOption,
    UrlOption,
)
from clusterscape.cli.unused_input import read_job_trace
from clusterscape.errors import QueryError

MAX_TRACES = 4
SERVER_HISTORY = "cluster"
_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".csv", ".swf", ".txt", ".json", ".log")


def describe(
    traces: Annotated[
        list[str],
        typer.Argument(
            help="1 to 4 job traces, in the formats of `sched simulate`; or `cluster` for the history of a running server."
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option(help="Also write an HTML report, a single file.", show_default=False, rich_help_panel=OUTPUT),
    ] = None,
    total: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            help="Size of the machine, once per trace, in the same order; 0: from the trace.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = None,
    timezone: TimezoneOption = "UTC",
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe and compare job traces: run times, sizes, arrivals, utilization, waits, failures and users.

    Also tests the claims of Zhang & Dai about such traces, each with effect size, interval and verdict.
    """
    from clusterscape.cli.output import capture_text, print_json, stderr
    from clusterscape.cli.report import read_page, write_report
    from clusterscape.cli.sched_describe_text import print_description

    if len(traces) > MAX_TRACES:
        raise QueryError(f"too many traces: {len(traces)}", hint=f"At most {MAX_TRACES} traces can be compared.")
    if total and len(total) != len(traces):
        raise QueryError(
            f"--total is given {len(total)} times for {len(traces)} traces", hint="Give it once per trace."
        )
    if html is not None:
        read_page()  # fail before the work, not after it
    if SERVER_HISTORY in traces:
        document = _fetch_description(traces, url, token, timezone)
    else:
        document = _describe_files(traces, total or [0] * len(traces), format, timezone)
    if html is not None:
        title = f"Job traces: {', '.join(trace['name'] for trace in document['traces'])}"
        summary = capture_text(lambda: print_description(document))
        write_report(html, "job-traces", title, {"description": document}, summary)
    if as_json:
        print_json(document)
        return
    print_description(document)
    if html is not None:
        stderr.print(f"Report written to {html}.", style="dim", highlight=False, soft_wrap=True)


def _fetch_description(traces: list[str], url: str, token: str | None, timezone: str) -> dict[str, Any]:
    from urllib.parse import quote

    from clusterscape.cli.status import fetch

    if traces != [SERVER_HISTORY]:
        raise QueryError(
            "the history of a server cannot be compared with other traces here",
            hint="Upload the other traces on the page to compare them.",
        )
    path = f"{url.rstrip('/')}/api/v1/job-traces/{SERVER_HISTORY}/description?timezone={quote(timezone, safe='')}"
    description: dict[str, Any] = fetch(path, token)
    return description


def _describe_files(names: list[str], totals: list[int], format: str | None, timezone: str) -> dict[str, Any]:
    from clusterscape.analyze.jobs.describe import describe_traces
    from clusterscape.cli.sched_output import run_with_progress
    from clusterscape.model.arrays import Int64s

    def work(done: Int64s) -> dict[str, Any]:
        traces = []
        for name, total, label in zip(names, totals, _labels(names), strict=True):
            trace = read_job_trace(Path(name), format, timezone)
            traces.append(replace(trace, name=label, total=total or trace.total))
            done[0] += 1

        def show_progress(count: int) -> None:
            done[0] = len(names) + count

        return asdict(describe_traces(traces, timezone=timezone, on_progress=show_progress))

    return run_with_progress("reading and describing", 2 * len(names), work)


def _labels(names: list[str]) -> list[str]:
    """File names without suffixes; duplicates are numbered."""
    labels: list[str] = []
    for name in names:
        label = Path(name).name
        while label.lower().endswith(_SUFFIXES):
            label = label[: label.rindex(".")]
        label = label or Path(name).name
        number = 2
        base = label
        while label in labels:
            label, number = f"{base} ({number})", number + 1
        labels.append(label)
    return labels
