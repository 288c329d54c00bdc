import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import silhouette_samples

from clusterscape.analyze.diagnose.clustering import CutKind, cluster, compute_silhouettes, match_colors


def two_groups(rng: np.random.Generator, gpus: int = 64, few: int = 8, apart: float = 8.0) -> NDArray[np.float64]:
    points = rng.normal(size=(gpus, 3))
    points[:few, 0] += apart
    return points


def test_groups_are_found_when_they_are_apart() -> None:
    clustering = cluster(pdist(two_groups(np.random.default_rng(0), apart=12.0)))
    assert np.bincount(clustering.labels).tolist() == [56, 8]
    assert clustering.members(1).tolist() == list(range(8))
    assert clustering.cut is CutKind.AUTOMATIC
    assert clustering.silhouette is not None
    assert np.array_equal(
        clustering.labels == 1,
        hierarchy.fcluster(clustering.tree, clustering.height, "distance")
        != find_main(clustering.tree, clustering.height),
    )


def find_main(tree: NDArray[np.float64], height: float) -> int:
    return int(np.bincount(hierarchy.fcluster(tree, height, "distance")).argmax())


@pytest.mark.parametrize("method", ["average", "single", "complete", "ward", "centroid"])
def test_tree_equals_scipys_when_linkage_is_chosen(method: str) -> None:
    condensed = pdist(two_groups(np.random.default_rng(1)))
    clustering = cluster(condensed, linkage=method, count=5)  # type: ignore[arg-type]
    assert np.abs(clustering.tree - hierarchy.linkage(condensed, method)).max() < 1e-9
    assert clustering.count == 5


@pytest.mark.parametrize("dimensions", [1, 2, 20])
@pytest.mark.parametrize("gpus", [3, 8, 40])
def test_one_cluster_is_found_when_there_are_no_groups(dimensions: int, gpus: int) -> None:
    counts = [cluster(pdist(np.random.default_rng(seed).normal(size=(gpus, dimensions)))).count for seed in range(12)]
    assert sum(count > 1 for count in counts) <= 1


@pytest.mark.parametrize("spread", ["exponential", "lognormal", "uniform"])
def test_one_cluster_is_found_when_the_distribution_is_skewed(spread: str) -> None:
    draws = {
        "exponential": lambda rng: rng.exponential(size=64),
        "lognormal": lambda rng: rng.lognormal(0.0, 0.5, 64),
        "uniform": lambda rng: rng.random(64),
    }
    counts = [cluster(pdist(draws[spread](np.random.default_rng(seed))[:, None])).count for seed in range(20)]
    assert sum(count > 1 for count in counts) <= 1


@pytest.mark.parametrize("few", [2, 8, 20])
@pytest.mark.parametrize("dimensions", [1, 5])
def test_groups_are_found_when_they_are_beyond_any_tail(few: int, dimensions: int) -> None:
    separated = 0
    for seed in range(8):
        points = np.random.default_rng(seed).normal(size=(64, dimensions))
        points[:few, 0] += 12.0
        separated += np.array_equal(np.flatnonzero(cluster(pdist(points)).labels), np.arange(few))
    assert separated >= 7


def test_cut_follows_when_height_or_number_is_given() -> None:
    condensed = pdist(two_groups(np.random.default_rng(2)))
    by_number = cluster(condensed, count=3)
    by_height = cluster(condensed, height=by_number.height)
    assert by_number.cut is CutKind.COUNT
    assert by_height.cut is CutKind.HEIGHT
    assert np.array_equal(by_number.labels, by_height.labels)
    with pytest.raises(ValueError, match="not both"):
        cluster(condensed, count=2, height=1.0)


def test_result_is_the_same_when_repeated_or_gpus_are_reordered() -> None:
    points = two_groups(np.random.default_rng(3), apart=12.0)
    first, again = cluster(pdist(points)), cluster(pdist(points))
    assert np.array_equal(first.labels, again.labels)
    order = np.random.default_rng(4).permutation(len(points))
    assert np.array_equal(cluster(pdist(points[order])).labels, first.labels[order])


def test_silhouettes_equal_scikit_learns_when_gpus_stand_alone_or_together() -> None:
    points = two_groups(np.random.default_rng(5))
    labels = np.random.default_rng(6).integers(0, 4, len(points))
    labels[labels == 3] = 2
    labels[0] = 3
    condensed = pdist(points)
    expected = silhouette_samples(squareform(condensed), labels, metric="precomputed")
    assert np.abs(compute_silhouettes(condensed, labels) - expected).max() < 1e-9


def test_a_gpu_is_left_out_when_it_cannot_be_compared() -> None:
    square = squareform(pdist(two_groups(np.random.default_rng(7), gpus=20, few=5, apart=15.0)))
    square[3, :] = square[:, 3] = np.nan
    np.fill_diagonal(square, 0.0)
    clustering = cluster(squareform(square, checks=False))
    assert clustering.left_out.tolist() == [3]
    assert np.bincount(clustering.labels).tolist() == [15, 4]
    assert "1 of 20 GPUs" in clustering.notes[0]


def test_distance_is_estimated_when_only_one_pair_is_missing() -> None:
    square = squareform(pdist(two_groups(np.random.default_rng(8), gpus=20, few=5, apart=15.0)))
    square[0, 10] = square[10, 0] = np.nan
    clustering = cluster(squareform(square, checks=False))
    assert clustering.left_out.size == 0
    assert np.bincount(clustering.labels).tolist() == [15, 5]
    assert "estimated" in clustering.notes[0]


@pytest.mark.parametrize("gpus", [1, 2])
def test_one_cluster_is_found_when_there_are_very_few_gpus(gpus: int) -> None:
    clustering = cluster(pdist(np.arange(gpus, dtype=np.float64)[:, None]))
    assert clustering.labels.tolist() == [0] * gpus


def test_one_cluster_is_found_when_all_gpus_are_equal_or_nearer_than_noise() -> None:
    assert cluster(np.zeros(45)).count == 1
    points = np.repeat([[0.0], [1.0]], 10, axis=0)
    assert cluster(pdist(points), noise=2.0).count == 1
    assert cluster(pdist(points), noise=0.5).count == 2


def test_colors_stay_when_clusters_change_places() -> None:
    previous = np.array([0, 0, 0, 1, 1, 2])
    current = np.array([1, 1, 1, 0, 0, 2])
    assert match_colors(previous, current).tolist() == [1, 0, 2]
    split = np.array([0, 0, 3, 1, 1, 2])
    assert match_colors(previous, split).tolist() == [0, 1, 2, 3]
