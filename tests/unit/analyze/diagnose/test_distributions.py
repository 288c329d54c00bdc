import numpy as np
import pytest
from scipy.spatial.distance import pdist

from clusterscape.analyze.diagnose.distributions import (
    compute_histograms,
    compute_jensen_shannon,
    compute_sampling_noise,
)


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
    counts[2, (moved + 1) % 90] += 1  # one sample of all is in the next bin: nearly equal
    expected = pdist(counts.astype(np.float64), "jensenshannon")
    found = compute_jensen_shannon(counts)
    assert np.abs(found - expected).max() < 1e-9
    assert found[0] == 0.0


def test_distances_are_missing_when_a_histogram_among_equal_totals_is_empty() -> None:
    condensed = compute_jensen_shannon(np.array([[1, 1], [0, 0], [0, 2]]))
    assert np.isnan(condensed).tolist() == [True, False, True]


@pytest.mark.parametrize("bins", [7, 512, 600])
def test_jensen_shannon_equals_scipys_when_bins_are_few_or_many_and_filled_in_runs(bins: int) -> None:
    rng = np.random.default_rng(6)
    weights = rng.random((30, bins)) * (rng.random((30, -(-bins // 16))) < 0.6).repeat(16, axis=1)[:, :bins]
    weights[:, 0] += 0.1
    weights[:2] = 1.0  # every block filled, and two rows alike
    assert np.abs(compute_jensen_shannon(weights) - pdist(weights, "jensenshannon")).max() < 1e-9
