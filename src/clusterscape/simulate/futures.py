"""Samples futures: run times drawn from their quantiles, and arrivals of jobs that are not submitted yet.

Vectorized over futures and jobs; seeded by the caller. Arrivals are copied from past periods at the same hour of the week.
"""

from dataclasses import dataclass

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.durations import WEEK_S

LEVELS: Float64s = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
"""Quantile levels of predicted run times; interpolated between them, constant beyond them."""


@dataclass(frozen=True, slots=True)
class RunQuantiles:
    """Total run times at LEVELS, one row per job, ascending; for a running job, given its elapsed time."""

    run_s: Float64s

    def __post_init__(self) -> None:
        if self.run_s.ndim != 2 or self.run_s.shape[1] != LEVELS.size:
            raise QueryError("run times need one row per job with a column for each of LEVELS")


def sample_runs(quantiles: RunQuantiles, futures: int, random: np.random.Generator) -> Float64s:
    """Sample total run times, a row per future. Stratified over the levels, with an independent order for each job.

    The samples of a job do not depend on the number of jobs after it.
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


@dataclass(frozen=True, slots=True)
class SampledArrivals:
    """Arriving jobs of all futures, one future after another, split at ``offsets``; ``at_s``: seconds from now, ascending."""

    offsets: Int64s
    at_s: Int64s
    size: Int64s
    run_s: Int64s
    limit_s: Int64s


def no_arrivals(futures: int) -> SampledArrivals:
    """No further arrivals."""
    empty = np.zeros(0, np.int64)
    return SampledArrivals(np.zeros(futures + 1, np.int64), empty, empty, empty, empty)


class PastArrivals:
    """Past jobs by submission. Jobs that have not ended yet count with their limit as run time."""

    def __init__(self, submit_s: Float64s, end_s: Float64s, run_s: Float64s, limit_s: Float64s, size: Float64s) -> None:
        order = np.argsort(submit_s, kind="stable")
        self._submit, self._end = submit_s[order], end_s[order]
        self._run, self._limit, self._size = run_s[order], limit_s[order], size[order]

    def sample(
        self, now_s: float, horizon_s: float, futures: int, total: int, random: np.random.Generator, *, most: int = 2000
    ) -> SampledArrivals:
        """Sample arrivals of the next ``horizon_s`` from the same time of the week in random past weeks.

        A period must lie entirely before ``now_s``; with less than ``horizon_s`` of history there are no arrivals. ``most``:
        maximum number of jobs per future. Jobs larger than the machine count as its size.
        """
        if self._submit.size == 0 or now_s - self._submit[0] < horizon_s:
            return no_arrivals(futures)
        starts = self._find_starts(now_s, horizon_s, futures, random)
        first = np.searchsorted(self._submit, starts)
        last = np.minimum(np.searchsorted(self._submit, starts + horizon_s), first + most)
        counts = last - first
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts) + np.repeat(first, counts)
        at = self._submit[rows] - np.repeat(starts, counts)
        # The run time of a job that has not ended yet is unknown.
        run = np.where(self._end[rows] <= now_s, self._run[rows], self._limit[rows])
        size = np.minimum(self._size[rows], total)
        return SampledArrivals(
            offsets,
            np.maximum(at, 1).astype(np.int64),
            np.maximum(size, 1).astype(np.int64),
            np.maximum(run, 1).astype(np.int64),
            np.maximum(self._limit[rows], 1).astype(np.int64),
        )

    def _find_starts(self, now_s: float, horizon_s: float, futures: int, random: np.random.Generator) -> Float64s:
        """Past times to copy arrivals from: whole weeks ago if there are enough, shifted by up to an hour."""
        latest = now_s - horizon_s
        weeks = int((latest - self._submit[0]) // WEEK_S)
        skip = int(np.ceil(horizon_s / WEEK_S))
        shift = random.uniform(-3600, 3600, futures)
        if weeks - skip >= 4:
            # Only the last half year, because usage patterns change.
            chosen = random.integers(skip, min(weeks, skip + 26) + 1, futures)
            starts = now_s - chosen * WEEK_S + shift
        else:
            days = max(1, int((latest - self._submit[0]) // 86_400))
            starts = latest - random.integers(0, days, futures) * 86_400 + shift
        return np.clip(starts, self._submit[0], latest)
