"""Statistics and steps of many series, compared with numpy on one series at a time."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.store.metrics.contract import SeriesStatistic
from clusterscape.store.metrics.kernels import (
    Aggregates,
    aggregate_aggregates,
    aggregate_samples,
    compute_coarse_statistics,
    compute_increase,
    compute_statistics,
    group_steps,
)

numbers = st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False)
many_series = st.lists(st.lists(numbers, min_size=1, max_size=70), min_size=1, max_size=12)

REFEREE: dict[SeriesStatistic, Callable[[Float64s], float]] = {
    SeriesStatistic.MIN: np.min,
    SeriesStatistic.MAX: np.max,
    SeriesStatistic.MEAN: np.mean,
    SeriesStatistic.STD: np.std,
    SeriesStatistic.P5: lambda x: np.percentile(x, 5),
    SeriesStatistic.P25: lambda x: np.percentile(x, 25),
    SeriesStatistic.P50: lambda x: np.percentile(x, 50),
    SeriesStatistic.P75: lambda x: np.percentile(x, 75),
    SeriesStatistic.P95: lambda x: np.percentile(x, 95),
    SeriesStatistic.COUNT: len,
    SeriesStatistic.FIRST: lambda x: x[0],
    SeriesStatistic.LAST: lambda x: x[-1],
}


def flat(series: list[list[float]]) -> tuple[Float64s, Int64s]:
    offsets = np.concatenate(([0], np.cumsum([len(samples) for samples in series])))
    return np.array([value for samples in series for value in samples]), offsets


@given(many_series)
def test_statistics_equal_numpy_when_lengths_differ(series: list[list[float]]) -> None:
    value, offsets = flat(series)
    computed = compute_statistics(value, offsets, list(REFEREE))
    for statistic, referee in REFEREE.items():
        expected = [referee(np.array(samples)) for samples in series]
        assert computed[statistic] == pytest.approx(expected, rel=1e-9, abs=1e-4), statistic


@given(st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=30), min_size=1, max_size=8))
def test_increase_counts_from_zero_when_counter_falls(series: list[list[int]]) -> None:
    value, offsets = flat([[float(x) for x in samples] for samples in series])
    expected = [sum(now - before if now >= before else now for before, now in pairwise(samples)) for samples in series]
    assert compute_increase(value, offsets).tolist() == expected


def test_statistics_are_empty_when_there_is_no_series() -> None:
    computed = compute_statistics(np.empty(0), np.zeros(1, np.int64), [SeriesStatistic.P50, SeriesStatistic.MEAN])
    assert [len(values) for values in computed.values()] == [0, 0]


def test_quantiles_keep_infinities_when_series_hold_them() -> None:
    value = np.array([1.0, np.inf, np.inf, np.inf, 2.0])
    computed = compute_statistics(value, np.array([0, 3, 5]), [SeriesStatistic.P50, SeriesStatistic.P95])
    assert computed[SeriesStatistic.P50].tolist() == [np.inf, np.inf]
    assert computed[SeriesStatistic.P95].tolist() == [np.inf, np.inf]


@given(st.lists(st.lists(st.one_of(numbers, st.none()), min_size=1, max_size=40), min_size=1, max_size=5))
def test_coarse_of_coarse_equals_coarse_of_samples_when_steps_nest(series: list[list[float | None]]) -> None:
    value = np.array([np.nan if x is None else x for samples in series for x in samples])
    offsets = np.concatenate(([0], np.cumsum([len(samples) for samples in series])))
    time_ms = np.concatenate([np.arange(len(samples), dtype=np.int64) * 7_000 for samples in series])
    fine = group_steps(time_ms, offsets, 20_000)
    once = aggregate_samples(value, fine)
    coarse = group_steps(fine.time_ms, fine.offsets, 60_000)
    twice = aggregate_aggregates(once, coarse)
    directly = aggregate_samples(value, group_steps(time_ms, offsets, 60_000))
    for name in ("mean", "min", "max", "last", "count"):
        assert getattr(twice, name) == pytest.approx(getattr(directly, name), rel=1e-9, abs=1e-4, nan_ok=True), name


def test_coarse_statistics_are_exact_when_they_can_be() -> None:
    samples = np.array([1.0, 5.0, 3.0, 9.0, 2.0, 4.0])
    steps = group_steps(np.arange(6, dtype=np.int64) * 10, np.array([0, 6]), 20)
    fine: Aggregates = aggregate_samples(samples, steps)
    requested = [
        SeriesStatistic.MIN,
        SeriesStatistic.MAX,
        SeriesStatistic.MEAN,
        SeriesStatistic.COUNT,
        SeriesStatistic.LAST,
    ]
    computed = compute_coarse_statistics(fine, steps.offsets, requested, of_counter=False)
    assert {statistic: values.tolist() for statistic, values in computed.items()} == {
        SeriesStatistic.MIN: [1.0],
        SeriesStatistic.MAX: [9.0],
        SeriesStatistic.MEAN: [4.0],
        SeriesStatistic.COUNT: [6.0],
        SeriesStatistic.LAST: [4.0],
    }
