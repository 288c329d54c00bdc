"""Measures of a schedule of a GPU cluster, and their sensitivity to run times that jitter by a second."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from clusterscape.simulate.batch.measures import BOUND_S, Spread, compute_jain, spread_of
from clusterscape.simulate.cluster.contract import ClusterScenario, ClusterSchedule
from clusterscape.simulate.placing import UNITS_PER_GPU


@dataclass(frozen=True, slots=True)
class ClusterMeasures:
    """Measures over the jobs that ended. Times in seconds, sizes in GPUs.

    ``utilization``: share of GPU-seconds with useful work, from the first submission to the last end.
    ``fragmentation``: FGD's, as a share of all GPUs, averaged over that time. ``blocked_gpu_hours``: see `Integrals.blocked`.
    ``fairness``: Jain's index of the users' mean bounded slowdown. ``lost_gpu_hours``: lost work.
    """

    jobs: int
    unfinished_jobs: int
    wait_s: float
    bounded_slowdown: float
    utilization: float
    violation_s: float | None
    promised_jobs: int
    fragmentation: float
    idle_gpu_hours: float
    blocked_gpu_hours: float
    lost_gpu_hours: float
    interrupted_jobs: int
    fairness: float


def compute_cluster_measures(schedule: ClusterSchedule) -> ClusterMeasures | None:
    """The measures of a schedule; None if no job ended."""
    scenario, ended = schedule.scenario, schedule.has_ended
    jobs = scenario.jobs
    if not ended.any():
        return None
    turnaround_s = (schedule.end_s - jobs.submit_s)[ended].astype(float)
    slowdown = np.maximum(1.0, turnaround_s / np.maximum(jobs.run_s[ended], BOUND_S))
    span_s = float(schedule.end_s[ended].max() - jobs.submit_s.min())
    gpu_s = max(span_s * scenario.cluster.total_gpus, 1.0)
    held = schedule.has_promise & schedule.has_started
    late_s = np.maximum(0, schedule.start_s - schedule.promise_s)[held]
    worked = (jobs.run_s * jobs.total_units)[ended].sum() / UNITS_PER_GPU
    return ClusterMeasures(
        jobs=int(ended.sum()),
        unfinished_jobs=int((~ended).sum()),
        wait_s=float(schedule.wait_s[ended].mean()),
        bounded_slowdown=float(slowdown.mean()),
        utilization=float(worked / gpu_s),
        violation_s=float(late_s.mean()) if held.any() else None,
        promised_jobs=int(held.sum()),
        fragmentation=schedule.integrals.fragmented / gpu_s,
        idle_gpu_hours=schedule.integrals.idle / 3600,
        blocked_gpu_hours=schedule.integrals.blocked / 3600,
        lost_gpu_hours=schedule.integrals.lost / 3600,
        interrupted_jobs=int((schedule.attempts > 1).sum()),
        fairness=compute_jain(slowdown, jobs.user[ended]) or 0.0,
    )


def jitter_cluster(scenario: ClusterScenario, random: np.random.Generator) -> ClusterScenario:
    """The same jobs with each run time changed by −1, 0 or +1 s; at least 1 s, and estimates at least the run time."""
    jobs = scenario.jobs
    run_s = np.maximum(1, jobs.run_s + random.integers(-1, 2, len(jobs)))
    estimate_s = run_s if scenario.estimates == "actual" else np.maximum(jobs.estimate_s, run_s)
    return replace(scenario, jobs=replace(jobs, run_s=run_s, estimate_s=estimate_s))


def measure_cluster_spread(
    scenario: ClusterScenario,
    simulate: Callable[[ClusterScenario], ClusterSchedule],
    *,
    runs: int,
    seed: int = 0,
) -> dict[str, Spread]:
    """Each measure's spread over ``runs`` jittered simulations; a measure that is missing in some run is left out."""
    random = np.random.default_rng(seed)
    measures_by_run = [compute_cluster_measures(simulate(jitter_cluster(scenario, random))) for _ in range(runs)]
    spreads = {}
    for name in (field.name for field in fields(ClusterMeasures)):
        values = [value for measures in measures_by_run if (value := getattr(measures, name, None)) is not None]
        if len(values) == runs > 0:
            spreads[name] = spread_of(np.array(values, float))
    return spreads
