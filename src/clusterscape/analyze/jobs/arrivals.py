"""When jobs are submitted: by hour and weekday with rates and intervals, and how far apart."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.columns import JobColumns
from clusterscape.analyze.jobs.distributions import ValueSpread, spread_values
from clusterscape.analyze.jobs.intervals import Measured, Z
from clusterscape.errors import QueryError
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.samples import Float64s, Int64s

HOUR_S = 3600
DAYS, HOURS = 7, 24


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Submissions. Hours and weekdays are those of ``timezone``; null where the trace does not say when it began.

    ``jobs_by_weekday_hour``: 7 × 24, Monday first. ``jobs_per_hour_by_*``: mean of the hours of that kind; the intervals come
    from how much such hours (and such days) differ from one another, not from a Poisson law, which these never keep.
    ``burstiness``: standard deviation over mean of the gaps; 1 where submissions are independent.
    """

    timezone: str
    jobs_by_weekday_hour: list[list[int]] | None
    jobs_per_hour_by_hour: list[Measured | None] | None
    jobs_per_hour_by_weekday: list[Measured | None] | None
    busiest_to_quietest_hour: float | None
    gap_s: ValueSpread
    burstiness: float | None


def describe_arrivals(jobs: JobColumns, timezone: str) -> Arrivals:
    """n log n, and one count for each hour that the trace lasted."""
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
    hours = np.floor(local / HOUR_S).astype(np.int64)
    counts = np.bincount(hours - hours[0]) if hours.min() == hours[0] else np.bincount(hours - hours.min())
    slots = np.arange(hours.min(), hours.min() + len(counts))
    by_hour = _rates(counts, slots % HOURS, HOURS)
    known = [rate.value for rate in by_hour if rate is not None]
    return Arrivals(
        timezone=timezone,
        jobs_by_weekday_hour=_matrix(counts, slots),
        jobs_per_hour_by_hour=by_hour,
        jobs_per_hour_by_weekday=_by_weekday(counts, slots),
        busiest_to_quietest_hour=max(known) / min(known) if len(known) == HOURS and min(known) > 0 else None,
        gap_s=spread,
        burstiness=burstiness,
    )


def find_zone(timezone: str) -> ZoneInfo:
    """Raises QueryError for a zone that is not known."""
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise QueryError(f"there is no time zone {timezone!r}", hint="Name one such as UTC or Europe/Berlin.") from None


def _local_seconds(unix_s: Float64s, zone: ZoneInfo) -> Float64s:
    """What a clock on the wall shows, as if it were UTC: 23- and 25-hour days are as people live them."""
    moments = pl.Series(np.round(unix_s * 1000).astype(np.int64)).cast(pl.Datetime("ms", "UTC"))
    wall = moments.dt.convert_time_zone(zone.key).dt.replace_time_zone(None)
    return wall.cast(pl.Int64).to_numpy() / 1000


def _weekday(slots: Int64s) -> Int64s:
    """Monday is 0; 1970-01-01 was a Thursday."""
    return (slots // HOURS + 3) % DAYS


def _matrix(counts: Int64s, slots: Int64s) -> list[list[int]]:
    cells = _weekday(slots) * HOURS + slots % HOURS
    table = np.bincount(cells, weights=counts, minlength=DAYS * HOURS).astype(np.int64)
    return [[int(cell) for cell in row] for row in table.reshape(DAYS, HOURS)]


def _by_weekday(counts: Int64s, slots: Int64s) -> list[Measured | None]:
    """Means of whole days: the hours of a day are too much alike to count one by one."""
    days = slots // HOURS - slots[0] // HOURS
    jobs, hours = np.bincount(days, weights=counts), np.bincount(days)
    weekdays = _weekday(np.arange(slots[0] // HOURS, slots[0] // HOURS + len(jobs)) * HOURS)
    return _rates(jobs / hours, weekdays, DAYS)


def _rates(values: Float64s | Int64s, kinds: Int64s, count: int) -> list[Measured | None]:
    numbers = np.bincount(kinds, minlength=count)
    sums = np.bincount(kinds, weights=values, minlength=count)
    squares = np.bincount(kinds, weights=np.square(values.astype(np.float64)), minlength=count)
    found: list[Measured | None] = []
    for number, total, square in zip(numbers.tolist(), sums.tolist(), squares.tolist(), strict=True):
        if number == 0:
            found.append(None)
            continue
        mean = total / number
        if number < 2:
            found.append(Measured(value=mean))
            continue
        half = Z * (max(0.0, square - number * mean**2) / (number - 1) / number) ** 0.5
        found.append(Measured(value=mean, low=max(0.0, mean - half), high=mean + half))
    return found
