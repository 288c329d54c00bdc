"""Periods of the calendar in a time zone: a month as [start, end), and its days. Days have 23 to 25 hours where clocks change."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum

from clusterscape.model import UnixMs


class CalendarStep(StrEnum):
    """The lengths of time that usage is summed over."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Period:
    """[start, end) in Unix ms: from midnight to midnight in its time zone."""

    start: UnixMs
    end: UnixMs


FORMS = "2026, 2026-Q4, 2026-10, 2026-W42, 2026-10-05, or two of them: 2026-01..2026-03"
_WRITTEN = re.compile(r"(\d{4})(?:-(?:Q([1-4])|W(\d\d)|(\d\d)(?:-(\d\d))?))?")
MAX_STEPS = 1500
_FIRST_YEAR, _LAST_YEAR = 1971, 9990


def parse_period(text: str, zone: tzinfo) -> Period:
    """The period that ``text`` names, see FORMS. Raises ValueError if it names none."""
    first, separator, last = text.strip().partition("..")
    start, end = _parse_days(first)
    if separator:
        end = _parse_days(last)[1]
    if end <= start:
        raise ValueError(f"{text}: the end is before the start")
    return Period(midnight(start, zone), midnight(end, zone))


def _parse_days(text: str) -> tuple[date, date]:
    """The first day, and the day after the last one."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a period; write {FORMS}")
    year, quarter, week, month, day = (None if part is None else int(part) for part in match.groups())
    assert year is not None
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise ValueError(f"{text!r} is not between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    if week is not None:
        first = date.fromisocalendar(year, week, 1)
        return first, first + timedelta(days=7)
    if day is not None:
        first = date(year, month or 1, day)
        return first, first + timedelta(days=1)
    if month is not None:
        first = date(year, month, 1)
        return first, next_start(first, CalendarStep.MONTH)
    if quarter is not None:
        first = date(year, 3 * quarter - 2, 1)
        return first, next_start(first, CalendarStep.QUARTER)
    return date(year, 1, 1), date(year + 1, 1, 1)


def midnight(day: date, zone: tzinfo) -> UnixMs:
    """The first moment of a day. Where clocks skip midnight, that is the moment of the change."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone)
    at = local.astimezone(UTC)
    back = at.astimezone(zone)
    if back.replace(tzinfo=None) != local.replace(tzinfo=None):  # 00:00 does not exist on this day
        before = at - timedelta(hours=3)
        low, high = int(before.timestamp()), int(at.timestamp()) + 3 * 3600
        while low < high:
            middle = (low + high) // 2
            if datetime.fromtimestamp(middle, zone).date() < day:
                low = middle + 1
            else:
                high = middle
        return UnixMs(low * 1000)
    return UnixMs(round(at.timestamp()) * 1000)


def local_date(at: UnixMs, zone: tzinfo) -> date:
    """The day of a moment."""
    return datetime.fromtimestamp(at / 1000, zone).date()


def step_start(day: date, step: CalendarStep) -> date:
    """The first day of the week, month, … that has ``day``. Weeks begin on Monday."""
    if step is CalendarStep.DAY:
        return day
    if step is CalendarStep.WEEK:
        return day - timedelta(days=day.weekday())
    if step is CalendarStep.MONTH:
        return day.replace(day=1)
    if step is CalendarStep.QUARTER:
        return date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)
    return date(day.year, 1, 1)


def next_start(day: date, step: CalendarStep) -> date:
    """The first day of the next one."""
    first = step_start(day, step)
    if step is CalendarStep.DAY:
        return first + timedelta(days=1)
    if step is CalendarStep.WEEK:
        return first + timedelta(days=7)
    months = {CalendarStep.MONTH: 1, CalendarStep.QUARTER: 3, CalendarStep.YEAR: 12}[step]
    month = first.month - 1 + months
    return date(first.year + month // 12, month % 12 + 1, 1)


def split_period(period: Period, step: CalendarStep, zone: tzinfo) -> list[UnixMs]:
    """The edges of the steps in ``period``, from its start to its end; the first and the last step may be incomplete.

    Raises ValueError if there are more than MAX_STEPS.
    """
    edges = [period.start]
    day = next_start(local_date(period.start, zone), step)
    while (at := midnight(day, zone)) < period.end:
        edges.append(at)
        if len(edges) > MAX_STEPS:
            raise ValueError(f"more than {MAX_STEPS} steps of a {step.value}; choose longer ones")
        day = next_start(day, step)
    return [*edges, period.end]


def choose_step(period: Period) -> CalendarStep:
    """Steps that are few enough for one chart."""
    days = (period.end - period.start) / 86_400_000
    if days <= 62:
        return CalendarStep.DAY
    if days <= 190:
        return CalendarStep.WEEK
    return CalendarStep.MONTH if days <= 366 * 5 else CalendarStep.YEAR


def find_kind(period: Period, zone: tzinfo) -> CalendarStep | None:
    """Which of the calendar's periods it is; None if it is none."""
    return next((kind for kind in reversed(CalendarStep) if period_around(period.start, kind, zone) == period), None)


def period_around(at: UnixMs, kind: CalendarStep, zone: tzinfo) -> Period:
    """The day, week, … that has a moment."""
    first = step_start(local_date(at, zone), kind)
    return Period(midnight(first, zone), midnight(next_start(first, kind), zone))


def period_after(period: Period, zone: tzinfo) -> Period:
    """The next period of the same kind; after one that is none of the calendar, one as long."""
    kind = find_kind(period, zone)
    if kind is not None:
        return period_around(period.end, kind, zone)
    first = local_date(period.end, zone)
    return Period(period.end, midnight(first + timedelta(days=_count_days(period, zone)), zone))


def periods_before(period: Period, zone: tzinfo, count: int) -> list[Period]:
    """The periods of the same kind before this one, oldest first; before one that is none of the calendar, as long ones."""
    kind = find_kind(period, zone)
    periods: list[Period] = []
    start = period.start
    for _ in range(count):
        if kind is not None:
            before = period_around(UnixMs(start - 1), kind, zone)
        else:
            first = local_date(start, zone) - timedelta(days=_count_days(period, zone))
            before = Period(midnight(first, zone), start)
        periods.append(before)
        start = before.start
    return periods[::-1]


def _count_days(period: Period, zone: tzinfo) -> int:
    return (local_date(UnixMs(period.end - 1), zone) - local_date(period.start, zone)).days + 1


def name_period(period: Period, zone: tzinfo) -> str:
    """``2026-10`` if the period is a whole month, and so on; else its first and last day."""
    first, kind = local_date(period.start, zone), find_kind(period, zone)
    if kind is not None:
        return _name_step(first, kind)
    return f"{first}..{local_date(UnixMs(period.end - 1), zone)}"


def _name_step(first: date, step: CalendarStep) -> str:
    match step:
        case CalendarStep.YEAR:
            return f"{first:%Y}"
        case CalendarStep.QUARTER:
            return f"{first.year}-Q{(first.month + 2) // 3}"
        case CalendarStep.MONTH:
            return f"{first:%Y-%m}"
        case CalendarStep.WEEK:
            return f"{first:%G-W%V}"
        case CalendarStep.DAY:
            return f"{first}"
