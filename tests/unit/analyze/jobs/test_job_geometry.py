"""Spreads, arrivals, occupancy and waits, each against a case worked out by hand or a plain computation."""

import numpy as np
import pytest
from clusters.job_histories import MONDAY_S, make_trace, random_trace

from clusterscape.analyze.jobs.arrivals import describe_arrivals
from clusterscape.analyze.jobs.classes import split_by_doubling, split_by_rank
from clusterscape.analyze.jobs.columns import read_columns
from clusterscape.analyze.jobs.distributions import spread_values
from clusterscape.analyze.jobs.occupancy import count_waiting_at_submission, describe_occupancy
from clusterscape.analyze.jobs.queueing import describe_waiting
from clusterscape.errors import QueryError


def test_spread_says_everything_when_some_values_are_missing_and_some_zero() -> None:
    found = spread_values(np.array([np.nan, 0.0, 1.0, 10.0, 100.0]))
    assert (found.count, found.missing, found.mean) == (4, 1, 27.75)
    assert found.quantiles is not None
    assert found.histogram is not None
    assert found.distribution is not None
    assert (found.quantiles.minimum, found.quantiles.p50, found.quantiles.maximum) == (0.0, 5.5, 100.0)
    assert found.histogram.zeros == 1
    assert sum(found.histogram.counts) == 3
    first = found.histogram.edges.index(10.0)
    assert found.histogram.counts[first] == 1
    assert found.distribution.values == [0.0, 1.0, 10.0, 100.0]
    assert found.distribution.shares == [0.25, 0.5, 0.75, 1.0]


def test_distribution_is_exact_and_short_when_there_are_many_values() -> None:
    values = np.random.default_rng(0).lognormal(size=10_000)
    found = spread_values(values).distribution
    assert found is not None
    assert len(found.values) <= 200
    assert found.shares == [float((values <= value).mean()) for value in found.values]


def test_nothing_is_said_when_no_value_is_known() -> None:
    found = spread_values(np.array([np.nan]))
    assert (found.count, found.missing, found.quantiles, found.histogram) == (0, 1, None, None)


def test_equal_values_stay_together_when_jobs_are_split_into_thirds() -> None:
    values = np.array([1.0] * 7 + [2.0, 3.0, np.nan])
    found = split_by_rank(values)
    assert (found.low, found.high) == ([1.0, 2.0], [1.0, 3.0])
    assert found.code.tolist() == [0] * 7 + [1, 1, -1]


def test_classes_double_when_sizes_are_split() -> None:
    found = split_by_doubling(np.array([0, 0.5, 1, 2, 3, 4, 1000]))
    assert list(zip(found.low, found.high, strict=True)) == [(0, 0), (0.5, 0.5), (1, 1), (2, 3), (4, 4), (1000, 1000)]
    assert split_by_doubling(np.arange(100_000.0)).count <= 12


def test_rates_are_those_planted_when_jobs_come_at_nine_on_workdays() -> None:
    nine = [MONDAY_S + day * 86_400 + 9 * 3600 + minute * 60 for day in range(28) if day % 7 < 5 for minute in range(6)]
    ends = [MONDAY_S, MONDAY_S + 28 * 86_400 - 1]
    found = describe_arrivals(read_columns(make_trace(submit_s=sorted([*nine, *ends]))), "UTC")
    assert found.jobs_by_weekday_hour is not None
    assert found.jobs_per_hour_by_hour is not None
    assert found.jobs_per_hour_by_weekday is not None
    assert found.jobs_by_weekday_hour[0][9] == 24
    assert found.jobs_by_weekday_hour[5][9] == 0
    nine_rate, sunday = found.jobs_per_hour_by_hour[9], found.jobs_per_hour_by_weekday[6]
    assert nine_rate is not None
    assert sunday is not None
    assert nine_rate.value == pytest.approx(6 * 20 / 28)
    assert nine_rate.low is not None
    assert nine_rate.low < nine_rate.value < (nine_rate.high or 0)
    assert sunday.value == pytest.approx(1 / 24 / 4)


def test_hours_are_those_of_the_zone_when_one_is_named() -> None:
    trace = make_trace(submit_s=[MONDAY_S, MONDAY_S + 60])
    found = describe_arrivals(read_columns(trace), "America/Chicago").jobs_by_weekday_hour
    assert found is not None
    assert found[6][18] == 2  # Sunday, 18:00
    with pytest.raises(QueryError, match="no time zone"):
        describe_arrivals(read_columns(trace), "Europe/Nowhere")


def test_hours_are_not_known_when_the_trace_counts_from_its_own_beginning() -> None:
    found = describe_arrivals(read_columns(make_trace(submit_s=[0, 50, 150])), "UTC")
    assert found.jobs_by_weekday_hour is None
    assert found.gap_s.mean == 75


def test_occupancy_is_exact_when_two_jobs_overlap() -> None:
    # 2 GPUs during [0, 100), 3 during [50, 150) after waiting 50 s; nothing in [150, …).
    trace = make_trace(submit_s=[0, 0], wait_s=[0, 50], run_s=[100, 100], size=[2, 3], total=10)
    found = describe_occupancy(read_columns(trace))
    assert found is not None
    assert found.used_unit_hours == pytest.approx(500 / 3600)
    assert found.utilization == pytest.approx(500 / (10 * 150))
    assert (found.peak_busy_units, found.peak_waiting_jobs, found.left_out) == (5, 1, 0)
    assert found.mean_waiting_jobs == pytest.approx(50 / 150)
    assert (found.course.start_s, found.course.step_s) == (0, 60)
    assert found.course.busy_units == pytest.approx([(50 * 2 + 10 * 5) / 60, (40 * 5 + 20 * 3) / 60, 30 * 3 / 60])
    assert found.course.waiting_units == pytest.approx([50 * 3 / 60, 0, 0])
    assert found.time_share_by_level[4] == pytest.approx(50 / 150)
    assert found.time_share_by_level[10] == pytest.approx(50 / 150)
    assert found.over_capacity_share == 0


def test_too_much_is_told_when_more_is_busy_than_there_is() -> None:
    trace = make_trace(submit_s=[0, 0], wait_s=[0, 50], run_s=[100, 100], size=[2, 3], total=4)
    found = describe_occupancy(read_columns(trace))
    assert found is not None
    assert found.over_capacity_share == pytest.approx(50 / 150)


def test_the_whole_area_is_kept_when_a_long_trace_is_drawn() -> None:
    jobs = read_columns(random_trace(3000))
    found = describe_occupancy(jobs)
    assert found is not None
    assert len(found.course.busy_units) <= 200
    drawn = sum(found.course.busy_units) * found.course.step_s / 3600
    assert drawn == pytest.approx(found.used_unit_hours, rel=1e-6)
    assert found.used_unit_hours == pytest.approx(float((jobs.run_s * jobs.size).sum()) / 3600)


def test_nothing_is_occupied_when_no_wait_is_known() -> None:
    jobs = read_columns(make_trace(submit_s=[0, 1], run_s=[5, 5]))
    assert describe_occupancy(jobs) is None
    assert np.isnan(count_waiting_at_submission(jobs)).all()


def test_the_queue_is_counted_as_one_by_one_when_many_jobs_come_in_one_second() -> None:
    random = np.random.default_rng(3)
    submit = np.sort(random.integers(0, 60, 300)).astype(float)
    wait = random.integers(0, 20, 300).astype(float)
    found = count_waiting_at_submission(read_columns(make_trace(submit_s=submit, wait_s=wait, run_s=wait)))
    start = submit + wait
    assert found.tolist() == [int(((submit < now) & (start > now)).sum()) for now in submit]


def test_waits_are_told_by_size_and_queue_when_they_are_known() -> None:
    trace = make_trace(submit_s=[0, 1, 2], wait_s=[10, 20, 30], run_s=[10, 5, 100], size=[1, 1, 4])
    jobs = read_columns(trace)
    found = describe_waiting(jobs, count_waiting_at_submission(jobs))
    assert [(each.low, each.jobs, each.mean_s) for each in found.by_size] == [(1, 2, 15), (4, 1, 30)]
    assert [(each.low, each.high) for each in found.by_waiting_jobs] == [(0, 0), (1, 1), (2, 2)]
    assert found.mean_bounded_slowdown == pytest.approx((2 + 2.5 + 1.3) / 3)
