"""Gradient-boosted trees over features at submission. Ignores elapsed time, unlike ``runtime_forest``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clusterscape.analyze.jobs.features import EncodedJobs, JobTable, RunHistory
from clusterscape.analyze.jobs.runtime import MAX_PAIRS, find_training_rows
from clusterscape.model.arrays import Float64s

if TYPE_CHECKING:
    import lightgbm

ROUNDS = 150
_SETTINGS: dict[str, Any] = {
    "objective": "l1",  # on the logarithm: predicts the median, which maximizes the accuracy
    "learning_rate": 0.08,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "max_bin": 127,
    "verbose": -1,
    "deterministic": True,
    "force_row_wise": True,
}


class BoostedRuntime:
    """A trained model over one history."""

    name = "LightGBM"

    def __init__(self, history: RunHistory, booster: lightgbm.Booster) -> None:
        self._history, self._booster = history, booster

    def predict(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:  # noqa: ARG002 – part of the protocol
        """Total run times in seconds, at least the elapsed time; uses the features at submission."""
        table = self._history.describe(jobs, jobs.submit_s, np.zeros(len(jobs)))
        log_ratio = np.asarray(self._booster.predict(table, num_threads=1), np.float64)
        predicted: Float64s = np.maximum(np.exp(log_ratio) * jobs.request_s, np.maximum(elapsed_s, 1.0))
        return predicted


def train_boosted(
    jobs: JobTable, history: RunHistory, until_s: float, *, seed: int = 0, threads: int = 1
) -> BoostedRuntime:
    """Train on the jobs that had ended by ``until_s``. Raises QueryError if there are too few."""
    import lightgbm

    rows = find_training_rows(jobs, until_s)[-MAX_PAIRS:]
    encoded = history.encode(jobs).take(rows)
    table = history.describe(encoded, encoded.submit_s, np.zeros(len(rows)))
    target = np.log(jobs.run_s[rows] / jobs.request_s[rows])
    settings = _SETTINGS | {"seed": seed, "num_threads": threads}
    return BoostedRuntime(history, lightgbm.train(settings, lightgbm.Dataset(table, target), ROUNDS))
