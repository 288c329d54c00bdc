import numpy as np
import pytest

from clusterscape.analyze.diagnose.samples import order_samples, resample


def test_times_are_sorted_and_said_when_the_clock_was_set_back() -> None:
    ordered = order_samples([0, 30, 15, 45], {"power_watts": [[1.0], [3.0], [2.0], [4.0]]})
    assert ordered.times_ms.tolist() == [0, 15, 30, 45]
    assert ordered.metrics["power_watts"][:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert ordered.notes == ("The clock was set back once; samples are shown in the order of their times.",)


def test_last_known_value_counts_when_times_repeat() -> None:
    ordered = order_samples([0, 0, 0, 5], {"m": [[1.0, 1.0], [2.0, np.nan], [np.nan, np.nan], [9.0, np.inf]]})
    assert ordered.times_ms.tolist() == [0, 5]
    assert ordered.metrics["m"][0].tolist() == [2.0, 1.0]
    assert np.isnan(ordered.metrics["m"][1, 1])
    assert ordered.notes == ("2 samples have the time of another; the last counts.",)


def test_shapes_are_refused_when_they_do_not_fit() -> None:
    with pytest.raises(ValueError, match="expected"):
        order_samples([0, 1], {"m": [[1.0]]})
    with pytest.raises(ValueError, match="same"):
        order_samples([0], {"m": [[1.0]], "n": [[1.0, 2.0]]})


def test_means_of_steps_are_kept_when_a_course_is_longer_than_allowed() -> None:
    times = np.arange(1000) * 1000
    grid = resample(times, np.repeat(np.arange(10.0), 100)[:, None], max_points=100)
    assert grid.values.shape == (100, 1)
    assert np.diff(grid.times_ms) == pytest.approx(grid.step_ms)
    assert grid.values[50, 0] == pytest.approx(5.0, abs=0.1)


def test_empty_steps_are_missing_when_samples_have_a_gap() -> None:
    times = np.array([0, 10, 20, 60, 70])
    grid = resample(times, np.arange(5.0)[:, None])
    assert grid.values.shape == (8, 1)
    assert np.flatnonzero(np.isnan(grid.values[:, 0])).tolist() == [3, 4, 5]


def test_samples_stay_as_they_are_when_they_are_few_and_even() -> None:
    values = np.random.default_rng(0).random((50, 3))
    assert np.array_equal(resample(np.arange(50) * 15_000, values).values, values)
    assert resample(np.array([5]), values[:1]).values.shape == (1, 3)


def test_lost_samples_are_bridged_when_they_are_few_in_a_row() -> None:
    values = np.array([np.nan, 1.0, np.nan, 3.0, np.nan, np.nan, 6.0, np.nan, np.nan, np.nan, 10.0, np.nan])[:, None]
    grid = resample(np.arange(12) * 1000, values, bridged_steps=2)
    assert np.flatnonzero(np.isnan(grid.values[:, 0])).tolist() == [7, 8, 9]
    assert grid.values[[0, 11], 0].tolist() == [1.0, 10.0]
    assert grid.values[1:7, 0] == pytest.approx([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
