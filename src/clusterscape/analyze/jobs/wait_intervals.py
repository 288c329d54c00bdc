"""Levels, intervals, bins and the scale of predicted waits, and how well they hold.

Does not simulate the queue; the choice of the estimate and the width of intervals are in `wait_choice.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clusterscape.analyze.jobs.intervals import cut_bins, measure_share
from clusterscape.model.arrays import Float64s, Int64s

LEVELS: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
INTERVALS: Mapping[float, tuple[int, int]] = {0.5: (2, 4), 0.8: (1, 5), 0.9: (0, 6)}
"""Nominal coverage of an interval, and the indexes of its ends in LEVELS."""

MIDDLE = LEVELS.index(0.5)
SOFTEN_S = 300.0
"""Offset of the scale log(wait + offset): ten minutes more matter for a wait of five minutes, but not for one of a day."""

SIZE_EDGES = (0.02, 0.1, 0.3)
"""Bins of size, as shares of the machine."""

QUEUE_EDGES = (3.0, 12.0, 50.0)
"""Bins of the number of jobs ahead in the queue."""


@dataclass(frozen=True, slots=True)
class WaitBins:
    """Size of each job as a share of the machine, and the number of jobs ahead of it."""

    size_ratio: Float64s
    ahead: Float64s

    QUEUES: ClassVar[int] = len(QUEUE_EDGES) + 1
    CELLS: ClassVar[int] = (len(SIZE_EDGES) + 1) * QUEUES

    def cells(self) -> Int64s:
        """The bin of size and queue length of each job; modulo QUEUES it is the bin of the queue length."""
        return cut_bins(self.size_ratio, SIZE_EDGES) * self.QUEUES + cut_bins(self.ahead, QUEUE_EDGES)


def to_scale(wait_s: Float64s) -> Float64s:
    """Waits on a logarithmic scale on which errors have similar size."""
    return np.log(np.maximum(wait_s, 0.0) + SOFTEN_S)


def from_scale(scaled: Float64s) -> Float64s:
    """Inverse of ``to_scale``: seconds."""
    return np.exp(scaled) - SOFTEN_S


def summarize_samples(waits_s: Float64s) -> Float64s:
    """Quantiles at LEVELS (job × level) of sampled waits (sample × job)."""
    quantiles: Float64s = np.quantile(waits_s, LEVELS, axis=0).T
    return quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Share of waits within intervals of a nominal level; ``low``/``high``: Wilson's 95 % interval of that share."""

    nominal: float
    covered: float
    jobs: int
    low: float
    high: float


def measure_coverage(quantiles_s: Float64s, wait_s: Float64s) -> list[Coverage]:
    """Coverage of every interval in INTERVALS."""
    if len(wait_s) == 0:
        return []
    coverages = []
    for nominal, (low, high) in INTERVALS.items():
        # Tolerate one second, since times are whole seconds.
        inside = (wait_s >= quantiles_s[:, low] - 1) & (wait_s <= quantiles_s[:, high] + 1)
        share = measure_share(float(inside.sum()), len(wait_s))
        if share is not None and share.low is not None and share.high is not None:
            ends = (share.low, share.high)
            coverages.append(
                Coverage(nominal=nominal, covered=share.value, jobs=len(wait_s), low=ends[0], high=ends[1])
            )
    return coverages


QUARTERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageQuarter:
    """Forecasts of one quarter of the tested jobs, in time order: share within the 90 % interval, and its median width."""

    jobs: int
    covered: float
    width_s: float


def split_quarters(quantiles_s: Float64s, wait_s: Float64s) -> list[CoverageQuarter]:
    """Coverage and width of the 90 % interval over time; rows are in time order."""
    low, high = INTERVALS[0.9]
    quarters = []
    for rows in np.array_split(np.arange(len(wait_s)), QUARTERS):
        coverage = next((row for row in measure_coverage(quantiles_s[rows], wait_s[rows]) if row.nominal == 0.9), None)
        if coverage is not None:
            width = float(np.median(quantiles_s[rows, high] - quantiles_s[rows, low]))
            quarters.append(CoverageQuarter(jobs=len(rows), covered=coverage.covered, width_s=width))
    return quarters


def find_bin_errors(
    median_s: Float64s, wait_s: Float64s, bins: WaitBins, fewest: int = 1
) -> Sequence[tuple[int, int, int, float]]:
    """(size bin, queue bin, number of forecasts, median of |wait − median| in seconds) of bins with at least ``fewest``
    forecasts.
    """
    size, queue = cut_bins(bins.size_ratio, SIZE_EDGES), cut_bins(bins.ahead, QUEUE_EDGES)
    bin_errors = []
    for size_bin in range(len(SIZE_EDGES) + 1):
        for queue_bin in range(len(QUEUE_EDGES) + 1):
            inside = (size == size_bin) & (queue == queue_bin)
            if int(inside.sum()) >= fewest:
                error = float(np.median(np.abs(wait_s[inside] - median_s[inside])))
                bin_errors.append((size_bin, queue_bin, int(inside.sum()), error))
    return bin_errors
