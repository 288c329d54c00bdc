"""What work cost over time: from totals of energy and work to joules for a unit of work, by hand-computed cases."""

import numpy as np
import pytest

from clusterscape.analyze.runs.efficiency import Total, add_up, compute_efficiency, total_of_rate


def total(seconds: list[float], values: list[float]) -> Total:
    return Total((np.array(seconds) * 1000).astype(np.int64), np.array(values, np.float64))


def test_joules_per_work_follow_the_run_when_it_gets_slower() -> None:
    seconds = [float(second) for second in range(0, 101, 2)]
    energy = total(seconds, [100 * second for second in seconds])  # 100 W all the time
    work = total(seconds, [10 * min(second, 50) + 5 * max(0, second - 50) for second in seconds])
    found = compute_efficiency(energy, work)
    assert found.times_ms[0] == 10_000  # the first whole window
    assert found.watts == pytest.approx(np.full(len(found.times_ms), 100.0))
    assert (found.joules_per_work[0], found.joules_per_work[-1]) == pytest.approx((10.0, 20.0))
    assert (found.per_second_per_watt[0], found.per_second_per_watt[-1]) == pytest.approx((0.1, 0.05))


def test_nothing_is_told_when_no_work_was_done_or_nothing_is_known() -> None:
    energy = total([0, 10, 20, 30, 40], [0, 100, 200, 300, 400])
    work = total([0, 10, 20, 30, 40], [0, 100, 100, 100, 200])
    assert compute_efficiency(energy, work).times_ms.tolist() == [10_000, 40_000]
    assert not len(compute_efficiency(energy, total([], [])).times_ms)
    assert not len(compute_efficiency(total([5], [1]), work).times_ms)
    assert not len(compute_efficiency(energy, total([100, 200], [0, 1])).times_ms)


def test_gpus_add_up_and_counters_that_fell_go_on_when_joined() -> None:
    first = total([0, 10, 20], [1000, 1100, 50])  # the driver was loaded anew
    second = total([5, 15, 25], [0, 10, 20])
    joined = add_up([first, second])
    assert joined.times_ms.tolist() == [10_000, 20_000]
    assert joined.values.tolist() == [105.0, 165.0]
    assert not len(add_up([]).times_ms)


def test_a_rate_becomes_a_total_when_only_the_speed_is_told() -> None:
    times, values = total_of_rate(np.array([0, 1000, 3000]), np.array([9.0, 10.0, 20.0]))
    assert values.tolist() == [0.0, 10.0, 50.0]
    assert times.tolist() == [0, 1000, 3000]
    assert not len(total_of_rate(np.empty(0, np.int64), np.empty(0)).values)
