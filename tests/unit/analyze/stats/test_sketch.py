"""The sketch compared with exact statistics: within its bound, unchanged by merging and clearing."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.analyze.stats import kernels
from clusterscape.analyze.stats.bins import bins_of, error_bound
from clusterscape.analyze.stats.contract import Threshold
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.analyze.stats.sketch import MetricSketch
from clusterscape.model import METRICS
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.rules import Basis, Quantity, Statistic, StatisticKind

K = StatisticKind
START_MS = 1_790_000_000_000
STEP_MS = 15_000
PERCENTILES = (0.0, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 100.0)
RING = 16


def percentile(number: float) -> Statistic:
    return Statistic(K.PERCENTILE, percentile=number)


def times(count: int) -> Int64s:
    return START_MS + np.arange(count, dtype=np.int64) * STEP_MS


def add_table(sketch: MetricSketch, table: Float64s, *, first: int = 0) -> None:
    """Add the table scrape by scrape; NaN is a missing sample."""
    for step in range(table.shape[1]):
        rows = np.flatnonzero(~np.isnan(table[:, step]))
        at = np.full(len(rows), START_MS + (first + step) * STEP_MS)
        sketch.add(rows, at, table[rows, step])


def exact(metric: str, table: Float64s, limits: Float64s) -> ExactColumns:
    series = Series.from_table(times(table.shape[1]), table)
    return ExactColumns({metric: series}, len(table), limits={metric: limits})


SIDES = (
    Statistic(K.ABOVE, threshold=Quantity(0.5, Basis.LIMIT)),
    Statistic(K.LONGEST_ABOVE, threshold=Quantity(0.5, Basis.LIMIT)),
    Statistic(K.BELOW, threshold=Quantity(0.3, Basis.LIMIT)),
    Statistic(K.LONGEST_BELOW, threshold=Quantity(0.3, Basis.LIMIT)),
)


def thresholds_of(metric: str) -> list[Threshold]:
    return [
        Threshold(metric, True, Quantity(0.5, Basis.LIMIT)),
        Threshold(metric, False, Quantity(0.3, Basis.LIMIT)),
    ]


def tracked_utilization(row_count: int) -> MetricSketch:
    sketch = MetricSketch("gpu_util_ratio", row_count, thresholds=thresholds_of("gpu_util_ratio"), ring_samples=RING)
    sketch.clear(np.arange(row_count), np.ones(row_count))
    return sketch


@pytest.mark.parametrize(
    ("metric", "limit"), [("gpu_util_ratio", 1.0), ("power_watts", 700.0), ("memory_used_bytes", 80 * 2.0**30)]
)
@pytest.mark.parametrize("shape", ["uniform", "two levels", "idle", "steps", "rare peaks"])
def test_percentiles_are_within_one_point_when_values_are_of_any_shape(metric: str, limit: float, shape: str) -> None:
    rng = np.random.default_rng(len(shape))
    draws: dict[str, Float64s] = {
        "uniform": rng.random((30, 200)),
        "two levels": np.where(rng.random((30, 200)) < 0.5, 0.031, 0.967),
        "idle": np.zeros((30, 200)),
        "steps": np.floor(np.linspace(0, 1, 200) * 7) / 7 + rng.normal(0, 0.002, (30, 200)).clip(-0.01, 0.01),
        "rare peaks": np.where(rng.random((30, 200)) < 0.02, 1.05, 0.1 + 0.01 * rng.random((30, 200))),
    }
    table = np.clip(draws[shape], 0, 1.02 if limit == 1.0 else 1.2) * np.float64(limit)
    table[3, :195] = np.nan
    table[4] = np.nan
    limits = np.full(30, limit)
    sketch = MetricSketch(metric, 30)
    sketch.clear(np.arange(30), limits)
    add_table(sketch, table)
    truth = exact(metric, table, limits)
    bound = error_bound(metric)
    assert bound.of_full_scale <= 0.005
    for number in PERCENTILES:
        off = np.abs(sketch.column(np.arange(30), percentile(number)) - truth.column(metric, percentile(number)))
        assert np.isnan(off).tolist() == np.isnan(table).all(axis=1).tolist()
        assert np.nanmax(off) <= bound.of_full_scale * limit * (1 + 1e-9)


def test_percentiles_are_exact_when_values_are_whole_percents() -> None:
    rng = np.random.default_rng(1)
    table: Float64s = rng.integers(0, 101, (20, 99)).astype(np.float64) * 0.01
    sketch = MetricSketch("gpu_util_ratio", 20)
    add_table(sketch, table)
    truth = exact("gpu_util_ratio", table, np.ones(20))
    for number in PERCENTILES:
        np.testing.assert_allclose(
            sketch.column(np.arange(20), percentile(number)),
            truth.column("gpu_util_ratio", percentile(number)),
            rtol=1e-12,
        )


def test_percentiles_keep_the_relative_bound_when_a_metric_has_no_full_scale() -> None:
    rng = np.random.default_rng(2)
    metric = "nvlink_tx_bytes_per_second"
    table = np.exp(rng.uniform(np.log(2e4), np.log(9e11), (20, 300)))
    sketch = MetricSketch(metric, 20)
    add_table(sketch, table)
    truth = exact(metric, table, np.full(20, np.nan))
    for number in PERCENTILES:
        expected = truth.column(metric, percentile(number))
        off = np.abs(sketch.column(np.arange(20), percentile(number)) - expected) / expected
        assert off.max() <= error_bound(metric).of_value <= 0.04


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_has_bins_with_a_stated_bound_when_it_is_no_counter(metric: str) -> None:
    bins, bound = bins_of(metric), error_bound(metric)
    assert (bins.count > 0) == (METRICS[metric].kind != "counter")
    assert bound.of_full_scale <= 0.005
    assert bound.of_value <= 0.04


def test_other_statistics_are_exact_when_compared_over_a_lifetime() -> None:
    rng = np.random.default_rng(5)
    table = rng.random((40, 150)) * 700
    table[rng.random(table.shape) < 0.02] = np.nan
    limits = np.where(np.arange(40) % 5, 700.0, 400.0)
    sketch = MetricSketch("power_watts", 40, thresholds=thresholds_of("power_watts"))
    sketch.clear(np.arange(40), limits)
    add_table(sketch, table)
    truth = exact("power_watts", table, limits)
    for kind in (K.MIN, K.MAX, K.MEAN, K.STD, K.NOW, K.SLOPE, K.INCREASE):
        column = sketch.column(np.arange(40), Statistic(kind))
        np.testing.assert_allclose(column, truth.column("power_watts", Statistic(kind)), rtol=1e-9, atol=1e-9)
    for statistic in SIDES:
        column, expected = sketch.column(np.arange(40), statistic), truth.column("power_watts", statistic)
        # The usual interval is a moving estimate: a missed scrape changes it by a twentieth.
        np.testing.assert_allclose(column, expected, atol=2.0 if "longest" in statistic.kind else 1e-12)
    assert sketch.samples(np.arange(40)).tolist() == truth.samples("power_watts").tolist()


def test_runs_break_and_join_when_scrapes_are_missing() -> None:
    sketch = MetricSketch("gpu_util_ratio", 1, thresholds=[Threshold("gpu_util_ratio", True, Quantity(0.5))])
    at = np.array([0, 15, 30, 45, 60, 121, 136]) * 1000 + START_MS
    sketch.add(np.zeros(7, np.int64), at, np.ones(7))
    longest = sketch.column(np.zeros(1, np.int64), Statistic(K.LONGEST_ABOVE, threshold=Quantity(0.5)))
    assert longest[0] == pytest.approx(75.0, abs=1.0)


def test_shares_are_within_the_thresholds_bin_when_it_is_not_registered() -> None:
    rng = np.random.default_rng(6)
    table = rng.random((10, 400))
    sketch = MetricSketch("sm_active_ratio", 10)
    add_table(sketch, table)
    for kind, threshold in ((K.ABOVE, 0.153), (K.BELOW, 0.9), (K.ABOVE, 2.0), (K.BELOW, 2.0)):
        statistic = Statistic(kind, threshold=Quantity(threshold))
        off = sketch.column(np.arange(10), statistic) - exact("sm_active_ratio", table, np.ones(10)).column(
            "sm_active_ratio", statistic
        )
        assert np.abs(off).max() < 0.03
    unknown = sketch.column(np.arange(10), Statistic(K.LONGEST_ABOVE, threshold=Quantity(0.5)))
    assert np.isnan(unknown).all()


def test_sample_is_ignored_when_it_is_not_later_than_the_last() -> None:
    sketch = MetricSketch("gpu_util_ratio", 1)
    row = np.zeros(4, np.int64)
    assert sketch.add(row, START_MS + np.array([0, 15_000, 15_000, 10_000]), np.array([0.1, 0.2, 0.9, 0.9])) == 2
    assert sketch.column(row[:1], Statistic(K.MAX))[0] == 0.2


def ring_of(sketch: MetricSketch, row: int, count: int) -> tuple[list[int], list[float]]:
    """Times (on the ring's clock of 2³² ms) and values of the last ``count`` samples of a row, oldest first."""
    arrays = sketch.arrays
    places = (int(arrays.moments[row, kernels.COUNT]) - count + np.arange(count)) % arrays.ring_value.shape[1]
    return arrays.ring_time[row, places].tolist(), arrays.ring_value[row, places].tolist()


def test_recent_samples_are_those_of_the_ring_when_it_has_turned() -> None:
    rng = np.random.default_rng(7)
    table = rng.random((5, 100))
    sketch = MetricSketch("gpu_util_ratio", 5, ring_samples=RING)
    add_table(sketch, table)
    last = START_MS + 99 * STEP_MS
    counts, are_all = sketch.count_recent(np.arange(5), np.full(5, last - 10 * STEP_MS))
    assert are_all.all()
    assert counts.tolist() == [10] * 5
    for row in range(5):
        assert ring_of(sketch, row, 10) == ((times(100)[-10:] % 2**32).tolist(), table[row, -10:].tolist())
    percentiles = sketch.recent_percentiles(np.arange(5), counts, [0.95, 0.0, 0.5])
    np.testing.assert_allclose(percentiles, np.quantile(table[:, -10:], [0.95, 0.0, 0.5], axis=1), rtol=1e-12)
    _, are_all = sketch.count_recent(np.arange(5), np.full(5, last - RING * STEP_MS))
    assert not are_all.any()
    counts, are_all = sketch.count_recent(np.arange(5), np.full(5, last))
    assert not counts.any()
    assert are_all.all()


def test_recent_samples_are_dated_right_when_a_series_was_silent_for_longer_than_the_clock_of_the_ring() -> None:
    sketch = MetricSketch("gpu_util_ratio", 1, ring_samples=RING)
    row = np.zeros(1, np.int64)
    for at in (0, 15_000, 2**32 + 20_000, 2**32 + 35_000):
        sketch.add(row, np.array([START_MS + at]), np.array([0.5]))
    counts, _ = sketch.count_recent(row, np.array([START_MS]))
    assert counts.tolist() == [2]
    assert ring_of(sketch, 0, 2)[0] == [(START_MS + at) % 2**32 for at in (20_000, 35_000)]
    assert sketch.samples(row).tolist() == [4]


def state(sketch: MetricSketch) -> dict[str, Float64s]:
    """The state that sketches of the same samples share, however they were built; rings as their samples."""
    rows = np.arange(sketch.row_count)
    statistics = [Statistic(kind) for kind in (K.MIN, K.MAX, K.MEAN, K.STD, K.NOW, K.SLOPE, K.INCREASE)]
    sides = [s for s in SIDES if sketch.thresholds]
    counts = sketch.count_recent(rows, np.zeros(len(rows), np.int64))[0].tolist()
    rings = [ring_of(sketch, row, count) for row, count in enumerate(counts)]
    return {
        **{repr(s): sketch.column(rows, s) for s in [*statistics, *sides, *map(percentile, PERCENTILES)]},
        "samples": sketch.samples(rows).astype(np.float64),
        "ring times": np.array([time for times, _ in rings for time in times], np.float64),
        "ring values": np.array([value for _, values in rings for value in values]),
    }


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=40, max_size=40), min_size=1, max_size=3
    ),
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=3),
)
def test_merged_sketches_equal_the_sketch_of_all_samples_when_cut_anywhere(
    values: list[list[int | None]], cuts: list[int]
) -> None:
    table = np.array([[np.nan if v is None else v * 0.01 for v in row] for row in values])
    borders = [0, *sorted(cuts), 40]
    rows = np.arange(len(table))
    whole, merged = tracked_utilization(len(table)), tracked_utilization(len(table))
    add_table(whole, table)
    for low, high in itertools.pairwise(borders):
        part = tracked_utilization(len(table))
        add_table(part, table[:, low:high], first=low)
        merged.merge(rows, part, rows)
    expected = state(whole)
    for name, merged_values in state(merged).items():
        if "LONGEST" in name:
            continue  # compared below, where scrapes are regular: otherwise a run's breaks depend on the usual interval
        np.testing.assert_allclose(merged_values, expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.integers(0, 100), min_size=2, max_size=60), cut=st.integers(0, 60))
def test_merged_runs_equal_those_of_all_samples_when_scrapes_are_regular(values: list[int], cut: int) -> None:
    table = np.array([values]) * 0.01
    parts = (table, table[:, :cut], table[:, cut:])
    sketches = []
    for part, first in zip(parts, (0, 0, cut), strict=True):
        sketch = tracked_utilization(1)
        add_table(sketch, part, first=first)
        sketches.append(sketch)
    whole, merged, later = sketches
    merged.merge(np.arange(1), later, np.arange(1))
    for statistic in SIDES:
        np.testing.assert_allclose(merged.column(np.arange(1), statistic), whole.column(np.arange(1), statistic))


def test_merging_is_refused_when_the_parts_do_not_fit() -> None:
    rows = np.arange(1)
    early, late = MetricSketch("gpu_util_ratio", 1), MetricSketch("gpu_util_ratio", 1)
    add_table(early, np.array([[0.5]]))
    add_table(late, np.array([[0.5]]), first=1)
    with pytest.raises(ValueError, match="only later"):
        late.merge(rows, early, rows)
    with pytest.raises(ValueError, match="other bins"):
        early.merge(rows, MetricSketch("power_watts", 1), rows)
    with pytest.raises(ValueError, match="different sizes"):
        early.merge(rows, MetricSketch("gpu_util_ratio", 1, ring_samples=4), rows)
    power = MetricSketch("power_watts", 2)
    power.clear(np.arange(2), np.array([700.0, 400.0]))
    with pytest.raises(ValueError, match="full scales"):
        power.merge(rows, power, np.array([1]))


def test_row_starts_empty_when_it_is_cleared_and_used_again() -> None:
    sketch, fresh = tracked_utilization(2), tracked_utilization(1)
    add_table(sketch, np.random.default_rng(8).random((2, 40)))
    sketch.clear(np.array([1]), np.ones(1))
    later = np.random.default_rng(9).random((1, 30))
    for step in range(30):
        at = np.array([START_MS + (100 + step) * STEP_MS])
        sketch.add(np.array([1]), at, later[:, step])
        fresh.add(np.array([0]), at, later[:, step])
    for statistic in (*SIDES, Statistic(K.MEAN), Statistic(K.SLOPE), percentile(50.0)):
        assert sketch.column(np.array([1]), statistic)[0] == fresh.column(np.array([0]), statistic)[0]


def test_sketch_keeps_its_rows_when_it_grows() -> None:
    sketch, whole = tracked_utilization(2), tracked_utilization(2)
    table = np.random.default_rng(10).random((2, 20))
    add_table(sketch, table[:, :10])
    sketch.grow(7)
    add_table(sketch, table[:, 10:], first=10)
    add_table(whole, table)
    for statistic in (*SIDES, Statistic(K.MEAN), percentile(50.0)):
        np.testing.assert_array_equal(sketch.column(np.arange(2), statistic), whole.column(np.arange(2), statistic))
    assert sketch.samples(np.arange(7)).tolist() == [20, 20, 0, 0, 0, 0, 0]
