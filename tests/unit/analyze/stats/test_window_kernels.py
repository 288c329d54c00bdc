"""Statistics of trailing windows in the ring, compared with numpy and the exact statistics."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.analyze.stats.exact import SUMMARIES, ExactColumns, Series
from clusterscape.analyze.stats.sketch import MetricSketch
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.rules import Basis, Quantity, Statistic, StatisticKind

K = StatisticKind
START_MS = 1_790_000_000_000
RING = 64
RANKS = [0.0, 0.01, 0.05, 0.5, 0.77, 0.95, 1.0]
SIDES = [
    Statistic(kind, threshold=Quantity(0.5)) for kind in (K.ABOVE, K.BELOW, K.LONGEST_ABOVE, K.LONGEST_BELOW)
]  # fmt: skip


def filled(times: Int64s, table: Float64s) -> MetricSketch:
    sketch = MetricSketch("gpu_util_ratio", len(table), ring_samples=RING)
    sketch.clear(np.arange(len(table)), np.ones(len(table)))
    for step, at_ms in enumerate(times.tolist()):
        sketch.add(np.arange(len(table)), np.full(len(table), at_ms), table[:, step])
    return sketch


def irregular_times(rng: np.random.Generator, count: int) -> Int64s:
    """About every 15 s, with occasional long pauses."""
    pauses = np.where(rng.random(count) < 0.05, 300_000, 15_000) + rng.integers(-400, 400, count)
    return START_MS + np.cumsum(pauses)


def tables(rng: np.random.Generator, rows: int, samples: int) -> dict[str, Float64s]:
    return {
        "noise": rng.random((rows, samples)),
        "walk": np.cumsum(rng.normal(0, 0.01, (rows, samples)), axis=1) + 0.5,
        "whole percents": rng.normal(0.97, 0.03, (rows, samples)).clip(0, 1).round(2),
        "two levels": np.where(rng.random((rows, samples)) < 0.5, 0.0, 1.0),
        "constant": np.full((rows, samples), 0.3),
        "outlier first": np.where(np.arange(samples) == samples - 40, 1e12, rng.random((rows, samples))),
        "large and close": 8e10 + rng.integers(0, 5, (rows, samples)).astype(np.float64),
    }


@pytest.mark.parametrize("samples", [1, 2, 40, RING, RING + 1, 200])
@pytest.mark.parametrize("kept", [1, 3, 40, RING])
def test_windows_equal_the_exact_statistics_when_the_ring_has_turned_or_not(samples: int, kept: int) -> None:
    rng = np.random.default_rng(samples + kept)
    count = min(samples, kept)
    times, rows = irregular_times(rng, samples), np.arange(6)
    for name, table in tables(rng, len(rows), samples).items():
        sketch, counts = filled(times, table), np.full(len(rows), count)
        exact = ExactColumns(
            {"gpu_util_ratio": Series.from_table(times[-count:], table[:, -count:])}, len(rows)
        )  # fmt: skip
        summaries = sketch.recent_summaries(rows, counts)
        assert summaries.keys() == SUMMARIES.keys()
        for kind in SUMMARIES:
            expected = exact.column("gpu_util_ratio", Statistic(kind))
            scale = np.abs(table[:, -count:]).max()
            np.testing.assert_allclose(
                summaries[kind], expected, rtol=1e-9, atol=1e-9 * scale, err_msg=f"{name} {kind}"
            )
        np.testing.assert_allclose(summaries[K.STD], table[:, -count:].std(axis=1), rtol=1e-7, atol=1e-12 * scale)
        for statistic in SIDES:
            expected = exact.column("gpu_util_ratio", statistic)
            np.testing.assert_allclose(sketch.recent_sides(rows, counts, statistic), expected, rtol=1e-12)
        percentiles = sketch.recent_percentiles(rows, counts, RANKS)
        np.testing.assert_allclose(percentiles, np.quantile(table[:, -count:], RANKS, axis=1), rtol=1e-12)


def test_deviation_is_nothing_when_all_samples_are_equal() -> None:
    times = irregular_times(np.random.default_rng(1), 100)
    sketch = filled(times, np.full((1, 100), 0.1))
    summaries = sketch.recent_summaries(np.zeros(1, np.int64), np.array([RING]))
    assert summaries[K.STD][0] == summaries[K.SLOPE][0] == summaries[K.INCREASE][0] == 0.0


def test_window_has_no_statistics_when_it_is_empty_or_the_threshold_is_not_known() -> None:
    sketch = filled(irregular_times(np.random.default_rng(1), 10), np.random.default_rng(2).random((2, 10)))
    rows, counts = np.arange(2), np.array([0, 5])
    assert np.isnan([column[0] for column in sketch.recent_summaries(rows, counts).values()]).all()
    assert np.isnan(sketch.recent_percentiles(rows, counts, RANKS)[:, 0]).all()
    for statistic in SIDES:
        assert np.isnan(sketch.recent_sides(rows, counts, statistic)).tolist() == [True, False]
    power = MetricSketch("power_watts", 1)
    power.add(np.zeros(1, np.int64), np.array([START_MS]), np.array([300.0]))
    of_limit = Statistic(K.ABOVE, threshold=Quantity(0.5, basis=Basis.LIMIT))
    assert np.isnan(power.recent_sides(np.zeros(1, np.int64), np.ones(1, np.int64), of_limit)).all()


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from(["noise", "walk", "whole percents", "two levels", "constant", "outlier first"]),
    pauses=st.lists(st.integers(1, 40), min_size=1, max_size=8),
)
def test_percentiles_stay_exact_when_hints_of_the_last_reading_fit_or_do_not(
    seed: int, shape: str, pauses: list[int]
) -> None:
    """For any number of samples between two readings, also when the order of rows changes."""
    rng, rows = np.random.default_rng(seed), np.arange(3)
    total = 50 + sum(pauses)
    times, table = irregular_times(rng, total), tables(rng, len(rows), total)[shape]
    sketch = filled(times[:50], table[:, :50])
    brackets, used = np.full((len(RANKS), len(rows), 2), np.nan), 50
    for pause in [0, *pauses]:
        for step in range(used, used + pause):
            sketch.add(rows, np.full(len(rows), times[step]), table[:, step])
        used += pause
        turned = rng.permutation(rows)
        count = int(rng.integers(1, min(used, RING) + 1))
        percentiles = sketch.recent_percentiles(turned, np.full(len(rows), count), RANKS, brackets)
        expected = np.quantile(table[turned, used - count : used], RANKS, axis=1)
        np.testing.assert_allclose(percentiles, expected, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), samples=st.integers(1, 200))
def test_samples_of_a_window_are_counted_right_when_pauses_are_uneven(seed: int, samples: int) -> None:
    rng = np.random.default_rng(seed)
    times = irregular_times(rng, samples)
    sketch = filled(times, rng.random((1, samples)))
    row, kept = np.zeros(1, np.int64), times[-RING:]
    for after_ms in [*(kept[:: max(1, len(kept) // 8)] + rng.integers(-2, 2)), times[0] - 1, times[-1] + 1]:
        counts, are_all = sketch.count_recent(row, np.array([after_ms]))
        assert counts[0] == (kept > after_ms).sum()
        assert are_all[0] == (counts[0] == (times > after_ms).sum() and (counts[0] < len(kept) or samples <= RING))
