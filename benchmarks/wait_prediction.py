"""Forecasts of waits: errors compared with the plan made from user limits, coverage of intervals, and the time of one answer.

Budgets: a quarter of the plan's median error and 87–93 % coverage of the 90 % interval on four real logs (left out where the
reference data is absent), 100 ms for a forecast with 100 waiting and 100 running jobs, after the first, which compiles.
Processor time is measured: forecasts run on one core. ``--sample N`` forecasts fewer jobs of each log.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.report import Report
from clusterscape.analyze.jobs.features import JobTable, RunHistory, to_job_table
from clusterscape.analyze.jobs.runtime_forest import train_forest
from clusterscape.collect.job_traces import read_trace
from clusterscape.services.backtest.forecasting import Forecaster, QueueState
from clusterscape.services.backtest.report import replay_jobs, report_waits
from clusterscape.services.backtest.running import BacktestChoices, backtest
from clusterscape.simulate.backtest import MachineState
from clusterscape.simulate.futures import PastArrivals

LOGS = {
    "Mira": (("sched", "alcf", "mira_2018_lumos.csv.gz"), 49_152),
    "SDSC-SP2": (("sched", "pwa", "SDSC-SP2.input.swf.gz"), None),
    "CTC-SP2": (("sched", "pwa", "CTC-SP2.input.swf.gz"), None),
    "KTH-SP2": (("sched", "pwa", "KTH-SP2.input.swf.gz"), None),
}
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


def measure_log(report: Report, name: str, parts: tuple[str, ...], total: int | None, sample: int) -> None:
    """Errors and coverage on the last 30 % of a log."""
    path = find_log(parts)
    if path is None:
        return
    trace = read_trace(path)
    size = total or trace.total or 1
    jobs = replay_jobs(trace, size, recorded=False)
    waits = report_waits(backtest(jobs, size, BacktestChoices(sample=sample)), jobs)
    plan = waits.plan_error_s
    report.add(f"{name}, {waits.jobs} jobs: median error", waits.error_s, "s", plan, "plan", budget=plan / 4)
    covered = {interval.nominal: interval.covered for interval in waits.calibrated}
    sampled = {interval.nominal: interval.covered for interval in waits.sampled}
    report.add(
        f"{name}: misses of the 90 % interval (7–13 %)", 100 * (1 - covered[0.9]), "%",
        100 * (1 - sampled[0.9]), "not calibrated", budget=13,
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=1500)
    options = parser.parse_args()
    report = Report(f"Forecasts of waits (load average {os.getloadavg()[0]:.1f})")
    measure_answer(report)
    for name, (parts, total) in LOGS.items():
        measure_log(report, name, parts, total, options.sample)
    report.publish()


if __name__ == "__main__":
    main()
