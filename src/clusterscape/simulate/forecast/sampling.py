"""Run times drawn from their quantiles. Vectorised over futures and jobs; seeded by the caller."""

import numpy as np

from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.forecast.contract import LEVELS, RunQuantiles


def sample_runs(quantiles: RunQuantiles, futures: int, random: np.random.Generator) -> Float64s:
    """Whole run times, a row per future. Spread evenly over the levels (stratified), in an order of its own for each job.

    What is drawn for a job does not depend on how many jobs follow it.
    """
    jobs = quantiles.run_s.shape[0]
    order, within = random.spawn(2)
    ranks = order.random((jobs, futures)).argsort(axis=1).argsort(axis=1)
    levels = ((ranks + within.random((jobs, futures))) / futures).T
    high = np.clip(np.searchsorted(LEVELS, levels), 1, LEVELS.size - 1)
    low = high - 1
    share = np.clip((levels - LEVELS[low]) / (LEVELS[high] - LEVELS[low]), 0.0, 1.0)
    log_runs = np.log(np.maximum(quantiles.run_s, 1.0))
    columns = np.arange(jobs)[None, :]
    drawn: Float64s = log_runs[columns, low] + share * (log_runs[columns, high] - log_runs[columns, low])
    runs: Float64s = np.exp(drawn)
    return runs


def to_seconds(run_s: Float64s) -> Int64s:
    """Whole seconds, at least one."""
    return np.maximum(np.rint(run_s), 1).astype(np.int64)
