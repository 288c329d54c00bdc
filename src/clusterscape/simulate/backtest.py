"""One homogeneous machine, as job traces record it: forecasts when waiting jobs start, by sampled futures or by their limits.

Only backtests of forecasts on job traces use this; the live queue is planned on its nodes (`simulate/plan.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.simulate.batch.contract import Backfill, BatchJobs, Scenario
from clusterscape.simulate.batch.engine import make_rules
from clusterscape.simulate.batch.policies.fcfs import POLICY
from clusterscape.simulate.batch.semantics import CLUSTERSCAPE
from clusterscape.simulate.futures import SampledArrivals, no_arrivals

if TYPE_CHECKING:
    from clusterscape.simulate.batch.indexed_kernels import BatchRules


@dataclass(frozen=True, slots=True)
class MachineState:
    """The current state of one homogeneous machine. Waiting jobs are in queue order; times in seconds, sizes in processors.

    ``running_limit_s``: remaining time limit of each running job (at least 1); ``waiting_limit_s``: the whole limit.
    """

    total: int
    running_size: Int64s
    running_limit_s: Int64s
    waiting_size: Int64s
    waiting_limit_s: Int64s

    def __post_init__(self) -> None:
        if self.total < 1 or (self.waiting_size.size and int(self.waiting_size.max()) > self.total):
            raise QueryError(
                f"a job requests {int(self.waiting_size.max(initial=0)):,} of {self.total:,} processors: it can never start"
            )


@dataclass(frozen=True, slots=True)
class Futures:
    """Sampled run times, a row per future: remaining times of running jobs, run times of waiting jobs; and further arrivals."""

    remaining_s: Int64s
    run_s: Int64s
    arrivals: SampledArrivals


def forecast_waits(
    state: MachineState, futures: Futures, wanted: Bools | None = None, *, backfills: bool = True
) -> Float64s:
    """Seconds until each waiting job starts, a row per future; NaN for jobs that are not ``wanted`` and have not started.

    First come, first served (in the order of ``state``), with EASY backfilling by the limits.
    """
    from clusterscape.simulate.backtest_kernels import simulate_futures

    count = state.waiting_size.size
    out = np.full((futures.run_s.shape[0], count), np.nan)
    if count == 0:
        return out
    arrivals = futures.arrivals
    total = max(state.total, int(state.running_size.sum()))
    simulate_futures(
        _easy(total, backfills=backfills),
        _contiguous(state.running_size),
        _contiguous(state.running_limit_s),
        _contiguous(state.waiting_size),
        _contiguous(state.waiting_limit_s),
        _contiguous(futures.remaining_s),
        _contiguous(futures.run_s),
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
    """Seconds until each waiting job starts if every job used its whole limit and no job arrived: a scheduler's own plan."""
    futures = Futures(state.running_limit_s[None, :], state.waiting_limit_s[None, :], no_arrivals(1))
    planned: Float64s = forecast_waits(state, futures, backfills=backfills)[0]
    return planned


def _contiguous(values: Int64s) -> Int64s:
    return np.ascontiguousarray(values, dtype=np.int64)


def _easy(total: int, *, backfills: bool) -> BatchRules:
    """EASY backfilling with ClusterScape's semantics: events of one second are batched, promises recomputed, extra nodes used."""
    empty = np.zeros(0, np.int64)
    jobs = BatchJobs(*([empty] * 8))
    backfill = Backfill("easy" if backfills else "none")
    return make_rules(Scenario(jobs, total, POLICY, backfill, "request", CLUSTERSCAPE))
