"""The chart data of one simulated choice: measures with intervals, waits, usage over time, and a Gantt chart of small traces."""

from dataclasses import asdict

import numpy as np

from clusterscape.analyze.jobs.distributions import spread_values
from clusterscape.analyze.jobs.levels import Level, sweep_occupancy
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.jobs import JobTrace
from clusterscape.services.simulation_answers import (
    JitteredMeasure,
    SimulatedChoice,
    SimulatedCourse,
    SimulatedJobs,
    SimulatedSize,
)
from clusterscape.simulate.batch import RELAXED, Measures, Schedule, Spread
from clusterscape.simulate.batch.measures import SizeClass

MAX_DRAWN_JOBS = 2_000
COURSE_BINS = 240

_MEASURES = (
    ("wait_s", "mean wait", "s"),
    ("bounded_slowdown", "bounded slowdown", ""),
    ("utilization", "utilization", "ratio"),
    ("violation_s", "violation of promises", "s"),
    ("fairness", "fairness over users", "index"),
)


def describe_choice(
    trace: JobTrace | None,
    policy: str,
    schedule: Schedule,
    measures: Measures | None,
    spreads: dict[str, Spread],
    sizes: tuple[SizeClass, ...],
    name: str,
) -> SimulatedChoice:
    """The chart data of one choice; ``name`` is its fingerprint. Without ``trace`` its jobs are not drawn."""
    backfill = schedule.scenario.backfill
    return SimulatedChoice(
        policy=policy,
        backfill=backfill.kind,
        omega=backfill.share if backfill.kind in RELAXED else None,
        fingerprint=name,
        measures=[_measure(measures, spreads.get(key), key, title, unit) for key, title, unit in _MEASURES],
        wait_s=spread_values(schedule.wait_s.astype(float)),
        sizes=[SimulatedSize(**asdict(size), is_starved=size.is_starved) for size in sizes],
        course=_course(schedule),
        jobs=None if trace is None else _draw_jobs(trace, schedule),
    )


def _measure(measures: Measures | None, spread: Spread | None, name: str, title: str, unit: str) -> JitteredMeasure:
    return JitteredMeasure(
        name=name,
        title=title,
        unit=unit,
        value=None if measures is None else getattr(measures, name),
        mean=spread.mean if spread else None,
        sd=spread.sd if spread else None,
        low=spread.low if spread else None,
        high=spread.high if spread else None,
    )


def _course(schedule: Schedule) -> SimulatedCourse:
    jobs = schedule.scenario.jobs
    submit_s, start_s, end_s = (times.astype(float) for times in (jobs.submit_s, schedule.start_s, schedule.end_s))
    first, last = float(submit_s.min()), float(end_s.max())
    edges = np.linspace(first, last, COURSE_BINS + 1)
    busy = sweep_occupancy(start_s, end_s, jobs.processors.astype(float))
    waiting = sweep_occupancy(submit_s, start_s, np.ones(len(jobs)))
    return SimulatedCourse(
        start_s=first,
        step_s=(last - first) / COURSE_BINS,
        busy_units=_means(busy, edges),
        waiting_jobs=_means(waiting, edges),
    )


def _means(level: Level, edges: Float64s) -> list[float]:
    means: list[float] = (np.diff(level.integral(edges)) / np.diff(edges)).round(4).tolist()
    return means


def _draw_jobs(trace: JobTrace, schedule: Schedule) -> SimulatedJobs:
    jobs = schedule.scenario.jobs
    ids = trace.frame["job_id"].gather(jobs.row.tolist()).fill_null("").to_list()
    return SimulatedJobs(
        job=ids,
        submit_s=jobs.submit_s.tolist(),
        start_s=schedule.start_s.tolist(),
        end_s=schedule.end_s.tolist(),
        units=jobs.processors.tolist(),
        lane=place_lanes(schedule.start_s, schedule.end_s, jobs.processors, schedule.scenario.total_processors),
    )


def place_lanes(start_s: Int64s, end_s: Int64s, units: Int64s, total: int) -> list[int]:
    """The lane at which each job is drawn: the lowest sufficient run of free lanes, else the lowest free lane.

    The simulated units of a job need not be contiguous, so some rectangles may overlap.
    """
    edges, free_from = np.array([0, total]), np.array([np.iinfo(np.int64).min])
    lanes = []
    order = np.lexsort((-units, start_s)).tolist()
    for job in order:
        steps = np.diff(np.concatenate(([0], (free_from <= start_s[job]).astype(np.int64), [0])))
        begins, ends = edges[np.flatnonzero(steps == 1)], edges[np.flatnonzero(steps == -1)]
        fitting = begins[ends - begins >= units[job]]
        lowest = int(fitting[0]) if len(fitting) else int(begins[0]) if len(begins) else 0
        lane = min(lowest, total - int(units[job]))
        edges, free_from = _occupy(edges, free_from, lane, lane + int(units[job]), int(end_s[job]))
        lanes.append(lane)
    lane_list: list[int] = np.array(lanes, np.int64)[np.argsort(order)].tolist()
    return lane_list


def _occupy(edges: Int64s, free_from: Int64s, low: int, high: int, end_s: int) -> tuple[Int64s, Int64s]:
    """Lanes as segments between ``edges``, each free from a time on: those from ``low`` to ``high`` from ``end_s`` on."""
    for edge in (low, high):
        at = int(np.searchsorted(edges, edge))
        if edges[at] != edge:
            edges, free_from = np.insert(edges, at, edge), np.insert(free_from, at, free_from[at - 1])
    first, last = (int(np.searchsorted(edges, edge)) for edge in (low, high))
    return (
        np.concatenate((edges[: first + 1], edges[last:])),
        np.concatenate((free_from[:first], [end_s], free_from[last:])),
    )
