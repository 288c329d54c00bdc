import numpy as np
import pytest

from clusterscape.analyze.diagnose.signals import find_change_point, find_dips, fit_growth, sum_increases

TIMES_S = np.arange(0.0, 30_000.0, 15.0)
RULE = {"min_depth": 0.15, "max_irregularity": 0.25}


def test_period_and_depth_are_found_when_dips_come_evenly() -> None:
    rng = np.random.default_rng(0)
    course = 0.95 + rng.normal(0, 0.01, TIMES_S.size)
    course[(TIMES_S % 1_200.0) < 60.0] = 0.35
    dips = find_dips(TIMES_S, course, min_dips=4, **RULE)
    assert dips is not None
    assert abs(dips.period_s - 1_200.0) <= dips.period_error_s + 1.0
    assert dips.period_error_s < 15.0
    assert dips.depth_low <= 0.6 + 0.02
    assert dips.depth == pytest.approx(0.6, abs=0.03)
    assert dips.share == pytest.approx(0.05 * 0.6 / 0.95, rel=0.1)


@pytest.mark.parametrize("kind", ["noise", "irregular", "few", "constant", "missing"])
def test_no_dips_are_found_when_they_do_not_come_evenly(kind: str) -> None:
    rng = np.random.default_rng(1)
    course = 0.9 + rng.normal(0, 0.02, TIMES_S.size)
    if kind == "irregular":
        for start in rng.choice(TIMES_S.size - 10, 15, replace=False):
            course[start : start + 4] = 0.3
    if kind == "few":
        course[[500, 1_000]] = 0.1
    if kind == "constant":
        course[:] = 1.0
    if kind == "missing":
        course[:] = np.nan
    assert find_dips(TIMES_S, course, min_dips=4, **RULE) is None


def test_change_is_within_its_interval_when_the_level_falls() -> None:
    hits = 0
    for seed in range(40):
        course = np.random.default_rng(seed).normal(0, 1.0, 300)
        course[:180] += 2.0
        change = find_change_point(course)
        assert change is not None
        hits += change.low <= 180 <= change.high
    assert hits >= 36


def test_there_is_no_change_when_values_are_too_few() -> None:
    assert find_change_point(np.array([1.0, 2.0, np.nan, 3.0])) is None


def test_slope_is_within_its_interval_when_memory_grows_with_jumps() -> None:
    course = 1e9 + 2e5 * TIMES_S + np.random.default_rng(2).normal(0, 2e8, TIMES_S.size)
    course[700:720] += 5e9
    growth = fit_growth(TIMES_S, course)
    assert growth is not None
    assert growth.low_per_s < 2e5 < growth.high_per_s
    assert growth.trend > 0.9
    constant = fit_growth(TIMES_S, np.ones(TIMES_S.size))
    assert constant is not None
    assert constant.per_s == 0.0


def test_increase_continues_when_a_counter_was_reset_or_has_gaps() -> None:
    counter = np.array([[1.0, 5.0], [4.0, np.nan], [1.0, 6.0], [2.0, np.nan]])
    assert sum_increases(counter).tolist() == [5.0, 1.0]
