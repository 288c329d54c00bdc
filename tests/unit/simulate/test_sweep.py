"""Simulations of a sweep, and storage of results."""

import numpy as np

from clusterscape.simulate.batch import PRESETS, Backfill, BatchJobs
from clusterscape.simulate.sweep import Base, Point, PointResult, find_frontier, plan_points, run_point


def make_base(jitter_runs: int = 0) -> Base:
    places = np.arange(3)
    column = np.array([5, 5, 5])
    jobs = BatchJobs(places, places, column, column, column, np.array([2, 4, 2]), places, places)
    return Base(jobs, 4, "request", PRESETS["clusterscape"], jitter_runs)


def test_points_differ_when_factors_matter_only_to_some() -> None:
    points = plan_points(["fcfs", "sjf"], ["easy", "relaxed", "adaptive"], [0.1, 0.2], [100.0, 150.0])
    assert len(points) == 2 * (1 + 2 + 4)
    assert len(set(points)) == len(points)


def test_result_is_the_same_when_kept_and_read_again() -> None:
    base, point = make_base(2), Point("fcfs", Backfill())
    result = run_point(base, point)
    assert PointResult.from_json(result.to_json()) == result
    assert result.fingerprint == base.fingerprint(point) != make_base(3).fingerprint(point)
    assert result.best("wait_s") == result.spreads["wait_s"].mean
    assert run_point(make_base(), point).best("wait_s") == 4.0


def test_frontier_holds_who_is_not_beaten_in_both_when_points_are_compared() -> None:
    assert find_frontier([(1.0, 5.0), (2.0, 2.0), (3.0, 3.0), (4.0, 1.0), (1.0, 5.0)]) == [
        True,
        True,
        False,
        True,
        True,
    ]
