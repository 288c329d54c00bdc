"""Forecasts of waits on every reference log: errors compared with simple guesses and with oracles, coverage and width of the
90 % interval over time, and the time of one answer.

Budgets: at most 5 % worse than the best simple guess, 87–93 % coverage, 100 ms for a forecast with 100 waiting and 100 running
jobs, after the first, which compiles. Methods and constants were chosen on the logs marked "chosen on"; the others were held
back. Logs are left out where the reference data is absent. Processor time is measured: forecasts run on one core. ``--sample N``
forecasts fewer jobs of each log; ``--log NAME`` selects logs; ``--keep FOLDER`` (or FORECASTS_KEPT_AT) keeps the simulated
futures of each log, so that a next run only chooses among the guesses again. ``--regimes SEED``
also forecasts made-up logs, with the same budgets.
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.report import Report
from benchmarks.wait_regimes import REGIMES, make_log
from clusterscape.analyze.jobs.features import JobTable, RunHistory, to_job_table
from clusterscape.analyze.jobs.runtime_forest import train_forest
from clusterscape.collect.job_traces import read_trace
from clusterscape.model.jobs import JobTrace
from clusterscape.services.backtest.forecasting import Forecaster, QueueState
from clusterscape.services.backtest.report import PUBLISHED_WITHIN_MINUTE, WaitReport, replay_jobs, report_waits
from clusterscape.services.backtest.running import BacktestChoices, backtest
from clusterscape.simulate.backtest import MachineState
from clusterscape.simulate.futures import PastArrivals


@dataclass(frozen=True)
class Log:
    """A reference log. ``recorded``: its waits, else those of a simulated first come, first served with EASY."""

    name: str
    parts: tuple[str, ...]
    total: int | None
    recorded: bool
    chosen_on: bool


_MIRA, _THETA = ("sched", "alcf", "mira_2018_lumos.csv.gz"), ("sched", "alcf", "theta_2023_lumos.csv.gz")
_LANL = ("sched", "pwa", "LANL-CM5-1994-4.1-cln.swf.gz")
LOGS = (
    Log("Mira", _MIRA, 49_152, recorded=False, chosen_on=True),
    Log("Mira, recorded", _MIRA, 49_152, recorded=True, chosen_on=True),
    Log("Theta", _THETA, 4_392, recorded=False, chosen_on=True),
    Log("Theta, recorded", _THETA, 4_392, recorded=True, chosen_on=True),
    Log("ThetaGPU, recorded", ("sched", "alcf", "thetagpu_2023_lumos.csv.gz"), 24, recorded=True, chosen_on=True),
    Log("KTH-SP2", ("sched", "pwa", "KTH-SP2.input.swf.gz"), None, recorded=False, chosen_on=True),
    Log("SDSC-SP2", ("sched", "pwa", "SDSC-SP2.input.swf.gz"), None, recorded=False, chosen_on=False),
    Log("CTC-SP2", ("sched", "pwa", "CTC-SP2.input.swf.gz"), None, recorded=False, chosen_on=False),
    Log("LANL-CM5", _LANL, None, recorded=False, chosen_on=False),
    Log("LANL-CM5, recorded", _LANL, None, recorded=True, chosen_on=False),
    Log("Lublin 256", ("sched", "lublin", "lublin_256.swf.gz"), None, recorded=False, chosen_on=False),
    Log(
        "Philly, recorded",
        ("sched", "philly", "philly_df_schedule_lumos.csv.gz"),
        2_490,
        recorded=True,
        chosen_on=False,
    ),
)
KEPT_FORECASTS = "FORECASTS_KEPT_AT"
WORSE = 1.05
SECOND_S = 1.0
"""Waits are whole seconds: an error is not worse than another if it is within a second of it."""

WAITING = RUNNING = 100
TOTAL = 800


def find_log(parts: tuple[str, ...]) -> Path | None:
    """The file, where the reference data is."""
    folder = os.environ.get("CLUSTERSCAPE_REFERENCE_DATA")
    base = Path(folder) if folder else Path(__file__).parents[2] / "shared/data/reference"
    path = base.joinpath(*parts)
    return path if path.is_file() else None


def make_history(count: int = 20_000) -> JobTable:
    """Half a year of 50 users with habits."""
    random = np.random.default_rng(0)
    user = random.integers(0, 50, count)
    request = 3600.0 * random.integers(1, 25, count)
    submit = np.sort(random.uniform(0, 180 * 86_400, count))
    run = np.minimum(request, 600.0 * (1 + user) * random.lognormal(0, 0.8, count))
    return to_job_table(
        pl.DataFrame(
            {
                "user": [f"u{number}" for number in user],
                "project": [f"p{number % 7}" for number in user],
                "queue": ["gpu"] * count,
                "submit_s": submit,
                "start_s": submit + 600,
                "run_s": run,
                "size": 2.0 ** random.integers(0, 5, count),
                "requested_s": request,
                "status": ["completed"] * count,
            }
        )
    )


def measure_answer(report: Report) -> None:
    """One forecast with a hundred waiting jobs: for the last of them, and for all."""
    jobs = make_history()
    history = RunHistory(jobs)
    forest = train_forest(jobs, history, float(jobs.submit_s[-1]))
    past = PastArrivals(jobs.submit_s, jobs.end_s, jobs.run_s, jobs.request_s, jobs.size)
    rows = np.arange(len(jobs) - WAITING - RUNNING, len(jobs))
    encoded = history.encode(jobs).take(rows)
    elapsed = np.zeros(len(rows))
    elapsed[:RUNNING] = np.random.default_rng(1).uniform(0, 3600, RUNNING)
    size, limit = jobs.size[rows].astype(np.int64), jobs.request_s[rows].astype(np.int64)
    left = np.maximum(limit[:RUNNING] - elapsed[:RUNNING], 1).astype(np.int64)
    total = max(TOTAL, int(size[:RUNNING].sum()))
    state = MachineState(total, size[:RUNNING], left, size[RUNNING:], limit[RUNNING:])
    question = QueueState(state, encoded, float(jobs.submit_s[-1]), elapsed)
    forecaster = Forecaster(forest, past)
    last = np.zeros(WAITING, np.bool_)
    last[-1] = True
    for label, wanted in (("for the last job", last), ("for all jobs", None)):
        forecaster.forecast(question, wanted)
        seconds = []
        for _ in range(20):
            start = time.process_time()
            forecaster.forecast(question, wanted)
            seconds.append(time.process_time() - start)
        report.add(f"forecast {label} of {WAITING} waiting", float(np.median(seconds)) * 1000, "ms", budget=100)


def measure_log(report: Report, log: Log, choices: BacktestChoices, keep: Path | None) -> None:
    """Errors, coverage and width on the last 30 % of a log."""
    path = find_log(log.parts)
    if path is not None:
        measure_trace(report, log, read_trace(path), choices, keep)


def measure_trace(report: Report, log: Log, trace: JobTrace, choices: BacktestChoices, keep: Path | None) -> None:
    """The same for a log that is read."""
    size = log.total or trace.total or 1
    jobs = replay_jobs(trace, size, recorded=log.recorded)
    begin = time.process_time()
    kept = None if keep is None else keep / f"{log.name.replace(', ', '-').replace(' ', '-')}-{choices.sample}.npz"
    waits = report_waits(backtest(jobs, size, choices, checkpoint=kept), jobs, recorded=log.recorded)
    seconds = time.process_time() - begin
    best = min(waits.guesses, key=lambda guess: guess.error_s)
    limit = max(WORSE * best.error_s, best.error_s + SECOND_S)
    label = f"{log.name}, {waits.jobs} jobs"
    report.add(f"{label}: median error", waits.error_s, "s", best.error_s, best.name, budget=limit)
    covered = {interval.nominal: interval.covered for interval in waits.calibrated}
    sampled = {interval.nominal: interval.covered for interval in waits.sampled}
    report.add(
        f"{log.name}: misses of the 90 % interval (7–13 %)", 100 * (1 - covered[0.9]), "%",
        100 * (1 - sampled[0.9]), "simulated", budget=13,
    )  # fmt: skip
    farthest = max(abs(quarter.covered - 0.9) for quarter in waits.quarters)
    report.add(f"{log.name}: its coverage in the quarter farthest from 90 %", 100 * farthest, "points", budget=3)
    report.add(f"{log.name}: its median width", waits.median_width_90_s / 3600, "h")
    if waits.error_ratio is not None:
        report.add(f"{log.name}: median error ÷ that of the plan by limits", waits.error_ratio, "", budget=0.25)
    is_of_all = waits.all_within_60_ratio is not None
    within = waits.all_within_60_ratio if waits.all_within_60_ratio is not None else waits.within_60_ratio
    report.add(
        f"{log.name}: within 1 min, of {'all' if is_of_all else 'the waiting'} jobs", 100 * within, "%",
        100 * PUBLISHED_WITHIN_MINUTE["ARCHER2"], "ARCHER2", higher_is_better=True,
    )  # fmt: skip
    print_details(log, waits, seconds)


def print_details(log: Log, waits: WaitReport, seconds: float) -> None:
    """Everything that the table of budgets leaves out."""
    guesses = ", ".join(f"{guess.name} {guess.error_s:,.0f}" for guess in waits.guesses)
    oracles = ", ".join(f"{oracle.name} {oracle.error_s:,.0f}" for oracle in waits.oracles)
    quarters = ", ".join(f"{quarter.covered:.1%} ({quarter.width_s:,.0f} s)" for quarter in waits.quarters)
    shares = ", ".join(f"{share.name} {share.ratio:.0%}" for share in waits.chosen)
    of_all = "" if waits.all_within_60_ratio is None or waits.all_within_600_ratio is None else (
        f"; of all jobs {waits.all_within_60_ratio:.0%} and {waits.all_within_600_ratio:.0%}"
    )  # fmt: skip
    published = ", ".join(f"{name} {share:.0%}" for name, share in PUBLISHED_WITHIN_MINUTE.items())
    for line in (
        f"{log.name} ({'chosen on' if log.chosen_on else 'held back'}): {waits.jobs} jobs, "
        f"median wait {waits.median_wait_s:,.0f} s, {seconds:,.0f} s of processor time",
        f"  median error {waits.error_s:,.1f} s (mean {waits.mean_error_s:,.0f} s); {guesses}",
        f"  on the jobs of the oracles {waits.oracle_error_s or 0:,.1f} s; {oracles}",
        f"  90 % interval over time: {quarters}; too wide to be of use: {waits.little_ratio:.0%}",
        f"  within 1 and 10 min: {waits.within_60_ratio:.0%} and {waits.within_600_ratio:.0%}{of_all} (published: {published})",
        f"  chosen: {shares}",
    ):
        print(line, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=1500)
    parser.add_argument("--oracles", type=int, default=100)
    parser.add_argument("--log", action="append", help="name of a log; may be repeated")
    parser.add_argument(
        "--keep", type=Path, default=os.environ.get(KEPT_FORECASTS), help="folder of finished forecasts"
    )
    parser.add_argument("--regimes", type=int, metavar="SEED", help="also forecast the made-up logs of this seed")
    options = parser.parse_args()
    keep = None if options.keep is None else Path(options.keep)
    choices = BacktestChoices(sample=options.sample, oracles=options.oracles)
    report = Report(f"Forecasts of waits (load average {os.getloadavg()[0]:.1f})")
    measure_answer(report)
    for log in LOGS:
        if not options.log or log.name in options.log:
            measure_log(report, log, choices, keep)
    for regime in REGIMES if options.regimes is not None else ():
        name = f"{regime.__name__.replace('_', ' ')} ({options.regimes})"
        if not options.log or name in options.log:
            made = Log(name, (), None, recorded=True, chosen_on=False)
            measure_trace(report, made, make_log(regime, options.regimes), choices, keep)
    report.publish()


if __name__ == "__main__":
    main()
