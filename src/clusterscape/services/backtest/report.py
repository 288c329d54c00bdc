"""The accuracy of wait forecasts: errors compared with simple guesses and oracles; coverage and width of intervals, over time."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.features import JobTable, select_ran_jobs
from clusterscape.analyze.jobs.runtime_report import PredictorShare
from clusterscape.analyze.jobs.wait_choice import name_candidate, says_little, walk_forward
from clusterscape.analyze.jobs.wait_guesses import GUESSES, PLAN, SIMPLE
from clusterscape.analyze.jobs.wait_intervals import (
    INTERVALS,
    MIDDLE,
    Coverage,
    CoverageQuarter,
    WaitBins,
    measure_coverage,
    split_quarters,
)
from clusterscape.errors import QueryError
from clusterscape.model.arrays import Int64s
from clusterscape.model.identity_fields import PublicText
from clusterscape.model.jobs import JobTrace
from clusterscape.query.scheduling.wait_bins import WaitBinRow, describe_bins
from clusterscape.services.backtest.oracles import ORACLES
from clusterscape.services.backtest.running import TEST_FROM, WaitForecasts
from clusterscape.simulate.batch import PRESETS, Backfill, Scenario, find_policy, prepare_jobs, simulate

PUBLISHED_WITHIN_MINUTE = {"ARCHER2": 0.65, "Cirrus": 0.76}
"""Share of all jobs whose wait was predicted within one minute (Brown et al. 2022), for comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessError:
    """The median absolute error of a simple guess, or of an oracle, on the same jobs. Seconds."""

    name: PublicText
    error_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReport:
    """Accuracy on the last part of a trace; every forecast is made from waits that were over by then. Seconds.

    ``plan_error_s``: the error of the plan by user limits, on the same jobs. Errors are medians of absolute errors.
    ``guesses``: simple guesses; ``guess_ratio``: error ÷ that of the best of them, null if that is 0. ``oracles``: errors on the
    jobs for which they were asked, with ``oracle_error_s``, that of the forecasts of these jobs. ``within_60_ratio`` and
    ``within_600_ratio``: share with an error of at most 60 s and 600 s; ``all_within_60_ratio``, ``all_within_600_ratio``:
    of all jobs, with those that start at once, which is certain in a simulated schedule and null in a recorded one.
    ``little_ratio``: share of forecasts whose interval is too wide to be of use.
    """

    jobs: int
    median_wait_s: float
    plan_error_s: float
    error_s: float
    mean_error_s: float
    error_ratio: float | None
    guesses: list[GuessError]
    guess_ratio: float | None
    oracles: list[GuessError]
    oracle_error_s: float | None
    within_60_ratio: float
    within_600_ratio: float
    all_within_60_ratio: float | None
    all_within_600_ratio: float | None
    chosen: list[PredictorShare]
    sampled: list[Coverage]
    calibrated: list[Coverage]
    quarters: list[CoverageQuarter]
    median_width_90_s: float
    little_ratio: float
    bins: list[WaitBinRow]


def report_waits(forecasts: WaitForecasts, jobs: JobTable, *, recorded: bool = False) -> WaitReport:
    """Evaluates the forecasts of jobs submitted after the share TEST_FROM of the trace. Raises QueryError if there are none."""
    cut = int(len(jobs) * TEST_FROM)
    first = int(np.searchsorted(forecasts.row, cut))
    wait = forecasts.wait_s[first:]
    if len(wait) == 0:
        raise QueryError("no job waited in the tested part of the trace", hint="Is the cluster too large for its load?")
    now = float(forecasts.submit_s[-1])
    reported, _ = walk_forward(forecasts.questions, forecasts.submit_s, forecasts.wait_s, now)
    quantiles = reported.quantiles_s[first:]
    errors = np.abs(quantiles[:, MIDDLE] - wait)
    guess_errors = np.median(np.abs(forecasts.guesses_s[first:, SIMPLE] - wait[:, None]), axis=0)
    plan_error, error = float(guess_errors[PLAN]), float(np.median(errors))
    oracles = forecasts.oracles_s[first:]
    with_oracles = np.isfinite(oracles).all(axis=1)
    oracle_errors = (
        np.median(np.abs(oracles[with_oracles] - wait[with_oracles, None]), axis=0)
        if with_oracles.any()
        else np.zeros(0)
    )
    low, high = INTERVALS[0.9]
    width = quantiles[:, high] - quantiles[:, low]
    bins = WaitBins(forecasts.size_ratio[first:], forecasts.ahead[first:])
    best = float(guess_errors.min())
    within = [float((errors <= limit).mean()) for limit in (60.0, 600.0)]
    waited = float((jobs.start_s[cut:] > jobs.submit_s[cut:]).mean())
    all_within = [None if recorded else 1.0 - waited * (1.0 - share) for share in within]
    return WaitReport(
        jobs=len(wait),
        median_wait_s=float(np.median(wait)),
        plan_error_s=plan_error,
        error_s=error,
        mean_error_s=float(errors.mean()),
        error_ratio=error / plan_error if plan_error else None,
        guesses=[_name_error(name, value) for name, value in zip(GUESSES[SIMPLE], guess_errors, strict=True)],
        guess_ratio=error / best if best else None,
        oracles=[_name_error(*row) for row in zip(ORACLES, oracle_errors, strict=False)],
        oracle_error_s=float(np.median(errors[with_oracles])) if with_oracles.any() else None,
        within_60_ratio=within[0],
        within_600_ratio=within[1],
        all_within_60_ratio=all_within[0],
        all_within_600_ratio=all_within[1],
        chosen=_count_chosen(reported.chosen[first:]),
        sampled=measure_coverage(forecasts.quantiles_s[first:], wait),
        calibrated=measure_coverage(quantiles, wait),
        quarters=split_quarters(quantiles, wait),
        median_width_90_s=float(np.median(width)),
        little_ratio=float(says_little(quantiles).mean()),
        bins=describe_bins(quantiles[:, MIDDLE], wait, bins),
    )


def _name_error(name: str, error_s: float) -> GuessError:
    return GuessError(name=name, error_s=float(error_s))


def _count_chosen(chosen: Int64s) -> list[PredictorShare]:
    names, counts = np.unique(chosen, return_counts=True)
    order = np.argsort(-counts)
    return [
        PredictorShare(name=name_candidate(int(names[place])), ratio=float(counts[place] / len(chosen)))
        for place in order
    ]


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
