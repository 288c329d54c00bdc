"""``clusterscape sched wait``: when a job would start on a running server, or how good such forecasts are on a job trace."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from clusterscape.cli.options import JsonOption, TokenOption
from clusterscape.errors import QueryError

if TYPE_CHECKING:
    from clusterscape.analyze.jobs.wait_intervals import Coverage
    from clusterscape.query.scheduling.backtest.report import WaitReport


def wait(
    trace: Annotated[Path | None, typer.Argument(help="A job trace to test forecasts on.", show_default=False)] = None,
    server: Annotated[
        str | None, typer.Option(help="Address of a running ClusterScape whose queue is asked.", show_default=False)
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs in all.")] = 1,
    hours: Annotated[float, typer.Option(min=0.01, help="Time limit.")] = 1.0,
    machine_type: Annotated[
        str | None,
        typer.Option(
            "--machine-type", "--gpu-model", help="Such as A100; its beginning is enough.", show_default=False
        ),
    ] = None,
    memory: Annotated[
        float | None, typer.Option(min=0.0, help="GiB on each node; smaller nodes do not count.", show_default=False)
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Whose former jobs tell how long it runs.", show_default=False)
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Only there.", show_default=False)] = None,
    processors: Annotated[
        int | None, typer.Option(min=1, help="Size of the trace's machine.", show_default="as the trace says")
    ] = None,
    sample: Annotated[int, typer.Option(min=50, help="Jobs of the trace to forecast.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Against the recorded waits, not those of a simulated FCFS with EASY.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(help="File that keeps what is done; goes on from there.", show_default=False)
    ] = None,
    format: Annotated[str | None, typer.Option(help="Format of the trace.", show_default=False)] = None,
    timezone: Annotated[str, typer.Option(help="The zone of times that carry no offset.")] = "UTC",
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say when a job would start if it were submitted now (--server), or test such forecasts on a job trace."""
    if (trace is None) == (server is None):
        raise QueryError("name either a job trace or --server", hint="Such as --server http://127.0.0.1:8321 --gpus 8.")
    if server is not None:
        asked = {"gpus": gpus, "hours": hours, "machine_type": machine_type, "memory_gib": memory or None}
        asked |= {"partition": partition, "user": user}
        _ask(server, {key: value for key, value in asked.items() if value is not None}, token, as_json=as_json)
    elif trace is not None:
        _test(trace, processors, sample, seed, resume, format, timezone, recorded=recorded, as_json=as_json)


def _ask(server: str, asked: dict[str, Any], token: str | None, *, as_json: bool) -> None:
    from clusterscape.cli.output import answers, print_json
    from clusterscape.cli.status import fetch

    answer = fetch(f"{server.rstrip('/')}/api/v1/scheduling/wait?{urlencode(asked)}", token)
    if as_json:
        print_json(answer)
        return
    answers.print(describe_start(answer["start"], answer["at"]), highlight=False, soft_wrap=True)
    for other in answer["alternatives"]:
        answers.print(f"  or {describe_start(other['start'], answer['at'])}", highlight=False, soft_wrap=True)
    if answer["calibrated_on"] == 0:
        answers.print(
            "Intervals are not calibrated yet: too few forecasts have come due.", style="dim", highlight=False
        )
    if not answer["is_learned"]:
        answers.print("Too few jobs have ended to learn run times: these are rough.", style="yellow", highlight=False)


def describe_start(start: dict[str, Any], now_ms: int) -> str:
    """Such as ``8 × A100 for 4 h in gpu: likely starts 14:10–16:40 (90 %: 13:50–18:20)``, in local time."""
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


def _test(
    path: Path,
    processors: int | None,
    sample: int,
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
    from clusterscape.collect.job_traces import read_trace
    from clusterscape.model.samples import Int64s
    from clusterscape.query.scheduling.backtest.report import replay_jobs, report_waits
    from clusterscape.query.scheduling.backtest.running import BacktestChoices, WaitForecasts, backtest

    trace = read_trace(path, format, timezone=timezone)
    total = processors or trace.total
    if total is None:
        raise QueryError(
            f"{trace.name} does not say how large the machine is", hint=f"Give --processors, in {trace.size_unit}."
        )
    jobs = replay_jobs(trace, total, recorded=recorded)

    def work(done: Int64s) -> WaitForecasts:
        def count(now: int, _: int) -> None:
            done[0] = now

        return backtest(jobs, total, BacktestChoices(sample=sample, seed=seed), checkpoint=resume, progress=count)

    report = report_waits(run_with_progress(f"forecasting {sample:,} waits", sample, work), jobs)
    if as_json:
        about = {"trace": trace.name, "total": total, "unit": trace.size_unit, "recorded": recorded, "seed": seed}
        print_json(json.loads(json.dumps(about | asdict(report))))
        return
    _print(trace.name, report, recorded=recorded)
    print_notes(trace.notes)


def _print(name: str, report: WaitReport, *, recorded: bool) -> None:

    from clusterscape.cli.output import answers, listing_table

    world = "recorded waits" if recorded else "waits of a simulated FCFS with EASY"
    ratio = "" if report.error_ratio is None else f", {report.error_ratio:.2f} of it"
    for line in (
        f"{name}: {report.jobs:,} jobs of the last 30 % that had to wait ({world}; median {report.median_wait_s:,.0f} s)",
        f"median error {report.error_s:,.0f} s; of the plan from user limits {report.plan_error_s:,.0f} s{ratio}",
        f"intervals hold {_covers(report.calibrated)} (as sampled {_covers(report.sampled)}); "
        f"the 90 % one is {report.median_width_90_s:,.0f} s wide (median)",
    ):
        answers.print(line, highlight=False, soft_wrap=True)
    table = listing_table()
    for heading in ("of the machine", "queue", "jobs", "median error, s"):
        table.add_column(heading, justify="left" if heading in ("of the machine", "queue") else "right", no_wrap=True)
    for row in report.bins:
        table.add_row(row.size, row.queue, f"{row.jobs:,}", f"{row.median_error_s:,.0f}")
    answers.print(table, highlight=False)


def _covers(found: list[Coverage]) -> str:
    return ", ".join(f"{one.nominal:.0%}: {one.covered:.1%}" for one in found)
