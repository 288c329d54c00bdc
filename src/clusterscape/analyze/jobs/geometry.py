"""Arrivals and waits of jobs, and the occupancy of the machine and its queue over time."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.columns import Classes, JobColumns, split_by_doubling
from clusterscape.analyze.jobs.distributions import ValueSpread, spread_values
from clusterscape.analyze.jobs.intervals import Measured, Z
from clusterscape.analyze.jobs.levels import Level, sweep_occupancy
from clusterscape.analyze.jobs.machine_size import guess_machine_size
from clusterscape.errors import QueryError
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.durations import HOUR_S
from clusterscape.model.identity_fields import PublicText, access_checked
from clusterscape.model.timezones import find_timezone

DAYS, HOURS = 7, 24


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Submissions. Hours and weekdays are in ``timezone``; null if the trace does not state its start.

    ``jobs_by_weekday_hour``: 7 × 24, Monday first. ``jobs_per_hour_by_*``: mean over the hours of that kind; the intervals come
    from the observed variation between such hours (and days), since submissions are not Poisson. ``burstiness``: standard
    deviation / mean of the gaps; 1 for independent submissions.
    """

    timezone: str
    jobs_by_weekday_hour: list[list[int]] | None
    jobs_per_hour_by_hour: list[Measured | None] | None
    jobs_per_hour_by_weekday: list[Measured | None] | None
    busiest_to_quietest_hour: float | None
    gap_s: ValueSpread
    burstiness: float | None


def describe_arrivals(jobs: JobColumns, timezone: str) -> Arrivals:
    """Statistics of submissions. O(n log n), however long the trace is: only hours with submissions are listed."""
    zone = find_zone(timezone)
    gaps = np.diff(jobs.submit_s)
    mean = float(gaps.mean()) if gaps.size else 0.0
    burstiness = float(gaps.std()) / mean if mean > 0 else None
    spread = spread_values(gaps)
    if jobs.epoch_s is None or len(jobs) == 0:
        return Arrivals(
            timezone=timezone,
            jobs_by_weekday_hour=None,
            jobs_per_hour_by_hour=None,
            jobs_per_hour_by_weekday=None,
            busiest_to_quietest_hour=None,
            gap_s=spread,
            burstiness=burstiness,
        )
    local = _local_seconds(jobs.submit_s + jobs.epoch_s, zone)
    hours, counts = np.unique(np.floor(local / HOUR_S).astype(np.int64), return_counts=True)
    by_hour = _rates(counts, hours % HOURS, _count_kinds(int(hours[0]), int(hours[-1]), HOURS))
    rates = [rate.value for rate in by_hour if rate is not None]
    return Arrivals(
        timezone=timezone,
        jobs_by_weekday_hour=_matrix(counts, hours),
        jobs_per_hour_by_hour=by_hour,
        jobs_per_hour_by_weekday=_by_weekday(counts, hours),
        busiest_to_quietest_hour=max(rates) / min(rates) if len(rates) == HOURS and min(rates) > 0 else None,
        gap_s=spread,
        burstiness=burstiness,
    )


def find_zone(timezone: str) -> ZoneInfo:
    """The time zone. Raises QueryError for an unknown name."""
    try:
        return find_timezone(timezone)
    except ValueError:
        raise QueryError(f"unknown time zone {timezone!r}", hint="Use a name such as UTC or Europe/Berlin.") from None


def _local_seconds(unix_s: Float64s, zone: ZoneInfo) -> Float64s:
    """Local wall-clock time as if it were UTC, including 23- and 25-hour days."""
    moments = pl.Series(np.round(unix_s * 1000).astype(np.int64)).cast(pl.Datetime("ms", "UTC"))
    wall = moments.dt.convert_time_zone(zone.key).dt.replace_time_zone(None)
    return wall.cast(pl.Int64).to_numpy() / 1000


def _weekday(hours: Int64s) -> Int64s:
    """Monday is 0; 1970-01-01 was a Thursday."""
    return (hours // HOURS + 3) % DAYS


def _matrix(counts: Int64s, hours: Int64s) -> list[list[int]]:
    cells = _weekday(hours) * HOURS + hours % HOURS
    table = np.bincount(cells, weights=counts, minlength=DAYS * HOURS).astype(np.int64)
    return [[int(cell) for cell in row] for row in table.reshape(DAYS, HOURS)]


def _by_weekday(counts: Int64s, hours: Int64s) -> list[Measured | None]:
    """Means over whole days: the hours of one day are not independent. The first and the last day may have fewer hours."""
    days, places = np.unique(hours // HOURS, return_inverse=True)
    jobs = np.bincount(places, weights=counts)
    first, last = int(hours[0]), int(hours[-1])
    length = np.minimum(days * HOURS + HOURS - 1, last) - np.maximum(days * HOURS, first) + 1
    day_kinds = _count_kinds(int(days[0]) + 3, int(days[-1]) + 3, DAYS)
    return _rates(jobs / length, _weekday(days * HOURS), day_kinds)


def _count_kinds(first: int, last: int, kinds: int) -> list[int]:
    """How many of the numbers ``first`` … ``last`` have the remainders 0 … ``kinds`` − 1."""
    return [(last - kind) // kinds - (first - 1 - kind) // kinds for kind in range(kinds)]


def _rates(values: Float64s | Int64s, kinds: Int64s, numbers: list[int]) -> list[Measured | None]:
    """Mean of each kind over ``numbers`` of its hours or days; those that are not in ``values`` are zero."""
    sums = np.bincount(kinds, weights=values, minlength=len(numbers))
    squares = np.bincount(kinds, weights=np.square(values.astype(np.float64)), minlength=len(numbers))
    rates: list[Measured | None] = []
    for number, total, square in zip(numbers, sums.tolist(), squares.tolist(), strict=True):
        if number == 0:
            rates.append(None)
            continue
        mean = total / number
        if number < 2:
            rates.append(Measured(value=mean))
            continue
        half = Z * (max(0.0, square - number * mean**2) / (number - 1) / number) ** 0.5
        rates.append(Measured(value=mean, low=max(0.0, mean - half), high=mean + half))
    return rates


SLOWDOWN_FLOOR_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassWaits:
    """Waits, in seconds, of the jobs whose size (or number of waiting jobs at submission) is in [``low``, ``high``]."""

    low: float
    high: float
    jobs: int
    mean_s: float
    p25_s: float
    p50_s: float
    p75_s: float
    p95_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSummary:
    """Recorded waits. ``mean_bounded_slowdown``: max(1, (wait + run) / max(run, 10 s)) over the jobs that ran."""

    wait_s: ValueSpread
    mean_bounded_slowdown: float | None
    by_size: list[ClassWaits]
    by_waiting_jobs: list[ClassWaits]


def describe_waiting(jobs: JobColumns, waiting_jobs: Float64s) -> WaitSummary:
    """Statistics of waits. ``waiting_jobs``: queue length at each submission. O(n log n)."""
    ran = ~np.isnan(jobs.wait_s) & ~np.isnan(jobs.run_s)
    run, wait = jobs.run_s[ran], jobs.wait_s[ran]
    slowdown = np.maximum(1.0, (wait + run) / np.maximum(run, SLOWDOWN_FLOOR_S))
    return WaitSummary(
        wait_s=spread_values(jobs.wait_s),
        mean_bounded_slowdown=float(slowdown.mean()) if slowdown.size else None,
        by_size=_by_class(jobs.wait_s, split_by_doubling(np.where(jobs.size > 0, jobs.size, np.nan))),
        by_waiting_jobs=_by_class(jobs.wait_s, split_by_doubling(waiting_jobs)),
    )


def _by_class(wait_s: Float64s, classes: Classes) -> list[ClassWaits]:
    class_waits = []
    for place, (low, high) in enumerate(zip(classes.low, classes.high, strict=True)):
        waits = wait_s[classes.code == place]
        waits = waits[~np.isnan(waits)]
        if waits.size == 0:
            continue
        p25, p50, p75, p95 = (float(value) for value in np.quantile(waits, [0.25, 0.5, 0.75, 0.95]))
        class_waits.append(
            ClassWaits(
                low=low,
                high=high,
                jobs=len(waits),
                mean_s=float(waits.mean()),
                p25_s=p25,
                p50_s=p50,
                p75_s=p75,
                p95_s=p95,
            )
        )
    return class_waits


MAX_BINS = 200
STEPS_S = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400)
LEVEL_BINS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyCourse:
    """Means over bins that start at ``start_s + i · step_s`` (seconds of the trace; add ``epoch_s`` for Unix time)."""

    start_s: float
    step_s: float
    busy_units: list[float]
    running_jobs: list[float]
    waiting_units: list[float]
    waiting_jobs: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """From the first submission to the last end, or until a live history was read. Units are those of the trace's sizes.

    ``capacity_units``: stated by the source (``is_capacity_stated``), else a guess with its ``capacity_reason``.
    ``utilization``: used / available unit-hours. ``time_share_by_level``: shares of the time during which 0–5 %, 5–10 %, … of
    the capacity was busy; the last includes everything above. ``over_capacity_share``: share of the time with more busy units
    than the capacity, which indicates wrong starts or a wrong capacity. ``left_out``: number of excluded jobs, whose start, run
    time or size is unknown.
    """

    capacity_units: float
    is_capacity_stated: bool
    capacity_reason: PublicText | None
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


def describe_occupancy(jobs: JobColumns) -> Occupancy | None:
    """Occupancy over time; None if no job's start is known."""
    start, end = _spans(jobs)
    chosen = ~np.isnan(end) & ~np.isnan(jobs.size)
    if not chosen.any():
        return None
    submit, start, end, size = jobs.submit_s[chosen], start[chosen], end[chosen], jobs.size[chosen]
    first, last = float(submit.min()), float(end.max())
    span = max(last - first, 1.0)
    busy, waiting = sweep_occupancy(start, end, size), sweep_occupancy(submit, start, np.ones(len(start)))
    peak = float(busy.after.max(initial=0.0))
    guess = None if jobs.total else guess_machine_size(start, end, size, busy, jobs.size_unit)
    capacity = float(jobs.total or (guess.units if guess else peak))
    used = float(busy.area[-1])
    return Occupancy(
        capacity_units=capacity,
        is_capacity_stated=jobs.total is not None,
        capacity_reason=guess.reason if guess else None,
        epoch_s=jobs.epoch_s,
        used_unit_hours=used / 3600,
        utilization=used / (capacity * span) if capacity else 0.0,
        peak_busy_units=peak,
        over_capacity_share=_time_above(busy, capacity) / span,
        mean_waiting_jobs=float(waiting.area[-1]) / span,
        peak_waiting_jobs=int(waiting.after.max(initial=0.0)),
        time_share_by_level=_time_by_level(busy, capacity, first, last),
        course=_compute_course(submit, start, end, size, busy, waiting),
        left_out=len(jobs) - int(chosen.sum()),
    )


def _spans(jobs: JobColumns) -> tuple[Float64s, Float64s]:
    """Starts and ends. In a live history, running jobs end when it was read, and waiting jobs start and end then."""
    if jobs.until_s is None:
        return jobs.start_s, jobs.start_s + jobs.run_s
    start = np.where(jobs.is_waiting, jobs.until_s, jobs.submit_s + jobs.wait_s)
    is_open = jobs.is_waiting | jobs.is_running
    return start, np.where(is_open, np.maximum(jobs.until_s, start), start + jobs.run_s)


def count_waiting_at_submission(jobs: JobColumns) -> Float64s:
    """Number of earlier jobs that still waited at each submission; NaN if no wait is known at all."""
    has_wait = ~np.isnan(jobs.wait_s) | jobs.is_waiting
    if not has_wait.any():
        return np.full(len(jobs), np.nan)
    submit, wait = jobs.submit_s[has_wait], np.where(jobs.is_waiting, np.inf, jobs.wait_s)[has_wait]
    at = jobs.submit_s
    before = np.searchsorted(submit, at, side="left")
    started = np.searchsorted(np.sort(submit + wait), at, side="right")
    # Jobs that were submitted and started in this same second count as started, but were not submitted earlier.
    immediate = submit[wait == 0]
    same_second = np.searchsorted(immediate, at, side="right") - np.searchsorted(immediate, at, side="left")
    return (before - (started - same_second)).astype(np.float64)


def _compute_course(
    submit: Float64s, start: Float64s, end: Float64s, size: Float64s, busy: Level, waiting: Level
) -> OccupancyCourse:
    first, last = float(submit.min()), float(end.max())
    step: float = next((step for step in STEPS_S if (last - first) / step <= MAX_BINS - 1), STEPS_S[-1])
    begin = np.floor(first / step) * step
    count = int(np.floor((last - begin) / step)) + 1
    if count > MAX_BINS:  # longer than two centuries: some time is wrong, but the chart must still work
        step, begin, count = (last - first) / MAX_BINS, first, MAX_BINS
    edges = begin + np.arange(count + 1) * step
    ones = np.ones(len(start))

    def means(level: Level) -> list[float]:
        return [round(float(mean), 6) for mean in np.diff(level.integral(edges)) / step]

    return OccupancyCourse(
        start_s=float(begin),
        step_s=float(step),
        busy_units=means(busy),
        running_jobs=means(sweep_occupancy(start, end, ones)),
        waiting_units=means(sweep_occupancy(submit, start, size)),
        waiting_jobs=means(waiting),
    )


def _time_above(busy: Level, capacity: float) -> float:
    return float(np.diff(busy.times_s)[busy.after[:-1] > capacity + 1e-6].sum())


def _time_by_level(busy: Level, capacity: float, first: float, last: float) -> list[float]:
    times = np.append(busy.times_s, last)
    durations = np.diff(np.maximum(times, first))
    levels = np.append([0.0], busy.after)
    durations = np.append([max(0.0, busy.times_s[0] - first)], durations)
    places: Int64s = np.clip(np.floor(levels / max(capacity, 1e-9) * LEVEL_BINS + 1e-9), 0, LEVEL_BINS - 1).astype(
        np.int64
    )
    shares = np.bincount(places, weights=durations, minlength=LEVEL_BINS)
    return [float(share) for share in shares / max(float(shares.sum()), 1e-9)]
