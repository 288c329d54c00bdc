"""How long jobs run, as a distribution: a quantile forest over run ÷ request, conditioned on the time already run.

Each leaf of a random forest keeps the histogram of its training jobs; a job's distribution is the mean of its leaves
(Meinshausen 2006), cut off at what it has run already. Learns; does not read or write files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clusterscape.analyze.jobs.features import AskedJobs, RanJobs, RunHistory
from clusterscape.analyze.jobs.runtime import LEVELS, MOST_PAIRS, Moments, draw_moments, find_learnable
from clusterscape.model.samples import Float64s, Int64s

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

    def quantiles(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Whole run times at LEVELS, beyond ``elapsed_s``."""
        from clusterscape.analyze.jobs.runtime_kernels import condition

        out = np.empty((len(jobs), LEVELS.size))
        if len(jobs):
            table = self._history.describe(jobs, at_s, elapsed_s)
            found = np.asarray(self._booster.predict(table, pred_leaf=True, num_threads=1), np.int64)
            condition(self.leaves, found.reshape(len(jobs), -1), self.edges, jobs.request_s, elapsed_s, LEVELS, out)
        return out

    def predict(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """The median."""
        middle: Float64s = self.quantiles(jobs, at_s, elapsed_s)[:, LEVELS.tolist().index(0.5)]
        return middle


def train_forest(
    jobs: RanJobs, history: RunHistory, until_s: float, *, seed: int = 0, threads: int = 1
) -> RuntimeForest:
    """Learn from the jobs that had ended by ``until_s``. Raises QueryError where there are too few."""
    import lightgbm

    pairs = learnable_pairs(jobs, until_s, seed)
    table = history.describe(history.find(jobs).take(pairs.row), pairs.at_s, pairs.elapsed_s)
    target = np.log(jobs.run_s[pairs.row] / jobs.request_s[pairs.row])
    settings = _FOREST | {"seed": seed, "num_threads": threads}
    booster = lightgbm.train(settings, lightgbm.Dataset(table, target), TREES)
    found = np.asarray(booster.predict(table, pred_leaf=True, num_threads=threads), np.int64).reshape(len(table), -1)
    edges = _find_edges(target)
    return RuntimeForest(history, booster, edges, _fill_leaves(found, target, edges))


def learnable_pairs(jobs: RanJobs, until_s: float, seed: int) -> Moments:
    """The newest pairs of job and moment of which the run is known by ``until_s``."""
    rows = find_learnable(jobs, until_s)
    pairs = draw_moments(jobs, rows, np.random.default_rng(seed))
    newest = np.argsort(pairs.at_s, kind="stable")[-MOST_PAIRS:]
    return Moments(pairs.row[newest], pairs.elapsed_s[newest], pairs.at_s[newest])


def _find_edges(target: Float64s) -> Float64s:
    """Bins of equal shares; where many runs are alike (killed at the limit) fewer."""
    edges = np.unique(np.quantile(target, np.linspace(0, 1, BINS + 1)))
    # Room above the last run, so that a job that outlives all others still has a future.
    return np.concatenate([edges, [edges[-1] + 0.1]])


def _fill_leaves(found: Int64s, target: Float64s, edges: Float64s) -> Float64s:
    bins = np.clip(np.searchsorted(edges, target, side="right") - 1, 0, edges.size - 2)
    trees, width = found.shape[1], edges.size - 1
    leaves = np.zeros((trees, int(found.max()) + 1, width))
    for tree in range(trees):
        np.add.at(leaves[tree], (found[:, tree], bins), 1.0)
    leaves /= np.maximum(leaves.sum(axis=2, keepdims=True), 1.0)
    return leaves.astype(np.float64)
