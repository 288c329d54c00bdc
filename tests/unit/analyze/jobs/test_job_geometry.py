"""Spreads, arrivals, occupancy and waits, each compared with a hand-computed case or a plain computation."""

import numpy as np
import pytest
from clusters.job_histories import MONDAY_S, make_trace, random_trace

from clusterscape.analyze.jobs.columns import read_columns, split_by_doubling, split_by_rank
from clusterscape.analyze.jobs.distributions import spread_values
from clusterscape.analyze.jobs.geometry import (
    count_waiting_at_submission,
    describe_arrivals,
    describe_occupancy,
    describe_waiting,
)
from clusterscape.errors import QueryError


def test_spread_counts_all_values_when_some_are_missing_and_some_zero() -> None:
    spread = spread_values(np.array([np.nan, 0.0, 1.0, 10.0, 100.0]))
    assert (spread.count, spread.missing, spread.mean) == (4, 1, 27.75)
    assert spread.quantiles is not None
    assert spread.histogram is not None
    assert spread.distribution is not None
    assert (spread.quantiles.minimum, spread.quantiles.p50, spread.quantiles.maximum) == (0.0, 5.5, 100.0)
    assert spread.histogram.zeros == 1
    assert sum(spread.histogram.counts) == 3
    first = spread.histogram.edges.index(10.0)
    assert spread.histogram.counts[first] == 1
    assert spread.distribution.values == [0.0, 1.0, 10.0, 100.0]
    assert spread.distribution.shares == [0.25, 0.5, 0.75, 1.0]


def test_distribution_is_exact_and_short_when_there_are_many_values() -> None:
    values = np.random.default_rng(0).lognormal(size=10_000)
    distribution = spread_values(values).distribution
    assert distribution is not None
    assert len(distribution.values) <= 200
    assert distribution.shares == [float((values <= value).mean()) for value in distribution.values]


def test_spread_is_empty_when_no_value_is_known() -> None:
    spread = spread_values(np.array([np.nan]))
    assert (spread.count, spread.missing, spread.quantiles, spread.histogram) == (0, 1, None, None)


def test_equal_values_stay_together_when_jobs_are_split_into_thirds() -> None:
    values = np.array([1.0] * 7 + [2.0, 3.0, np.nan])
    thirds = split_by_rank(values)
    assert (thirds.low, thirds.high) == ([1.0, 2.0], [1.0, 3.0])
    assert thirds.code.tolist() == [0] * 7 + [1, 1, -1]


def test_classes_double_when_sizes_are_split() -> None:
    classes = split_by_doubling(np.array([0, 0.5, 1, 2, 3, 4, 1000]))
    assert list(zip(classes.low, classes.high, strict=True)) == [
        (0, 0),
        (0.5, 0.5),
        (1, 1),
        (2, 3),
        (4, 4),
        (1000, 1000),
    ]
    assert split_by_doubling(np.arange(100_000.0)).count <= 12


def test_rates_are_those_planted_when_jobs_come_at_nine_on_workdays() -> None:
    nine = [MONDAY_S + day * 86_400 + 9 * 3600 + minute * 60 for day in range(28) if day % 7 < 5 for minute in range(6)]
    ends = [MONDAY_S, MONDAY_S + 28 * 86_400 - 1]
    arrivals = describe_arrivals(read_columns(make_trace(submit_s=sorted([*nine, *ends]))), "UTC")
    assert arrivals.jobs_by_weekday_hour is not None
    assert arrivals.jobs_per_hour_by_hour is not None
    assert arrivals.jobs_per_hour_by_weekday is not None
    assert arrivals.jobs_by_weekday_hour[0][9] == 24
    assert arrivals.jobs_by_weekday_hour[5][9] == 0
    nine_rate, sunday = arrivals.jobs_per_hour_by_hour[9], arrivals.jobs_per_hour_by_weekday[6]
    assert nine_rate is not None
    assert sunday is not None
    assert nine_rate.value == pytest.approx(6 * 20 / 28)
    assert nine_rate.low is not None
    assert nine_rate.low < nine_rate.value < (nine_rate.high or 0)
    assert sunday.value == pytest.approx(1 / 24 / 4)


def test_hours_are_those_of_the_zone_when_one_is_named() -> None:
    trace = make_trace(submit_s=[MONDAY_S, MONDAY_S + 60])
    jobs_by_weekday_hour = describe_arrivals(read_columns(trace), "America/Chicago").jobs_by_weekday_hour
    assert jobs_by_weekday_hour is not None
    assert jobs_by_weekday_hour[6][18] == 2  # Sunday, 18:00
    with pytest.raises(QueryError, match="unknown time zone"):
        describe_arrivals(read_columns(trace), "Europe/Nowhere")


def test_hours_are_unknown_when_the_trace_has_relative_times() -> None:
    arrivals = describe_arrivals(read_columns(make_trace(submit_s=[0, 50, 150])), "UTC")
    assert arrivals.jobs_by_weekday_hour is None
    assert arrivals.gap_s.mean == 75


def test_occupancy_is_exact_when_two_jobs_overlap() -> None:
    # 2 GPUs during [0, 100), 3 during [50, 150) after waiting 50 s; nothing in [150, …).
    trace = make_trace(submit_s=[0, 0], wait_s=[0, 50], run_s=[100, 100], size=[2, 3], total=10)
    occupancy = describe_occupancy(read_columns(trace))
    assert occupancy is not None
    assert occupancy.used_unit_hours == pytest.approx(500 / 3600)
    assert occupancy.utilization == pytest.approx(500 / (10 * 150))
    assert (occupancy.peak_busy_units, occupancy.peak_waiting_jobs, occupancy.left_out) == (5, 1, 0)
    assert occupancy.mean_waiting_jobs == pytest.approx(50 / 150)
    assert (occupancy.course.start_s, occupancy.course.step_s) == (0, 60)
    assert occupancy.course.busy_units == pytest.approx([(50 * 2 + 10 * 5) / 60, (40 * 5 + 20 * 3) / 60, 30 * 3 / 60])
    assert occupancy.course.waiting_units == pytest.approx([50 * 3 / 60, 0, 0])
    assert occupancy.time_share_by_level[4] == pytest.approx(50 / 150)
    assert occupancy.time_share_by_level[10] == pytest.approx(50 / 150)
    assert occupancy.over_capacity_share == 0


def test_over_capacity_is_reported_when_more_units_are_busy_than_exist() -> None:
    trace = make_trace(submit_s=[0, 0], wait_s=[0, 50], run_s=[100, 100], size=[2, 3], total=4)
    occupancy = describe_occupancy(read_columns(trace))
    assert occupancy is not None
    assert occupancy.over_capacity_share == pytest.approx(50 / 150)


def test_the_whole_area_is_kept_when_a_long_trace_is_drawn() -> None:
    jobs = read_columns(random_trace(3000))
    occupancy = describe_occupancy(jobs)
    assert occupancy is not None
    assert len(occupancy.course.busy_units) <= 200
    drawn = sum(occupancy.course.busy_units) * occupancy.course.step_s / 3600
    assert drawn == pytest.approx(occupancy.used_unit_hours, rel=1e-6)
    assert occupancy.used_unit_hours == pytest.approx(float((jobs.run_s * jobs.size).sum()) / 3600)


def test_occupancy_is_missing_when_no_wait_is_known() -> None:
    jobs = read_columns(make_trace(submit_s=[0, 1], run_s=[5, 5]))
    assert describe_occupancy(jobs) is None
    assert np.isnan(count_waiting_at_submission(jobs)).all()


def test_queue_count_matches_a_plain_loop_when_many_jobs_arrive_in_one_second() -> None:
    random = np.random.default_rng(3)
    submit = np.sort(random.integers(0, 60, 300)).astype(float)
    wait = random.integers(0, 20, 300).astype(float)
    waiting = count_waiting_at_submission(read_columns(make_trace(submit_s=submit, wait_s=wait, run_s=wait)))
    start = submit + wait
    assert waiting.tolist() == [int(((submit < now) & (start > now)).sum()) for now in submit]


def test_waits_are_reported_by_size_and_queue_when_known() -> None:
    trace = make_trace(submit_s=[0, 1, 2], wait_s=[10, 20, 30], run_s=[10, 5, 100], size=[1, 1, 4])
    jobs = read_columns(trace)
    waiting = describe_waiting(jobs, count_waiting_at_submission(jobs))
    assert [(size_class.low, size_class.jobs, size_class.mean_s) for size_class in waiting.by_size] == [
        (1, 2, 15),
        (4, 1, 30),
    ]
    assert [(queue_class.low, queue_class.high) for queue_class in waiting.by_waiting_jobs] == [(0, 0), (1, 1), (2, 2)]
    assert waiting.mean_bounded_slowdown == pytest.approx((2 + 2.5 + 1.3) / 3)
