"""Two metrics against each other: which points lie outside the cloud (Mahalanobis), and how dense it is."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtri

from clusterscape.analyze.diagnose.samples import Flags, Floats, Ints

RANK_TOLERANCE = 1e-6  # of the standardised covariance's largest eigenvalue
MIN_POINTS = 3
REWEIGHTING_TAIL = 0.025


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
    max_fit_points: int = 5_000,
    seed: int = 0,
) -> Mahalanobis:
    """Squared Mahalanobis distances of the points (x, y), both (N,), and their chi-squared cut-off.

    For a Gaussian cloud a share ``significance`` of points lies outside. ``robust`` estimates center and covariance by the
    minimum covariance determinant (Rousseeuw and Van Driessen 1999, scikit-learn's consistent version), so that up to half
    of the points may be outliers without hiding; it is fitted to at most ``max_fit_points`` points, evenly taken, and is
    deterministic in ``seed``. Constant and collinear metrics are handled by leaving out directions without spread.
    """
    if not 0.0 < significance < 1.0:
        raise ValueError("significance lies between 0 and 1")
    points = np.stack([x, y], axis=1).astype(np.float64)
    is_known = np.isfinite(points).all(axis=1)
    known = points[is_known]
    if len(known) < MIN_POINTS:
        return _undecided(points, significance)
    # In units of each metric's own spread, so that watts and ratios weigh the same in what counts as collinear.
    scale = known.std(axis=0)
    is_constant = scale <= 1e-9 * np.maximum(np.abs(known).max(axis=0), 1e-300)
    scale = np.where(is_constant, 1.0, scale)
    offset = known.mean(axis=0)
    standard = (known - offset) / scale
    standard[:, is_constant] = 0.0
    notes = [
        f"The {name} metric is constant; only the other is judged."
        for name, c in zip("xy", is_constant, strict=True)
        if c
    ]
    center, covariance = standard.mean(axis=0), np.cov(standard, rowvar=False, bias=True)
    is_robust = False
    rank = int((np.linalg.eigvalsh(covariance) > RANK_TOLERANCE).sum())
    if rank == 0:
        notes = ["Both metrics are constant: no point lies outside."]
    elif rank == 1 and not is_constant.any():
        notes.append("The two metrics are collinear: they say the same, and points are judged along their line.")
    if robust and rank:
        fitted = _fit_robust(standard, covariance, rank, max_fit_points, seed)
        if fitted is None:
            notes.append("More than half of the points are the same or on one line; the classic estimate is used.")
        else:
            center, covariance, is_robust = *fitted, True
    centered = standard - center
    squared = np.full(len(points), np.nan)
    squared[is_known] = np.einsum("ij,jk,ik->i", centered, _pseudo_inverse(covariance, rank), centered)
    cutoff = float(chdtri(rank, significance)) if rank else np.inf
    is_outside = np.zeros(len(points), np.bool_)
    is_outside[is_known] = squared[is_known] > cutoff
    return Mahalanobis(
        squared, cutoff, is_outside, center * scale + offset, covariance * np.outer(scale, scale), rank, is_robust, tuple(notes)
    )  # fmt: skip


def _undecided(points: Floats, significance: float) -> Mahalanobis:
    note = f"Fewer than {MIN_POINTS} points have both metrics: nothing can be judged."
    nothing = np.full(len(points), np.nan)
    unknown = np.full((2, 2), np.nan)
    is_outside = np.zeros(len(points), np.bool_)
    return Mahalanobis(
        nothing, float(chdtri(2, significance)), is_outside, unknown[0], unknown, 0, False, (note,)
    )  # fmt: skip


def _fit_robust(standard: Floats, covariance: Floats, rank: int, most: int, seed: int) -> tuple[Floats, Floats] | None:
    """Center and covariance by the MCD along the directions that have spread; None where half of the points have none."""
    from sklearn.covariance import MinCovDet

    _, directions = np.linalg.eigh(covariance)
    basis = directions[:, -rank:]
    chosen = standard[np.linspace(0, len(standard) - 1, min(most, len(standard))).astype(np.int64)]
    with warnings.catch_warnings():
        # scikit-learn warns of a determinant that grows when points repeat; the check below is what decides.
        warnings.simplefilter("ignore")
        try:
            model = MinCovDet(random_state=seed).fit(chosen @ basis)
        except ValueError:
            return None
    inner = np.atleast_2d(np.asarray(model.covariance_, np.float64))
    if np.linalg.eigvalsh(inner).min() < 1e-8:
        return None
    location, inner = _reweight(standard @ basis, np.asarray(model.location_, np.float64), inner)
    return basis @ location, basis @ inner @ basis.T


def _reweight(points: Floats, location: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """The same from all points that the fit to a few of them finds inside, made consistent for a Gaussian (Croux 1999)."""
    rank = points.shape[1]
    bound = chdtri(rank, REWEIGHTING_TAIL)
    centered = points - location
    inside = points[np.einsum("ij,jk,ik->i", centered, np.linalg.inv(covariance), centered) < bound]
    factor = (1.0 - REWEIGHTING_TAIL) / chdtr(rank + 2, bound)
    return inside.mean(axis=0), np.atleast_2d(np.cov(inside, rowvar=False, bias=True)) * factor


def _pseudo_inverse(covariance: Floats, rank: int) -> Floats:
    values, directions = np.linalg.eigh(covariance)
    kept = directions[:, values.size - rank :]
    inverse: Floats = (kept / values[values.size - rank :]) @ kept.T
    return inverse


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

    x_edges, y_edges = _edges(x, x_bins, x_domain), _edges(y, y_bins, y_domain)
    counts = kernels.density(np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64), x_edges, y_edges)
    return Density(x_edges, y_edges, counts)


def _edges(values: Floats, bins: int, domain: tuple[float, float] | None) -> Floats:
    if domain is None:
        known = values[np.isfinite(values)]
        domain = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    low, high = domain
    if not low < high:
        low, high = low - 0.5, low + 0.5
    return np.linspace(low, high, bins + 1)
