"""Computes wait forecasts on a job trace, each from what was known when the job was submitted.

Deterministic by seed; resumable: a checkpoint with a fingerprint of jobs and choices holds the finished forecasts.
"""

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.features import EncodedJobs, JobTable, RunHistory
from clusterscape.analyze.jobs.runtime_forest import train_forest
from clusterscape.analyze.jobs.wait_choice import WaitQuestions
from clusterscape.analyze.jobs.wait_guesses import guess_waits, select_past_waits
from clusterscape.analyze.jobs.wait_intervals import LEVELS, WaitBins, summarize_samples
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.services.backtest.forecasting import (
    FUTURES,
    Forecaster,
    QueueState,
    TraceMoment,
    find_moment,
)
from clusterscape.services.backtest.oracles import FUTURES as ORACLE_FUTURES
from clusterscape.services.backtest.oracles import ORACLES, ask_oracles
from clusterscape.simulate.backtest import plan_waits
from clusterscape.simulate.futures import PastArrivals

TRAIN_AT = (0.3, 0.45, 0.6, 0.7, 0.8, 0.9)
"""Shares of the trace at which the run-time model is retrained. Jobs before the first are not forecast."""

TEST_FROM = 0.7
BATCH = 64
"""Moments per batch: their run times are predicted together, and the checkpoint is written after them."""

VERSION = "2"


@dataclass(frozen=True, slots=True)
class WaitForecasts:
    """Forecasts of jobs that did not start immediately, by submission. ``quantiles_s``: as simulated, at the levels of waits;
    ``guesses_s``: GUESSES of each job, from the waits of all jobs that were over by then; ``oracles_s``: job × ORACLES, NaN where
    they were not asked.
    """

    row: Int64s
    submit_s: Float64s
    wait_s: Float64s
    plan_s: Float64s
    quantiles_s: Float64s
    size_ratio: Float64s
    ahead: Float64s
    guesses_s: Float64s
    oracles_s: Float64s

    @property
    def questions(self) -> WaitQuestions:
        """The forecasts as they are decided, in the backtest and on the live queue."""
        return WaitQuestions(self.guesses_s, self.quantiles_s, self.bins)

    @property
    def bins(self) -> WaitBins:
        """The bins of the jobs."""
        return WaitBins(self.size_ratio, self.ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestChoices:
    """``sample``: how many jobs are forecast, sampled uniformly from those after the first training; ``oracles``: for how many of
    the tested ones the oracles are asked, too.
    """

    sample: int = 2000
    oracles: int = 0
    futures: int = FUTURES
    seed: int = 0
    threads: int = 1


def backtest(
    jobs: JobTable,
    total: int,
    choices: BacktestChoices,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> WaitForecasts:
    """Forecasts a sample of the jobs that waited. ``progress`` is called with the number done and the total.

    Whether a job starts immediately is certain at its submission, so such jobs do not test a forecast.
    """
    sample = _sample_jobs(jobs, choices)
    tested = sample[sample >= int(len(jobs) * TEST_FROM)]
    with_oracles = tested[:: max(1, len(tested) // max(1, choices.oracles))] if choices.oracles else tested[:0]
    done = _resume(checkpoint, jobs, total, choices)
    history = RunHistory(jobs)
    requests = history.encode(jobs)
    past = PastArrivals(jobs.submit_s, jobs.end_s, jobs.run_s, jobs.request_s, jobs.size)
    cuts = [*(int(len(jobs) * share) for share in TRAIN_AT), len(jobs)]
    for first, last in itertools.pairwise(cuts):
        rows = sample[(sample >= first) & (sample < last)]
        rows = rows[~np.isin(rows, done[:, 0].astype(np.int64))]
        if rows.size == 0:
            continue
        forest = train_forest(jobs, history, float(jobs.submit_s[first]), seed=choices.seed, threads=choices.threads)
        forecaster = Forecaster(forest, past, futures=choices.futures, seed=choices.seed)
        knowing = Forecaster(forest, past, futures=ORACLE_FUTURES, seed=choices.seed)
        for begin in range(0, len(rows), BATCH):
            moments = [find_moment(jobs, int(row), total) for row in rows[begin : begin + BATCH]]
            forecasts = _forecast(jobs, requests, moments, forest.quantiles, (forecaster, knowing), with_oracles, total)
            done = np.concatenate([done, forecasts])
            _save(checkpoint, done, jobs, total, choices)
            if progress is not None:
                progress(len(done), len(sample))
    return _to_forecasts(jobs, done, total)


def _sample_jobs(jobs: JobTable, choices: BacktestChoices) -> Int64s:
    candidates = np.flatnonzero(jobs.start_s > jobs.submit_s)
    candidates = candidates[candidates >= int(len(jobs) * TRAIN_AT[0])]
    count = min(choices.sample, len(candidates))
    return np.sort(np.random.default_rng(choices.seed).choice(candidates, count, replace=False))


def _forecast(
    jobs: JobTable,
    requests: EncodedJobs,
    moments: list[TraceMoment],
    quantiles: Callable[[EncodedJobs, Float64s, Float64s], Float64s],
    forecasters: tuple[Forecaster, Forecaster],
    with_oracles: Int64s,
    total: int,
) -> Float64s:
    """A row per moment: job, plan, share of the machine, jobs ahead, then the quantiles, then the forecasts of the oracles."""
    forecaster, knowing = forecasters
    elapsed = [np.concatenate([moment.elapsed_s, np.zeros(len(moment.waiting))]) for moment in moments]
    rows = np.concatenate([moment.rows for moment in moments])
    at = np.concatenate([np.full(len(moment.rows), moment.now_s) for moment in moments])
    run_quantiles = quantiles(requests.take(rows), at, np.concatenate(elapsed))
    forecasts, begin = [], 0
    for moment, passed in zip(moments, elapsed, strict=True):
        rows_of_moment = slice(begin, begin + len(passed))
        begin += len(passed)
        wanted = np.zeros(len(moment.waiting), np.bool_)
        wanted[-1] = True
        queue = QueueState(moment.state, requests.take(moment.rows), moment.now_s, passed)
        waits = forecaster.simulate(queue, run_quantiles[rows_of_moment], wanted)[:, -1:]
        row = int(moment.waiting[-1])
        columns = [row, plan_waits(moment.state)[-1], jobs.size[row] / total, len(moment.waiting) - 1]
        oracles = np.full(len(ORACLES), np.nan)
        if row in with_oracles:
            oracles = ask_oracles(jobs, moment, queue, run_quantiles[rows_of_moment], knowing)
        forecasts.append(np.concatenate([columns, summarize_samples(waits)[0], oracles]))
    return np.array(forecasts)


_QUANTILES = slice(4, 4 + len(LEVELS))
_COLUMNS = _QUANTILES.stop + len(ORACLES)


def _to_forecasts(jobs: JobTable, done: Float64s, total: int) -> WaitForecasts:
    done = done[np.argsort(done[:, 0], kind="stable")]
    row = done[:, 0].astype(np.int64)
    wait = jobs.start_s - jobs.submit_s
    # Those submitted before and not started yet; a job that starts in the second of a submission has left the queue.
    ahead = np.arange(len(jobs)) - np.searchsorted(np.sort(jobs.start_s), jobs.submit_s, side="right")
    queue = jobs.frame["queue"].fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1
    past = select_past_waits(jobs.start_s, wait, WaitBins(jobs.size / total, np.maximum(ahead, 0.0)), queue)
    bins = WaitBins(done[:, 2], done[:, 3])
    guesses = guess_waits(past, jobs.submit_s[row], bins, queue[row], done[:, 1])
    return WaitForecasts(
        row, jobs.submit_s[row], wait[row], done[:, 1], done[:, _QUANTILES], done[:, 2], done[:, 3], guesses,
        done[:, _QUANTILES.stop :],
    )  # fmt: skip


def fingerprint(jobs: JobTable, total: int, choices: BacktestChoices) -> str:
    """A hash of every job and every choice."""
    digest = hashlib.sha256(
        repr((VERSION, total, choices.sample, choices.oracles, choices.futures, choices.seed, TRAIN_AT)).encode()
    )
    for column in (jobs.submit_s, jobs.start_s, jobs.run_s, jobs.request_s, jobs.size):
        digest.update(np.ascontiguousarray(column, "<f8").tobytes())
    return digest.hexdigest()


def _resume(checkpoint: Path | None, jobs: JobTable, total: int, choices: BacktestChoices) -> Float64s:
    empty = np.zeros((0, _COLUMNS))
    if checkpoint is None or not checkpoint.exists():
        return empty
    with np.load(checkpoint) as stored:
        is_same = str(stored["fingerprint"]) == fingerprint(jobs, total, choices)
        return np.array(stored["done"]) if is_same else empty


def _save(checkpoint: Path | None, done: Float64s, jobs: JobTable, total: int, choices: BacktestChoices) -> None:
    if checkpoint is None:
        return
    temporary = checkpoint.with_suffix(".part.npz")
    np.savez(temporary, done=done, fingerprint=fingerprint(jobs, total, choices))
    temporary.replace(checkpoint)
