"""The accuracy of wait forecasts: errors compared with the plan by user limits, coverage before and after calibration, by bin."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.features import JobTable, select_ran_jobs
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
from clusterscape.query.scheduling.wait_bins import WaitBinRow, describe_bins
from clusterscape.services.backtest.running import TEST_FROM, WaitForecasts
from clusterscape.simulate.batch import PRESETS, Backfill, Scenario, find_policy, prepare_jobs, simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReport:
    """Accuracy on the last part of a trace; every forecast is calibrated by waits that had ended when it was made. Seconds.

    ``plan_error_s``: the error of the plan by user limits, on the same jobs. Errors are medians of absolute errors.
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


def report_waits(forecasts: WaitForecasts, jobs: JobTable) -> WaitReport:
    """Evaluates the forecasts of jobs submitted after the share TEST_FROM of the trace. Raises QueryError if there are none."""
    first = int(np.searchsorted(forecasts.row, int(len(jobs) * TEST_FROM)))
    wait = forecasts.wait_s[first:]
    if len(wait) == 0:
        raise QueryError("no job waited in the tested part of the trace", hint="Is the cluster too large for its load?")
    calibrated = walk_forward(forecasts.quantiles_s, forecasts.wait_s, forecasts.bins, forecasts.submit_s, first=first)
    plan_error = float(np.median(np.abs(forecasts.plan_s[first:] - wait)))
    error = float(np.median(np.abs(calibrated[:, MIDDLE] - wait)))
    low, high = INTERVALS[0.9]
    bins = WaitBins(forecasts.size_ratio[first:], forecasts.ahead[first:])
    return WaitReport(
        jobs=len(wait),
        median_wait_s=float(np.median(wait)),
        plan_error_s=plan_error,
        error_s=error,
        error_ratio=error / plan_error if plan_error else None,
        sampled=measure_coverage(forecasts.quantiles_s[first:], wait),
        calibrated=measure_coverage(calibrated, wait),
        median_width_90_s=float(np.median(calibrated[:, high] - calibrated[:, low])),
        bins=describe_bins(calibrated[:, MIDDLE], wait, bins),
    )


def replay_jobs(trace: JobTrace, total: int, *, recorded: bool) -> JobTable:
    """The jobs of a trace with their starts: as recorded, or as simulated by first come, first served with EASY.

    Raises QueryError if recorded waits are requested and the trace has none.
    """
    if recorded:
        if trace.frame["wait_s"].is_null().all():
            raise QueryError(f"{trace.name} records no waits", hint="Omit --recorded: its schedule is simulated then.")
        return select_ran_jobs(trace)
    semantics = PRESETS["clusterscape"]
    jobs, _ = prepare_jobs(trace, total, estimates="request", semantics=semantics)
    schedule = simulate(Scenario(jobs, total, find_policy("fcfs"), Backfill("easy"), "request", semantics))
    starts = np.full(len(trace), np.nan)
    starts[jobs.row] = schedule.start_s
    columns = select_ran_jobs(trace, starts)
    return JobTable(
        columns.frame,
        jobs.submit_s.astype(float),
        schedule.start_s.astype(float),
        jobs.run_s.astype(float),
        jobs.estimate_s.astype(float),
        jobs.processors.astype(float),
        columns.is_completed,
    )
