"""The exact statistics, compared with numpy and hand-computed cases."""

import numpy as np
import pytest

from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.model.rules import Basis, Quantity, Statistic, StatisticKind

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
K = StatisticKind


def stat(kind: StatisticKind, *, percentile: float | None = None, threshold: float | None = None) -> Statistic:
    return Statistic(kind, percentile, None if threshold is None else Quantity(threshold))


def one_row(values: list[float], *, times: list[int] | None = None) -> ExactColumns:
    time_ms = np.array(times if times is not None else np.arange(len(values)) * 15 * SECOND, np.int64)
    series = Series(time_ms, np.array(values, np.float64), np.array([0, len(values)]))
    return ExactColumns({"gpu_util_ratio": series}, 1)


def value(columns: ExactColumns, statistic: Statistic, window_ms: int | None = None) -> float:
    return float(columns.column("gpu_util_ratio", statistic, window_ms=window_ms)[0])


def test_statistics_equal_numpy_when_rows_have_any_length() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 101, count) * 0.01 for count in (1, 2, 3, 10, 0, 500, 77)]
    offsets = np.cumsum([0, *map(len, rows)])
    time_ms = np.concatenate([np.arange(len(row)) * 15 * SECOND for row in rows])
    columns = ExactColumns({"m": Series(time_ms, np.concatenate(rows), offsets)}, len(rows))
    for percentile in (0.0, 5.0, 33.3, 50.0, 95.0, 99.9, 100.0):
        percentiles = columns.column("m", stat(K.PERCENTILE, percentile=percentile))
        expected = [np.percentile(row, percentile) if len(row) else np.nan for row in rows]
        np.testing.assert_allclose(percentiles, expected, rtol=1e-12)
    with np.errstate(all="ignore"):
        for kind, compute in ((K.MIN, np.min), (K.MAX, np.max), (K.MEAN, np.mean), (K.STD, np.std)):
            expected = [compute(row) if len(row) else np.nan for row in rows]
            np.testing.assert_allclose(columns.column("m", stat(kind)), expected, rtol=1e-12, atol=1e-15)
    assert columns.samples("m").tolist() == [len(row) for row in rows]


def test_slope_is_that_of_least_squares_when_time_is_uneven() -> None:
    rng = np.random.default_rng(4)
    times = np.cumsum(rng.integers(10, 100, 50)) * SECOND
    values = 3.0 * times / HOUR + rng.normal(0, 0.1, 50)
    slope = np.polyfit(times / HOUR, values, 1)[0]
    assert value(one_row(values.tolist(), times=times.tolist()), stat(K.SLOPE)) == pytest.approx(slope)
    assert np.isnan(value(one_row([1.0]), stat(K.SLOPE)))


def test_increase_adds_resets_up_when_a_counter_starts_again() -> None:
    assert value(one_row([10.0, 15.0, 2.0, 4.0]), stat(K.INCREASE)) == 5.0 + 2.0 + 2.0


def test_share_leaves_equal_values_out_when_they_differ_only_in_binary() -> None:
    columns = one_row([35 * 0.01, 0.36, 0.34, 0.36])
    assert value(columns, stat(K.ABOVE, threshold=0.35)) == 0.5
    assert value(columns, stat(K.BELOW, threshold=0.35)) == 0.25


def test_longest_run_counts_its_last_sample_for_one_interval_when_it_ends() -> None:
    columns = one_row([0.9, 0.1, 0.9, 0.9, 0.9, 0.1, 0.9, 0.9])
    assert value(columns, stat(K.LONGEST_ABOVE, threshold=0.5)) == 45.0
    assert value(columns, stat(K.LONGEST_BELOW, threshold=0.5)) == 15.0
    assert value(columns, stat(K.LONGEST_BELOW, threshold=0.05)) == 0.0


def test_longest_run_breaks_when_samples_are_missing_for_more_than_four_intervals() -> None:
    times = [0, 15, 30, 45, 60, 121, 136]  # seconds; 61 s is more than 4 × 15 s
    columns = one_row([1.0] * 7, times=[t * SECOND for t in times])
    assert value(columns, stat(K.LONGEST_ABOVE, threshold=0.5)) == 75.0
    joined = one_row([1.0] * 7, times=[t * SECOND for t in (0, 15, 30, 45, 60, 120, 135)])
    assert value(joined, stat(K.LONGEST_ABOVE, threshold=0.5)) == 150.0


def test_threshold_is_a_share_of_the_rows_own_limit_when_its_basis_says_so() -> None:
    series = Series.from_table(np.arange(4) * 15_000, np.array([[300.0, 500, 500, 500]] * 3))
    columns = ExactColumns({"power_watts": series}, 3, limits={"power_watts": np.array([700.0, 400.0, np.nan])})
    statistic = Statistic(K.BELOW, threshold=Quantity(0.7, Basis.LIMIT))
    np.testing.assert_equal(columns.column("power_watts", statistic), [0.25, 0.0, np.nan])


def test_window_takes_only_its_last_samples_when_a_moment_is_given() -> None:
    values = np.arange(1.0, 11.0)
    columns = one_row(values.tolist())
    assert value(columns, stat(K.MIN), window_ms=30 * SECOND) == 9.0
    earlier = columns.at(60 * SECOND)
    assert value(earlier, stat(K.NOW)) == 5.0
    assert value(earlier, stat(K.MIN), window_ms=30 * SECOND) == 4.0
    assert earlier.samples("gpu_util_ratio", window_ms=30 * SECOND).tolist() == [2]


def test_row_has_no_value_when_it_was_not_measured() -> None:
    columns = one_row([1.0])
    assert np.isnan(columns.column("power_watts", stat(K.MEAN))).all()
    assert columns.samples("power_watts").tolist() == [0]
    assert columns.limits("gpu_util_ratio").tolist() == [1.0]


def test_series_keeps_the_last_sample_when_two_share_a_time() -> None:
    series = Series.from_rows(np.array([1, 0, 1, 1]), np.array([5, 5, 2, 5]), np.array([1.0, 2.0, 3.0, 4.0]), 3)
    assert series.offsets.tolist() == [0, 1, 3, 3]
    assert series.value.tolist() == [2.0, 3.0, 4.0]


def test_shape_is_refused_when_rows_do_not_match() -> None:
    with pytest.raises(ValueError, match="has 1 rows, not 2"):
        ExactColumns({"m": Series(np.zeros(0, np.int64), np.zeros(0), np.array([0, 0]))}, 2)
    with pytest.raises(ValueError, match="needs a threshold"):
        one_row([1.0]).column("gpu_util_ratio", stat(K.ABOVE))
    with pytest.raises(ValueError, match="between 0 and 100"):
        one_row([1.0]).column("gpu_util_ratio", stat(K.PERCENTILE, percentile=101.0))
