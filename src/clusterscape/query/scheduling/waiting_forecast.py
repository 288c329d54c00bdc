"""When waiting jobs start: sampled run times given elapsed time, sampled arrivals, every future played by the engine."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.jobs.features import AskedJobs
from clusterscape.analyze.jobs.runtime import RuntimeDistribution
from clusterscape.model.samples import Float64s
from clusterscape.simulate.forecast import (
    Futures,
    PastArrivals,
    QueueState,
    RunQuantiles,
    forecast_waits,
    no_arrivals,
    sample_runs,
)
from clusterscape.simulate.forecast.sampling import to_seconds

FUTURES = 64
LONGEST_HORIZON_S = 4 * 86_400.0
SHORTEST_HORIZON_S = 3_600.0

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Question:
    """A queue at a moment. ``asked`` are the running jobs, then the waiting ones, as are the rows of ``elapsed_s``."""

    state: QueueState
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
        remaining, whole = to_seconds(drawn[:, :held] - question.elapsed_s[:held]), to_seconds(drawn[:, held:])
        few = max(1, self._futures // 4)
        alone = Futures(remaining[:few], whole[:few], no_arrivals(few))
        waits = forecast_waits(question.state, alone, wanted)
        longest = float(np.nanquantile(waits, 0.9)) if np.isfinite(waits).any() else 0.0
        horizon = min(max(2 * longest, SHORTEST_HORIZON_S), LONGEST_HORIZON_S)
        arrivals = self._past.sample(question.now_s, horizon, self._futures, question.state.total, random)
        return forecast_waits(question.state, Futures(remaining, whole, arrivals), wanted)
