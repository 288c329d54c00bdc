"""Run times of whole traces, predicted as a site would have: no future, better than guessing, longer when exceeded."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from clusters.job_histories import MONDAY_S, make_trace

from clusterscape.analyze.jobs.runtime_estimates import CORRECTIONS, LearnedEstimates, predict_run_times
from clusterscape.model.jobs import JobTrace

METHODS: list[LearnedEstimates] = ["boosted", "elapsed-aware"]
JOBS = 2000


@pytest.fixture(scope="module")
def habits() -> JobTrace:
    """Users who repeat themselves: each asks for a day and runs a time of their own, or crashes early."""
    random = np.random.default_rng(3)
    user = random.integers(0, 8, JOBS)
    run_s = 600.0 * 2.0**user * random.uniform(0.95, 1.05, JOBS)
    crashes = random.random(JOBS) < 0.2
    return make_trace(
        submit_s=MONDAY_S + np.arange(JOBS) * 900.0,
        user=[f"user{code}" for code in user],
        wait_s=np.full(JOBS, 30.0),
        run_s=np.where(crashes, 60.0, run_s),
        requested_s=np.full(JOBS, 86_400.0),
        status=np.where(crashes, "failed", "completed").tolist(),
    )


@pytest.mark.parametrize("method", METHODS)
def test_run_times_are_predicted_better_than_by_the_limit_when_users_repeat_themselves(
    habits: JobTrace, method: LearnedEstimates
) -> None:
    predicted = predict_run_times(habits, method)[:, 0]
    run_s = habits.frame["run_s"].to_numpy()
    late = slice(JOBS // 2, None)
    accuracy = np.minimum(predicted, run_s)[late] / np.maximum(predicted, run_s)[late]
    by_limit = run_s[late] / 86_400.0
    assert accuracy.mean() > 2 * by_limit.mean()


@pytest.mark.parametrize("method", METHODS)
def test_no_prediction_knows_the_future_when_later_jobs_change(habits: JobTrace, method: LearnedEstimates) -> None:
    last = pl.int_range(JOBS) >= JOBS // 2
    changed = replace(
        habits, frame=habits.frame.with_columns(pl.when(last).then(7.0).otherwise("run_s").alias("run_s"))
    )
    before, after = predict_run_times(habits, method), predict_run_times(changed, method)
    # Jobs that end after the change began may know of it; those submitted days before cannot.
    assert np.array_equal(before[: JOBS // 2 - 300, 0], after[: JOBS // 2 - 300, 0])
    assert not np.array_equal(before[-50:, 0], after[-50:, 0])


def test_predictions_grow_when_jobs_outlive_them(habits: JobTrace) -> None:
    predictions = predict_run_times(habits, "elapsed-aware")
    assert predictions.shape == (JOBS, CORRECTIONS)
    run_s = habits.frame["run_s"].to_numpy()
    again = predictions[:, 1] > 0
    # Only those that outlived the first prediction were asked about again.
    assert again.any()
    assert np.array_equal(again, (predictions[:, 0] > 0) & (run_s > predictions[:, 0]))
    assert (predictions[again, 1] > predictions[again, 0]).all()


@pytest.mark.parametrize("method", METHODS)
def test_first_jobs_have_no_prediction_when_too_few_ended(habits: JobTrace, method: LearnedEstimates) -> None:
    assert (predict_run_times(habits, method)[:10] == 0).all()


def test_jobs_that_never_ran_have_no_prediction_when_the_trace_has_them(habits: JobTrace) -> None:
    frame = habits.frame.with_columns(pl.when(pl.int_range(JOBS) % 2 == 0).then(None).otherwise("run_s").alias("run_s"))
    predictions = predict_run_times(replace(habits, frame=frame), "boosted")
    assert (predictions[::2] == 0).all()
    assert (predictions[1::2][-100:] > 0).all()
