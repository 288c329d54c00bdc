"""Distributions of values: quantiles, a histogram on a logarithmic grid, and the cumulative distribution function."""

from dataclasses import dataclass

import numpy as np

from clusterscape.model.arrays import Float64s

MAX_POINTS = 200
STEPS_PER_DECADE = 8
"""Histogram edges are 10^(k/8): the same grid for every trace, so that bars can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Quantiles of the values that are not missing."""

    minimum: float
    p05: float
    p25: float
    p50: float
    p75: float
    p95: float
    p99: float
    maximum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHistogram:
    """``counts[i]``: number of values in [``edges[i]``, ``edges[i + 1]``); ``zeros``: number of zeros, outside the log scale."""

    edges: list[float]
    counts: list[int]
    zeros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionFunction:
    """``shares[i]`` of all values are at most ``values[i]``; at most 200 points, exact at each."""

    values: list[float]
    shares: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSpread:
    """Values in the unit of the field's name. ``missing``: number of jobs without a value. Without any value the rest is null."""

    count: int
    missing: int
    mean: float | None
    quantiles: Quantiles | None
    histogram: LogHistogram | None
    distribution: DistributionFunction | None


def spread_values(values: Float64s) -> ValueSpread:
    """Describe values ≥ 0; NaN is missing. O(n log n)."""
    ordered = np.sort(values[~np.isnan(values)])
    missing = len(values) - len(ordered)
    if ordered.size == 0:
        return ValueSpread(count=0, missing=missing, mean=None, quantiles=None, histogram=None, distribution=None)
    return ValueSpread(
        count=len(ordered),
        missing=missing,
        mean=float(ordered.mean()),
        quantiles=find_quantiles(ordered),
        histogram=_log_histogram(ordered),
        distribution=_distribution(ordered),
    )


def find_quantiles(present: Float64s) -> Quantiles:
    """Quantiles of at least one value, linearly interpolated between order statistics."""
    quantiles = np.quantile(present, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1])
    return Quantiles(**dict(zip(Quantiles.__slots__, (float(value) for value in quantiles), strict=True)))


def _log_histogram(ordered: Float64s) -> LogHistogram:
    above = ordered[ordered > 0]
    zeros = len(ordered) - len(above)
    if above.size == 0:
        return LogHistogram(edges=[], counts=[], zeros=zeros)
    # Rounded, so that 10^(8/8) is exactly 10: a value on an edge belongs to the bin above it.
    first = int(np.floor(np.log10(above[0]) * STEPS_PER_DECADE + 1e-9))
    last = int(np.floor(np.log10(above[-1]) * STEPS_PER_DECADE + 1e-9)) + 1
    edges = np.round(10.0 ** (np.arange(first, last + 1) / STEPS_PER_DECADE), 12)
    places = np.clip(np.searchsorted(edges, above, side="right") - 1, 0, last - first - 1)
    counts = np.bincount(places, minlength=last - first)
    return LogHistogram(edges=edges.tolist(), counts=counts.tolist(), zeros=zeros)


def _distribution(ordered: Float64s) -> DistributionFunction:
    places = np.linspace(0, len(ordered) - 1, min(MAX_POINTS, len(ordered))).round().astype(int)
    values = np.unique(ordered[places])
    shares = np.searchsorted(ordered, values, side="right") / len(ordered)
    return DistributionFunction(values=values.tolist(), shares=shares.tolist())
