import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import pairwise

from clusterscape.analyze.diagnose.distances import Shape, compute_timeline_distances
from clusterscape.analyze.diagnose.samples import Grid


def grid_of(values: NDArray[np.float64]) -> Grid:
    return Grid(np.arange(len(values), dtype=np.float64), values, 1.0)


@pytest.mark.parametrize("shape", list(Shape))
def test_distances_equal_scipys_when_nothing_is_missing(shape: Shape) -> None:
    values = 500.0 + np.random.default_rng(0).normal(size=(120, 40)).cumsum(axis=0)
    result = compute_timeline_distances(grid_of(values), shape)
    assert np.abs(result.condensed - pdist(values.T, shape.value)).max() < 1e-9
    assert result.missing_pairs == 0


def test_euclidean_compares_common_points_when_there_are_gaps() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(80, 12))
    values[rng.random(values.shape) < 0.2] = np.nan
    expected = squareform(pairwise.nan_euclidean_distances(values.T), checks=False)
    assert np.abs(compute_timeline_distances(grid_of(values)).condensed - expected).max() < 1e-9


def test_correlation_compares_common_points_when_there_are_gaps() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(90, 6)).cumsum(axis=0)
    values[rng.random(values.shape) < 0.2] = np.nan
    distances = squareform(compute_timeline_distances(grid_of(values), Shape.CORRELATION).condensed)
    both = ~np.isnan(values[:, 1]) & ~np.isnan(values[:, 4])
    assert distances[1, 4] == pytest.approx(1.0 - np.corrcoef(values[both, 1], values[both, 4])[0, 1], abs=1e-9)


@pytest.mark.parametrize("shape", list(Shape))
def test_a_lag_is_forgiven_when_it_is_within_tolerance(shape: Shape) -> None:
    course = np.random.default_rng(3).normal(size=204)
    values = np.stack([course[4:204], course[1:201], course[0:200]], axis=1)
    strict = compute_timeline_distances(grid_of(values), shape).condensed
    tolerant = compute_timeline_distances(grid_of(values), shape, max_lag=3).condensed
    assert tolerant[0] == pytest.approx(0.0, abs=1e-6)
    assert tolerant[1] > 0.7 * strict[1]
    assert tolerant[2] == pytest.approx(0.0, abs=1e-6)


def test_pairs_are_missing_when_gpus_were_hardly_ever_measured_together() -> None:
    values = np.random.default_rng(4).normal(size=(100, 3))
    values[:90, 0] = np.nan
    values[20:, 1] = np.nan
    for shape in Shape:
        result = compute_timeline_distances(grid_of(values), shape)
        assert np.isnan(result.condensed).all()
        assert result.missing_pairs == 3


def test_a_constant_gpu_is_far_from_all_but_constant_ones_when_compared_by_correlation() -> None:
    values = np.random.default_rng(5).normal(size=(50, 4))
    values[:, [1, 3]] = [7.0, 0.0]
    result = compute_timeline_distances(grid_of(values), Shape.CORRELATION)
    distances = squareform(result.condensed)
    assert result.constant.tolist() == [1, 3]
    assert distances[1, 3] == 0.0
    assert distances[0, 1] == distances[2, 3] == 1.0


def test_there_are_no_distances_when_there_is_one_gpu() -> None:
    assert compute_timeline_distances(grid_of(np.ones((5, 1)))).condensed.size == 0
