"""``clusterscape sched predict`` compares predictors of run times on a job trace; ``wait`` forecasts when a job would start on a
running server, and backtests such forecasts on a job trace.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from clusterscape.cli.options import CONNECTION, URL_VARIABLE, FormatOption, JsonOption, TimezoneOption, TokenOption
from clusterscape.errors import QueryError

if TYPE_CHECKING:
    from clusterscape.analyze.jobs.runtime_report import Interval, PredictionTable
    from clusterscape.analyze.jobs.wait_intervals import Coverage
    from clusterscape.services.backtest.report import GuessError, WaitReport

JOB = "Job to submit"
BACKTEST = "Backtest on a job trace"


def predict(
    trace: Annotated[Path, typer.Argument(help="Job trace in any supported format; may be compressed.")],
    test: Annotated[
        float, typer.Option(min=0.05, max=0.9, help="Fraction of the jobs to test on: the last ones.")
    ] = 0.3,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    format: FormatOption = None,
    timezone: TimezoneOption = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Compare predictors of run times: trained on the first jobs of a trace, tested on the last."""
    from clusterscape.analyze.jobs.features import find_starts, select_ran_jobs
    from clusterscape.analyze.jobs.runtime_report import compare_predictors
    from clusterscape.cli.output import print_json, stdout
    from clusterscape.cli.sched_output import print_notes, run_with_progress
    from clusterscape.cli.unused_input import read_job_trace

    recorded = read_job_trace(trace, format, timezone)
    jobs = select_ran_jobs(recorded, find_starts(recorded))
    report = run_with_progress(
        f"learning from {len(jobs):,} jobs", 1, lambda _: compare_predictors(jobs, test_share=test, seed=seed)
    )
    if as_json:
        print_json({"trace": recorded.name, **asdict(report), "notes": [asdict(note) for note in recorded.notes]})
        return
    stdout.print(
        f"{recorded.name}: learned from {report.trained:,} jobs that had ended, tested on the last {report.tested:,}; "
        "accuracy is min/max of prediction and run, intervals are 95 %",
        highlight=False,
    )
    for table in report.tables:
        _print_comparison(table)
    print_notes(recorded.notes)


def _print_comparison(table: PredictionTable) -> None:
    from clusterscape.cli.output import listing_table, stdout

    when = "at submission" if table.elapsed_s == 0 else f"after {table.elapsed_s:,.0f} s (a quarter of the mean run)"
    stdout.line()
    stdout.print(f"{when}, {table.jobs:,} jobs", highlight=False)
    rows = listing_table()
    for heading in ("", "accuracy", "ran longer than predicted"):
        rows.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in table.rows:
        rows.add_row(row.name, _interval(row.accuracy), _interval(row.under_ratio))
    rows.add_row("90 % quantile of elapsed-aware", "", _interval(table.q90_under_ratio))
    stdout.print(rows, highlight=False)
    shares = ", ".join(f"{share.name} {share.ratio:.0%}" for share in table.chosen)
    stdout.print(f"best lately: {shares}", highlight=False, soft_wrap=True)
    stdout.print(
        f"the 90 % interval of elapsed-aware holds {_interval(table.interval_90_cover_ratio)} of the runs",
        highlight=False,
    )


def _interval(value: Interval) -> str:
    return f"{value.value:.3f} ({value.low:.3f}–{value.high:.3f})"


def wait(
    trace: Annotated[
        Path | None, typer.Argument(help="Job trace to backtest forecasts on.", show_default=False)
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--url", help="URL of a running ClusterScape server.", show_default=False, rich_help_panel=CONNECTION
        ),
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="Total number of GPUs.", rich_help_panel=JOB)] = 1,
    hours: Annotated[float, typer.Option(min=0.01, help="Time limit, hours.", rich_help_panel=JOB)] = 1.0,
    machine_type: Annotated[
        str | None,
        typer.Option(
            "--machine-type",
            "--gpu-model",
            help="GPU model, or a prefix of it, such as A100.",
            show_default="any",
            rich_help_panel=JOB,
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(min=0.0, help="Memory per node, GiB.", show_default="any", rich_help_panel=JOB),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="User whose past jobs predict the run time.", show_default="all users", rich_help_panel=JOB),
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Partition.", show_default="any", rich_help_panel=JOB)] = None,
    processors: Annotated[
        int | None,
        typer.Option(
            min=1, help="Size of the machine of the trace.", show_default="from the trace", rich_help_panel=BACKTEST
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=50, help="Number of jobs to forecast.", rich_help_panel=BACKTEST)] = 2000,
    oracles: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of tested jobs for which oracles with perfect run times and perfect arrivals are asked, too.",
            rich_help_panel=BACKTEST,
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded",
            help="Compare with recorded waits instead of simulated ones (FCFS with EASY).",
            rich_help_panel=BACKTEST,
        ),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Checkpoint file; resumes from it if it exists.", show_default=False, rich_help_panel=BACKTEST
        ),
    ] = None,
    format: FormatOption = None,
    timezone: TimezoneOption = "UTC",
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast when a job would start if submitted now (--url, or CLUSTERSCAPE_URL), or backtest forecasts on a job trace."""
    if trace is None and server is None:
        server = os.environ.get(URL_VARIABLE)
    if (trace is None) == (server is None):
        raise QueryError("give either a job trace or --url", hint="For example: --url http://127.0.0.1:8321 --gpus 8.")
    if server is not None:
        query = {"gpus": gpus, "hours": hours, "machine_type": machine_type, "memory_gib": memory or None}
        query |= {"partition": partition, "user": user}
        _print_forecast(
            server, {key: value for key, value in query.items() if value is not None}, token, as_json=as_json
        )
    elif trace is not None:
        _backtest(
            trace, processors, sample, oracles, seed, resume, format, timezone, recorded=recorded, as_json=as_json
        )


def _print_forecast(server: str, query: dict[str, Any], token: str | None, *, as_json: bool) -> None:
    from clusterscape.cli.output import print_json, stdout
    from clusterscape.cli.status import fetch

    forecast = fetch(f"{server.rstrip('/')}/api/v1/scheduling/wait?{urlencode(query)}", token)
    if as_json:
        print_json(forecast)
        return
    stdout.print(describe_start(forecast["start"], forecast["at"]), highlight=False, soft_wrap=True)
    stdout.print(f"  {forecast['start']['why']['text']}", style="dim", highlight=False, soft_wrap=True)
    for alternative in forecast["alternatives"]:
        stdout.print(f"  or {describe_start(alternative['start'], forecast['at'])}", highlight=False, soft_wrap=True)
    if forecast["calibrated_on"] == 0:
        stdout.print(
            "Intervals are not calibrated yet: too few forecast jobs have started.", style="dim", highlight=False
        )
    if not forecast["is_learned"]:
        stdout.print("Rough estimate: too few jobs have ended to predict run times.", style="yellow", highlight=False)


def describe_start(start: dict[str, Any], now_ms: int) -> str:
    """For example ``8 × A100 for 4 h in gpu: likely starts 14:10–16:40 (90 %: 13:50–18:20)``, in local time."""
    kind = start["machine_type"] or "GPU"
    what = f"{start['gpus']} × {kind} for {start['hours']:g} h in {start['partition']}"
    if start["is_at_once"]:
        return f"{what}: starts at once"
    likely, sure = start["intervals"]
    return f"{what}: likely starts {_span(likely, now_ms)} (90 %: {_span(sure, now_ms)}), {start['ahead']} ahead"


def _span(interval: dict[str, Any], now_ms: int) -> str:
    begin, end = _local(interval["from_at"]), _local(interval["to_at"])
    today = _local(now_ms).date()
    first = f"{begin:%H:%M}" if begin.date() == today else f"{begin:%a %H:%M}"
    return f"{first}–{end:%H:%M}" if end.date() == begin.date() else f"{first}–{end:%a %H:%M}"


def _local(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000).astimezone()


def _backtest(
    path: Path,
    processors: int | None,
    sample: int,
    oracles: int,
    seed: int,
    resume: Path | None,
    format: str | None,
    timezone: str,
    *,
    recorded: bool,
    as_json: bool,
) -> None:
    from clusterscape.cli.output import print_json
    from clusterscape.cli.sched_output import print_notes, run_with_progress
    from clusterscape.cli.unused_input import read_job_trace
    from clusterscape.model.arrays import Int64s
    from clusterscape.services.backtest.report import replay_jobs, report_waits
    from clusterscape.services.backtest.running import BacktestChoices, WaitForecasts, backtest

    trace = read_job_trace(path, format, timezone)
    total = processors or trace.total
    if total is None:
        raise QueryError(f"{trace.name} has no machine size", hint=f"Set it with --processors, in {trace.size_unit}.")
    jobs = replay_jobs(trace, total, recorded=recorded)

    def work(done: Int64s) -> WaitForecasts:
        def count(now: int, _: int) -> None:
            done[0] = now

        choices = BacktestChoices(sample=sample, seed=seed, oracles=oracles)
        return backtest(jobs, total, choices, checkpoint=resume, progress=count)

    forecasts = run_with_progress(f"forecasting {sample:,} waits", sample, work)
    report = report_waits(forecasts, jobs, recorded=recorded)
    if as_json:
        summary = {"trace": trace.name, "total": total, "unit": trace.size_unit, "recorded": recorded, "seed": seed}
        print_json(json.loads(json.dumps(summary | asdict(report))))
        return
    _print(trace.name, report, recorded=recorded)
    print_notes(trace.notes)


def _print(name: str, report: WaitReport, *, recorded: bool) -> None:
    from clusterscape.cli.output import listing_table, stdout
    from clusterscape.services.backtest.report import PUBLISHED_WITHIN_MINUTE

    reference = "recorded waits" if recorded else "waits of a simulated FCFS with EASY"
    ratio = "" if report.error_ratio is None else f", {report.error_ratio:.2f} of it"
    quarters = ", ".join(f"{quarter.covered:.0%} ({quarter.width_s:,.0f} s)" for quarter in report.quarters)
    published = ", ".join(f"{site} {share:.0%}" for site, share in PUBLISHED_WITHIN_MINUTE.items())
    all_jobs = "" if report.all_within_60_ratio is None or report.all_within_600_ratio is None else (
        f"; of all jobs, with those that start at once, {report.all_within_60_ratio:.0%} and {report.all_within_600_ratio:.0%}"
    )  # fmt: skip
    for line in (
        f"{name}: {report.jobs:,} jobs of the last 30 % that had to wait ({reference}; median {report.median_wait_s:,.0f} s)",
        f"median error {report.error_s:,.0f} s; of the plan from user limits {report.plan_error_s:,.0f} s{ratio}",
        f"simple guesses: {_list_errors(report.guesses)}",
        *(
            [f"oracles: {_list_errors(report.oracles)}, on jobs with an error of {report.oracle_error_s:,.0f} s"]
            if report.oracle_error_s is not None
            else []
        ),
        f"chosen: {', '.join(f'{share.name} {share.ratio:.0%}' for share in report.chosen)}",
        f"within 1 and 10 min: {report.within_60_ratio:.0%} and {report.within_600_ratio:.0%}{all_jobs} "
        f"(published, of all jobs within 1 min: {published})",
        f"intervals hold {_format_coverage(report.calibrated)} (as simulated {_format_coverage(report.sampled)}); "
        f"the 90 % one is {report.median_width_90_s:,.0f} s wide (median), too wide to be of use for {report.little_ratio:.0%}",
        f"the 90 % one by quarters of the time: {quarters}",
    ):
        stdout.print(line, highlight=False, soft_wrap=True)
    table = listing_table()
    for heading in ("of the machine", "queue", "jobs", "median error, s"):
        table.add_column(heading, justify="left" if heading in ("of the machine", "queue") else "right", no_wrap=True)
    for row in report.bins:
        table.add_row(row.size, row.queue, f"{row.jobs:,}", f"{row.median_error_s:,.0f}")
    stdout.print(table, highlight=False)


def _list_errors(errors: list[GuessError]) -> str:
    return ", ".join(f"{error.name} {error.error_s:,.0f} s" for error in errors)


def _format_coverage(coverages: list[Coverage]) -> str:
    return ", ".join(f"{coverage.nominal:.0%}: {coverage.covered:.1%}" for coverage in coverages)
