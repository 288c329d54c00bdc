"""``clusterscape sched predict``: ways to predict run times, side by side on one job trace."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterscape.cli.options import JsonOption

if TYPE_CHECKING:
    from clusterscape.analyze.jobs.runtime_report import Interval, PredictionTable


def predict(
    trace: Annotated[Path, typer.Argument(help="A job trace of any known format, compressed or not.")],
    test: Annotated[float, typer.Option(min=0.05, max=0.9, help="Share of the jobs, the last, to test on.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    format: Annotated[str | None, typer.Option(help="Format of the trace.", show_default=False)] = None,
    timezone: Annotated[str, typer.Option(help="The zone of times that carry no offset.")] = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Learn run times from the first jobs of a trace and test on the last: accuracy and under-estimates of every way."""
    from clusterscape.analyze.jobs.features import take_jobs
    from clusterscape.analyze.jobs.runtime_report import compare_predictors
    from clusterscape.cli.output import answers, print_json
    from clusterscape.cli.sched_output import print_notes, run_with_progress
    from clusterscape.collect.job_traces import read_trace

    recorded = read_trace(trace, format, timezone=timezone)
    # A log without waits has no starts; then a job counts as started when it was submitted.
    starts = (recorded.frame["submit_s"] + recorded.frame["wait_s"].fill_null(0.0)).to_numpy()
    jobs = take_jobs(recorded, starts)
    report = run_with_progress(
        f"learning from {len(jobs):,} jobs", 1, lambda _: compare_predictors(jobs, test_share=test, seed=seed)
    )
    if as_json:
        print_json({"trace": recorded.name, **asdict(report), "notes": [asdict(note) for note in recorded.notes]})
        return
    answers.print(
        f"{recorded.name}: learned from {report.trained:,} jobs that had ended, tested on the last {report.tested:,}; "
        "accuracy is min/max of prediction and run, intervals are 95 %",
        highlight=False,
    )
    for table in report.tables:
        _print(table)
    print_notes(recorded.notes)


def _print(table: PredictionTable) -> None:
    from clusterscape.cli.output import answers, listing_table

    when = "at submission" if table.elapsed_s == 0 else f"after {table.elapsed_s:,.0f} s (a quarter of the mean run)"
    answers.line()
    answers.print(f"{when}, {table.jobs:,} jobs", highlight=False)
    shown = listing_table()
    for heading in ("", "accuracy", "ran longer than predicted"):
        shown.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(row.name, _interval(row.accuracy), _interval(row.under_ratio))
    shown.add_row("its 90 % quantile", "", _interval(table.q90_under_ratio))
    answers.print(shown, highlight=False)
    answers.print(f"its 90 % interval holds {_interval(table.interval_90_cover_ratio)} of the runs", highlight=False)


def _interval(value: Interval) -> str:
    return f"{value.value:.3f} ({value.low:.3f}–{value.high:.3f})"
