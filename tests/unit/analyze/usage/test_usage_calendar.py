"""Periods of the calendar, in time zones whose days are not all 24 hours."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from clusterscape.analyze.usage.calendar import (
    MAX_STEPS,
    CalendarStep,
    choose_step,
    name_period,
    parse_period,
    period_after,
    periods_before,
    split_period,
)
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.timezones import find_timezone

BERLIN = find_timezone("Europe/Berlin")


def at(year: int, month: int, day: int, hour: int = 0) -> int:
    return round(datetime(year, month, day, hour, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-10", (2026, 9, 30, 22), (2026, 10, 31, 23)),  # summer time ends within
        ("2026", (2025, 12, 31, 23), (2026, 12, 31, 23)),
        ("2026-Q1", (2025, 12, 31, 23), (2026, 3, 31, 22)),
        ("2026-W01", (2025, 12, 28, 23), (2026, 1, 4, 23)),
        ("2024-02-29", (2024, 2, 28, 23), (2024, 2, 29, 23)),
        ("2026-01..2026-03", (2025, 12, 31, 23), (2026, 3, 31, 22)),
    ],
)
def test_period_is_from_midnight_to_midnight_of_its_time_zone(
    text: str, start: tuple[int, int, int, int], end: tuple[int, int, int, int]
) -> None:
    period = parse_period(text, BERLIN)
    assert (period.start, period.end) == (at(*start), at(*end))


@pytest.mark.parametrize(
    "text", ["", "2026-13", "2026-02-30", "2026-W54", "26-10", "2026-10..2026-09", "2026-Q5", "0001", "9999"]
)
def test_text_is_rejected_when_it_names_no_period(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_period(text, BERLIN)


def test_days_have_23_and_25_hours_where_clocks_change() -> None:
    for month, hours in (("2026-03", 23), ("2026-10", 25)):
        edges = split_period(parse_period(month, BERLIN), CalendarStep.DAY, BERLIN)
        lengths = [(end - start) // HOUR_MS for start, end in pairwise(edges)]
        assert len(lengths) == 31
        assert sorted(set(lengths)) == sorted({24, hours})
        assert lengths.count(hours) == 1


def test_day_begins_later_when_clocks_skip_midnight() -> None:
    zone = find_timezone("Africa/Cairo")  # 2026-04-24 begins at 01:00
    period = parse_period("2026-04-24", zone)
    assert (period.end - period.start) // HOUR_MS == 23
    assert period.start == at(2026, 4, 23, 22)
    assert parse_period("2026-04-23", zone).end == period.start


def test_steps_cover_the_period_when_it_begins_within_one() -> None:
    period = parse_period("2026-01-15..2026-03-02", BERLIN)
    edges = split_period(period, CalendarStep.MONTH, BERLIN)
    assert edges == [
        period.start,
        parse_period("2026-02", BERLIN).start,
        parse_period("2026-03", BERLIN).start,
        period.end,
    ]
    weeks = split_period(period, CalendarStep.WEEK, BERLIN)
    assert all((end - start) <= 7 * 24 * HOUR_MS for start, end in pairwise(weeks))


def test_split_is_refused_when_there_are_too_many_steps() -> None:
    with pytest.raises(ValueError, match=str(MAX_STEPS)):
        split_period(parse_period("2000..2030", BERLIN), CalendarStep.DAY, BERLIN)


@pytest.mark.parametrize("text", ["2026", "2026-10", "2026-Q2", "2026-10-25"])
def test_period_has_the_name_that_it_was_parsed_from(text: str) -> None:
    assert name_period(parse_period(text, BERLIN), BERLIN) == text


def test_steps_fit_one_chart_when_none_are_chosen() -> None:
    for text in ("2026-10", "2026-Q2", "2026", "2020..2026"):
        period = parse_period(text, BERLIN)
        assert len(split_period(period, choose_step(period), BERLIN)) <= 120


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("2026-03", ["2026-01", "2026-02"], "2026-04"),
        ("2026-Q1", ["2025-Q3", "2025-Q4"], "2026-Q2"),
        ("2026-W01", ["2025-W51", "2025-W52"], "2026-W02"),
        ("2026-10-26", ["2026-10-24", "2026-10-25"], "2026-10-27"),
        ("2026-03-28..2026-03-29", ["2026-03-24..2026-03-25", "2026-03-26..2026-03-27"], "2026-03-30..2026-03-31"),
    ],
)
def test_neighbours_of_a_period_are_of_its_kind(text: str, before: list[str], after: str) -> None:
    period = parse_period(text, BERLIN)
    assert [name_period(one, BERLIN) for one in periods_before(period, BERLIN, 2)] == before
    assert name_period(period_after(period, BERLIN), BERLIN) == after
