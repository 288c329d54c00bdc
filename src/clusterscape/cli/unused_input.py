"""Files of which less than half could be used: the command prints its result, then a warning, and exits with status 1."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusterscape.model.hangs import HangLook
    from clusterscape.model.jobs import JobTrace
    from clusterscape.model.spans import Trace

MOST_UNUSED = 0.5
_warnings: list[tuple[str, str]] = []


def read_job_trace(path: Path, format: str | None, timezone: str) -> "JobTrace":
    """Read a job trace for a command."""
    from clusterscape.collect.job_traces import read_trace

    trace = read_trace(path, format, timezone=timezone)
    if trace.unused_share > MOST_UNUSED:
        reason = trace.main_loss
        message = f"{path}: {trace.unused_share:.0%} of the file was not used" + (f"; {reason}" if reason else "")
        _warnings.append((message, "Correct or remove these rows; --format and --timezone say how a file is read."))
    return trace


def note_unread(trace: "Trace", name: str) -> None:
    """Note a trace of which less than half could be read."""
    if trace.unread_share > MOST_UNUSED:
        message = (
            f"{name}: {trace.unread_share:.0%} of the trace was not read; {trace.notes[-1] if trace.notes else ''}"
        )
        _warnings.append((message.rstrip("; "), "Copy the files again, or record them again."))


def note_lines(name: str, read: int, skipped: int) -> None:
    """Note a log of which less than half of the lines could be read."""
    if skipped > MOST_UNUSED * (read + skipped):
        message = (
            f"{name}: {skipped:,} of {read + skipped:,} lines do not have a time and as many columns as the header"
        )
        _warnings.append((message, "Is the file damaged, or are several logs in one?"))


def note_dumps(looks: "Sequence[HangLook]") -> None:
    """Note a hang of whose dumps less than half could be read."""
    share = looks[0].unread_share if looks else 0.0
    if share > MOST_UNUSED:
        _warnings.append((f"{share:.0%} of the dumps could not be read", "Copy the files again, or record them again."))


def watch(context: typer.Context) -> None:
    """Let the command exit with status 1 if it noted such a file."""
    _warnings.clear()
    context.call_on_close(_exit_if_unused)


def _exit_if_unused() -> None:
    error = sys.exc_info()[1]
    if not _warnings or not (error is None or isinstance(error, typer.Exit)):
        return
    from clusterscape.cli.output import stderr

    for message, hint in _warnings:
        stderr.print(f"warning: {message}", style="bold red", highlight=False, soft_wrap=True)
        stderr.print(hint, highlight=False, soft_wrap=True)
    _warnings.clear()
    raise typer.Exit(1)
