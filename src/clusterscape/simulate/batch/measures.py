"""Measures of a schedule, and how far they move when run times jitter by a second: such systems are chaotic."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from clusterscape.model.samples import Float64s
from clusterscape.simulate.batch.contract import Bools, Scenario, Schedule
from clusterscape.simulate.batch.policies import find_policy
from clusterscape.simulate.fairness import SizeClass, compare_sizes, compute_jain

BOUND_S = 10
"""Shorter runs count as this long in the bounded slowdown."""


@dataclass(frozen=True, slots=True)
class Measures:
    """``violation_s``: mean of max(0, start − first promised start) over jobs that held a reservation; None where none did.

    ``fairness``: Jain's index of the users' mean bounded slowdown, 1 where all fare alike.
    """

    jobs: int
    wait_s: float
    bounded_slowdown: float
    utilization: float
    violation_s: float | None
    promised_jobs: int
    fairness: float | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """One measure over jittered runs: its mean, standard deviation and the middle 95 % of the runs."""

    mean: float
    sd: float
    low: float
    high: float

    def tells_apart(self, value: float) -> bool:
        """Whether ``value`` lies more than two standard deviations from the mean."""
        return abs(value - self.mean) > 2 * self.sd


def compute_bounded_slowdown(wait_s: Float64s, run_s: Float64s) -> Float64s:
    """max(1, (wait + run) / max(run, 10 s)), per job."""
    return np.maximum(1.0, (wait_s + run_s) / np.maximum(run_s, BOUND_S))


def compute_measures(schedule: Schedule) -> Measures | None:
    """Over the jobs that the semantics' trimming leaves; None where it leaves none."""
    jobs = schedule.scenario.jobs
    counted = _counted(schedule)
    held = schedule.has_promise & counted
    if not counted.any():
        return None
    wait_s = schedule.wait_s[counted].astype(float)
    late_s = np.maximum(0, schedule.start_s - schedule.promise_s)[held]
    slowdown = compute_bounded_slowdown(wait_s, jobs.run_s[counted].astype(float))
    return Measures(
        jobs=int(counted.sum()),
        wait_s=float(wait_s.mean()),
        bounded_slowdown=float(slowdown.mean()),
        utilization=_utilization(schedule),
        violation_s=float(late_s.mean()) if held.any() else None,
        promised_jobs=int(held.sum()),
        fairness=compute_jain(slowdown, jobs.user[counted]),
    )


def _counted(schedule: Schedule) -> Bools:
    jobs = schedule.scenario.jobs
    counted = np.ones(len(jobs), np.bool_)
    if schedule.scenario.semantics.trim == "pyss" and len(jobs):
        tiny = (jobs.estimate_s == 1) & (jobs.processors == 1)
        size = len(jobs) - int(tiny.sum())
        first = np.argsort(schedule.end_s, kind="stable")[: size // 100 if size >= 100 else 0]
        counted = ~tiny & (schedule.end_s <= jobs.submit_s[-1])
        counted[first] = False
    return counted


def _utilization(schedule: Schedule) -> float:
    """Processor-seconds used, of those there were, over the window of the semantics. All jobs count."""
    scenario = schedule.scenario
    begin_s = int(scenario.jobs.submit_s.min())
    until_s = begin_s + scenario.semantics.utilization_share * (int(schedule.end_s.max()) - begin_s)
    used_s = np.clip(np.minimum(schedule.end_s, until_s) - schedule.start_s, 0, None)
    return float((used_s * scenario.jobs.processors).sum() / (scenario.total_processors * (until_s - begin_s)))


def jitter(scenario: Scenario, random: np.random.Generator) -> Scenario:
    """The same jobs, each run −1, 0 or +1 s; a run lasts at least a second, an estimate at least as long as its run."""
    jobs = scenario.jobs
    run_s = np.maximum(1, jobs.run_s + random.integers(-1, 2, len(jobs)))
    estimate_s = run_s if scenario.estimates == "actual" else np.maximum(jobs.estimate_s, run_s)
    changed = replace(jobs, run_s=run_s, estimate_s=estimate_s, request_s=np.maximum(jobs.request_s, run_s))
    return replace(scenario, jobs=changed)


def measure_spread(
    scenario: Scenario,
    simulate: Callable[[Scenario], Schedule],
    *,
    runs: int,
    seed: int = 0,
) -> dict[str, Spread]:
    """Each measure's spread over ``runs`` jittered simulations; a measure that some run does not have is left out."""
    found: dict[str, list[float]] = {field.name: [] for field in fields(Measures)}
    random = np.random.default_rng(seed)
    for _ in range(runs):
        measures = compute_measures(simulate(jitter(scenario, random)))
        for name, values in found.items():
            value = getattr(measures, name, None)
            if value is not None:
                values.append(float(value))
    return {name: spread_of(np.array(values)) for name, values in found.items() if len(values) == runs > 0}


def compare_with_fcfs(schedule: Schedule, simulate: Callable[[Scenario], Schedule]) -> tuple[SizeClass, ...]:
    """Waits by size beside first come, first served with the same backfilling; alone where that is the policy."""
    scenario, fcfs = schedule.scenario, find_policy("fcfs")
    if repr(scenario.policy) == repr(fcfs):
        return compare_sizes(schedule.wait_s, scenario.jobs.processors)
    reference = simulate(replace(scenario, policy=fcfs))
    return compare_sizes(schedule.wait_s, scenario.jobs.processors, reference.wait_s)


def spread_of(values: Float64s) -> Spread:
    """Of the values of one measure over the runs."""
    low, high = np.quantile(values, (0.025, 0.975))
    return Spread(float(values.mean()), float(values.std(ddof=1 if len(values) > 1 else 0)), float(low), float(high))
