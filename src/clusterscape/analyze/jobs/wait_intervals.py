"""From sampled waits to an interval that keeps its promise: quantiles moved by conformal calibration per size and queue.

Owns the levels, the bins and the scale of waits. Does not sample futures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clusterscape.analyze.jobs.conformal import Shifts, cut_bins, everything, find_shifts, join_bins
from clusterscape.analyze.jobs.intervals import measure_share
from clusterscape.model.samples import Float64s, Int64s

LEVELS: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
INTERVALS: Mapping[float, tuple[int, int]] = {0.5: (2, 4), 0.8: (1, 5), 0.9: (0, 6)}
"""Nominal coverage of an interval, and the places of its ends in LEVELS."""

MIDDLE = LEVELS.index(0.5)
SOFTEN_S = 300.0
"""Errors are alike in log(wait + this): ten minutes more matter to a wait of five, not to one of a day."""

SIZE_EDGES = (0.02, 0.1, 0.3)
"""Bins of size, as shares of the machine."""

QUEUE_EDGES = (3.0, 12.0, 50.0)
"""Bins of the number of jobs ahead."""

NEWEST = 1500
"""Calibration looks at this many of the newest waits: habits and load change."""


@dataclass(frozen=True, slots=True)
class WaitBins:
    """Where jobs stand: their share of the machine, and how many waited before them."""

    size_ratio: Float64s
    ahead: Float64s

    def kinds(self) -> tuple[Int64s, Int64s, Int64s]:
        """Bins, finest first: size and queue, queue, all."""
        size, queue = cut_bins(self.size_ratio, SIZE_EDGES), cut_bins(self.ahead, QUEUE_EDGES)
        return join_bins(queue, size), queue, everything(len(size))


@dataclass(frozen=True, slots=True)
class WaitCalibration:
    """How far each quantile of sampled waits is moved. ``count``: waits it was found from; 0 moves nothing."""

    shifts: tuple[Shifts, ...]
    count: int

    def apply(self, quantiles_s: Float64s, bins: WaitBins) -> Float64s:
        """Calibrated quantiles at LEVELS, a row per job: from 0 on and rising."""
        if self.count == 0 or len(quantiles_s) == 0:
            return quantiles_s
        kinds = bins.kinds()
        moved = to_scale(quantiles_s)
        for place, shift in enumerate(self.shifts):
            moved[:, place] += shift.find(kinds)
        # Moved apart, quantiles may cross: sorted they are no worse (Chernozhukov et al. 2010).
        return np.sort(np.maximum(from_scale(moved), 0.0), axis=1)

    def to_document(self) -> dict[str, Any]:
        """As JSON."""
        return {"count": self.count, "shifts": [shift.to_document() for shift in self.shifts]}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "WaitCalibration":
        """What ``to_document`` gave."""
        return cls(tuple(Shifts.from_document(shift) for shift in document["shifts"]), int(document["count"]))


NOT_CALIBRATED = WaitCalibration((), 0)


def to_scale(wait_s: Float64s) -> Float64s:
    """The scale on which errors are alike."""
    return np.log(np.maximum(wait_s, 0.0) + SOFTEN_S)


def from_scale(scaled: Float64s) -> Float64s:
    """Seconds again."""
    return np.exp(scaled) - SOFTEN_S


def summarize_samples(waits_s: Float64s) -> Float64s:
    """Quantiles at LEVELS of sampled waits: a row per job from a row per future."""
    quantiles: Float64s = np.quantile(waits_s, LEVELS, axis=0).T
    return quantiles


def calibrate(quantiles_s: Float64s, wait_s: Float64s, bins: WaitBins) -> WaitCalibration:
    """From forecasts and what became of them, in the order of time; only the NEWEST count."""
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
    """How often waits fell into intervals of a nominal level; ``low`` and ``high``: Wilson's 95 % interval of that share."""

    nominal: float
    covered: float
    jobs: int
    low: float
    high: float


def measure_coverage(quantiles_s: Float64s, wait_s: Float64s) -> list[Coverage]:
    """Of every interval."""
    if len(wait_s) == 0:
        return []
    found = []
    for nominal, (low, high) in INTERVALS.items():
        # Whole seconds: a job that starts at once is inside [0, 0].
        inside = (wait_s >= quantiles_s[:, low] - 1) & (wait_s <= quantiles_s[:, high] + 1)
        share = measure_share(float(inside.sum()), len(wait_s))
        if share is not None and share.low is not None and share.high is not None:
            ends = (share.low, share.high)
            found.append(Coverage(nominal=nominal, covered=share.value, jobs=len(wait_s), low=ends[0], high=ends[1]))
    return found


def walk_forward(
    quantiles_s: Float64s, wait_s: Float64s, bins: WaitBins, submit_s: Float64s, *, first: int, step: int = 100
) -> Float64s:
    """Calibrated quantiles of every forecast from ``first`` on, each by the waits that were over when it was made.

    Rows are by submission. A wait is over at ``submit_s + wait_s``; calibration is renewed every ``step`` forecasts.
    """
    over_at = submit_s + wait_s
    parts: list[Float64s] = []
    for begin in range(first, len(wait_s), step):
        known = np.flatnonzero(over_at <= submit_s[begin])
        own = slice(begin, min(begin + step, len(wait_s)))
        calibration = calibrate(quantiles_s[known], wait_s[known], WaitBins(bins.size_ratio[known], bins.ahead[known]))
        parts.append(calibration.apply(quantiles_s[own], WaitBins(bins.size_ratio[own], bins.ahead[own])))
    return np.concatenate(parts) if parts else quantiles_s[first:]


def find_bin_errors(
    median_s: Float64s, wait_s: Float64s, bins: WaitBins, fewest: int = 1
) -> Sequence[tuple[int, int, int, float]]:
    """By bin of size and of queue: how many forecasts, and the median of |wait − median|, seconds."""
    size, queue = cut_bins(bins.size_ratio, SIZE_EDGES), cut_bins(bins.ahead, QUEUE_EDGES)
    found = []
    for one_size in range(len(SIZE_EDGES) + 1):
        for one_queue in range(len(QUEUE_EDGES) + 1):
            inside = (size == one_size) & (queue == one_queue)
            if int(inside.sum()) >= fewest:
                error = float(np.median(np.abs(wait_s[inside] - median_s[inside])))
                found.append((one_size, one_queue, int(inside.sum()), error))
    return found
