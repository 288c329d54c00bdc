"""Chooses the predictor of each job's run time: the one that was most accurate recently, for its user and for everybody.

No predictor is the best on every log: limits are good where jobs are killed at them, similar jobs where users repeat themselves.
Does not train or predict.
"""

import numpy as np

from clusterscape.analyze.jobs.runtime import compute_accuracy
from clusterscape.model.arrays import Float64s, Int64s

NAME = "best lately"
MEMORY = 1000
"""Newest ended jobs of everybody that count."""

USER_FORGET = 0.98
"""Weight of a user's job relative to their next newer one."""

WEIGHT = 50.0
"""Everybody's mean counts as this many jobs of the user."""


def choose_lately(predicted_s: Float64s, run_s: Float64s, made_s: Float64s, end_s: Float64s, user: Int64s) -> Int64s:
    """The column of ``predicted_s`` (job × predictor) to use for each job, judged by jobs that had ended when it was made.

    ``user``: a number of each job's user, negative if unknown. Before any job has ended, the first column is used.
    """
    from clusterscape.analyze.jobs.kernels import choose_predictors

    chosen = np.zeros(len(run_s), np.int64)
    if len(run_s):
        number = np.unique(np.maximum(user, -1), return_inverse=True)[1].astype(np.int64)
        accuracy = np.ascontiguousarray(compute_accuracy(np.maximum(predicted_s, 1.0), run_s[:, None]))
        choose_predictors(
            accuracy,
            np.ascontiguousarray(made_s, np.float64),
            np.ascontiguousarray(end_s, np.float64),
            number,
            MEMORY,
            USER_FORGET,
            WEIGHT,
            chosen,
        )
    return chosen
