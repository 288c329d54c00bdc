"""Calibrated intervals from sampled waits: quantiles shifted by conformal calibration per size and queue length.

Owns the levels, the bins and the scale of waits. Does not simulate the queue.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clusterscape.analyze.jobs.intervals import Shifts, cut_bins, find_shifts, join_bins, measure_share, single_bin
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

NEWEST = 1500
"""Number of newest waits used for calibration, because behavior and load change."""


@dataclass(frozen=True, slots=True)
class WaitBins:
    """Size of each job as a share of the machine, and the number of jobs ahead of it."""

    size_ratio: Float64s
    ahead: Float64s

    def kinds(self) -> tuple[Int64s, Int64s, Int64s]:
        """Binnings, finest first: size and queue, queue, all."""
        size, queue = cut_bins(self.size_ratio, SIZE_EDGES), cut_bins(self.ahead, QUEUE_EDGES)
        return join_bins(queue, size), queue, single_bin(len(size))


@dataclass(frozen=True, slots=True)
class WaitCalibration:
    """Shifts of the quantiles of sampled waits. ``count``: number of waits it was computed from; 0: no shift."""

    shifts: tuple[Shifts, ...]
    count: int

    def apply(self, quantiles_s: Float64s, bins: WaitBins) -> Float64s:
        """Calibrated quantiles at LEVELS, one row per job, ≥ 0 and ascending."""
        if self.count == 0 or len(quantiles_s) == 0:
            return quantiles_s
        kinds = bins.kinds()
        scaled = to_scale(quantiles_s)
        for place, shift in enumerate(self.shifts):
            scaled[:, place] += shift.find(kinds)
        # Shifted quantiles may cross; sorting never makes them worse (Chernozhukov et al. 2010).
        return np.sort(np.maximum(from_scale(scaled), 0.0), axis=1)

    def to_document(self) -> dict[str, Any]:
        """Convert to JSON."""
        return {"count": self.count, "shifts": [shift.to_document() for shift in self.shifts]}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "WaitCalibration":
        """Read the output of ``to_document``."""
        return cls(tuple(Shifts.from_document(shift) for shift in document["shifts"]), int(document["count"]))


NOT_CALIBRATED = WaitCalibration((), 0)


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


def calibrate(quantiles_s: Float64s, wait_s: Float64s, bins: WaitBins) -> WaitCalibration:
    """Calibrate by forecasts and actual waits in time order; only the NEWEST count."""
    count = min(len(wait_s), NEWEST)
    if count < 20:
        return NOT_CALIBRATED
    newest = slice(len(wait_s) - count, None)
    kinds = WaitBins(bins.size_ratio[newest], bins.ahead[newest]).kinds()
    errors = to_scale(wait_s[newest])[:, None] - to_scale(quantiles_s[newest])
    shifts = tuple(find_shifts(errors[:, place], level, kinds) for place, level in enumerate(LEVELS))
    return WaitCalibration(shifts, count)


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


def walk_forward(
    quantiles_s: Float64s, wait_s: Float64s, bins: WaitBins, submit_s: Float64s, *, first: int, step: int = 100
) -> Float64s:
    """Calibrated quantiles of every forecast from ``first`` on, each calibrated by the waits that had ended when it was made.

    Rows are sorted by submission. A wait ends at ``submit_s + wait_s``; the calibration is updated every ``step`` forecasts.
    """
    start_s = submit_s + wait_s
    parts: list[Float64s] = []
    for begin in range(first, len(wait_s), step):
        ended = np.flatnonzero(start_s <= submit_s[begin])
        block = slice(begin, min(begin + step, len(wait_s)))
        calibration = calibrate(quantiles_s[ended], wait_s[ended], WaitBins(bins.size_ratio[ended], bins.ahead[ended]))
        parts.append(calibration.apply(quantiles_s[block], WaitBins(bins.size_ratio[block], bins.ahead[block])))
    return np.concatenate(parts) if parts else quantiles_s[first:]


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
