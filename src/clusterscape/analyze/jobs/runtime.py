"""What a prediction of run times promises, how good one is, and the pairs of job and moment that models learn from."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from clusterscape.analyze.jobs.features import AskedJobs, RanJobs
from clusterscape.errors import QueryError
from clusterscape.model.samples import Float64s, Int64s

LEVELS: Float64s = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
"""Levels at which distributions of run times are told."""

SHORTEST_ELAPSED_S = 30.0

FEWEST = 50
"""Ended jobs below which nothing is learned."""

MOST_PAIRS = 60_000
"""Older pairs of job and moment beyond this are left out: they cost time and describe users who have changed."""


class RuntimePredictor(Protocol):
    """One way to say how long jobs run. It uses nothing that was not known at the moment it is asked for."""

    @property
    def name(self) -> str:
        """How tables call it."""
        ...

    def predict(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Whole run times in seconds, as seen at ``at_s``, when each job had run for ``elapsed_s`` (0: it waits)."""
        ...


class RuntimeDistribution(Protocol):
    """Says how sure it is, too."""

    def quantiles(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Whole run times at LEVELS given that a job runs longer than ``elapsed_s``; a row per job, rising along it."""
        ...


@dataclass(frozen=True, slots=True)
class Moments:
    """Jobs at moments of their lives: the row of a job, how long it had run, and when that was."""

    row: Int64s
    elapsed_s: Float64s
    at_s: Float64s


def draw_moments(jobs: RanJobs, rows: Int64s, random: np.random.Generator, *, draws: int = 2) -> Moments:
    """Each job at its submission and, ``draws`` times, after a time drawn independently of its run, where it still ran.

    Drawing independently is what makes the pairs those of a machine looked at from outside: P(run | run > elapsed).
    """
    runs, starts = jobs.run_s[rows], jobs.start_s[rows]
    parts = [(rows, np.zeros(len(rows)), jobs.submit_s[rows])]
    longest = max(float(np.quantile(runs, 0.98)), 2 * SHORTEST_ELAPSED_S)
    for _ in range(draws):
        elapsed = np.exp(random.uniform(np.log(SHORTEST_ELAPSED_S), np.log(longest), len(rows)))
        alive = runs > elapsed
        parts.append((rows[alive], elapsed[alive], starts[alive] + elapsed[alive]))
    return Moments(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def find_learnable(jobs: RanJobs, until_s: float) -> Int64s:
    """Rows of the jobs that had ended by ``until_s``. Raises QueryError where they are too few."""
    rows = np.flatnonzero(jobs.end_s <= until_s)
    if rows.size < FEWEST:
        raise QueryError(
            f"{rows.size} ended jobs are too few to learn from",
            hint=f"Predictions begin after {FEWEST} jobs have ended.",
        )
    return rows


def compute_accuracy(predicted_s: Float64s, run_s: Float64s) -> Float64s:
    """Of each job: the smaller of prediction and run time over the larger; 1 is exact."""
    accuracy: Float64s = np.minimum(predicted_s, run_s) / np.maximum(predicted_s, run_s)
    return accuracy
