"""The mean of the user's last two runs, never above the limit (Tsafrir, Etsion & Feitelson 2007)."""

import numpy as np

from clusterscape.analyze.jobs.features import FEATURES, AskedJobs, RunHistory
from clusterscape.model.samples import Float64s

_LAST, _BEFORE = FEATURES.index("user_last"), FEATURES.index("user_before_last")


class LastTwo:
    """Needs no training; a user without two ended jobs is taken at their word."""

    name = "Last2"

    def __init__(self, history: RunHistory) -> None:
        self._history = history

    def predict(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Whole run times, seconds."""
        known = np.exp(self._history.describe(jobs, at_s, elapsed_s)[:, [_LAST, _BEFORE]])
        predicted = np.where(np.isnan(known).any(axis=1), jobs.request_s, known.mean(axis=1))
        return np.maximum(np.minimum(predicted, jobs.request_s), elapsed_s)
