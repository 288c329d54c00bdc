"""Sampled futures of a queue: small cases worked out by hand, and a comparison with the engine."""

import numpy as np
import pytest

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Int64s
from clusterscape.simulate.backtest import Futures, MachineState, forecast_waits, plan_waits
from clusterscape.simulate.batch import PRESETS, Backfill, BatchJobs, Scenario, find_policy, simulate
from clusterscape.simulate.futures import LEVELS, PastArrivals, RunQuantiles, SampledArrivals, no_arrivals, sample_runs


def whole(*values: int) -> Int64s:
    return np.array(values, np.int64)


def test_a_waiting_job_starts_when_enough_have_ended() -> None:
    state = MachineState(4, whole(2, 2), whole(100, 50), whole(4, 2), whole(10, 60))
    # The first needs both ends; the second would end after the promise at 100 and does not fit next to it.
    assert plan_waits(state).tolist() == [100.0, 110.0]


def test_a_short_job_fills_the_gap_when_it_ends_before_the_promise() -> None:
    state = MachineState(4, whole(2, 2), whole(100, 50), whole(4, 2), whole(10, 50))
    assert plan_waits(state).tolist() == [100.0, 50.0]
    assert plan_waits(state, backfills=False).tolist() == [100.0, 110.0]


def test_each_future_has_its_own_starts_when_run_times_differ() -> None:
    state = MachineState(2, whole(2), whole(100), whole(2, 2), whole(50, 50))
    futures = Futures(np.array([[100], [30]]), np.array([[50, 50], [20, 50]]), no_arrivals(2))
    assert forecast_waits(state, futures).tolist() == [[100.0, 150.0], [30.0, 50.0]]


def test_head_is_not_delayed_when_later_arrivals_fit_next_to_it() -> None:
    # One job of 2 runs 100 s on 4; the head wants 4. An arrival of 2 may run 90 s next to it, and does not delay the head.
    state = MachineState(4, whole(2), whole(100), whole(4, 2), whole(10, 10_000))
    arrivals = SampledArrivals(whole(0, 1), whole(5), whole(2), whole(90), whole(90))
    futures = Futures(np.array([[100]]), np.array([[10, 10]]), arrivals)
    assert forecast_waits(state, futures)[0, 0] == 100.0


def test_only_wanted_jobs_are_followed_when_some_are_named() -> None:
    state = MachineState(1, whole(1), whole(10), whole(1, 1), whole(10, 10))
    futures = Futures(np.array([[10]]), np.array([[10, 10]]), no_arrivals(1))
    waits = forecast_waits(state, futures, np.array([True, False]))
    assert waits[0, 0] == 10.0
    assert np.isnan(waits[0, 1])


@pytest.mark.parametrize("seed", range(5))
def test_starts_equal_the_engines_when_a_whole_queue_is_simulated(seed: int) -> None:
    random = np.random.default_rng(seed)
    count, total = 60, 16
    size, run = random.integers(1, 9, count), random.integers(1, 500, count)
    limit = run + random.integers(0, 400, count)
    zeros = np.zeros(count, np.int64)
    jobs = BatchJobs(np.arange(count), zeros, run, limit, limit, size, zeros, np.arange(count))
    how = PRESETS["clusterscape"]
    expected = simulate(Scenario(jobs, total, find_policy("fcfs"), Backfill("easy"), "request", how)).start_s
    state = MachineState(total, whole(), whole(), size, limit)
    futures = Futures(np.zeros((1, 0), np.int64), run[None, :], no_arrivals(1))
    assert forecast_waits(state, futures)[0].tolist() == expected.tolist()


def test_a_job_larger_than_the_machine_is_refused_when_it_waits() -> None:
    with pytest.raises(QueryError, match="never start"):
        MachineState(2, whole(), whole(), whole(3), whole(10))


def test_sampled_runs_follow_their_quantiles_when_many_are_drawn() -> None:
    quantiles = np.exp(np.linspace(1, 5, LEVELS.size))
    drawn = sample_runs(RunQuantiles(np.tile(quantiles, (2, 1))), 4000, np.random.default_rng(1))
    assert np.quantile(drawn[:, 0], 0.5) == pytest.approx(quantiles[LEVELS.tolist().index(0.5)], rel=0.02)
    assert np.quantile(drawn[:, 1], 0.9) == pytest.approx(quantiles[LEVELS.tolist().index(0.9)], rel=0.02)
    assert abs(np.asarray(np.corrcoef(drawn.T))[0, 1]) < 0.1


def test_arrivals_are_those_of_former_weeks_when_history_is_long() -> None:
    hour, week = 3600.0, 604_800.0
    submit = np.concatenate([np.arange(20) * week + 100, np.arange(20) * week + 2 * hour])
    everything = np.ones(40)
    past = PastArrivals(submit, submit + 60, everything * 60, everything * 600, everything * 2)
    now = 19 * week + 50
    arrivals = past.sample(now, hour, 64, 1, np.random.default_rng(0))
    assert 16 < arrivals.offsets[-1] < 64  # a stretch begins up to an hour early or late
    assert (arrivals.at_s >= 1).all()
    assert (arrivals.at_s <= 2 * hour).all()
    assert (arrivals.size == 1).all()  # never more than the machine
    assert (arrivals.run_s == 60).all()


def test_nobody_arrives_when_there_is_no_history() -> None:
    nothing = np.zeros(0)
    arrivals = PastArrivals(nothing, nothing, nothing, nothing, nothing).sample(
        1e9, 3600, 3, 8, np.random.default_rng(0)
    )
    assert arrivals.offsets.tolist() == [0, 0, 0, 0]
