"""``clusterscape hang``: who hangs, where and why, from dumps of a run that makes no steps. Needs no server."""

from pathlib import Path
from typing import Annotated

import typer

from clusterscape.cli.options import OUTPUT, JsonOption
from clusterscape.cli.output import capture_text, print_json, stderr, stdout
from clusterscape.model.hangs import HangKind, HangVerdict

STYLES = {HangKind.SLOW: "bold green", HangKind.UNKNOWN: "bold yellow"}


def hang(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Folders or files, whatever their names: Flight Recorder dumps, NCCL RAS answers, stacks of py-spy or "
            "faulthandler. Two of a rank are two looks.",
            metavar="DUMPS...",
        ),
    ],
    html: Annotated[
        Path | None, typer.Option(help="Also write an HTML report, a single file.", rich_help_panel=OUTPUT)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find out who hangs in a distributed run, where in the code, and why."""
    from clusterscape.analyze.hang.picture import report_hang
    from clusterscape.cli.report import read_page, write_report
    from clusterscape.collect.hangs.reading import read_looks

    if html is not None:
        read_page()  # fail before the work, not after it
    report = report_hang(read_looks(paths))
    if html is not None:
        summary = capture_text(lambda: _print(report.verdict, report.looks))
        write_report(html, "hang", report.verdict.title, {"report": report}, summary)
    if as_json:
        print_json(report)
        return
    _print(report.verdict, report.looks)
    if html is not None:
        stdout.print(f"Report written to {html}.", highlight=False, soft_wrap=True)


def _print(verdict: HangVerdict, looks: int) -> None:
    from clusterscape.cli.hang_text import group_lines, hang_lines, stack_lines

    for note in verdict.notes:
        stderr.print(note, style="yellow", highlight=False, soft_wrap=True)
    title, *facts = hang_lines(verdict)
    stdout.print(title, style=STYLES.get(verdict.kind, "bold red"), highlight=False, soft_wrap=True)
    for line in facts:
        stdout.print(line, highlight=False, soft_wrap=True)
    for heading, lines in (("Groups that wait", group_lines(verdict)), ("Stacks", stack_lines(verdict))):
        if lines:
            stdout.line()
            stdout.print(heading, style="bold")
            for line in lines:
                stdout.print(line, highlight=False, soft_wrap=True)
    stdout.line()
    read = "one look" if looks == 1 else f"{looks} looks"
    stdout.print(f"From {read} at {verdict.world_size or 'an unknown number of'} ranks.", style="dim", highlight=False)
