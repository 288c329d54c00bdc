"""Distribution of run times: a quantile forest over run ÷ request, conditioned on the elapsed time, with calibrated quantiles.

Each leaf of a random forest keeps the histogram of its training jobs; a job's distribution is the mean of its leaves
(Meinshausen 2006), truncated at its elapsed time. Does no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterscape.analyze.jobs.features import EncodedJobs, JobTable, RunHistory
from clusterscape.analyze.jobs.intervals import Shifts, cut_bins, find_shifts, single_bin
from clusterscape.analyze.jobs.runtime import (
    LEVELS,
    MAX_PAIRS,
    Moments,
    draw_moments,
    find_most_accurate,
    find_training_rows,
)
from clusterscape.model.arrays import Float64s, Int64s

if TYPE_CHECKING:
    import lightgbm


BINS = 64
_FOREST: dict[str, Any] = {
    "boosting": "rf",
    "objective": "l2",
    "num_leaves": 255,
    "min_data_in_leaf": 15,
    "bagging_fraction": 0.4,
    "bagging_freq": 1,
    "feature_fraction": 0.35,
    "feature_fraction_bynode": 0.7,
    "max_bin": 127,
    "verbose": -1,
    "deterministic": True,
    "force_row_wise": True,
}
TREES = 40


class RuntimeForest:
    """A trained forest over one history. Immutable."""

    name = "elapsed-aware forest"

    def __init__(self, history: RunHistory, booster: lightgbm.Booster, edges: Float64s, leaves: Float64s) -> None:
        """``edges``: of the bins of log(run ÷ request); ``leaves``: cumulative shares, by tree, leaf and bin."""
        self._history, self._booster = history, booster
        self.edges, self.leaves = edges, leaves

    def quantiles(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Total run times at LEVELS, given that they exceed ``elapsed_s``."""
        from clusterscape.analyze.jobs.kernels import condition_quantiles

        out = np.empty((len(jobs), LEVELS.size))
        if len(jobs):
            table = self._history.describe(jobs, at_s, elapsed_s)
            leaf_of = np.asarray(self._booster.predict(table, pred_leaf=True, num_threads=1), np.int64)
            condition_quantiles(
                self.leaves, leaf_of.reshape(len(jobs), -1), self.edges, jobs.request_s, elapsed_s, LEVELS, out
            )
        return out

    def predict(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """The run time with the highest expected accuracy."""
        return find_most_accurate(self.quantiles(jobs, at_s, elapsed_s))


def train_forest(
    jobs: JobTable, history: RunHistory, until_s: float, *, seed: int = 0, threads: int = 1
) -> RuntimeForest:
    """Train on the jobs that had ended by ``until_s``. Raises QueryError if there are too few."""
    import lightgbm

    pairs = select_training_pairs(jobs, until_s, seed)
    table = history.describe(history.encode(jobs).take(pairs.row), pairs.at_s, pairs.elapsed_s)
    target = np.log(jobs.run_s[pairs.row] / jobs.request_s[pairs.row])
    settings = _FOREST | {"seed": seed, "num_threads": threads}
    booster = lightgbm.train(settings, lightgbm.Dataset(table, target), TREES)
    leaf_of = np.asarray(booster.predict(table, pred_leaf=True, num_threads=threads), np.int64).reshape(len(table), -1)
    edges = _find_edges(target)
    return RuntimeForest(history, booster, edges, _fill_leaves(leaf_of, target, edges))


def select_training_pairs(jobs: JobTable, until_s: float, seed: int) -> Moments:
    """The newest training pairs of jobs that had ended by ``until_s``."""
    rows = find_training_rows(jobs, until_s)
    pairs = draw_moments(jobs, rows, np.random.default_rng(seed))
    newest = np.argsort(pairs.at_s, kind="stable")[-MAX_PAIRS:]
    return Moments(pairs.row[newest], pairs.elapsed_s[newest], pairs.at_s[newest])


def _find_edges(target: Float64s) -> Float64s:
    """Bin edges with equal shares; fewer if many values are equal (jobs killed at their limit)."""
    edges = np.unique(np.quantile(target, np.linspace(0, 1, BINS + 1)))
    # One more bin above the longest run, for jobs that run even longer.
    return np.concatenate([edges, [edges[-1] + 0.1]])


def _fill_leaves(leaf_of: Int64s, target: Float64s, edges: Float64s) -> Float64s:
    bins = np.clip(np.searchsorted(edges, target, side="right") - 1, 0, edges.size - 2)
    trees, width = leaf_of.shape[1], edges.size - 1
    leaves = np.zeros((trees, int(leaf_of.max()) + 1, width))
    for tree in range(trees):
        np.add.at(leaves[tree], (leaf_of[:, tree], bins), 1.0)
    leaves /= np.maximum(leaves.sum(axis=2, keepdims=True), 1.0)
    return leaves.astype(np.float64)


ELAPSED_EDGES_S = (1.0, 600.0, 3_600.0, 21_600.0)
"""Calibration bins: waiting, then by elapsed time."""

CALIBRATION_SHARE = 0.25
"""Share of ended jobs, the newest, on which a forest of the older ones is calibrated."""


MIN_NEW = 300
NEWEST = 1000
"""Minimum and maximum number of ended jobs for a recalibration; only the newest count, because behavior changes."""


@dataclass(frozen=True, slots=True)
class ElapsedAware:
    """A forest of all ended jobs, with each quantile shifted by the error of a forest of the older jobs on the newer ones."""

    forest: RuntimeForest
    shifts: tuple[Shifts, ...]
    until_s: float
    name: str = "elapsed-aware"

    def quantiles(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Total run times at LEVELS, given that they exceed ``elapsed_s``; ascending."""
        raw = self.forest.quantiles(jobs, at_s, elapsed_s)
        bins = _bins(elapsed_s)
        for place, shift in enumerate(self.shifts):
            raw[:, place] *= np.exp(shift.find(bins))
        # Shifted quantiles may cross; sorting never makes them worse (Chernozhukov et al. 2010).
        return np.maximum(np.sort(raw, axis=1), np.maximum(elapsed_s[:, None] + 1.0, 1.0))

    def predict(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """The run time with the highest expected accuracy, of the uncalibrated forest."""
        return np.maximum(self.forest.predict(jobs, at_s, elapsed_s), elapsed_s + 1.0)


def train_elapsed(
    jobs: JobTable, history: RunHistory, until_s: float, *, seed: int = 0, threads: int = 1
) -> ElapsedAware:
    """Train and calibrate on the jobs that had ended by ``until_s``, in time order. Raises QueryError if there are too few."""
    rows = find_training_rows(jobs, until_s)
    by_end = rows[np.argsort(jobs.end_s[rows], kind="stable")]
    cut = int(len(by_end) * (1 - CALIBRATION_SHARE))
    older = train_forest(jobs, history, float(jobs.end_s[by_end[cut - 1]]), seed=seed, threads=threads)
    holdout = np.sort(by_end[cut:])
    holdout = (
        holdout[jobs.submit_s[holdout] > jobs.end_s[by_end[cut - 1]]]
        if _has_enough_after_cut(jobs, holdout, by_end, cut)
        else holdout
    )
    shifts = _find_shifts(older, jobs, history, holdout)
    return ElapsedAware(train_forest(jobs, history, until_s, seed=seed, threads=threads), shifts, until_s)


def recalibrate(aware: ElapsedAware, jobs: JobTable, history: RunHistory, until_s: float) -> ElapsedAware:
    """The same forest, calibrated on the newest jobs that were submitted after its training and had ended by ``until_s``.

    Unchanged if there are too few.
    """
    rows = np.flatnonzero((jobs.submit_s > aware.until_s) & (jobs.end_s <= until_s))
    if rows.size < MIN_NEW:
        return aware
    rows = np.sort(rows[np.argsort(jobs.end_s[rows], kind="stable")][-NEWEST:])
    return replace(aware, shifts=_find_shifts(aware.forest, jobs, history, rows))


def _find_shifts(forest: RuntimeForest, jobs: JobTable, history: RunHistory, rows: Int64s) -> tuple[Shifts, ...]:
    pairs = draw_moments(jobs, rows, np.random.default_rng(len(rows)), draws=4)
    predicted = forest.quantiles(history.encode(jobs).take(pairs.row), pairs.at_s, pairs.elapsed_s)
    errors = np.log(jobs.run_s[pairs.row])[:, None] - np.log(predicted)
    bins = _bins(pairs.elapsed_s)
    return tuple(find_shifts(errors[:, place], float(level), bins) for place, level in enumerate(LEVELS))


def _has_enough_after_cut(jobs: JobTable, holdout: Int64s, by_end: Int64s, cut: int) -> bool:
    """Whether enough jobs were submitted after the cut; short histories of long jobs have none."""
    return int((jobs.submit_s[holdout] > jobs.end_s[by_end[cut - 1]]).sum()) >= 100


def _bins(elapsed_s: Float64s) -> tuple[Int64s, Int64s]:
    return cut_bins(elapsed_s, ELAPSED_EDGES_S), single_bin(len(elapsed_s))
