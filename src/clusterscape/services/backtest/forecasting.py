"""Forecasts at one moment of a recorded or simulated history: the running and waiting jobs, and futures sampled from them.

A trace records one machine without nodes, so this simulates EASY with later arrivals; the live queue is forecast on its nodes
(`query/scheduling/live_forecast.py`).
"""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.features import EncodedJobs, JobTable
from clusterscape.analyze.jobs.runtime import RuntimeDistribution
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.simulate.backtest import Futures, MachineState, forecast_waits
from clusterscape.simulate.futures import PastArrivals, RunQuantiles, SampledArrivals, no_arrivals, sample_runs

FUTURES = 64
MAX_HORIZON_S = 4 * 86_400.0
MIN_HORIZON_S = 3_600.0


@dataclass(frozen=True, slots=True)
class TraceMoment:
    """A state with the rows of its jobs in the history. The job to forecast is the last waiting one."""

    now_s: float
    running: Int64s
    waiting: Int64s
    elapsed_s: Float64s
    state: MachineState

    @property
    def rows(self) -> Int64s:
        """Running jobs, then waiting ones."""
        return np.concatenate([self.running, self.waiting])


def find_moment(jobs: JobTable, row: int, total: int) -> TraceMoment:
    """The state when job ``row`` was submitted, after all other events of that second except later submissions."""
    now = float(jobs.submit_s[row])
    started = jobs.start_s < now
    # A job that started in this second was running if it was submitted before; else it still waits.
    started |= (jobs.start_s == now) & (jobs.submit_s < now)
    active = np.flatnonzero((jobs.submit_s <= now) & (jobs.end_s > now))
    active = active[active <= row]
    running, waiting = active[started[active]], active[~started[active]]
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
class QueueState:
    """A queue at one moment. ``asked``: the running jobs, then the waiting ones, in the order of ``elapsed_s``."""

    state: MachineState
    asked: EncodedJobs
    now_s: float
    elapsed_s: Float64s

    @property
    def running(self) -> int:
        """The number of running jobs."""
        return len(self.state.running_size)


class Forecaster:
    """Samples futures. Immutable; equal states with equal seeds give equal forecasts."""

    def __init__(self, runs: RuntimeDistribution, past: PastArrivals, *, futures: int = FUTURES, seed: int = 0) -> None:
        self._runs, self._past, self._futures, self._seed = runs, past, futures, seed

    def forecast(self, queue: QueueState, wanted: Bools | None = None) -> Float64s:
        """Seconds until each waiting job starts, futures × jobs; NaN for jobs that are not ``wanted`` and did not start."""
        at = np.full(len(queue.asked), queue.now_s)
        quantiles = self._runs.quantiles(queue.asked, at, queue.elapsed_s)
        return self.simulate(queue, quantiles, wanted)

    def simulate(
        self,
        queue: QueueState,
        run_s: Float64s,
        wanted: Bools | None = None,
        *,
        arrivals: SampledArrivals | None = None,
    ) -> Float64s:
        """The same for given quantiles of run times; ``arrivals``: known ones instead of sampled ones."""
        random = np.random.default_rng([self._seed, int(queue.now_s), len(queue.asked)])
        limited = np.minimum(run_s, queue.asked.request_s[:, None])
        samples = sample_runs(RunQuantiles(limited), self._futures, random)
        running = queue.running
        remaining, whole = (
            _to_seconds(samples[:, :running] - queue.elapsed_s[:running]),
            _to_seconds(samples[:, running:]),
        )
        if arrivals is not None:
            return forecast_waits(queue.state, Futures(remaining, whole, arrivals), wanted)
        pilot_count = max(1, self._futures // 4)
        pilot = Futures(remaining[:pilot_count], whole[:pilot_count], no_arrivals(pilot_count))
        waits = forecast_waits(queue.state, pilot, wanted)
        longest = float(np.nanquantile(waits, 0.9)) if np.isfinite(waits).any() else 0.0
        horizon = min(max(2 * longest, MIN_HORIZON_S), MAX_HORIZON_S)
        arrivals = self._past.sample(queue.now_s, horizon, self._futures, queue.state.total, random)
        return forecast_waits(queue.state, Futures(remaining, whole, arrivals), wanted)


def _to_seconds(run_s: Float64s) -> Int64s:
    """Whole seconds, at least one."""
    return np.maximum(np.rint(run_s), 1).astype(np.int64)
