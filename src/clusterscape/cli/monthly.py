"""``clusterscape report``: the usage of a month or another period as a page to print or to send, HTML or PDF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from clusterscape.cli.options import DEFAULT_URL, OUTPUT, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import capture_text, print_json, stdout
from clusterscape.cli.usage import ProjectOption, TimezoneOption, UserOption


def monthly(
    month: Annotated[
        str | None,
        typer.Option("--month", "--period", help="2026-10, or 2026, 2026-Q4, 2026-W42 …", show_default="this month"),
    ] = None,
    project: ProjectOption = None,
    user: UserOption = None,
    timezone: TimezoneOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write: .html or .pdf.", show_default="print", rich_help_panel=OUTPUT
        ),
    ] = None,
    as_json: JsonOption = False,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Report the usage of a month: findings, GPU-hours, waits and money, compared with the months before."""
    from clusterscape.errors import ClusterScapeError
    from clusterscape.remote import connect

    if output is not None and output.suffix.lower() not in (".html", ".pdf"):
        raise ClusterScapeError(f"{output} is neither .html nor .pdf", hint="Name the file report.html or report.pdf.")
    report = connect(url, token).get("/usage/report", period=month, project=project, user=user, timezone=timezone)
    if as_json:
        print_json(report)
        return
    if output is None:
        _print_report(report)
        return
    from clusterscape.cli.report import write_report

    summary = capture_text(lambda: _print_report(report))
    title = _title(report)
    if output.suffix.lower() == ".html":
        write_report(output, "usage", title, {"report": report}, summary)
    else:
        from clusterscape.cli.pdf import print_pdf

        print_pdf(output, lambda page: write_report(page, "usage", title, {"report": report}, summary))
    stdout.print(f"Report written to {output}.", highlight=False, soft_wrap=True)


def _title(report: dict[str, Any]) -> str:
    whose = ", ".join(name for name in (report["project"], report["user"]) if name) or report["cluster"]
    return f"Usage of {whose}, {report['parts'][0]['name']}"


def _print_report(report: dict[str, Any]) -> None:
    from clusterscape.cli.usage import print_usage

    stdout.print(_title(report), style="bold", highlight=False)
    for finding in report["findings"]:
        stdout.print(f"- {finding['text']}", highlight=False)
    stdout.print("")
    print_usage(report["parts"][0], has_steps=False)
