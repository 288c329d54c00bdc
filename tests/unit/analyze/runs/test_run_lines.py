"""Lines of runs: downsampling, bands over repeats, and energy per work."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.analyze.runs.lines import (
    Line,
    Total,
    add_up,
    compute_efficiency,
    cut,
    join_repeats,
    over_epochs,
    over_steps,
    thin,
    total_of_rate,
)

TIMES = np.array([0, 1000, 2000, 3000], np.int64)
VALUES = np.array([4.0, 3.0, 2.0, 1.0])


def test_hardware_is_placed_between_steps_when_it_was_measured_between_them() -> None:
    line = over_steps(TIMES, VALUES, np.array([500, 2500], np.int64), np.array([10.0, 20.0]))
    assert line.x.tolist() == [12.5, 17.5]
    assert line.y.tolist() == [3.0, 2.0]


def test_steps_never_go_back_when_a_script_restarts_its_count() -> None:
    line = over_steps(TIMES, VALUES, TIMES, np.array([0.0, 5.0, 1.0, 6.0]))
    assert line.x.tolist() == [0.0, 5.0, 5.0, 6.0]


def test_last_epoch_ends_with_the_run_when_no_other_follows() -> None:
    line = over_epochs(TIMES, VALUES, np.array([1000], np.int64), np.array([7.0]), end_ms=3000)
    assert line.x.tolist() == [7.0, 7.5, 8.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3000), st.integers(4, 200))
def test_extremes_and_ends_stay_when_a_line_is_thinned(values: list[float], points: int) -> None:
    y = np.array(values)
    line = thin(Line(np.arange(len(y), dtype=np.float64), y), points)
    assert len(line.x) <= max(points, 4) + 2
    assert (line.y.min(), line.y.max()) == (y.min(), y.max())
    assert (line.x[0], line.x[-1]) == (0, len(y) - 1)
    assert (np.diff(line.x) > 0).all()


def test_only_the_requested_part_remains_when_a_line_is_cut() -> None:
    line = cut(Line(np.array([0.0, 1.0, 2.0]), np.array([5.0, 6.0, 7.0])), start=0.5, end=1.5)
    assert line.y.tolist() == [6.0]


def test_band_is_the_t_interval_when_repeats_overlap() -> None:
    x = np.array([0.0, 10.0])
    band = join_repeats([Line(x, np.full(2, level)) for level in (1.0, 2.0, 3.0)], points=3)
    assert band.mean.tolist() == [2.0, 2.0, 2.0]
    assert band.high[0] == pytest.approx(2 + 4.302653 / 3**0.5, abs=1e-5)
    assert band.lines.tolist() == [3, 3, 3]


def test_shorter_repeats_leave_the_band_when_they_have_ended() -> None:
    band = join_repeats(
        [Line(np.array([0.0, 1.0]), np.zeros(2)), Line(np.array([0.0, 2.0]), np.ones(2))], points=3, band="deviation"
    )
    assert band.lines.tolist() == [2, 2, 1]
    assert band.mean.tolist() == [0.5, 0.5, 1.0]
    assert band.high[2] == 1.0
    assert len(join_repeats([], points=3).x) == 0


def test_extremes_stay_when_a_run_has_no_repeats() -> None:
    y = np.zeros(5000)
    y[4321] = 9.0
    band = join_repeats([Line(np.arange(5000.0), y)], points=100)
    assert len(band.x) <= 102
    assert band.mean.max() == band.high.max() == 9.0
    assert set(band.lines.tolist()) == {1}


def total(seconds: list[float], values: list[float]) -> Total:
    return Total((np.array(seconds) * 1000).astype(np.int64), np.array(values, np.float64))


def test_joules_per_work_follow_the_run_when_it_gets_slower() -> None:
    seconds = [float(second) for second in range(0, 101, 2)]
    energy = total(seconds, [100 * second for second in seconds])  # 100 W all the time
    work = total(seconds, [10 * min(second, 50) + 5 * max(0, second - 50) for second in seconds])
    efficiency = compute_efficiency(energy, work)
    assert efficiency.times_ms[0] == 10_000  # the first whole window
    assert efficiency.watts == pytest.approx(np.full(len(efficiency.times_ms), 100.0))
    assert (efficiency.joules_per_work[0], efficiency.joules_per_work[-1]) == pytest.approx((10.0, 20.0))
    assert (efficiency.per_second_per_watt[0], efficiency.per_second_per_watt[-1]) == pytest.approx((0.1, 0.05))


def test_efficiency_has_no_points_when_no_work_was_done_or_data_is_missing() -> None:
    energy = total([0, 10, 20, 30, 40], [0, 100, 200, 300, 400])
    work = total([0, 10, 20, 30, 40], [0, 100, 100, 100, 200])
    assert compute_efficiency(energy, work).times_ms.tolist() == [10_000, 40_000]
    assert not len(compute_efficiency(energy, total([], [])).times_ms)
    assert not len(compute_efficiency(total([5], [1]), work).times_ms)
    assert not len(compute_efficiency(energy, total([100, 200], [0, 1])).times_ms)


def test_gpus_are_summed_and_counter_resets_are_bridged_when_joined() -> None:
    first = total([0, 10, 20], [1000, 1100, 50])  # the driver was reloaded
    second = total([5, 15, 25], [0, 10, 20])
    joined = add_up([first, second])
    assert joined.times_ms.tolist() == [10_000, 20_000]
    assert joined.values.tolist() == [105.0, 165.0]
    assert not len(add_up([]).times_ms)


def test_rate_is_integrated_to_a_total_when_only_the_speed_is_reported() -> None:
    times, values = total_of_rate(np.array([0, 1000, 3000]), np.array([9.0, 10.0, 20.0]))
    assert values.tolist() == [0.0, 10.0, 50.0]
    assert times.tolist() == [0, 1000, 3000]
    assert not len(total_of_rate(np.empty(0, np.int64), np.empty(0)).values)
