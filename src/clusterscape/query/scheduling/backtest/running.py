"""Forecasts of waits on a job trace, each made with what was known when the job was submitted, and how good they were.

Deterministic by seed; resumable: what was done lies in a checkpoint named by a fingerprint of jobs and choices.
"""

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clusterscape.analyze.jobs.features import AskedJobs, RanJobs, RunHistory
from clusterscape.analyze.jobs.runtime_forest import train_forest
from clusterscape.analyze.jobs.wait_intervals import WaitBins, summarize_samples
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.query.scheduling.backtest.forecasting import (
    FUTURES,
    Forecaster,
    Question,
    TraceMoment,
    see_submission,
)
from clusterscape.simulate.backtest import plan_waits
from clusterscape.simulate.futures import PastArrivals

TRAIN_AT = (0.3, 0.45, 0.6, 0.7, 0.8, 0.9)
"""Shares of the trace at which run times are learned anew. What comes before the first is never forecast."""

TEST_FROM = 0.7
TOGETHER = 64
"""Moments whose run times are asked for at once, and after which the checkpoint is written."""

VERSION = "1"


@dataclass(frozen=True, slots=True)
class WaitForecasts:
    """Forecasts of jobs that did not start at once, by submission. ``quantiles_s`` are as sampled, at the levels of waits."""

    row: Int64s
    submit_s: Float64s
    wait_s: Float64s
    plan_s: Float64s
    quantiles_s: Float64s
    size_ratio: Float64s
    ahead: Float64s

    @property
    def bins(self) -> WaitBins:
        """Where the jobs stood."""
        return WaitBins(self.size_ratio, self.ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestChoices:
    """``sample``: how many jobs are forecast, drawn evenly over what follows the first training."""

    sample: int = 2000
    futures: int = FUTURES
    seed: int = 0
    threads: int = 1


def backtest(
    jobs: RanJobs,
    total: int,
    choices: BacktestChoices,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> WaitForecasts:
    """Forecast a sample of the jobs that had to wait. ``progress`` is told how many are done, of how many.

    Whether a job starts at once is known at its submission, for sure: such jobs are no test of a forecast.
    """
    picked = _pick(jobs, choices)
    done = _resume(checkpoint, jobs, total, choices)
    history = RunHistory(jobs)
    asked = history.find(jobs)
    past = PastArrivals(jobs.submit_s, jobs.end_s, jobs.run_s, jobs.request_s, jobs.size)
    cuts = [*(int(len(jobs) * share) for share in TRAIN_AT), len(jobs)]
    for first, last in itertools.pairwise(cuts):
        rows = picked[(picked >= first) & (picked < last)]
        rows = rows[~np.isin(rows, done[:, 0].astype(np.int64))]
        if rows.size == 0:
            continue
        forest = train_forest(jobs, history, float(jobs.submit_s[first]), seed=choices.seed, threads=choices.threads)
        forecaster = Forecaster(forest, past, futures=choices.futures, seed=choices.seed)
        for begin in range(0, len(rows), TOGETHER):
            moments = [see_submission(jobs, int(row), total) for row in rows[begin : begin + TOGETHER]]
            found = _forecast(jobs, asked, moments, forest.quantiles, forecaster, total)
            done = np.concatenate([done, found])
            _save(checkpoint, done, jobs, total, choices)
            if progress is not None:
                progress(len(done), len(picked))
    return _to_forecasts(jobs, done)


def _pick(jobs: RanJobs, choices: BacktestChoices) -> Int64s:
    candidates = np.flatnonzero(jobs.start_s > jobs.submit_s)
    candidates = candidates[candidates >= int(len(jobs) * TRAIN_AT[0])]
    count = min(choices.sample, len(candidates))
    return np.sort(np.random.default_rng(choices.seed).choice(candidates, count, replace=False))


def _forecast(
    jobs: RanJobs,
    asked: AskedJobs,
    moments: list[TraceMoment],
    quantiles: Callable[[AskedJobs, Float64s, Float64s], Float64s],
    forecaster: Forecaster,
    total: int,
) -> Float64s:
    """A row per moment: job, plan, share of the machine, jobs ahead, then the quantiles."""
    elapsed = [np.concatenate([moment.elapsed_s, np.zeros(len(moment.waiting))]) for moment in moments]
    rows = np.concatenate([moment.rows for moment in moments])
    at = np.concatenate([np.full(len(moment.rows), moment.now_s) for moment in moments])
    known = quantiles(asked.take(rows), at, np.concatenate(elapsed))
    found, begin = [], 0
    for moment, passed in zip(moments, elapsed, strict=True):
        own = slice(begin, begin + len(passed))
        begin += len(passed)
        wanted = np.zeros(len(moment.waiting), np.bool_)
        wanted[-1] = True
        question = Question(moment.state, asked.take(moment.rows), moment.now_s, passed)
        waits = forecaster.play(question, known[own], wanted)[:, -1:]
        row = int(moment.waiting[-1])
        about = [row, plan_waits(moment.state)[-1], jobs.size[row] / total, len(moment.waiting) - 1]
        found.append(np.concatenate([about, summarize_samples(waits)[0]]))
    return np.array(found)


_COLUMNS = 4 + 7


def _to_forecasts(jobs: RanJobs, done: Float64s) -> WaitForecasts:
    done = done[np.argsort(done[:, 0], kind="stable")]
    row = done[:, 0].astype(np.int64)
    wait = jobs.start_s[row] - jobs.submit_s[row]
    return WaitForecasts(row, jobs.submit_s[row], wait, done[:, 1], done[:, 4:], done[:, 2], done[:, 3])


def fingerprint(jobs: RanJobs, total: int, choices: BacktestChoices) -> str:
    """A hash of every job and every choice."""
    digest = hashlib.sha256(repr((VERSION, total, choices.sample, choices.futures, choices.seed, TRAIN_AT)).encode())
    for column in (jobs.submit_s, jobs.start_s, jobs.run_s, jobs.request_s, jobs.size):
        digest.update(np.ascontiguousarray(column, "<f8").tobytes())
    return digest.hexdigest()


def _resume(checkpoint: Path | None, jobs: RanJobs, total: int, choices: BacktestChoices) -> Float64s:
    nothing = np.zeros((0, _COLUMNS))
    if checkpoint is None or not checkpoint.exists():
        return nothing
    with np.load(checkpoint) as stored:
        is_same = str(stored["fingerprint"]) == fingerprint(jobs, total, choices)
        return np.array(stored["done"]) if is_same else nothing


def _save(checkpoint: Path | None, done: Float64s, jobs: RanJobs, total: int, choices: BacktestChoices) -> None:
    if checkpoint is None:
        return
    beside = checkpoint.with_suffix(".part.npz")
    np.savez(beside, done=done, fingerprint=fingerprint(jobs, total, choices))
    beside.replace(checkpoint)
