import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from sklearn.covariance import MinCovDet

from clusterscape.analyze.diagnose.bivariate import compute_density, compute_mahalanobis


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("significance", [0.05, 0.01, 0.001])
def test_exceedance_is_theorys_when_points_are_gaussian(robust: bool, significance: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(400.0, 50.0, 200_000)
    y = 0.002 * x + rng.normal(0.0, 0.05, x.size)
    distances = compute_mahalanobis(x, y, significance=significance, robust=robust)
    error = 4.0 * (significance / x.size) ** 0.5 + 0.02 * significance
    assert distances.is_outside.mean() == pytest.approx(significance, abs=error)
    assert distances.cutoff == pytest.approx(-2.0 * np.log(significance))
    assert distances.is_robust is robust
    assert not distances.notes


def test_distances_equal_scipys_when_the_estimate_is_classic() -> None:
    points = np.random.default_rng(1).normal(size=(50, 2)) @ [[1.0, 0.4], [0.0, 2.0]]
    distances = compute_mahalanobis(points[:, 0], points[:, 1])
    inverse = np.linalg.inv(np.cov(points, rowvar=False, bias=True))
    expected = [mahalanobis(point, points.mean(axis=0), inverse) ** 2 for point in points]
    assert np.abs(distances.squared - expected).max() < 1e-9


def test_outliers_do_not_hide_each_other_when_the_estimate_is_robust() -> None:
    points = np.random.default_rng(2).normal(size=(2_000, 2))
    points[:400] = np.random.default_rng(3).normal(8.0, 0.3, (400, 2))
    classic = compute_mahalanobis(points[:, 0], points[:, 1], significance=0.001)
    robust = compute_mahalanobis(points[:, 0], points[:, 1], significance=0.001, robust=True)
    assert classic.is_outside[:400].mean() < 0.1
    assert robust.is_outside[:400].all()
    assert robust.is_outside[400:].mean() < 0.01


@pytest.mark.parametrize("robust", [False, True])
def test_the_other_metric_is_judged_when_one_is_constant(robust: bool) -> None:
    x = np.random.default_rng(4).normal(size=20_000)
    distances = compute_mahalanobis(x, np.full(x.size, 3.0), significance=0.01, robust=robust)
    assert distances.rank == 1
    assert distances.is_outside.mean() == pytest.approx(0.01, abs=0.003)
    assert distances.notes == ("The y metric is constant; outliers are found in the other metric only.",)


@pytest.mark.parametrize("robust", [False, True])
def test_points_are_judged_along_the_line_when_metrics_are_collinear(robust: bool) -> None:
    x = np.random.default_rng(5).normal(size=20_000)
    distances = compute_mahalanobis(x, 700.0 * x + 3.0, significance=0.01, robust=robust)
    assert distances.rank == 1
    assert distances.is_outside.mean() == pytest.approx(0.01, abs=0.003)
    assert "collinear" in distances.notes[0]


def test_note_explains_no_outliers_when_both_are_constant_or_too_few() -> None:
    constant = compute_mahalanobis(np.ones(10), np.ones(10), robust=True)
    assert not constant.is_outside.any()
    assert "constant" in constant.notes[0]
    few = compute_mahalanobis(np.array([1.0, np.nan]), np.array([2.0, 3.0]))
    assert np.isnan(few.squared).all()
    assert "Fewer than 3" in few.notes[0]


def test_classic_estimate_is_used_and_noted_when_most_points_are_equal() -> None:
    rng = np.random.default_rng(6)
    is_busy = rng.random(3_000) < 0.7
    x = np.where(is_busy, 1.0, rng.random(3_000))
    distances = compute_mahalanobis(x, np.where(is_busy, 700.0, 100.0 + 500.0 * rng.random(3_000)), robust=True)
    assert not distances.is_robust
    assert "classic" in distances.notes[-1]


def test_missing_points_have_no_distance_when_a_metric_is_missing() -> None:
    x = np.random.default_rng(7).normal(size=100)
    x[10] = np.nan
    distances = compute_mahalanobis(x, np.random.default_rng(8).normal(size=100))
    assert np.flatnonzero(np.isnan(distances.squared)).tolist() == [10]
    assert not distances.is_outside[10]


def test_density_equals_numpys_when_points_are_many_and_some_missing() -> None:
    x, y = np.random.default_rng(9).normal(size=(2, 100_000))
    x[:50] = np.nan
    density = compute_density(x, y, x_bins=40, y_bins=30, x_domain=(-3.0, 3.0))
    expected, _, _ = np.histogram2d(y[50:], x[50:], bins=[density.y_edges, density.x_edges])
    assert np.abs(density.counts - expected).sum() <= 4
    assert compute_density(np.full(3, np.nan), np.full(3, np.nan)).counts.sum() == 0


def test_the_estimate_is_scikit_learns_when_a_third_of_the_points_lie_elsewhere() -> None:
    points = np.random.default_rng(10).normal(size=(1_500, 2)) @ [[1.0, 0.8], [0.0, 0.4]]
    points[:500] = np.random.default_rng(11).normal([6.0, -3.0], 0.5, (500, 2))
    distances = compute_mahalanobis(points[:, 0], points[:, 1], robust=True)
    model = MinCovDet(random_state=0).fit(points)
    assert distances.center == pytest.approx(model.location_, abs=0.05)
    assert distances.covariance == pytest.approx(model.covariance_, rel=0.15)
    # Ours is reweighted until it converges and is nearer to the true distribution.
    assert distances.covariance == pytest.approx(np.array([[1.0, 0.8], [0.8, 0.8]]), rel=0.06)


def test_result_is_the_same_when_repeated_or_in_other_units() -> None:
    x, y = np.random.default_rng(12).normal(size=(2, 5_000))
    first = compute_mahalanobis(x, y, robust=True)
    assert np.array_equal(first.squared, compute_mahalanobis(x, y, robust=True).squared)
    scaled = compute_mahalanobis(1e9 * x + 6e10, 1e-3 * y, robust=True)
    assert scaled.squared == pytest.approx(first.squared, rel=1e-6)
