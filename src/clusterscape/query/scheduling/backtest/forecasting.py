"""Forecasts at a moment of a recorded or simulated history: who ran and waited then, and the futures sampled from that.

A trace records one machine without nodes, so this plays EASY with later arrivals; the live queue is forecast on its nodes
(`query/scheduling/live_forecast.py`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.jobs.features import AskedJobs, RanJobs
from clusterscape.analyze.jobs.runtime import RuntimeDistribution
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.backtest import Futures, MachineState, forecast_waits
from clusterscape.simulate.futures import PastArrivals, RunQuantiles, no_arrivals, sample_runs

FUTURES = 64
LONGEST_HORIZON_S = 4 * 86_400.0
SHORTEST_HORIZON_S = 3_600.0

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TraceMoment:
    """A state with the rows of its jobs in the history. The job that is asked about waits last."""

    now_s: float
    running: Int64s
    waiting: Int64s
    elapsed_s: Float64s
    state: MachineState

    @property
    def rows(self) -> Int64s:
        """Running jobs, then waiting ones."""
        return np.concatenate([self.running, self.waiting])


def see_submission(jobs: RanJobs, row: int, total: int) -> TraceMoment:
    """What could be known when job ``row`` was submitted, after everything else of that second but later submissions."""
    now = float(jobs.submit_s[row])
    started = jobs.start_s < now
    # A job that started at this very second was submitted before or waits still, as the one asked about does.
    started |= (jobs.start_s == now) & (jobs.submit_s < now)
    here = np.flatnonzero((jobs.submit_s <= now) & (jobs.end_s > now))
    here = here[here <= row]
    running, waiting = here[started[here]], here[~started[here]]
    elapsed = now - jobs.start_s[running]
    left = np.maximum(jobs.request_s[running] - elapsed, 1.0)
    state = MachineState(
        max(total, int(jobs.size[running].sum())),
        _whole(jobs.size[running]),
        _whole(left),
        _whole(jobs.size[waiting]),
        _whole(jobs.request_s[waiting]),
    )
    return TraceMoment(now, running, waiting, elapsed, state)


def _whole(values: Float64s) -> Int64s:
    return np.ceil(values).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Question:
    """A queue at a moment. ``asked`` are the running jobs, then the waiting ones, as are the rows of ``elapsed_s``."""

    state: MachineState
    asked: AskedJobs
    now_s: float
    elapsed_s: Float64s

    @property
    def running(self) -> int:
        """How many run."""
        return len(self.state.running_size)


class Forecaster:
    """Samples futures. Immutable; equal questions with equal seeds give equal answers."""

    def __init__(self, runs: RuntimeDistribution, past: PastArrivals, *, futures: int = FUTURES, seed: int = 0) -> None:
        self._runs, self._past, self._futures, self._seed = runs, past, futures, seed

    def ask(self, question: Question, wanted: Bools | None = None) -> Float64s:
        """Seconds until each waiting job starts, a row per future; NaN where a job is not ``wanted`` and was not met."""
        at = np.full(len(question.asked), question.now_s)
        quantiles = self._runs.quantiles(question.asked, at, question.elapsed_s)
        return self.play(question, quantiles, wanted)

    def play(self, question: Question, run_s: Float64s, wanted: Bools | None = None) -> Float64s:
        """The same with the quantiles of run times given."""
        random = np.random.default_rng([self._seed, int(question.now_s), len(question.asked)])
        limited = np.minimum(run_s, question.asked.request_s[:, None])
        drawn = sample_runs(RunQuantiles(limited), self._futures, random)
        held = question.running
        remaining, whole = _to_seconds(drawn[:, :held] - question.elapsed_s[:held]), _to_seconds(drawn[:, held:])
        few = max(1, self._futures // 4)
        alone = Futures(remaining[:few], whole[:few], no_arrivals(few))
        waits = forecast_waits(question.state, alone, wanted)
        longest = float(np.nanquantile(waits, 0.9)) if np.isfinite(waits).any() else 0.0
        horizon = min(max(2 * longest, SHORTEST_HORIZON_S), LONGEST_HORIZON_S)
        arrivals = self._past.sample(question.now_s, horizon, self._futures, question.state.total, random)
        return forecast_waits(question.state, Futures(remaining, whole, arrivals), wanted)


def _to_seconds(run_s: Float64s) -> Int64s:
    """Whole seconds, at least one."""
    return np.maximum(np.rint(run_s), 1).astype(np.int64)
