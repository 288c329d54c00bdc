"""``clusterscape trace``: why a distributed training step is slow. ``report`` needs only the profiler's files; commands on stored
traces are in ``trace_store.py``.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clusterscape.cli import trace_store
from clusterscape.cli.options import OUTPUT, JsonOption, SchedulerOption, example
from clusterscape.cli.output import capture_text, print_json, stderr, stdout
from clusterscape.cli.unused_input import note_unread

if TYPE_CHECKING:
    from clusterscape.analyze.trace.document import PackedTrace
    from clusterscape.analyze.trace.report import TraceReport
    from clusterscape.model.traces import TraceAbout

BOOTSTRAP_SEED = 0  # the same files give the same intervals
GRAPH_MARGIN = 0.02
"""Fraction of the step that is drawn before and after it."""
GRAPH_PIXELS = (1600, 800, 400, 200)
"""Widths to try; spans closer than a pixel are merged."""
MAX_GRAPH_BYTES = 500_000
"""Size limit of a report's graph; a larger one is drawn with fewer pixels."""

app = typer.Typer(help="Analyze, store and compare traces of distributed training.", no_args_is_help=True)
app.command("import", epilog=example("clusterscape trace import traces/ --workload slurm:4711"))(
    trace_store.import_trace
)
app.command("list", epilog=example("clusterscape trace list --workload slurm:4711"))(trace_store.list_traces)
app.command("delete", epilog=example("clusterscape trace delete 3f9a1c"))(trace_store.delete_trace)
app.command("diff", epilog=example("clusterscape trace diff before/ after/"))(trace_store.diff_traces)


@app.command(
    "report",
    epilog=example(
        "clusterscape trace report traces/", "clusterscape trace report traces/*.json.gz --html report.html"
    ),
)
def report_trace(
    paths: Annotated[
        list[Path], typer.Argument(help="Trace files, folders or tar archives of one run.", metavar="DIR_OR_FILES...")
    ],
    html: Annotated[
        Path | None, typer.Option(help="Also write an HTML report, a single file.", rich_help_panel=OUTPUT)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Files to read in parallel.", show_default="one per core")
    ] = None,
    scheduler: SchedulerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Analyze why a training step is slow: verdicts, breakdown, collectives, bubble, critical path, what-ifs."""
    from clusterscape.analyze.trace.document import pack_trace
    from clusterscape.analyze.trace.document import write_report as write_document
    from clusterscape.cli.report import read_page, write_report
    from clusterscape.cli.trace_text import print_report

    if html is not None:
        read_page()  # fail before the work, not after it
    report = _analyze(paths, workers, scheduler, quiet=as_json)
    note_unread(report.trace, _name(paths))
    # One document for file and output: sums computed twice may differ in the last digit.
    packed = None if html is None else pack_trace(report)
    document = write_document(report) if packed is None else packed.document
    if html is not None and packed is not None:
        title = f"{document.format} trace, {len(document.ranks)} ranks, {len(document.steps)} steps"
        data = record_trace(packed, _name(paths))
        write_report(html, "trace", title, data, capture_text(lambda: print_report(document)))
    if as_json:
        print_json(document)
        return
    print_report(document)
    if html is not None:
        stdout.line()
        stdout.print(f"Report written to {html}.", highlight=False, soft_wrap=True)


def _name(paths: list[Path]) -> str:
    """The name of the file or folder; of several files, the name of their folder."""
    first = paths[0].resolve()
    return first.name if len(paths) == 1 else first.parent.name


def record_trace(packed: "PackedTrace", name: str) -> dict[str, Any]:
    """The data of a report: the trace, its steps, and the graph of the median step."""
    from clusterscape.cli.report import record_tables
    from clusterscape.model.ids import UnixMs
    from clusterscape.model.traces import TraceAbout, TraceState
    from clusterscape.query.traces.describing import describe_report, name_steps
    from clusterscape.serve.wire import to_ipc

    document = packed.document
    about = TraceAbout(
        trace_id="report",
        name=name,
        imported_at=UnixMs(int(time.time() * 1000)),
        state=TraceState.READY,
        format=document.format,
        ranks=len(document.ranks),
        steps=len(document.steps),
        spans=document.spans,
        extent_ns=packed.extent_ns,
        origin_ms=packed.origin_ms,
        stages={rank.rank: rank.stage for rank in document.ranks},
        notes=tuple(document.notes),
    )
    steps = record_tables(to_ipc(name_steps(packed.steps))) if packed.steps.height else None
    return {"trace": describe_report(about, document, {}), "steps": steps, "graph": _record_graph(packed, about)}


def _record_graph(packed: "PackedTrace", about: "TraceAbout") -> dict[str, Any] | None:
    """The graph at the highest resolution that fits the size limit; None if there is nothing to draw."""
    from clusterscape.analyze.trace.aggregate import Window
    from clusterscape.analyze.trace.drawn import DrawnTrace
    from clusterscape.analyze.trace.marey import draw_marey
    from clusterscape.cli.report import record_tables
    from clusterscape.serve.wire import join_tables

    steps = sorted(packed.document.steps, key=lambda step: step.length_s)
    if not steps or not packed.spans.height:
        return None
    typical = steps[(len(steps) - 1) // 2]
    margin_ns = (typical.end_ns - typical.start_ns) * GRAPH_MARGIN
    start_ns, end_ns = typical.start_ns - margin_ns, typical.end_ns + margin_ns
    level: Literal["stage", "rank"] = "stage" if len(set(about.stages.values())) > 1 else "rank"
    drawn = DrawnTrace(packed.spans, about.stages)
    for pixels in GRAPH_PIXELS:
        graph = draw_marey(drawn, Window(start_ns, end_ns, pixels), level=level)
        body, lengths = join_tables([graph.spans, graph.rows, graph.bands])
        recorded = record_tables(body, {"X-Tables": lengths})
        if len(recorded["body"]) <= MAX_GRAPH_BYTES:
            return {"marey": recorded, "from_ns": start_ns, "to_ns": end_ns}
    return None


def _analyze(paths: list[Path], workers: int | None, scheduler: str | None, *, quiet: bool) -> "TraceReport":
    import numpy as np
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from clusterscape.analyze.trace.report import analyze_trace
    from clusterscape.runtime.dask_cluster import read_trace_files

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True, disable=quiet) as progress:
        task = progress.add_task("Reading traces", total=None)

        def show_file(done: int, total: int, name: str) -> None:
            progress.update(task, completed=done, total=total, description=f"Read {name}")

        def show_stage(what: str) -> None:
            progress.update(task, description=what[:1].upper() + what[1:])

        trace = read_trace_files(paths, scheduler, workers=workers, progress=show_file)
        return analyze_trace(trace, np.random.default_rng(BOOTSTRAP_SEED), show_stage)
