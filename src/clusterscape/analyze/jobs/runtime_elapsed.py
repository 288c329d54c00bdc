"""How long a job runs given how long it has run, with quantiles that keep their promise: the forest, calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from clusterscape.analyze.jobs.conformal import Shifts, cut_bins, everything, find_shifts
from clusterscape.analyze.jobs.features import AskedJobs, RanJobs, RunHistory
from clusterscape.analyze.jobs.runtime import LEVELS, draw_moments, find_learnable
from clusterscape.analyze.jobs.runtime_forest import RuntimeForest, train_forest
from clusterscape.model.samples import Float64s, Int64s

ELAPSED_EDGES_S = (1.0, 600.0, 3_600.0, 21_600.0)
"""Bins of calibration: waiting, then by the time already run."""

CALIBRATION_SHARE = 0.25
"""The newest of the ended jobs, on which a forest of the older ones is calibrated."""


FEWEST_NEW = 300
NEWEST = 1000
"""Ended jobs that a renewed calibration needs, and looks at: habits change."""


@dataclass(frozen=True, slots=True)
class ElapsedAware:
    """The forest of all ended jobs, each quantile moved as far as a forest of the older ones was off on the newer ones."""

    forest: RuntimeForest
    shifts: tuple[Shifts, ...]
    until_s: float
    name: str = "elapsed-aware"

    def quantiles(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Whole run times at LEVELS, beyond ``elapsed_s``, rising."""
        raw = self.forest.quantiles(jobs, at_s, elapsed_s)
        bins = _bins(elapsed_s)
        for place, shift in enumerate(self.shifts):
            raw[:, place] *= np.exp(shift.find(bins))
        # Moved apart, quantiles may cross: sorted they are no worse (Chernozhukov et al. 2010).
        return np.maximum(np.sort(raw, axis=1), np.maximum(elapsed_s[:, None] + 1.0, 1.0))

    def predict(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """The median of the forest itself."""
        return np.maximum(self.forest.predict(jobs, at_s, elapsed_s), elapsed_s + 1.0)


def train_elapsed(
    jobs: RanJobs, history: RunHistory, until_s: float, *, seed: int = 0, threads: int = 1
) -> ElapsedAware:
    """Learn and calibrate on the jobs that had ended by ``until_s``, in the order of time. Raises QueryError where too few."""
    rows = find_learnable(jobs, until_s)
    by_end = rows[np.argsort(jobs.end_s[rows], kind="stable")]
    cut = int(len(by_end) * (1 - CALIBRATION_SHARE))
    older = train_forest(jobs, history, float(jobs.end_s[by_end[cut - 1]]), seed=seed, threads=threads)
    held = np.sort(by_end[cut:])
    held = held[jobs.submit_s[held] > jobs.end_s[by_end[cut - 1]]] if _is_enough(jobs, held, by_end, cut) else held
    shifts = _find_shifts(older, jobs, history, held)
    return ElapsedAware(train_forest(jobs, history, until_s, seed=seed, threads=threads), shifts, until_s)


def recalibrate(aware: ElapsedAware, jobs: RanJobs, history: RunHistory, until_s: float) -> ElapsedAware:
    """The same forest, calibrated on the newest jobs that were submitted after its training and had ended by ``until_s``.

    While these are few it stays as it is.
    """
    rows = np.flatnonzero((jobs.submit_s > aware.until_s) & (jobs.end_s <= until_s))
    if rows.size < FEWEST_NEW:
        return aware
    rows = np.sort(rows[np.argsort(jobs.end_s[rows], kind="stable")][-NEWEST:])
    return replace(aware, shifts=_find_shifts(aware.forest, jobs, history, rows))


def _find_shifts(forest: RuntimeForest, jobs: RanJobs, history: RunHistory, rows: Int64s) -> tuple[Shifts, ...]:
    pairs = draw_moments(jobs, rows, np.random.default_rng(len(rows)), draws=4)
    predicted = forest.quantiles(history.find(jobs).take(pairs.row), pairs.at_s, pairs.elapsed_s)
    errors = np.log(jobs.run_s[pairs.row])[:, None] - np.log(predicted)
    bins = _bins(pairs.elapsed_s)
    return tuple(find_shifts(errors[:, place], float(level), bins) for place, level in enumerate(LEVELS))


def _is_enough(jobs: RanJobs, held: Int64s, by_end: Int64s, cut: int) -> bool:
    """Whether enough jobs lie wholly behind the cut; short histories of long jobs have none."""
    return int((jobs.submit_s[held] > jobs.end_s[by_end[cut - 1]]).sum()) >= 100


def _bins(elapsed_s: Float64s) -> tuple[Int64s, Int64s]:
    return cut_bins(elapsed_s, ELAPSED_EDGES_S), everything(len(elapsed_s))
