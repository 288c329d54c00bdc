"""Samples sorted, resampled to one grid, and downsampled for a screen."""

import numpy as np
import pytest

from clusterscape.analyze.diagnose.samples import downsample, order_samples, resample


def test_times_are_sorted_and_noted_when_the_clock_was_set_back() -> None:
    ordered = order_samples([0, 30, 15, 45], {"power_watts": [[1.0], [3.0], [2.0], [4.0]]})
    assert ordered.times_ms.tolist() == [0, 15, 30, 45]
    assert ordered.metrics["power_watts"][:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert ordered.notes == ("The clock was set back once; samples are sorted by time.",)


def test_last_known_value_counts_when_times_repeat() -> None:
    ordered = order_samples([0, 0, 0, 5], {"m": [[1.0, 1.0], [2.0, np.nan], [np.nan, np.nan], [9.0, np.inf]]})
    assert ordered.times_ms.tolist() == [0, 5]
    assert ordered.metrics["m"][0].tolist() == [2.0, 1.0]
    assert np.isnan(ordered.metrics["m"][1, 1])
    assert ordered.notes == ("2 samples have a duplicate time; the last value counts.",)


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


def test_every_extreme_of_each_bucket_is_kept_when_points_are_many() -> None:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.integers(900, 1100, 30_000))
    values = rng.normal(size=(30_000, 5)).cumsum(axis=0)
    pixels = 300
    lines = downsample(times, values, pixels=pixels)
    edges = np.linspace(times[0], times[-1], pixels + 1)
    bucket = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, pixels - 1)
    for column in range(5):
        kept = slice(lines.offsets[column], lines.offsets[column + 1])
        assert kept.stop - kept.start <= 2 * pixels + 2
        points = set(zip(lines.times_ms[kept].tolist(), lines.values[kept].tolist(), strict=True))
        inner = [k for k in range(pixels) if np.abs(times[:, None] - edges[[k, k + 1]]).min() > 1]
        for k in inner:
            rows = np.flatnonzero(bucket == k)
            for row in (rows[values[rows, column].argmin()], rows[values[rows, column].argmax()]):
                assert (int(times[row]), float(values[row, column])) in points


def test_gaps_stay_gaps_when_samples_are_missing_or_times_jump() -> None:
    times = np.concatenate([np.arange(5_000), 20_000 + np.arange(5_000)]) * 1000
    values = np.sin(times / 1e5)[:, None].repeat(2, axis=1)
    values[1_000:1_200, 1] = np.nan
    lines = downsample(times, values, pixels=100)
    for column, gaps in ((0, 1), (1, 2)):
        part = slice(lines.offsets[column], lines.offsets[column + 1])
        at = np.flatnonzero(np.isnan(lines.values[part]))
        assert at.size == gaps
        assert 5_000_000 < lines.times_ms[part][at[-1]] < 20_000_000
    assert (np.diff(lines.times_ms[: lines.offsets[1]]) > 0).all()


def test_all_points_are_kept_when_they_are_few() -> None:
    times, values = np.arange(10) * 1000, np.arange(20.0).reshape(10, 2)
    lines = downsample(times, values, pixels=800)
    assert lines.offsets.tolist() == [0, 10, 20]
    assert lines.values.tolist() == [*values[:, 0], *values[:, 1]]


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 0)])
def test_lines_are_complete_when_there_are_few_points(shape: tuple[int, int]) -> None:
    lines = downsample(np.arange(shape[0]), np.ones(shape), pixels=10)
    assert lines.values.size == shape[0] * shape[1]
    assert lines.offsets.size == shape[1] + 1


def test_a_line_is_empty_when_its_gpu_has_no_sample() -> None:
    lines = downsample(np.arange(5), np.full((5, 1), np.nan), pixels=10)
    assert lines.offsets.tolist() == [0, 0]
