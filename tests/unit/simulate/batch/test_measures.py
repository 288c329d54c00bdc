"""Fairness and starvation, worked out by hand."""

import numpy as np
import pytest

from clusterscape.simulate.batch.measures import compare_sizes, compute_jain


def test_fairness_index_is_one_when_users_wait_equally_and_lower_when_they_do_not() -> None:
    users = np.array([0, 0, 1])
    assert compute_jain(np.array([1.0, 3.0, 2.0]), users) == pytest.approx(1.0)
    assert compute_jain(np.array([0.0, 0.0, 5.0]), users) == pytest.approx(0.5)
    assert compute_jain(np.zeros(3), users) == 1.0
    assert compute_jain(np.zeros(0), np.zeros(0, np.int64)) is None


def test_size_classes_double_and_starved_ones_are_reported_when_waits_are_compared() -> None:
    size = np.array([1, 1, 2, 3, 4, 9])
    wait = np.array([20_000, 20_000, 10, 10, 10, 10])
    classes = compare_sizes(wait, size, np.array([100, 100, 10, 10, 10, 10]))
    assert [(size_class.low, size_class.high, size_class.jobs) for size_class in classes] == [
        (1, 1, 2),
        (2, 2, 1),
        (3, 4, 2),
        (9, 16, 1),
    ]
    assert [size_class.is_starved for size_class in classes] == [True, False, False, False]
    assert classes[0].reference_max_s == 100
    assert not any(size_class.is_starved for size_class in compare_sizes(wait, size))
