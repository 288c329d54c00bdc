"""Failures and user behavior in traces with planted effects."""

import numpy as np
import polars as pl
import pytest
from clusters.job_histories import make_trace, random_trace
from scipy import stats

from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.analyze.jobs.failures import describe_failures
from clusterscape.analyze.jobs.intervals import Resamples
from clusterscape.analyze.jobs.users import describe_users
from clusterscape.model.jobs import JobStatus


def test_shares_and_lost_hours_are_counted_when_ends_are_known() -> None:
    trace = make_trace(
        submit_s=[0, 1, 2, 3],
        run_s=[3600, 7200, 3600, 3600],
        size=[2, 1, 1, 1],
        user=["a", "a", "b", "b"],
        status=["failed", "cancelled", "completed", "unknown"],
    )
    failures = describe_failures(read_columns(trace), None)
    assert failures is not None
    assert failures.unknown_jobs == 1
    assert {status.status: (status.jobs, status.unit_hours) for status in failures.statuses} == {
        JobStatus.COMPLETED: (1, 1.0),
        JobStatus.FAILED: (1, 2.0),
        JobStatus.CANCELLED: (1, 2.0),
    }
    assert (failures.lost_unit_hours, failures.lost_share) == (4.0, 0.8)
    assert [(user.user, user.lost_unit_hours) for user in failures.users] == [("a", 4.0)]
    assert failures.worst_tenth_share == 1.0


def test_failures_are_missing_when_no_end_is_known() -> None:
    assert describe_failures(read_columns(make_trace(submit_s=[0, 1])), None) is None


def test_the_trend_is_found_when_larger_jobs_fail_more() -> None:
    jobs = read_columns(random_trace(3000, failure=(0.1, 0.2, 0.3)))
    failures = describe_failures(jobs, Resamples(jobs.user, np.random.default_rng(0)))
    assert failures is not None
    trend = failures.by_size
    assert trend.rise is not None
    assert trend.rise_by_user is not None
    assert trend.rise.value == pytest.approx(0.2, abs=0.05)
    assert trend.rise_by_user.is_above_zero
    assert trend.falls_at is None
    correlation = stats.spearmanr(jobs.size, jobs.is_unsuccessful).statistic
    assert trend.rank_correlation == pytest.approx(correlation)
    # Cochran and Armitage's z is √n times Pearson's correlation of class and outcome.
    pearson = np.corrcoef(np.log2(jobs.size), jobs.is_unsuccessful)[0, 1]
    assert trend.trend_z == pytest.approx(pearson * len(jobs) ** 0.5)


def test_repeats_are_found_when_a_user_runs_the_same_again() -> None:
    # User a: ten times about 100 s (within 10 % of their mean), then 11 single jobs; user b: two sizes never mix.
    runs = [100, 105, 95, 100, 102, 98, 100, 104, 96, 100, *(1000 * 2**power for power in range(11)), 50, 50]
    trace = make_trace(
        submit_s=range(len(runs)), run_s=runs, user=["a"] * 21 + ["b"] * 2, size=[1] * 21 + [1, 2], wait_s=[0] * 23
    )
    jobs = read_columns(trace)
    repetition = describe_users(jobs, np.zeros(len(jobs)), None, np.random.default_rng(0)).repetition
    assert repetition is not None
    assert (repetition.groups, repetition.users, repetition.jobs) == (1 + 11 + 2, 2, 23)
    assert repetition.cover[0] == pytest.approx((10 + 1) / 23)
    assert repetition.top_10_cover.value == pytest.approx((10 + 9 + 2) / 23)
    assert repetition.mean_user_cover == pytest.approx((19 / 21 + 1) / 2)


def test_groups_are_those_of_a_plain_loop_when_many_jobs_are_grouped() -> None:
    jobs = read_columns(random_trace(2000, users=5))
    repetition = describe_users(jobs, np.zeros(len(jobs)), None, np.random.default_rng(0)).repetition
    groups: dict[tuple[int, float], list[list[float]]] = {}
    for user, size, run in zip(jobs.user.tolist(), jobs.size.tolist(), jobs.run_s.tolist(), strict=True):
        kind = groups.setdefault((user, size), [])
        home = next((group for group in kind if abs(run - np.mean(group)) <= 0.1 * np.mean(group)), None)
        if home is None:
            kind.append([run])
        else:
            home.append(run)
    assert repetition is not None
    assert repetition.groups == sum(len(kind) for kind in groups.values())


def test_behavior_follows_the_queue_when_users_submit_less_to_a_long_one() -> None:
    queue = np.repeat([0.0, 10.0, 20.0], 100)
    trace = make_trace(
        submit_s=range(300),
        size=np.where(queue > 15, 1, 4),
        run_s=np.where(queue > 15, 50.0, 100.0),
        user=[f"u{code % 30}" for code in range(300)],
    )
    jobs = read_columns(trace)
    users = describe_users(jobs, queue, Resamples(jobs.user, np.random.default_rng(0)), np.random.default_rng(0))
    assert users.submission is not None
    assert [third.jobs for third in users.submission.thirds] == [100, 100, 100]
    assert users.submission.size_ratio is not None
    assert users.submission.run_ratio is not None
    assert (users.submission.size_ratio.value, users.submission.run_ratio.value) == (0.25, 0.5)


def test_run_time_by_status_is_paired_within_users_when_users_differ() -> None:
    """Every user's failed jobs run half as long; medians over all jobs would show the opposite."""
    rows = []
    for user in range(20):
        base = 10.0 * 2**user
        rows += [(f"u{user}", base, "completed")] * (5 if user < 10 else 40)
        rows += [(f"u{user}", base / 2, "failed")] * (40 if user > 15 else 5)
    frame = pl.DataFrame(rows, schema=["user", "run_s", "status"], orient="row")
    trace = make_trace(submit_s=range(len(rows)), user=frame["user"], run_s=frame["run_s"], status=frame["status"])
    jobs = read_columns(trace)
    users = describe_users(jobs, np.full(len(jobs), np.nan), None, np.random.default_rng(0))
    failed = next(run_time for run_time in users.run_time_by_status if run_time.status is JobStatus.FAILED)
    assert failed.users == 20
    assert failed.ratio_to_completed is not None
    assert failed.ratio_to_completed.value == pytest.approx(0.5)
    assert users.submission is None


def test_users_are_not_described_when_none_is_named() -> None:
    jobs = read_columns(make_trace(submit_s=[0, 1], run_s=[1, 1]))
    users = describe_users(jobs, np.array([0.0, 1.0]), None, np.random.default_rng(0))
    assert (users.users, users.repetition, users.run_time_by_status) == (None, None, [])
