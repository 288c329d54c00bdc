"""Two metrics plotted against each other: outliers by Mahalanobis distance, and the density of points."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtr, chdtri

from clusterscape.model.arrays import Bools, Float64s, Int64s

RANK_TOLERANCE = 1e-6  # of the standardised covariance's largest eigenvalue
MIN_POINTS = 3
REWEIGHTING_TAIL = 0.025
REWEIGHTINGS = 3  # each removes most of the error of a fit to few points
STARTS, DRAWN = 100, 12  # starts of the MCD, and points drawn for each; three that are not collinear suffice
SINGULAR = 1e-8  # variance, in units of the metrics' spread


@dataclass(frozen=True, slots=True)
class Mahalanobis:
    """``squared`` distances (N,), NaN if a metric is missing; a point is outside if its distance exceeds ``cutoff``.

    ``rank``: number of independent directions (2; 1 for a line or one constant metric; 0 for a single point), the degrees of
    freedom of ``cutoff``. ``is_robust``: whether the robust estimate was used; ``notes`` describe special cases.
    """

    squared: Float64s
    cutoff: float
    is_outside: Bools
    center: Float64s
    covariance: Float64s
    rank: int
    is_robust: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Density:
    """Counts of points (y bins × x bins) over equal bins."""

    x_edges: Float64s
    y_edges: Float64s
    counts: Int64s


def compute_mahalanobis(
    x: Float64s,
    y: Float64s,
    *,
    significance: float = 0.001,
    robust: bool = False,
    max_fit_points: int = 1_500,
    seed: int = 0,
) -> Mahalanobis:
    """Squared Mahalanobis distances of the points (x, y), both (N,), and their chi-squared cut-off.

    For Gaussian data a share ``significance`` of points lies outside. ``robust`` estimates center and covariance by the minimum
    covariance determinant (Rousseeuw and Van Driessen 1999), which tolerates up to half of the points as outliers; it is fitted
    to at most ``max_fit_points`` evenly spaced points, reweighted over all points, and deterministic in ``seed``. For constant
    and collinear metrics, directions without spread are ignored.
    """
    from clusterscape.analyze.diagnose import kernels

    if not 0.0 < significance < 1.0:
        raise ValueError("significance must be between 0 and 1")
    x, y = (np.where(np.isinf(axis), np.nan, axis) if np.isinf(axis).any() else axis for axis in (x, y))
    x, y = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    count, mean, covariance = kernels.sum_moments(x, y)
    if count < MIN_POINTS:
        return _make_undecided(x.size, significance)
    # Standardized, so that watts and ratios have equal weight in the test for collinearity.
    scale = np.sqrt(np.diag(covariance))
    is_constant = scale <= 1e-7 * np.maximum(np.abs(mean), 1e-300)
    notes = [
        f"The {name} metric is constant; outliers are found in the other metric only."
        for name, c in zip("xy", is_constant, strict=True)
        if c
    ]
    scale = np.where(is_constant, 1.0, scale)
    standard = np.where(is_constant[:, None] | is_constant, 0.0, covariance / np.outer(scale, scale))
    variances, directions = np.linalg.eigh(standard)
    rank = int((variances > RANK_TOLERANCE).sum())
    if rank == 0:
        notes = ["Both metrics are constant: there are no outliers."]
    elif rank == 1 and not is_constant.any():
        notes.append("The two metrics are collinear; outliers are found along their line.")
    fit = _Fit(mean, scale, directions[:, 2 - rank :], np.zeros(rank), np.diag(variances[2 - rank :]))
    is_robust = False
    if robust and rank:
        fitted = _fit_robust(x, y, fit, max_fit_points, seed)
        if fitted is None:
            notes.append("More than half of the points are equal or on one line; the classic estimate is used.")
        else:
            fit, is_robust = fitted, True
    squared: Float64s = kernels.measure_distances(x, y, fit.center, fit.inverse)
    cutoff = float(chdtri(rank, significance)) if rank else np.inf
    return Mahalanobis(squared, cutoff, squared > cutoff, fit.center, fit.covariance, rank, is_robust, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Fit:
    """Center (rank,) and covariance of the points along the directions with spread.

    ``basis`` (2 × rank) are these directions, in the units of ``scale`` around ``offset``.
    """

    offset: Float64s
    scale: Float64s
    basis: Float64s
    location: Float64s
    inner: Float64s

    @property
    def center(self) -> Float64s:
        """Center (2,) in the metrics' units."""
        center: Float64s = self.offset + self.scale * (self.basis @ self.location)
        return center

    @property
    def covariance(self) -> Float64s:
        """Covariance (2 × 2) in the metrics' units."""
        covariance: Float64s = (self.basis @ self.inner @ self.basis.T) * np.outer(self.scale, self.scale)
        return covariance

    @property
    def inverse(self) -> Float64s:
        """Inverse of the covariance; 0 along directions without spread."""
        if self.location.size == 0:
            return np.zeros((2, 2))
        inverse: Float64s = (self.basis @ np.linalg.inv(self.inner) @ self.basis.T) / np.outer(self.scale, self.scale)
        return inverse

    def project(self, points: Float64s) -> Float64s:
        """(N × 2) in the metrics' units → (N × rank)."""
        projected: Float64s = ((points - self.offset) / self.scale) @ self.basis
        return projected


def _make_undecided(points: int, significance: float) -> Mahalanobis:
    note = f"Fewer than {MIN_POINTS} points have both metrics: too few to find outliers."
    nothing = np.full(points, np.nan)
    unknown = np.full((2, 2), np.nan)
    is_outside = np.zeros(points, np.bool_)
    return Mahalanobis(
        nothing, float(chdtri(2, significance)), is_outside, unknown[0], unknown, 0, False, (note,)
    )  # fmt: skip


def _fit_robust(x: Float64s, y: Float64s, classic: _Fit, most: int, seed: int) -> _Fit | None:
    """The MCD along the directions with spread; None if half of the points have no spread."""
    complete = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    chosen = complete[np.linspace(0, complete.size - 1, min(most, complete.size)).astype(np.int64)]
    points = classic.project(np.stack([x[chosen], y[chosen]], axis=1))
    rank = points.shape[1]
    half = _densest_half(points, seed) if rank == 2 else _shortest_half(points[:, 0])
    if half is None:
        return None
    location, inner = half
    centered = points - location
    squared = np.einsum("ij,jk,ik->i", centered, np.linalg.inv(inner), centered)
    # Consistency factor: the densest half of a Gaussian is narrower than the whole.
    inner = inner * float(np.median(squared)) / float(chdtri(rank, 0.5))
    fit = replace(classic, location=location, inner=inner)
    for _ in range(REWEIGHTINGS):
        fit = _reweight(x, y, fit)
    return fit


def _densest_half(points: Float64s, seed: int) -> tuple[Float64s, Float64s] | None:
    from clusterscape.analyze.diagnose import kernels

    draws = np.random.default_rng(seed).integers(0, len(points), (STARTS, DRAWN))
    location, inner, determinant = kernels.find_densest_half(np.ascontiguousarray(points), draws)
    return None if determinant < SINGULAR or np.linalg.eigvalsh(inner).min() < SINGULAR else (location, inner)


def _shortest_half(values: Float64s) -> tuple[Float64s, Float64s] | None:
    """The exact one-dimensional MCD: the half of the sorted values with the smallest variance."""
    ordered = np.sort(values)
    half = (ordered.size + 2) // 2
    sums, squares = (np.concatenate([[0.0], np.cumsum(terms)]) for terms in (ordered, ordered**2))
    means = (sums[half:] - sums[:-half]) / half
    variances = (squares[half:] - squares[:-half]) / half - means**2
    best = int(variances.argmin())
    if variances[best] < SINGULAR:
        return None
    return means[best : best + 1], variances[best : best + 1].reshape(1, 1)


def _reweight(x: Float64s, y: Float64s, fit: _Fit) -> _Fit:
    """Refit to all points that ``fit`` considers inside, made consistent for a Gaussian (Croux and Haesbroeck 1999)."""
    from clusterscape.analyze.diagnose import kernels

    rank = fit.location.size
    bound = float(chdtri(rank, REWEIGHTING_TAIL))
    count, mean, covariance = kernels.sum_inner_moments(x, y, fit.center, fit.inverse, bound)
    inner = fit.basis.T @ (covariance / np.outer(fit.scale, fit.scale)) @ fit.basis
    if count < MIN_POINTS or np.linalg.eigvalsh(inner).min() < SINGULAR:
        return fit
    factor = (1.0 - REWEIGHTING_TAIL) / chdtr(rank + 2, bound)
    return replace(fit, location=fit.project(mean[None, :])[0], inner=inner * factor)


def compute_density(
    x: Float64s,
    y: Float64s,
    *,
    x_bins: int = 256,
    y_bins: int = 256,
    x_domain: tuple[float, float] | None = None,
    y_domain: tuple[float, float] | None = None,
) -> Density:
    """Number of points (x, y) in each cell. Points that are missing (NaN) or outside the domain are ignored."""
    from clusterscape.analyze.diagnose import kernels

    x, y = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    x_edges, y_edges = _edges(x, x_bins, x_domain), _edges(y, y_bins, y_domain)
    return Density(x_edges, y_edges, kernels.density(x, y, x_edges, y_edges))


def _edges(values: Float64s, bins: int, domain: tuple[float, float] | None) -> Float64s:
    from clusterscape.analyze.diagnose import kernels

    low, high = kernels.find_bounds(values) if domain is None else domain
    if low > high:
        low, high = 0.0, 1.0
    if not low < high:
        low, high = low - 0.5, low + 0.5
    return np.linspace(low, high, bins + 1)
