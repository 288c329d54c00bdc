"""Two metrics against each other: which points lie outside the cloud (Mahalanobis), and how dense it is."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtr, chdtri

from clusterscape.analyze.diagnose.samples import Flags, Floats, Ints

RANK_TOLERANCE = 1e-6  # of the standardised covariance's largest eigenvalue
MIN_POINTS = 3
REWEIGHTING_TAIL = 0.025
REWEIGHTINGS = 3  # each takes away most of what the fit to a few points erred
STARTS, DRAWN = 100, 12  # of the MCD, and points drawn for each: three that do not lie on one line are enough
SINGULAR = 1e-8  # variance, in units of the metrics' own spread


@dataclass(frozen=True, slots=True)
class Mahalanobis:
    """``squared`` distances (N,), NaN where a metric is missing; a point is outside where it exceeds ``cutoff``.

    ``rank`` is the number of independent directions (2; 1 for a line or one constant metric; 0 for one place), the degrees
    of freedom of ``cutoff``. ``is_robust`` tells which estimate was used in the end; ``notes`` say what was special.
    """

    squared: Floats
    cutoff: float
    is_outside: Flags
    center: Floats
    covariance: Floats
    rank: int
    is_robust: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Density:
    """Counts of points (y bins × x bins) over equal bins."""

    x_edges: Floats
    y_edges: Floats
    counts: Ints


def compute_mahalanobis(
    x: Floats,
    y: Floats,
    *,
    significance: float = 0.001,
    robust: bool = False,
    max_fit_points: int = 1_500,
    seed: int = 0,
) -> Mahalanobis:
    """Squared Mahalanobis distances of the points (x, y), both (N,), and their chi-squared cut-off.

    For a Gaussian cloud a share ``significance`` of points lies outside. ``robust`` estimates center and covariance by the
    minimum covariance determinant (Rousseeuw and Van Driessen 1999), so that up to half of the points may be outliers
    without hiding; it is fitted to at most ``max_fit_points`` points, evenly taken, reweighted over all of them, and
    deterministic in ``seed``. Constant and collinear metrics are handled by leaving out directions without spread.
    """
    from clusterscape.analyze.diagnose import bivariate_kernels as kernels

    if not 0.0 < significance < 1.0:
        raise ValueError("significance lies between 0 and 1")
    x, y = (np.where(np.isinf(each), np.nan, each) if np.isinf(each).any() else each for each in (x, y))
    x, y = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    count, mean, covariance = kernels.sum_moments(x, y)
    if count < MIN_POINTS:
        return _undecided(x.size, significance)
    # In units of each metric's own spread, so that watts and ratios weigh the same in what counts as collinear.
    scale = np.sqrt(np.diag(covariance))
    is_constant = scale <= 1e-7 * np.maximum(np.abs(mean), 1e-300)
    notes = [
        f"The {name} metric is constant; only the other is judged."
        for name, c in zip("xy", is_constant, strict=True)
        if c
    ]
    scale = np.where(is_constant, 1.0, scale)
    standard = np.where(is_constant[:, None] | is_constant, 0.0, covariance / np.outer(scale, scale))
    variances, directions = np.linalg.eigh(standard)
    rank = int((variances > RANK_TOLERANCE).sum())
    if rank == 0:
        notes = ["Both metrics are constant: no point lies outside."]
    elif rank == 1 and not is_constant.any():
        notes.append("The two metrics are collinear: they say the same, and points are judged along their line.")
    fit = _Fit(mean, scale, directions[:, 2 - rank :], np.zeros(rank), np.diag(variances[2 - rank :]))
    is_robust = False
    if robust and rank:
        fitted = _fit_robust(x, y, fit, max_fit_points, seed)
        if fitted is None:
            notes.append("More than half of the points are the same or on one line; the classic estimate is used.")
        else:
            fit, is_robust = fitted, True
    squared: Floats = kernels.measure_distances(x, y, fit.center, fit.inverse)
    cutoff = float(chdtri(rank, significance)) if rank else np.inf
    return Mahalanobis(squared, cutoff, squared > cutoff, fit.center, fit.covariance, rank, is_robust, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Fit:
    """Center (rank,) and covariance of a cloud along the directions that have spread.

    ``basis`` (2 × rank) are these directions, in the units of ``scale`` around ``offset``.
    """

    offset: Floats
    scale: Floats
    basis: Floats
    location: Floats
    inner: Floats

    @property
    def center(self) -> Floats:
        """In the metrics' own units."""
        center: Floats = self.offset + self.scale * (self.basis @ self.location)
        return center

    @property
    def covariance(self) -> Floats:
        """In the metrics' own units."""
        covariance: Floats = (self.basis @ self.inner @ self.basis.T) * np.outer(self.scale, self.scale)
        return covariance

    @property
    def inverse(self) -> Floats:
        """Of the covariance; 0 across directions without spread."""
        if self.location.size == 0:
            return np.zeros((2, 2))
        inverse: Floats = (self.basis @ np.linalg.inv(self.inner) @ self.basis.T) / np.outer(self.scale, self.scale)
        return inverse

    def project(self, points: Floats) -> Floats:
        """(N × 2) in the metrics' own units → (N × rank)."""
        projected: Floats = ((points - self.offset) / self.scale) @ self.basis
        return projected


def _undecided(points: int, significance: float) -> Mahalanobis:
    note = f"Fewer than {MIN_POINTS} points have both metrics: nothing can be judged."
    nothing = np.full(points, np.nan)
    unknown = np.full((2, 2), np.nan)
    is_outside = np.zeros(points, np.bool_)
    return Mahalanobis(
        nothing, float(chdtri(2, significance)), is_outside, unknown[0], unknown, 0, False, (note,)
    )  # fmt: skip


def _fit_robust(x: Floats, y: Floats, classic: _Fit, most: int, seed: int) -> _Fit | None:
    """The MCD along the directions that have spread; None where half of the points have none."""
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    chosen = known[np.linspace(0, known.size - 1, min(most, known.size)).astype(np.int64)]
    points = classic.project(np.stack([x[chosen], y[chosen]], axis=1))
    rank = points.shape[1]
    found = _densest_half(points, seed) if rank == 2 else _shortest_half(points[:, 0])
    if found is None:
        return None
    location, inner = found
    centered = points - location
    squared = np.einsum("ij,jk,ik->i", centered, np.linalg.inv(inner), centered)
    # The densest half of a Gaussian is narrower than all of it.
    inner = inner * float(np.median(squared)) / float(chdtri(rank, 0.5))
    fit = replace(classic, location=location, inner=inner)
    for _ in range(REWEIGHTINGS):
        fit = _reweight(x, y, fit)
    return fit


def _densest_half(points: Floats, seed: int) -> tuple[Floats, Floats] | None:
    from clusterscape.analyze.diagnose import bivariate_kernels as kernels

    draws = np.random.default_rng(seed).integers(0, len(points), (STARTS, DRAWN))
    location, inner, determinant = kernels.find_densest_half(np.ascontiguousarray(points), draws)
    return None if determinant < SINGULAR or np.linalg.eigvalsh(inner).min() < SINGULAR else (location, inner)


def _shortest_half(values: Floats) -> tuple[Floats, Floats] | None:
    """The MCD of one dimension, exactly: of all runs of half of the sorted values the one with least variance."""
    ordered = np.sort(values)
    half = (ordered.size + 2) // 2
    sums, squares = (np.concatenate([[0.0], np.cumsum(each)]) for each in (ordered, ordered**2))
    means = (sums[half:] - sums[:-half]) / half
    variances = (squares[half:] - squares[:-half]) / half - means**2
    best = int(variances.argmin())
    if variances[best] < SINGULAR:
        return None
    return means[best : best + 1], variances[best : best + 1].reshape(1, 1)


def _reweight(x: Floats, y: Floats, fit: _Fit) -> _Fit:
    """The same from all points that ``fit`` finds inside, made consistent for a Gaussian (Croux and Haesbroeck 1999)."""
    from clusterscape.analyze.diagnose import bivariate_kernels as kernels

    rank = fit.location.size
    bound = float(chdtri(rank, REWEIGHTING_TAIL))
    count, mean, covariance = kernels.sum_inner_moments(x, y, fit.center, fit.inverse, bound)
    inner = fit.basis.T @ (covariance / np.outer(fit.scale, fit.scale)) @ fit.basis
    if count < MIN_POINTS or np.linalg.eigvalsh(inner).min() < SINGULAR:
        return fit
    factor = (1.0 - REWEIGHTING_TAIL) / chdtr(rank + 2, bound)
    return replace(fit, location=fit.project(mean[None, :])[0], inner=inner * factor)


def compute_density(
    x: Floats,
    y: Floats,
    *,
    x_bins: int = 256,
    y_bins: int = 256,
    x_domain: tuple[float, float] | None = None,
    y_domain: tuple[float, float] | None = None,
) -> Density:
    """How many points (x, y) fall into each cell, for millions of points. Missing (NaN) and points outside are left out."""
    from clusterscape.analyze.diagnose import kernels

    x, y = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    x_edges, y_edges = _edges(x, x_bins, x_domain), _edges(y, y_bins, y_domain)
    return Density(x_edges, y_edges, kernels.density(x, y, x_edges, y_edges))


def _edges(values: Floats, bins: int, domain: tuple[float, float] | None) -> Floats:
    from clusterscape.analyze.diagnose import bivariate_kernels

    low, high = bivariate_kernels.find_bounds(values) if domain is None else domain
    if low > high:
        low, high = 0.0, 1.0
    if not low < high:
        low, high = low - 0.5, low + 0.5
    return np.linspace(low, high, bins + 1)
