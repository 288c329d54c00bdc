"""Intervals compared with published numbers and with other implementations, and their coverage."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from clusterscape.analyze.jobs.intervals import (
    Resamples,
    measure_difference,
    measure_draws,
    measure_share,
    resample_medians,
)


@pytest.mark.parametrize(("hits", "total"), [(0, 20), (1, 29), (81, 263), (20, 20), (2007, 22508)])
def test_interval_is_wilsons_when_a_share_is_measured(hits: int, total: int) -> None:
    expected = stats.binomtest(hits, total).proportion_ci(method="wilson")
    share = measure_share(hits, total)
    assert share is not None
    assert share.value == pytest.approx(hits / total)
    assert (share.low, share.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_nothing_is_measured_when_there_are_no_jobs() -> None:
    assert measure_share(0, 0) is None


def test_difference_is_newcombes_when_two_shares_are_compared() -> None:
    # Newcombe (1998), table II, 56/70 against 48/80, method 10: 0.0524 to 0.3339.
    difference = measure_difference((48, 56), (80, 70))
    assert difference.value == pytest.approx(0.2)
    assert difference.low == pytest.approx(0.0524, abs=1e-4)
    assert difference.high == pytest.approx(0.3339, abs=1e-4)


def test_interval_covers_the_truth_when_jobs_of_a_user_are_alike() -> None:
    """Failure rates differ by user: resampling users covers the truth, Wilson's interval is far too narrow."""
    random = np.random.default_rng(5)
    covered = {"users": 0, "jobs": 0}
    rounds = 200
    for _ in range(rounds):
        user = np.repeat(np.arange(60), 40)
        fails = (random.random(user.size) < random.beta(1, 1, 60)[user]).astype(np.float64)
        draws = Resamples(user, random).shares(fails, np.ones(user.size))[:, 0]
        by_user, by_job = measure_draws(fails.mean(), draws), measure_share(fails.sum(), fails.size)
        for name, interval in (("users", by_user), ("jobs", by_job)):
            assert interval is not None
            assert interval.low is not None
            assert interval.high is not None
            covered[name] += interval.low <= 0.5 <= interval.high
    assert covered["users"] / rounds > 0.9
    assert covered["jobs"] / rounds < 0.6


def test_sums_are_exact_when_every_user_is_drawn_once() -> None:
    resamples = Resamples(np.array([0, 0, 1, -1]), np.random.default_rng(0))
    resamples._weights[:] = 1
    sums = resamples.sums(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 1, 1, -1]), 2)
    assert resamples.count == 3
    assert sums[0].tolist() == [1.0, 6.0]


def test_memory_is_bounded_and_the_interval_right_when_every_job_has_its_own_user() -> None:
    """Half a million users: 200 draws of each would take gigabytes."""
    users = 500_000
    fails = (np.arange(users) % 4 == 0).astype(float)
    tracemalloc.start()
    resamples = Resamples(np.arange(users), np.random.default_rng(0))
    shares = resamples.shares(fails, np.ones(users))[:, 0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 2**20
    assert resamples.draws == 200
    assert shares.mean() == pytest.approx(0.25, abs=0.001)
    # The standard error of the share of independent jobs.
    assert shares.std() == pytest.approx(np.sqrt(0.25 * 0.75 / users), rel=0.2)


def test_medians_scatter_as_theory_says_when_jobs_are_resampled() -> None:
    random = np.random.default_rng(2)
    values = random.normal(size=4001)
    by_job = resample_medians(values, None, random)
    by_user = resample_medians(values, Resamples(np.arange(4001), random), random)
    expected = np.sqrt(np.pi / 2 / 4001)
    assert by_job.std() == pytest.approx(expected, rel=0.15)
    assert by_user.std() == pytest.approx(expected, rel=0.25)
    assert np.median(by_user) == pytest.approx(np.median(values), abs=0.01)


def test_medians_are_missing_when_no_value_is_known() -> None:
    assert np.isnan(resample_medians(np.array([np.nan, np.nan]), None, np.random.default_rng(0))).all()
