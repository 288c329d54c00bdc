"""Models that are trained on this cluster's history, and when they are retrained. Trained by `services/forecasts.py`."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.features import EncodedJobs, JobTable, RunHistory, to_job_table
from clusterscape.analyze.jobs.runtime import LEVELS, RuntimeDistribution
from clusterscape.analyze.jobs.runtime_report import PredictionReport
from clusterscape.model import UnixMs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.jobs import JOB_COLUMNS
from clusterscape.simulate.futures import PastArrivals

MIN_JOBS = 200
"""Ended jobs before the first training: fewer are not enough to train and test on."""

RETRAIN_SHARE = 0.1
RETRAIN_MIN_JOBS = 100
"""New ended jobs after which models are retrained: a share of the training jobs, and at least this many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """A model's training data and accuracy. ``report``: on the last 30 % of the jobs, of a model trained without them."""

    name: PublicText
    method: PublicText
    is_trained: bool
    trained_at: int | None
    jobs: int
    first_submit_at: int | None
    last_submit_at: int | None
    retrained_after: int
    """Further ended jobs until it is retrained."""
    report: PredictionReport | None
    limits: list[PublicText]


@dataclass(frozen=True, slots=True)
class TrainedModels:
    """The models and data that forecasts use. ``jobs`` are the ended ones."""

    jobs: JobTable
    history: RunHistory
    runs: RuntimeDistribution
    arrivals: dict[str | None, PastArrivals]
    report: PredictionReport | None
    trained_at: UnixMs | None

    def arrivals_of(self, partition: str) -> PastArrivals:
        """Past arrivals of a partition; none if there is no history."""
        return self.arrivals.get(partition) or self.arrivals[None]


class UntrainedRuns:
    """The run-time distribution before the first training: uniform between the elapsed time and the limit."""

    def quantiles(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:  # noqa: ARG002 – of the contract
        """Quantiles of whole run times at LEVELS, above ``elapsed_s``; jobs × levels, seconds."""
        left = np.maximum(jobs.request_s - elapsed_s, 1.0)
        return elapsed_s[:, None] + LEVELS[None, :] * left[:, None]


class SchedulingModels:
    """The newest models. Any thread may read them without waiting for training (`services/forecasts.py`)."""

    def __init__(self) -> None:
        self._learned: TrainedModels | None = None
        self._untrained = _build_untrained()
        self.ended = 0
        """Number of ended jobs when it was last counted."""

    def current(self) -> TrainedModels:
        """The newest models; untrained ones before the first training."""
        return self._learned or self._untrained

    @property
    def due_at(self) -> int:
        """Number of ended jobs at which models are trained next."""
        if self._learned is None:
            return MIN_JOBS
        count = len(self._learned.jobs)
        return count + max(RETRAIN_MIN_JOBS, int(count * RETRAIN_SHARE))

    def replace(self, learned: TrainedModels) -> None:
        """Use these models from now on."""
        self._learned = learned

    def card(self) -> ModelCard:
        """The card of the run-time model, on which wait forecasts are based."""
        learned = self._learned
        count = 0 if learned is None else len(learned.jobs)
        submits = None if learned is None else learned.jobs.submit_s
        return ModelCard(
            name="run time",
            method="quantile forest (LightGBM) over the user's earlier jobs, conditioned on elapsed time, conformal quantiles",
            is_trained=learned is not None and learned.trained_at is not None,
            trained_at=None if learned is None else learned.trained_at,
            jobs=count,
            first_submit_at=None if submits is None or not len(submits) else int(submits.min() * 1000),
            last_submit_at=None if submits is None or not len(submits) else int(submits.max() * 1000),
            retrained_after=max(0, self.due_at - self.ended),
            report=None if learned is None else learned.report,
            limits=[
                "Trained on ended jobs of this cluster; users without history are treated as average users.",
                "Changes of user behavior or hardware have an effect only after jobs under them have ended.",
            ],
        )


def _build_untrained() -> TrainedModels:
    columns = {**JOB_COLUMNS, "size": pl.Float64(), "start_s": pl.Float64()}
    jobs = to_job_table(pl.DataFrame(schema=columns))
    return TrainedModels(jobs, RunHistory(jobs), UntrainedRuns(), split_arrivals(jobs), None, None)


def split_arrivals(jobs: JobTable) -> dict[str | None, PastArrivals]:
    """Arrivals by partition; under None no arrivals."""

    def select(rows: Int64s) -> PastArrivals:
        return PastArrivals(
            jobs.submit_s[rows], jobs.end_s[rows], jobs.run_s[rows], jobs.request_s[rows], jobs.size[rows]
        )

    arrivals: dict[str | None, PastArrivals] = {None: select(np.zeros(0, np.int64))}
    queues = jobs.frame["queue"]
    for name in queues.unique().drop_nulls():
        arrivals[str(name)] = select(np.flatnonzero((queues == name).fill_null(False).to_numpy()))
    return arrivals
