"""How full the machine and its queue were over time, swept event by event and integrated exactly."""

from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.jobs.classes import sum_by
from clusterscape.analyze.jobs.columns import JobColumns
from clusterscape.model.samples import Float64s, Int64s

MOST_BINS = 200
STEPS_S = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400)
LEVEL_BINS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyCourse:
    """Means over the bins that begin at ``start_s + i · step_s`` (seconds as in the trace; plus ``epoch_s`` Unix time)."""

    start_s: float
    step_s: float
    busy_units: list[float]
    running_jobs: list[float]
    waiting_units: list[float]
    waiting_jobs: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """From the first submission to the last end, or until a history that goes on was read. Units are those of the trace's sizes.

    ``capacity_units``: what the source states, else the most that was ever busy (``is_capacity_stated``). ``utilization``:
    unit-hours used over unit-hours there were. ``time_share_by_level``: shares of the time during which 0–5 %, 5–10 %, … of the
    capacity was busy, the last with everything above. ``over_capacity_share``: of the time with more busy than there is, which
    says that recorded starts or the stated size are wrong. ``left_out``: jobs whose start, run time or size is not known; they
    are in none of this.
    """

    capacity_units: float
    is_capacity_stated: bool
    epoch_s: float | None
    used_unit_hours: float
    utilization: float
    peak_busy_units: float
    over_capacity_share: float
    mean_waiting_jobs: float
    peak_waiting_jobs: int
    time_share_by_level: list[float]
    course: OccupancyCourse
    left_out: int


@dataclass(frozen=True)
class Level:
    """A number that steps: ``after[i]`` holds from ``times_s[i]`` on; ``area[i]`` is its integral up to there."""

    times_s: Float64s
    after: Float64s
    area: Float64s

    def integral(self, at_s: Float64s) -> Float64s:
        """From the first step to each time; exact, since the integral is linear between steps."""
        return np.interp(at_s, self.times_s, self.area)


def sweep(begin_s: Float64s, end_s: Float64s, amount: Float64s) -> Level:
    """The sum of the amounts that are held at each time: each from its begin up to its end. n log n."""
    moments = np.concatenate([begin_s, end_s])
    changes = np.concatenate([amount, -amount])
    times, places = np.unique(moments, return_inverse=True)
    after = np.cumsum(sum_by(places, changes, len(times)))
    area = np.concatenate([[0.0], np.cumsum(after[:-1] * np.diff(times))])
    return Level(times, after, area)


def describe_occupancy(jobs: JobColumns) -> Occupancy | None:
    """None where no job's start is known."""
    start, end = _spans(jobs)
    chosen = ~np.isnan(end) & ~np.isnan(jobs.size)
    if not chosen.any():
        return None
    submit, start, end, size = jobs.submit_s[chosen], start[chosen], end[chosen], jobs.size[chosen]
    first, last = float(submit.min()), float(end.max())
    span = max(last - first, 1.0)
    busy, waiting = sweep(start, end, size), sweep(submit, start, np.ones(len(start)))
    peak = float(busy.after.max(initial=0.0))
    capacity = float(jobs.total) if jobs.total else peak
    used = float(busy.area[-1])
    return Occupancy(
        capacity_units=capacity,
        is_capacity_stated=jobs.total is not None,
        epoch_s=jobs.epoch_s,
        used_unit_hours=used / 3600,
        utilization=used / (capacity * span) if capacity else 0.0,
        peak_busy_units=peak,
        over_capacity_share=_time_above(busy, capacity) / span,
        mean_waiting_jobs=float(waiting.area[-1]) / span,
        peak_waiting_jobs=int(waiting.after.max(initial=0.0)),
        time_share_by_level=_time_by_level(busy, capacity, first, last),
        course=_course(submit, start, end, size, busy, waiting),
        left_out=len(jobs) - int(chosen.sum()),
    )


def _spans(jobs: JobColumns) -> tuple[Float64s, Float64s]:
    """Starts and ends; where a history goes on, a job that runs ends when it was read, one that waits starts and ends then."""
    if jobs.until_s is None:
        return jobs.start_s, jobs.start_s + jobs.run_s
    start = np.where(jobs.is_waiting, jobs.until_s, jobs.submit_s + jobs.wait_s)
    is_open = jobs.is_waiting | jobs.is_running
    return start, np.where(is_open, np.maximum(jobs.until_s, start), start + jobs.run_s)


def count_waiting_at_submission(jobs: JobColumns) -> Float64s:
    """How many jobs that were submitted earlier still waited when each was submitted; NaN where no wait is known at all."""
    known = ~np.isnan(jobs.wait_s) | jobs.is_waiting
    if not known.any():
        return np.full(len(jobs), np.nan)
    submit, wait = jobs.submit_s[known], np.where(jobs.is_waiting, np.inf, jobs.wait_s)[known]
    at = jobs.submit_s
    before = np.searchsorted(submit, at, side="left")
    begun = np.searchsorted(np.sort(submit + wait), at, side="right")
    # Jobs of the same second that began at once count as begun, but were never before this one.
    at_once = submit[wait == 0]
    twins = np.searchsorted(at_once, at, side="right") - np.searchsorted(at_once, at, side="left")
    return (before - (begun - twins)).astype(np.float64)


def _course(
    submit: Float64s, start: Float64s, end: Float64s, size: Float64s, busy: Level, waiting: Level
) -> OccupancyCourse:
    first, last = float(submit.min()), float(end.max())
    step: float = next((step for step in STEPS_S if (last - first) / step <= MOST_BINS - 1), STEPS_S[-1])
    begin = np.floor(first / step) * step
    count = int(np.floor((last - begin) / step)) + 1
    if count > MOST_BINS:  # longer than two centuries: a time that is wrong; the picture still has to be one
        step, begin, count = (last - first) / MOST_BINS, first, MOST_BINS
    edges = begin + np.arange(count + 1) * step
    ones = np.ones(len(start))

    def means(level: Level) -> list[float]:
        return [round(float(mean), 6) for mean in np.diff(level.integral(edges)) / step]

    return OccupancyCourse(
        start_s=float(begin),
        step_s=float(step),
        busy_units=means(busy),
        running_jobs=means(sweep(start, end, ones)),
        waiting_units=means(sweep(submit, start, size)),
        waiting_jobs=means(waiting),
    )


def _time_above(busy: Level, capacity: float) -> float:
    return float(np.diff(busy.times_s)[busy.after[:-1] > capacity + 1e-6].sum())


def _time_by_level(busy: Level, capacity: float, first: float, last: float) -> list[float]:
    times = np.append(busy.times_s, last)
    lasting = np.diff(np.maximum(times, first))
    levels = np.append([0.0], busy.after)
    lasting = np.append([max(0.0, busy.times_s[0] - first)], lasting)
    places: Int64s = np.clip(np.floor(levels / max(capacity, 1e-9) * LEVEL_BINS + 1e-9), 0, LEVEL_BINS - 1).astype(
        np.int64
    )
    shares = np.bincount(places, weights=lasting, minlength=LEVEL_BINS)
    return [float(share) for share in shares / max(float(shares.sum()), 1e-9)]
