import numpy as np
import pytest

from clusterscape.analyze.diagnose.downsample import downsample


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
def test_lines_are_short_or_empty_when_there_is_hardly_anything(shape: tuple[int, int]) -> None:
    lines = downsample(np.arange(shape[0]), np.ones(shape), pixels=10)
    assert lines.values.size == shape[0] * shape[1]
    assert lines.offsets.size == shape[1] + 1


def test_a_line_is_empty_when_its_gpu_has_no_sample() -> None:
    lines = downsample(np.arange(5), np.full((5, 1), np.nan), pixels=10)
    assert lines.offsets.tolist() == [0, 0]
