"""Distances between GPUs, by time series and by distribution."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import pairwise

from clusterscape.analyze.diagnose.distances import (
    Shape,
    compute_histograms,
    compute_jensen_shannon,
    compute_sampling_noise,
    compute_timeline_distances,
)
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


def test_histograms_equal_numpys_when_values_are_whole_or_broken() -> None:
    rng = np.random.default_rng(1)
    values = np.where(rng.random((700, 9)) < 0.5, rng.integers(0, 101, (700, 9)) / 100.0, rng.random((700, 9)))
    histograms = compute_histograms(values, bins=50)
    for column in range(9):
        expected, edges = np.histogram(values[:, column], 50, (values.min(), values.max()))
        assert np.array_equal(histograms.counts[column], expected)
        assert np.array_equal(histograms.edges, edges)


def test_missing_samples_are_left_out_when_a_gpu_has_gaps_or_nothing() -> None:
    values = np.array([[1.0, np.nan, np.nan], [3.0, 2.0, np.nan]])
    histograms = compute_histograms(values, bins=2)
    assert histograms.counts.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert histograms.empty.tolist() == [2]


def test_no_sample_disappears_when_it_lies_outside_the_domain() -> None:
    histograms = compute_histograms(np.array([[-0.5], [0.1], [1.02]]), bins=4, domain=(0.0, 1.0))
    assert histograms.counts.tolist() == [[2, 0, 0, 1]]


def test_bins_have_a_width_when_all_values_are_equal_or_missing() -> None:
    assert compute_histograms(np.full((3, 2), 7.0), bins=2).counts.tolist() == [[0, 3], [0, 3]]
    assert compute_histograms(np.full((3, 2), np.nan), bins=2).counts.sum() == 0


@pytest.mark.parametrize("kind", ["dense", "sparse", "counts", "disjoint"])
def test_jensen_shannon_equals_scipys_when_rows_have_weight(kind: str) -> None:
    rng = np.random.default_rng(2)
    weights = rng.random((60, 100))
    if kind == "sparse":
        weights *= rng.random((60, 100)) < 0.2
    if kind == "counts":
        weights = np.floor(weights**8 * 40.0)
    if kind == "disjoint":
        weights = np.zeros((60, 100))
        weights[np.arange(60), np.arange(60) % 7 * 14] = 3.0
    weights[:, 0] += 1e-3
    assert np.abs(compute_jensen_shannon(weights) - pdist(weights, "jensenshannon")).max() < 1e-9


def test_jensen_shannon_keeps_its_precision_when_rows_are_nearly_equal() -> None:
    base = np.random.default_rng(3).random(64)
    weights = np.stack([base, base, base * (1 + 1e-7 * np.arange(64)), base * (1 + 1e-4 * np.arange(64))])
    assert np.abs(compute_jensen_shannon(weights) - pdist(weights, "jensenshannon")).max() < 1e-9
    assert compute_jensen_shannon(weights)[0] == 0.0


def test_distances_are_missing_when_a_row_has_no_weight() -> None:
    condensed = compute_jensen_shannon(np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 2.0]]))
    assert np.isnan(condensed).tolist() == [True, False, True]
    assert compute_jensen_shannon(np.ones((1, 5))).size == 0


def test_sampling_noise_is_the_distance_of_equals_when_samples_are_independent() -> None:
    samples = np.random.default_rng(4).random((2_000, 20))
    counts = compute_histograms(samples, bins=50).counts
    assert np.mean(compute_jensen_shannon(counts)) == pytest.approx(compute_sampling_noise(counts), rel=0.05)


@pytest.mark.parametrize("samples", [1, 240, 20_000, 40_320, 3_000_000])
def test_jensen_shannon_equals_scipys_when_all_histograms_count_as_many_samples(samples: int) -> None:
    rng = np.random.default_rng(5)
    counts = rng.multinomial(samples, rng.dirichlet(np.full(90, 0.3)), size=40)
    counts[1], counts[2] = counts[0], counts[0]
    moved = int(counts[2].argmax())
    counts[2, moved] -= 1
    counts[2, (moved + 1) % 90] += 1  # nearly equal: one sample moved to the next bin
    expected = pdist(counts.astype(np.float64), "jensenshannon")
    distances = compute_jensen_shannon(counts)
    assert np.abs(distances - expected).max() < 1e-9
    assert distances[0] == 0.0


def test_distances_are_missing_when_a_histogram_among_equal_totals_is_empty() -> None:
    condensed = compute_jensen_shannon(np.array([[1, 1], [0, 0], [0, 2]]))
    assert np.isnan(condensed).tolist() == [True, False, True]


@pytest.mark.parametrize("bins", [7, 512, 600])
def test_jensen_shannon_equals_scipys_when_bins_are_few_or_many_and_filled_in_runs(bins: int) -> None:
    rng = np.random.default_rng(6)
    weights = rng.random((30, bins)) * (rng.random((30, -(-bins // 16))) < 0.6).repeat(16, axis=1)[:, :bins]
    weights[:, 0] += 0.1
    weights[:2] = 1.0  # every block filled, and two equal rows
    assert np.abs(compute_jensen_shannon(weights) - pdist(weights, "jensenshannon")).max() < 1e-9
