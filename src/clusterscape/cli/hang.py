"""``clusterscape hang``: who hangs, where and why, from dumps or by looking at a job's processes. Needs no server."""

import shutil
import socket
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from clusterscape.cli.options import OUTPUT, JsonOption, example
from clusterscape.cli.output import capture_text, print_json, stderr, stdout
from clusterscape.errors import StoreError
from clusterscape.model.hangs import HangKind, HangVerdict

STYLES = {HangKind.SLOW: "bold green", HangKind.UNKNOWN: "bold yellow"}
EPILOG = example(
    "clusterscape hang dumps/",
    "clusterscape hang 4711",
    "clusterscape hang http://node-1:25999",
)


def hang(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Folders or files of dumps, whatever their names; two of a rank are two looks. Or your own Slurm job or "
            "`pid:4711` on this machine, or the URL of PyTorch's debug server: looked at twice.",
            metavar="DUMPS_OR_JOB...",
        ),
    ],
    apart_s: Annotated[
        float, typer.Option("--apart", min=0.1, help="Seconds between two looks; at least two steps of the run.")
    ] = 5.0,
    save: Annotated[
        Path | None, typer.Option(help="Keep the looks in this folder, below the host's name.", rich_help_panel=OUTPUT)
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Also write an HTML report, a single file.", rich_help_panel=OUTPUT)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find out who hangs in a distributed run, where in the code, and why."""
    from clusterscape.analyze.hang.picture import report_hang
    from clusterscape.cli.report import read_page, write_report
    from clusterscape.cli.unused_input import note_dumps
    from clusterscape.collect.hangs.reading import read_looks

    if html is not None:
        read_page()  # fail before the work, not after it
    with tempfile.TemporaryDirectory() as folder:
        paths = [path for source in sources for path in _find_looks(source, Path(folder), apart_s, save)]
        looks = read_looks(paths)
    note_dumps(looks)
    report = report_hang(looks)
    if html is not None:
        summary = capture_text(lambda: _print(report.verdict, report.looks))
        write_report(html, "hang", report.verdict.title, {"report": report}, summary)
    if as_json:
        print_json(report)
        return
    _print(report.verdict, report.looks)
    if html is not None:
        stdout.print(f"Report written to {html}.", highlight=False, soft_wrap=True)


def _find_looks(source: str, folder: Path, apart_s: float, save: Path | None) -> list[Path]:
    path = Path(source)
    is_name = "/" not in source and "." not in source
    if path.exists() or not (is_name or source.startswith(("http://", "https://"))):
        return [path]
    from clusterscape.cli.hang_looks import look_at_debug_server, look_at_job

    if "://" in source:
        looks = look_at_debug_server(source, folder / "server", apart_s)
    else:
        looks = look_at_job(source.removeprefix("slurm:"), folder / "job", apart_s, _tell)
    if save is not None:
        kept = save / socket.gethostname()
        try:
            for look in looks:
                shutil.copytree(look, kept / look.name, dirs_exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write to {kept}: {error.strerror}", hint="Choose another folder.") from None
        _tell(f"Looks kept in {kept}. With those of all nodes: clusterscape hang {save}")
    return looks


def _tell(line: str) -> None:
    stderr.print(line, style="dim", highlight=False, soft_wrap=True)


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
