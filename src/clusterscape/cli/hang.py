"""``clusterscape hang``: who hangs, where and why, from dumps of a run that makes no steps. Needs no server."""

from pathlib import Path
from typing import Annotated

import typer

from clusterscape.cli.options import JsonOption
from clusterscape.cli.output import print_json, stderr, stdout
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
    as_json: JsonOption = False,
) -> None:
    """Find out who hangs in a distributed run, where in the code, and why."""
    from clusterscape.analyze.hang.verdict import judge_hang
    from clusterscape.cli.unused_input import note_dumps
    from clusterscape.collect.hangs.reading import read_looks

    looks = read_looks(paths)
    note_dumps(looks)
    verdict = judge_hang(looks)
    if as_json:
        print_json(verdict)
        return
    _print(verdict, len(looks))


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
