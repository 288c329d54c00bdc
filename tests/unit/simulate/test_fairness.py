"""Fairness and starvation, worked out by hand."""

import numpy as np
import pytest

from clusterscape.simulate.fairness import compare_sizes, compute_jain


def test_index_is_one_when_users_fare_alike_and_falls_when_one_has_it_all() -> None:
    users = np.array([0, 0, 1])
    assert compute_jain(np.array([1.0, 3.0, 2.0]), users) == pytest.approx(1.0)
    assert compute_jain(np.array([0.0, 0.0, 5.0]), users) == pytest.approx(0.5)
    assert compute_jain(np.zeros(3), users) == 1.0
    assert compute_jain(np.zeros(0), np.zeros(0, np.int64)) is None


def test_classes_double_and_starved_ones_are_told_when_waits_are_compared() -> None:
    size = np.array([1, 1, 2, 3, 4, 9])
    wait = np.array([20_000, 20_000, 10, 10, 10, 10])
    found = compare_sizes(wait, size, np.array([100, 100, 10, 10, 10, 10]))
    assert [(one.low, one.high, one.jobs) for one in found] == [(1, 1, 2), (2, 2, 1), (3, 4, 2), (9, 16, 1)]
    assert [one.is_starved for one in found] == [True, False, False, False]
    assert found[0].reference_max_s == 100
    assert not any(one.is_starved for one in compare_sizes(wait, size))
