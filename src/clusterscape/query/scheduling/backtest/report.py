"""How good forecasts of waits were: errors against the plan made from user limits, coverage as sampled and calibrated, by bin."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.features import RanJobs, take_jobs
from clusterscape.analyze.jobs.wait_intervals import (
    INTERVALS,
    MIDDLE,
    Coverage,
    WaitBins,
    measure_coverage,
    walk_forward,
)
from clusterscape.errors import QueryError
from clusterscape.model.jobs import JobTrace
from clusterscape.query.scheduling.backtest.running import TEST_FROM, WaitForecasts
from clusterscape.query.scheduling.wait_bins import WaitBinRow, describe_bins
from clusterscape.simulate.batch import PRESETS, Backfill, Scenario, find_policy, prepare_jobs, simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReport:
    """On the last part of a trace, every forecast calibrated by waits that were over when it was made. Seconds.

    ``plan_error_s``: of the plan that user limits make, on the same jobs. Errors are medians of the absolute error.
    """

    jobs: int
    median_wait_s: float
    plan_error_s: float
    error_s: float
    error_ratio: float | None
    sampled: list[Coverage]
    calibrated: list[Coverage]
    median_width_90_s: float
    bins: list[WaitBinRow]


def report_waits(forecasts: WaitForecasts, jobs: RanJobs) -> WaitReport:
    """Judge the forecasts of jobs from TEST_FROM on by submission. Raises QueryError where there are none."""
    first = int(np.searchsorted(forecasts.row, int(len(jobs) * TEST_FROM)))
    wait = forecasts.wait_s[first:]
    if len(wait) == 0:
        raise QueryError("no job had to wait in the part that is tested", hint="Is the machine larger than its load?")
    told = walk_forward(forecasts.quantiles_s, forecasts.wait_s, forecasts.bins, forecasts.submit_s, first=first)
    plan_error = float(np.median(np.abs(forecasts.plan_s[first:] - wait)))
    error = float(np.median(np.abs(told[:, MIDDLE] - wait)))
    low, high = INTERVALS[0.9]
    bins = WaitBins(forecasts.size_ratio[first:], forecasts.ahead[first:])
    return WaitReport(
        jobs=len(wait),
        median_wait_s=float(np.median(wait)),
        plan_error_s=plan_error,
        error_s=error,
        error_ratio=error / plan_error if plan_error else None,
        sampled=measure_coverage(forecasts.quantiles_s[first:], wait),
        calibrated=measure_coverage(told, wait),
        median_width_90_s=float(np.median(told[:, high] - told[:, low])),
        bins=describe_bins(told[:, MIDDLE], wait, bins),
    )


def replay_jobs(trace: JobTrace, total: int, *, recorded: bool) -> RanJobs:
    """The jobs of a trace with their starts: as recorded, or as first come, first served with EASY would have had them.

    Raises QueryError where waits are asked for that the trace does not record.
    """
    if recorded:
        if trace.frame["wait_s"].is_null().all():
            raise QueryError(
                f"{trace.name} records no waits", hint="Leave out --recorded: its schedule is simulated then."
            )
        return take_jobs(trace)
    how = PRESETS["clusterscape"]
    jobs, _ = prepare_jobs(trace, total, estimates="request", semantics=how)
    schedule = simulate(Scenario(jobs, total, find_policy("fcfs"), Backfill("easy"), "request", how))
    starts = np.full(len(trace), np.nan)
    starts[jobs.row] = schedule.start_s
    words = take_jobs(trace, starts)
    return RanJobs(
        words.frame,
        jobs.submit_s.astype(float),
        schedule.start_s.astype(float),
        jobs.run_s.astype(float),
        jobs.estimate_s.astype(float),
        jobs.processors.astype(float),
        words.is_completed,
    )
