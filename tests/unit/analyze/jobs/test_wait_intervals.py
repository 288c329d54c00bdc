"""Intervals of waits: bins, errors by bin, coverage over time."""

import numpy as np

from clusterscape.analyze.jobs.wait_intervals import (
    LEVELS,
    WaitBins,
    find_bin_errors,
    measure_coverage,
    split_quarters,
    summarize_samples,
)


def test_errors_are_by_bin_when_jobs_differ() -> None:
    bins = WaitBins(np.array([0.01, 0.01, 0.5]), np.array([0.0, 1.0, 60.0]))
    errors = find_bin_errors(np.array([10.0, 20.0, 0.0]), np.array([0.0, 0.0, 7.0]), bins)
    assert list(errors) == [(0, 0, 2, 15.0), (3, 3, 1, 7.0)]
    assert bins.cells().tolist() == [0, 0, 15]
    assert measure_coverage(np.zeros((0, len(LEVELS))), np.zeros(0)) == []


def test_coverage_and_width_are_by_quarter_when_they_change() -> None:
    quantiles = np.tile(np.arange(7.0) * 10, (8, 1))
    wait = np.array([5.0, 60.0, 70.0, 80.0, 0.0, 61.0, 62.0, 59.0])
    quarters = split_quarters(quantiles, wait)
    assert [quarter.covered for quarter in quarters] == [1.0, 0.0, 1.0, 0.5]
    assert {(quarter.jobs, quarter.width_s) for quarter in quarters} == {(2, 60.0)}
    assert split_quarters(quantiles[:0], wait[:0]) == []


def test_quantiles_of_samples_are_by_job_when_futures_are_rows() -> None:
    samples = np.arange(101.0)[:, None] * np.array([1.0, 2.0])
    assert summarize_samples(samples)[:, 3].tolist() == [50.0, 100.0]
