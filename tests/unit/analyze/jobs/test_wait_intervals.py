"""Calibration of sampled waits: coverage, bins, and values that must not change."""

import numpy as np
import pytest

from clusterscape.analyze.jobs.wait_intervals import (
    LEVELS,
    MIDDLE,
    NOT_CALIBRATED,
    WaitBins,
    WaitCalibration,
    calibrate,
    find_bin_errors,
    measure_coverage,
    summarize_samples,
    walk_forward,
)
from clusterscape.model.arrays import Float64s


def make_forecasts(count: int, spread: float, seed: int) -> tuple[Float64s, Float64s, WaitBins]:
    """Waits around a median of an hour; forecasts too narrow by ``spread``."""
    random = np.random.default_rng(seed)
    wait = 3600 * random.lognormal(0, 1.0, count)
    samples = 3600 * random.lognormal(0, 1.0 / spread, (200, count))
    return summarize_samples(samples), wait, WaitBins(random.random(count), random.integers(0, 80, count).astype(float))


def test_coverage_is_as_promised_when_forecasts_were_too_sure() -> None:
    quantiles, wait, bins = make_forecasts(3000, 3.0, 1)
    raw = {coverage.nominal: coverage.covered for coverage in measure_coverage(quantiles, wait)}
    assert raw[0.9] < 0.6
    calibrated = walk_forward(quantiles, wait, bins, np.arange(3000, dtype=np.float64) * 600, first=1500)
    covered = {coverage.nominal: coverage.covered for coverage in measure_coverage(calibrated, wait[1500:])}
    assert covered[0.9] == pytest.approx(0.9, abs=0.04)
    assert covered[0.8] == pytest.approx(0.8, abs=0.05)
    assert np.median(calibrated[:, MIDDLE] - wait[1500:]) == pytest.approx(0, abs=400)
    assert (np.diff(calibrated, axis=1) >= 0).all()
    assert (calibrated >= 0).all()


def test_forecasts_are_unchanged_when_too_few_waits_are_over() -> None:
    quantiles, wait, bins = make_forecasts(10, 1.0, 2)
    assert calibrate(quantiles, wait, bins) == NOT_CALIBRATED
    assert NOT_CALIBRATED.apply(quantiles, bins) is quantiles


def test_calibration_is_the_same_when_written_and_read() -> None:
    quantiles, wait, bins = make_forecasts(200, 2.0, 3)
    calibration = calibrate(quantiles, wait, bins)
    read = WaitCalibration.from_document(calibration.to_document())
    assert (read.apply(quantiles, bins) == calibration.apply(quantiles, bins)).all()


def test_errors_are_by_bin_when_jobs_differ() -> None:
    bins = WaitBins(np.array([0.01, 0.01, 0.5]), np.array([0.0, 1.0, 60.0]))
    errors = find_bin_errors(np.array([10.0, 20.0, 0.0]), np.array([0.0, 0.0, 7.0]), bins)
    assert list(errors) == [(0, 0, 2, 15.0), (3, 3, 1, 7.0)]
    assert measure_coverage(np.zeros((0, len(LEVELS))), np.zeros(0)) == []
