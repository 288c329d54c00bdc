"""Forecasts on a trace: only past data is used, interrupted work resumes, and the report is complete."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from clusterscape.analyze.jobs.features import JobTable
from clusterscape.analyze.jobs.wait_guesses import GUESSES, SIMPLE
from clusterscape.errors import QueryError
from clusterscape.model.jobs import JOB_COLUMNS, JobTrace
from clusterscape.query.scheduling.wait_bins import name_queue, name_size
from clusterscape.services.backtest.forecasting import find_moment
from clusterscape.services.backtest.report import replay_jobs, report_waits
from clusterscape.services.backtest.running import BacktestChoices, backtest, fingerprint

TOTAL = 8
CHOICES = BacktestChoices(sample=150, futures=16, oracles=20)


@pytest.fixture(scope="module")
def jobs() -> JobTable:
    """A busy machine whose users run a tenth of the requested time."""
    random = np.random.default_rng(5)
    count = 900
    user = random.integers(0, 4, count)
    run = np.maximum(1, 300.0 * (user + 1) * random.lognormal(0, 0.3, count)).round()
    frame = pl.DataFrame(
        {
            "line": np.arange(count),
            "job_id": [str(number) for number in range(count)],
            "user": [f"u{number}" for number in user],
            "submit_s": np.sort(random.uniform(0, count * 420, count)).round(),
            "run_s": run,
            "processors": random.integers(1, 8, count),
            "requested_s": run * 10,
            "status": ["completed"] * count,
        }
    )
    missing = [pl.lit(None, kind).alias(name) for name, kind in JOB_COLUMNS.items() if name not in frame.columns]
    frame = frame.with_columns(missing).select(list(JOB_COLUMNS)).cast(pl.Schema(JOB_COLUMNS))
    return replay_jobs(JobTrace("planted", "swf", frame, "processors", TOTAL), TOTAL, recorded=False)


def test_the_plan_says_at_once_when_and_only_when_a_job_starts_at_once(jobs: JobTable) -> None:
    from clusterscape.simulate.backtest import plan_waits

    for row in range(0, len(jobs), 7):
        moment = find_moment(jobs, row, TOTAL)
        assert moment.waiting[-1] == row
        assert moment.state.running_size.sum() <= TOTAL
        assert (plan_waits(moment.state)[-1] == 0) == (jobs.start_s[row] == jobs.submit_s[row])


def test_forecasts_beat_the_plan_and_repeat_when_users_ask_for_too_much(jobs: JobTable) -> None:
    forecasts = backtest(jobs, TOTAL, CHOICES)
    report = report_waits(forecasts, jobs)
    assert report.error_ratio is not None
    assert report.error_ratio < 0.5
    assert 0.75 < report.calibrated[-1].covered <= 1
    assert sum(row.jobs for row in report.bins) == report.jobs
    assert sum(share.ratio for share in report.chosen) == pytest.approx(1)
    assert [guess.name for guess in report.guesses] == list(GUESSES[SIMPLE])
    assert {guess.error_s for guess in report.guesses if guess.name == "plan by limits"} == {report.plan_error_s}
    assert sum(quarter.jobs for quarter in report.quarters) == report.jobs
    assert report.all_within_600_ratio is not None
    assert report.within_60_ratio <= report.within_600_ratio < report.all_within_600_ratio
    assert report_waits(forecasts, jobs, recorded=True).all_within_60_ratio is None
    # With the true run times and the true later jobs, the simulation of the same policy is exact.
    oracles = {oracle.name: oracle.error_s for oracle in report.oracles}
    assert oracles["both"] == 0
    assert report.oracle_error_s is not None
    assert oracles["perfect run times"] < report.oracle_error_s
    again = backtest(jobs, TOTAL, CHOICES)
    assert (again.quantiles_s == forecasts.quantiles_s).all()


def test_backtest_resumes_when_it_was_interrupted(jobs: JobTable, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, _: int) -> None:
        if done >= 60:
            raise StopError

    checkpoint = tmp_path / "waits.npz"
    with pytest.raises(StopError):
        backtest(jobs, TOTAL, CHOICES, checkpoint=checkpoint, progress=stop)
    values: list[int] = []
    resumed = backtest(jobs, TOTAL, CHOICES, checkpoint=checkpoint, progress=lambda done, _: values.append(done))
    assert values[0] > 60
    assert (resumed.quantiles_s == backtest(jobs, TOTAL, CHOICES).quantiles_s).all()
    assert fingerprint(jobs, TOTAL, CHOICES) != fingerprint(jobs, TOTAL + 1, CHOICES)


def test_recorded_waits_are_refused_when_a_trace_has_none() -> None:
    frame = pl.DataFrame(schema=JOB_COLUMNS)
    with pytest.raises(QueryError, match="records no waits"):
        replay_jobs(JobTrace("empty", "swf", frame, "processors", 4), 4, recorded=True)


def test_bins_have_words_when_they_are_shown() -> None:
    assert [name_size(bin) for bin in range(4)] == ["under 2 %", "2–10 %", "10–30 %", "from 30 %"]
    assert [name_queue(bin) for bin in range(4)] == ["under 3 ahead", "3–11 ahead", "12–49 ahead", "50 or more ahead"]
