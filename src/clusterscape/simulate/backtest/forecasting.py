"""One machine without nodes, as job traces record it: when its waiting jobs start in sampled futures, and by their limits.

Only backtests of forecasts on job traces use this; the live queue is planned on its nodes (`simulate/plan`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clusterscape.errors import QueryError
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.simulate.batch.contract import Backfill, BatchJobs, Scenario
from clusterscape.simulate.batch.engine import make_rules
from clusterscape.simulate.batch.policies.fcfs import POLICY
from clusterscape.simulate.batch.semantics import CLUSTERSCAPE
from clusterscape.simulate.futures import Arrivals, no_arrivals

if TYPE_CHECKING:
    from clusterscape.simulate.batch.indexed_kernels import Rules

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MachineState:
    """One homogeneous machine now. Waiting jobs are in the order of the queue; times are seconds, sizes whole processors.

    ``running_limit_s`` is what is left of each running job's time limit (at least 1), ``waiting_limit_s`` the whole limit.
    """

    total: int
    running_size: Int64s
    running_limit_s: Int64s
    waiting_size: Int64s
    waiting_limit_s: Int64s

    def __post_init__(self) -> None:
        if self.total < 1 or (self.waiting_size.size and int(self.waiting_size.max()) > self.total):
            raise QueryError(
                f"a job asks for {int(self.waiting_size.max(initial=0)):,} of {self.total:,} processors: it never starts"
            )


@dataclass(frozen=True, slots=True)
class Futures:
    """Sampled run times, a row per future: what is left of running jobs, whole runs of waiting ones; and who else arrives."""

    remaining_s: Int64s
    run_s: Int64s
    arrivals: Arrivals


def forecast_waits(
    state: MachineState, futures: Futures, wanted: Bools | None = None, *, backfills: bool = True
) -> Float64s:
    """Seconds from now until each waiting job starts, a row per future; NaN for jobs that are not ``wanted`` and were not met.

    First come (in the order of the state), first served, with EASY backfilling by the limits.
    """
    from clusterscape.simulate.backtest.kernels import play_futures

    count = state.waiting_size.size
    out = np.full((futures.run_s.shape[0], count), np.nan)
    if count == 0:
        return out
    arrivals = futures.arrivals
    total = max(state.total, int(state.running_size.sum()))
    play_futures(
        _easy(total, backfills=backfills),
        _whole(state.running_size),
        _whole(state.running_limit_s),
        _whole(state.waiting_size),
        _whole(state.waiting_limit_s),
        _whole(futures.remaining_s),
        _whole(futures.run_s),
        arrivals.offsets,
        arrivals.at_s,
        arrivals.size,
        arrivals.run_s,
        arrivals.limit_s,
        np.ones(count, np.bool_) if wanted is None else wanted,
        out,
    )
    return out


def plan_waits(state: MachineState, *, backfills: bool = True) -> Float64s:
    """Seconds until each waiting job starts if every job used its whole limit and nobody else came: a scheduler's own plan."""
    futures = Futures(state.running_limit_s[None, :], state.waiting_limit_s[None, :], no_arrivals(1))
    planned: Float64s = forecast_waits(state, futures, backfills=backfills)[0]
    return planned


def _whole(values: Int64s) -> Int64s:
    return np.ascontiguousarray(values, dtype=np.int64)


def _easy(total: int, *, backfills: bool) -> Rules:
    """The engine's own semantics: all events of a second at once, promises recomputed, extra nodes used."""
    nothing = np.zeros(0, np.int64)
    jobs = BatchJobs(*([nothing] * 8))
    backfill = Backfill("easy" if backfills else "none")
    return make_rules(Scenario(jobs, total, POLICY, backfill, "request", CLUSTERSCAPE))
