"""Predicts the typical run of the user's similar jobs: of the same name and size, else of the same size and request. No model."""

import numpy as np

from clusterscape.analyze.jobs.features import GROUP_COLUMNS, SAME_NAME, EncodedJobs, RunHistory
from clusterscape.model.arrays import Float64s

_GROUPS = (SAME_NAME, ("user", "size", "requested_s"), ("user", "size"), ("user", "requested_s"), ("user",))
"""Most similar first."""
_FEWEST = np.log1p(2)
_COUNT, _MEDIAN = GROUP_COLUMNS["count"], GROUP_COLUMNS["outlived_median"]


class SimilarJobs:
    """The median of the last similar jobs that ran longer than the job has run; the request if there are none."""

    name = "similar jobs"

    def __init__(self, history: RunHistory) -> None:
        self._history = history

    def predict(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Total run times in seconds."""
        predicted = np.full(len(jobs), np.nan)
        for group in _GROUPS:
            part = self._history.describe_group(group, jobs, at_s, elapsed_s)
            is_known = np.isnan(predicted) & (part[:, _COUNT] >= _FEWEST - 1e-9)
            predicted[is_known] = np.exp(part[is_known, _MEDIAN])
        predicted = np.where(np.isnan(predicted), jobs.request_s, predicted)
        limited: Float64s = np.maximum(np.minimum(predicted, jobs.request_s), elapsed_s)
        return limited
