"""Past forecasts and their outcomes: the source of calibration and of the reliability chart.

One document per day in the record store, written by `services/forecasts.py`. Of each workload the first forecast is kept, which
its user sees when submitting, and one for each stage of waiting, because users check again. Each kind is evaluated, and
calibrates forecasts of the same kind.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clusterscape.analyze.jobs.wait_intervals import NOT_CALIBRATED, WaitBins, WaitCalibration, calibrate
from clusterscape.model.arrays import Bools, Float64s
from clusterscape.store.records.contract import RecordReader

KIND = "wait-forecasts"
STAGES_S = (3_600.0, 14_400.0, 43_200.0, 86_400.0)
"""Waiting times after which another forecast of the same workload is kept."""

MIN_OUTCOMES = 60
"""With fewer outcomes of one kind, all outcomes are used for calibration."""


def find_stage(waited_s: float) -> int:
    """0 for a new workload; one more after each of STAGES_S."""
    return sum(waited_s >= edge for edge in STAGES_S)


@dataclass(frozen=True, slots=True)
class LoggedForecast:
    """A stored forecast. ``sampled_s`` and ``told_s``: quantiles of the wait from ``made_at``, before and after calibration.

    ``wait_s`` is null until the workload starts; ``is_gone``: it left without starting. ``stage``: see ``find_stage``.
    """

    workload: str
    made_at: int
    sampled_s: list[float]
    told_s: list[float]
    size_ratio: float
    ahead: int
    wait_s: float | None = None
    is_gone: bool = False
    stage: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the workload still waits."""
        return self.wait_s is None and not self.is_gone


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Forecasts whose workloads have started, in the order of their starts."""

    sampled_s: Float64s
    calibrated_s: Float64s
    wait_s: Float64s
    bins: WaitBins
    is_first: Bools
    since: int | None

    def take(self, rows: Bools) -> "Outcomes":
        """The selected rows."""
        bins = WaitBins(self.bins.size_ratio[rows], self.bins.ahead[rows])
        return Outcomes(
            self.sampled_s[rows], self.calibrated_s[rows], self.wait_s[rows], bins, self.is_first[rows], self.since
        )


@dataclass(frozen=True, slots=True)
class Calibrations:
    """Separate calibrations of first forecasts and of later ones: workloads that have waited long differ from new ones."""

    first: WaitCalibration
    later: WaitCalibration

    @property
    def count(self) -> int:
        """Number of waits used to calibrate first forecasts."""
        return self.first.count

    def apply(self, sampled_s: Float64s, bins: WaitBins, is_first: Bools) -> Float64s:
        """Calibrated quantiles, a row per job, each by the calibration of its kind."""
        calibrated: Float64s = self.first.apply(sampled_s, bins).copy()
        if not is_first.all():
            calibrated[~is_first] = self.later.apply(sampled_s, bins)[~is_first]
        return calibrated


Days = Mapping[str, Sequence[LoggedForecast]]
"""Forecasts by day, such as 2026-11-18."""


class ForecastLog:
    """Past forecasts and their outcomes. Thread-safe. Read from the store once, then replaced when days are written."""

    def __init__(self, records: RecordReader) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._days: Days | None = None
        self._calibrated: tuple[Days, Calibrations] | None = None

    def days(self) -> Days:
        """All stored forecasts."""
        with self._lock:
            if self._days is None:
                self._days = {
                    document.key: [LoggedForecast(**row) for row in _list(document.body)]
                    for document in self._records.documents(KIND)
                }
            return self._days

    def replace(self, days: Days) -> None:
        """Use these forecasts from now on."""
        with self._lock:
            self._days = days

    def logged_stages(self) -> set[tuple[str, int]]:
        """(workload, stage) of all stored forecasts."""
        return {(forecast.workload, forecast.stage) for day in self.days().values() for forecast in day}

    def outcomes(self) -> Outcomes:
        """Outcomes of all forecasts whose workloads have started."""
        return _list_outcomes(self.days())

    def open_count(self) -> int:
        """Forecasts whose workloads still wait."""
        return sum(forecast.is_open for day in self.days().values() for forecast in day)

    def calibrations(self) -> Calibrations:
        """The calibrations from the current outcomes, cached."""
        days, cached = self.days(), self._calibrated
        if cached is None or cached[0] is not days:
            outcomes = _list_outcomes(days)
            first, later = (_calibrate(outcomes, rows) for rows in (outcomes.is_first, ~outcomes.is_first))
            cached = self._calibrated = (days, Calibrations(first, later))
        return cached[1]


def _list_outcomes(days: Days) -> Outcomes:
    started = [forecast for day in days.values() for forecast in day if forecast.wait_s is not None]
    started.sort(key=lambda forecast: forecast.made_at + (forecast.wait_s or 0.0) * 1000)
    width = 7
    return Outcomes(
        np.array([forecast.sampled_s for forecast in started], np.float64).reshape(-1, width),
        np.array([forecast.told_s for forecast in started], np.float64).reshape(-1, width),
        np.array([forecast.wait_s for forecast in started], np.float64),
        WaitBins(
            np.array([forecast.size_ratio for forecast in started]),
            np.array([float(forecast.ahead) for forecast in started]),
        ),
        np.array([forecast.stage == 0 for forecast in started], np.bool_),
        min((forecast.made_at for forecast in started), default=None),
    )


def _calibrate(outcomes: Outcomes, rows: Bools) -> WaitCalibration:
    used = outcomes.take(rows) if int(rows.sum()) >= MIN_OUTCOMES else outcomes
    return calibrate(used.sampled_s, used.wait_s, used.bins) if len(used.wait_s) else NOT_CALIBRATED


def _list(body: Mapping[str, object]) -> list[dict[str, Any]]:
    forecasts = body.get("forecasts")
    return forecasts if isinstance(forecasts, list) else []
