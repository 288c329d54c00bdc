"""``clusterscape trace``: why a distributed training step is slow. ``report`` needs the profiler's files alone and no server; the
commands on traces that are kept are in ``trace_store.py`` and ``trace_diff.py``.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape.cli import trace_diff, trace_store
from clusterscape.cli.options import JsonOption, SchedulerOption
from clusterscape.cli.output import answers, errors, print_json
from clusterscape.errors import SourceError

if TYPE_CHECKING:
    from clusterscape.analyze.trace.report import TraceReport

BOOTSTRAP_SEED = 0  # the same files always give the same intervals

app = typer.Typer(help="Traces of distributed training runs.", no_args_is_help=True)
app.command("import")(trace_store.import_trace)
app.command("list")(trace_store.list_traces)
app.command("delete")(trace_store.delete_trace)
app.command("diff")(trace_diff.diff_traces)


@app.command("report")
def report_trace(
    paths: Annotated[
        list[Path], typer.Argument(help="Trace files, folders or tar archives of one run.", metavar="DIR_OR_FILES...")
    ],
    html: Annotated[Path | None, typer.Option(help="Also write the report as a page of its own.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Files read at once.", show_default="one per core")] = None,
    scheduler: SchedulerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a step is slow: ranks, alignment, breakdown, collectives, bubble, critical path, what-if, verdicts."""
    from clusterscape.analyze.trace.document import write_report
    from clusterscape.cli.trace_text import print_report

    document = write_report(_analyze(paths, workers, scheduler, quiet=as_json))
    if html is not None:
        from clusterscape.cli.trace_page import write_page

        try:
            html.write_text(write_page(document), encoding="utf-8")
        except OSError as error:
            raise SourceError(f"{html} cannot be written: {error.strerror}", hint="Name another file.") from error
    if as_json:
        print_json(document)
        return
    print_report(document)
    if html is not None:
        answers.line()
        answers.print(f"Written to {html}.", highlight=False, soft_wrap=True)


def _analyze(paths: list[Path], workers: int | None, scheduler: str | None, *, quiet: bool) -> "TraceReport":
    import numpy as np
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.analyze.trace.report import analyze_trace
    from clusterscape.runtime.trace_reading import read_anywhere

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=quiet) as progress:
        task = progress.add_task("Reading traces", total=None)

        def tell_read(done: int, total: int, name: str) -> None:
            progress.update(task, completed=done, total=total, description=f"Read {name}")

        def tell_step(what: str) -> None:
            progress.update(task, description=what[:1].upper() + what[1:])

        trace = read_anywhere(paths, scheduler, workers=workers, progress=tell_read)
        return analyze_trace(trace, np.random.default_rng(BOOTSTRAP_SEED), tell_step)
