"""Predictions on real logs: run times from elapsed time, and waits with intervals, compared with users' requests."""

import pytest
from servers.reference import reference_data

from clusterscape.analyze.jobs.features import select_ran_jobs
from clusterscape.analyze.jobs.runtime_report import PredictionReport, compare_predictors
from clusterscape.collect.job_traces import read_trace
from clusterscape.services.backtest.report import WaitReport, replay_jobs, report_waits
from clusterscape.services.backtest.running import BacktestChoices, backtest

MIRA_NODES = 49_152


def compare(log: str) -> PredictionReport:
    return compare_predictors(select_ran_jobs(read_trace(reference_data("sched", "alcf", f"{log}_lumos.csv.gz"))))


def test_elapsed_time_predicts_run_times_when_mira_jobs_ran_a_quarter_of_the_mean() -> None:
    report = compare("mira_2018")
    assert report.tested == 6753
    at_submission, later = report.tables
    accuracy = {row.name: row.accuracy.value for row in later.rows}
    assert accuracy["elapsed-aware"] >= 0.854
    assert accuracy["elapsed-aware"] > accuracy["LightGBM"] > accuracy["user request"]
    assert later.q90_under_ratio.value == pytest.approx(0.1, abs=0.03)
    assert at_submission.q90_under_ratio.value == pytest.approx(0.1, abs=0.03)
    accuracy = {row.name: row.accuracy.value for row in at_submission.rows}
    assert accuracy["user request"] == pytest.approx(0.617, abs=0.001)


def test_run_times_are_predicted_at_least_as_well_as_users_ask_when_jobs_of_thetagpu_run() -> None:
    later = compare("thetagpu_2023").tables[1]
    accuracy = {row.name: row.accuracy.value for row in later.rows}
    assert accuracy["user request"] == pytest.approx(0.800, abs=0.001)
    assert accuracy["elapsed-aware"] >= accuracy["user request"]
    assert later.q90_under_ratio.value == pytest.approx(0.1, abs=0.03)


def forecast(parts: tuple[str, ...], total: int | None) -> WaitReport:
    trace = read_trace(reference_data("sched", *parts))
    size = total or trace.total
    assert size
    jobs = replay_jobs(trace, size, recorded=False)
    return report_waits(backtest(jobs, size, BacktestChoices(sample=1500)), jobs)


# KTH: what running jobs have left decides there and is not known better; with their true ends it would be 0.08 of the plan's.
@pytest.mark.parametrize(
    ("parts", "total", "most"),
    [
        (("alcf", "mira_2018_lumos.csv.gz"), MIRA_NODES, 0.25),
        (("pwa", "SDSC-SP2.input.swf.gz"), None, 0.25),
        (("pwa", "CTC-SP2.input.swf.gz"), None, 0.25),
        (("pwa", "KTH-SP2.input.swf.gz"), None, 0.45),
    ],
    ids=["mira", "sdsc", "ctc", "kth"],
)
def test_intervals_keep_their_promise_and_beat_the_plan_when_waits_are_forecast(
    parts: tuple[str, ...], total: int | None, most: float
) -> None:
    report = forecast(parts, total)
    covered = {interval.nominal: interval.covered for interval in report.calibrated}
    assert 0.87 <= covered[0.9] <= 0.93
    assert covered[0.8] == pytest.approx(0.8, abs=0.05)
    assert report.error_ratio is not None
    assert report.error_ratio <= most
    assert report.guess_ratio is not None
    assert report.guess_ratio <= 1.05
