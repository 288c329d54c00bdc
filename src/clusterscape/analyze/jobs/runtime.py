"""The interface of run time predictors, their accuracy, training pairs of job and time, and predictors without a model: the
user's request, and the mean of the user's last two runs (Tsafrir, Etsion & Feitelson 2007).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from clusterscape.analyze.jobs.features import FEATURES, EncodedJobs, JobTable, RunHistory
from clusterscape.errors import QueryError
from clusterscape.model.arrays import Float64s, Int64s

LEVELS: Float64s = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
"""Levels of the predicted quantiles of run times."""

SHORTEST_ELAPSED_S = 30.0

MIN_ENDED_JOBS = 50
"""Minimum number of ended jobs for training."""

MAX_PAIRS = 60_000
"""Maximum number of training pairs of job and time; older ones cost time and describe outdated behavior."""


class RuntimePredictor(Protocol):
    """Predicts run times, using only what was known at the time of the prediction."""

    @property
    def name(self) -> str:
        """Name in tables."""
        ...

    def predict(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Total run times in seconds, predicted at ``at_s``, when each job has run for ``elapsed_s`` (0: it waits)."""
        ...


class RuntimeDistribution(Protocol):
    """Predicts quantiles of run times."""

    def quantiles(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Total run times at LEVELS, given that a job runs longer than ``elapsed_s``; one ascending row per job."""
        ...


@dataclass(frozen=True, slots=True)
class Moments:
    """Pairs of job and time: the row of a job, the time, and how long the job had run by then."""

    row: Int64s
    elapsed_s: Float64s
    at_s: Float64s


def draw_moments(jobs: JobTable, rows: Int64s, random: np.random.Generator, *, draws: int = 2) -> Moments:
    """Each job at its submission and, ``draws`` times, after a random elapsed time, if it was still running then.

    The elapsed time is drawn independently of the run time, so that the pairs sample P(run | run > elapsed).
    """
    runs, starts = jobs.run_s[rows], jobs.start_s[rows]
    parts = [(rows, np.zeros(len(rows)), jobs.submit_s[rows])]
    longest = max(float(np.quantile(runs, 0.98)), 2 * SHORTEST_ELAPSED_S)
    for _ in range(draws):
        elapsed = np.exp(random.uniform(np.log(SHORTEST_ELAPSED_S), np.log(longest), len(rows)))
        alive = runs > elapsed
        parts.append((rows[alive], elapsed[alive], starts[alive] + elapsed[alive]))
    return Moments(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def find_training_rows(jobs: JobTable, until_s: float) -> Int64s:
    """Rows of the jobs that had ended by ``until_s``. Raises QueryError if there are too few."""
    rows = np.flatnonzero(jobs.end_s <= until_s)
    if rows.size < MIN_ENDED_JOBS:
        raise QueryError(
            f"{rows.size} ended jobs are too few to train a model",
            hint=f"Predictions need at least {MIN_ENDED_JOBS} ended jobs.",
        )
    return rows


def compute_accuracy(predicted_s: Float64s, run_s: Float64s) -> Float64s:
    """min(prediction, run time) / max(prediction, run time) of each job; 1 is exact."""
    accuracy: Float64s = np.minimum(predicted_s, run_s) / np.maximum(predicted_s, run_s)
    return accuracy


LEVEL_WEIGHTS: Float64s = np.diff(np.concatenate([[0.0], (LEVELS[1:] + LEVELS[:-1]) / 2, [1.0]]))
"""Share of a distribution that each of LEVELS stands for."""


def find_most_accurate(quantiles_s: Float64s) -> Float64s:
    """The quantile with the highest expected accuracy of each row of quantiles at LEVELS.

    Where runs end at one of several times (a failure, the limit), it is one of them, and the median may be none.
    """
    logs = np.log(np.maximum(quantiles_s, 1.0))
    expected = [np.exp(-np.abs(logs - logs[:, [place]])) @ LEVEL_WEIGHTS for place in range(LEVELS.size)]
    best = np.argmax(np.column_stack(expected), axis=1)
    points: Float64s = quantiles_s[np.arange(len(quantiles_s)), best]
    return points


class RequestedTime:
    """Predicts the requested time limit."""

    name = "user request"

    def predict(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:  # noqa: ARG002 – part of the protocol
        """The limit, or the elapsed time if it is longer."""
        return np.maximum(jobs.request_s, elapsed_s)


_LAST, _BEFORE = FEATURES.index("user_last"), FEATURES.index("user_before_last")


class LastTwo:
    """Predicts the mean of the user's last two runs, or the request if the user has fewer. Needs no training."""

    name = "Last2"

    def __init__(self, history: RunHistory) -> None:
        self._history = history

    def predict(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """Total run times in seconds."""
        last_runs = np.exp(self._history.describe(jobs, at_s, elapsed_s)[:, [_LAST, _BEFORE]])
        predicted = np.where(np.isnan(last_runs).any(axis=1), jobs.request_s, last_runs.mean(axis=1))
        return np.maximum(np.minimum(predicted, jobs.request_s), elapsed_s)
