"""What is learned from this cluster's own history, and when it is learned again. Requests never train: ``tend`` does.

Models are made anew from the history at each start: that takes seconds, and a kept file could disagree with the history.
"""

import threading
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.features import AskedJobs, RanJobs, RunHistory, take_jobs, to_ran_jobs
from clusterscape.analyze.jobs.runtime import LEVELS, RuntimeDistribution
from clusterscape.analyze.jobs.runtime_elapsed import train_elapsed
from clusterscape.analyze.jobs.runtime_report import PredictionReport, compare_predictors
from clusterscape.errors import QueryError
from clusterscape.model import UnixMs
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.jobs import JOB_COLUMNS
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.history import read_history
from clusterscape.simulate.futures import PastArrivals

FEWEST_JOBS = 200
"""Ended jobs before anything is learned: below that neither learning nor testing says anything."""

RETRAIN_SHARE = 0.1
RETRAIN_FEWEST = 100
"""New ended jobs, as a share of those learned from and at least so many, after which models are made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What a model was made from and how good it is. ``report`` is on the last 30 % of the jobs, which its twin did not see."""

    name: PublicText
    method: PublicText
    is_trained: bool
    trained_at: int | None
    jobs: int
    first_submit_at: int | None
    last_submit_at: int | None
    retrained_after: int
    """Ended jobs that are still missing until it is made anew."""
    report: PredictionReport | None
    limits: list[PublicText]


@dataclass(frozen=True, slots=True)
class Learned:
    """Everything that forecasts need. ``jobs`` are the ended ones."""

    jobs: RanJobs
    history: RunHistory
    runs: RuntimeDistribution
    arrivals: dict[str | None, PastArrivals]
    report: PredictionReport | None
    trained_at: UnixMs | None

    def arrivals_of(self, partition: str) -> PastArrivals:
        """Past arrivals of a partition; nobody where nothing is known."""
        return self.arrivals.get(partition) or self.arrivals[None]


class UntrainedRuns:
    """Before anything is learned: any share of the limit is as likely as any other."""

    def quantiles(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:  # noqa: ARG002 – of the contract
        """Whole run times at the levels, beyond ``elapsed_s``."""
        left = np.maximum(jobs.request_s - elapsed_s, 1.0)
        return elapsed_s[:, None] + LEVELS[None, :] * left[:, None]


class SchedulingModels:
    """Keeps the newest models. Reading never waits for training."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._learned: Learned | None = None
        self._ended = 0
        self._nothing = _learn_nothing()
        self._training = threading.Lock()

    def current(self) -> Learned:
        """The newest models; before the first training what needs none."""
        if self._learned is None:
            return self._nothing
        return self._learned

    def tend(self) -> bool:
        """Make the models anew where enough jobs ended since; returns whether it did. One at a time."""
        if not self._training.acquire(blocking=False):
            return False
        try:
            jobs = self._read()
            self._ended = len(jobs)
            if not self._is_due(len(jobs)):
                return False
            self._learned = _learn(jobs, self._context.clock())
            return True
        finally:
            self._training.release()

    def card(self) -> ModelCard:
        """The run-time model's card; the waiting model rests on it."""
        learned = self._learned
        count = 0 if learned is None else len(learned.jobs)
        submits = None if learned is None else learned.jobs.submit_s
        due_at = FEWEST_JOBS if learned is None else count + max(RETRAIN_FEWEST, int(count * RETRAIN_SHARE))
        return ModelCard(
            name="run time",
            method="quantile forest (LightGBM) over the user's former jobs, conditioned on elapsed time, conformal quantiles",
            is_trained=learned is not None and learned.trained_at is not None,
            trained_at=None if learned is None else learned.trained_at,
            jobs=count,
            first_submit_at=None if submits is None or not len(submits) else int(submits.min() * 1000),
            last_submit_at=None if submits is None or not len(submits) else int(submits.max() * 1000),
            retrained_after=max(0, due_at - self._ended),
            report=None if learned is None else learned.report,
            limits=[
                "Learned from jobs of this cluster that ended; users without history are taken for the average user.",
                "A change of habits or hardware shows only after jobs under it have ended.",
            ],
        )

    def _is_due(self, ended: int) -> bool:
        if self._learned is None:
            return ended >= FEWEST_JOBS
        known = len(self._learned.jobs)
        return ended - known >= max(RETRAIN_FEWEST, known * RETRAIN_SHARE)

    def _read(self) -> RanJobs:
        return take_jobs(read_history(self._context.records, name=self._context.cluster, now_ms=self._context.clock()))


def _learn_nothing() -> Learned:
    columns = {**JOB_COLUMNS, "size": pl.Float64(), "start_s": pl.Float64()}
    jobs = to_ran_jobs(pl.DataFrame(schema=columns))
    return Learned(jobs, RunHistory(jobs), UntrainedRuns(), _split_arrivals(jobs), None, None)


def _learn(jobs: RanJobs, now: UnixMs) -> Learned:
    history = RunHistory(jobs)
    runs = train_elapsed(jobs, history, now / 1000)
    try:
        report = compare_predictors(jobs)
    except QueryError:
        # Jobs enough to learn from in all, not in the first part: there is nothing to say about quality yet.
        report = None
    return Learned(jobs, history, runs, _split_arrivals(jobs), report, now)


def _split_arrivals(jobs: RanJobs) -> dict[str | None, PastArrivals]:
    def take(rows: Int64s) -> PastArrivals:
        return PastArrivals(
            jobs.submit_s[rows], jobs.end_s[rows], jobs.run_s[rows], jobs.request_s[rows], jobs.size[rows]
        )

    arrivals: dict[str | None, PastArrivals] = {None: take(np.zeros(0, np.int64))}
    queues = jobs.frame["queue"]
    for name in queues.unique().drop_nulls():
        arrivals[str(name)] = take(np.flatnonzero((queues == name).fill_null(False).to_numpy()))
    return arrivals
