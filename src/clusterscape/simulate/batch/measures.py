"""Measures of a schedule, their sensitivity to run times that jitter by a second (such systems are chaotic), and fairness: over
users, and waits of small and large jobs compared with another schedule.

Columns in, numbers out; used for the schedules of both engines.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.simulate.batch.contract import Scenario, Schedule
from clusterscape.simulate.batch.policies import find_policy

STARVED_RATIO = 2.0
"""A class of jobs is starved if its 99th percentile of waits is this many times the reference's …"""

STARVED_S = 3600.0
"""… and longer by more than this."""


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs of ``low`` to ``high`` GPUs (processors, nodes): their number, and the 99th percentile and maximum of their waits."""

    low: int
    high: int
    jobs: int
    p99_wait_s: float
    max_wait_s: float
    reference_p99_s: float | None = None
    reference_max_s: float | None = None

    @property
    def is_starved(self) -> bool:
        """Whether these jobs wait far longer than in the reference."""
        if self.reference_p99_s is None:
            return False
        longer_s = self.p99_wait_s - self.reference_p99_s
        return longer_s > STARVED_S and self.p99_wait_s > STARVED_RATIO * self.reference_p99_s


def compute_jain(values: Float64s, users: Int64s) -> float | None:
    """Jain's fairness index of the users' means: 1 if all are equal, 1/users if one user has everything; None without users."""
    if len(values) == 0:
        return None
    sums, counts = np.bincount(users, values), np.bincount(users)
    means = sums[counts > 0] / counts[counts > 0]
    squares = float((means**2).sum())
    return float(means.sum() ** 2 / (len(means) * squares)) if squares > 0 else 1.0


def compare_sizes(wait_s: Int64s, size: Int64s, reference_wait_s: Int64s | None = None) -> tuple[SizeClass, ...]:
    """Waits by size, in classes that double (1, 2, 3–4, 5–8, …), compared with the same jobs' waits in a reference."""
    classes = np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64)
    size_classes = []
    for power in np.unique(classes).tolist():
        chosen = classes == power
        reference_s = None if reference_wait_s is None else reference_wait_s[chosen]
        size_classes.append(
            SizeClass(
                low=(1 << power - 1) + 1 if power > 0 else 1,
                high=1 << power,
                jobs=int(chosen.sum()),
                p99_wait_s=float(np.quantile(wait_s[chosen], 0.99)),
                max_wait_s=float(wait_s[chosen].max()),
                reference_p99_s=None if reference_s is None else float(np.quantile(reference_s, 0.99)),
                reference_max_s=None if reference_s is None else float(reference_s.max()),
            )
        )
    return tuple(size_classes)


BOUND_S = 10
"""Minimum run time in the bounded slowdown."""


@dataclass(frozen=True, slots=True)
class Measures:
    """``violation_s``: mean of max(0, start − first promised start) over jobs that held a reservation; None if none did.

    ``fairness``: Jain's index of the users' mean bounded slowdown, 1 if all are equal.
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
    """One measure over jittered runs: mean, standard deviation and central 95 % interval."""

    mean: float
    sd: float
    low: float
    high: float

    def differs_from(self, value: float) -> bool:
        """Whether ``value`` is more than two standard deviations from the mean."""
        return abs(value - self.mean) > 2 * self.sd


def compute_bounded_slowdown(wait_s: Float64s, run_s: Float64s) -> Float64s:
    """max(1, (wait + run) / max(run, 10 s)), per job."""
    return np.maximum(1.0, (wait_s + run_s) / np.maximum(run_s, BOUND_S))


def compute_measures(schedule: Schedule) -> Measures | None:
    """Measures over the jobs that the semantics' ``trim`` leaves; None if it leaves none."""
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
    """Used share of all processor-seconds in the semantics' window. All jobs count."""
    scenario = schedule.scenario
    begin_s = int(scenario.jobs.submit_s.min())
    until_s = begin_s + scenario.semantics.utilization_share * (int(schedule.end_s.max()) - begin_s)
    used_s = np.clip(np.minimum(schedule.end_s, until_s) - schedule.start_s, 0, None)
    return float((used_s * scenario.jobs.processors).sum() / (scenario.total_processors * (until_s - begin_s)))


def jitter(scenario: Scenario, random: np.random.Generator) -> Scenario:
    """The same jobs with each run time changed by −1, 0 or +1 s; at least 1 s, and estimates at least the run time."""
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
    """Each measure's spread over ``runs`` jittered simulations; a measure that is missing in some run is left out."""
    values_by_measure: dict[str, list[float]] = {field.name: [] for field in fields(Measures)}
    random = np.random.default_rng(seed)
    for _ in range(runs):
        measures = compute_measures(simulate(jitter(scenario, random)))
        for name, values in values_by_measure.items():
            value = getattr(measures, name, None)
            if value is not None:
                values.append(float(value))
    return {name: spread_of(np.array(values)) for name, values in values_by_measure.items() if len(values) == runs > 0}


def compare_with_fcfs(schedule: Schedule, simulate: Callable[[Scenario], Schedule]) -> tuple[SizeClass, ...]:
    """Waits by size compared with first come, first served and the same backfilling; no comparison if that is the policy."""
    scenario, fcfs = schedule.scenario, find_policy("fcfs")
    if repr(scenario.policy) == repr(fcfs):
        return compare_sizes(schedule.wait_s, scenario.jobs.processors)
    reference = simulate(replace(scenario, policy=fcfs))
    return compare_sizes(schedule.wait_s, scenario.jobs.processors, reference.wait_s)


def spread_of(values: Float64s) -> Spread:
    """The spread of one measure's values over the runs."""
    low, high = np.quantile(values, (0.025, 0.975))
    return Spread(float(values.mean()), float(values.std(ddof=1 if len(values) > 1 else 0)), float(low), float(high))
