"""Forecasts as they were made, and what became of them: the source of calibration and of the public reliability chart.

One document a day in the record store. Of each workload the first forecast is kept, the one its user sees when submitting, and
one of each stage of waiting, because people look again: both are judged, and each calibrates forecasts of its own kind.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clusterscape.analyze.jobs.wait_intervals import NOT_CALIBRATED, WaitBins, WaitCalibration, calibrate
from clusterscape.model import UnixMs, WorkloadId
from clusterscape.model.samples import Float64s
from clusterscape.store.records.contract import RecordStore

Bools = NDArray[np.bool_]

KIND = "wait-forecasts"
KEEP_DAYS = 90
STAGES_S = (3_600.0, 14_400.0, 43_200.0, 86_400.0)
"""Spans of waiting after which another forecast of the same workload is kept."""

ENOUGH = 60
"""Outcomes of one kind below which all of them calibrate together."""


def find_stage(waited_s: float) -> int:
    """0 for a workload that has just come; one more after each of STAGES_S."""
    return sum(waited_s >= edge for edge in STAGES_S)


@dataclass(slots=True)
class LoggedForecast:
    """``sampled_s`` and ``told_s``: quantiles of the wait from ``made_at``, before and after calibration.

    ``wait_s`` is null until the workload starts; ``is_gone``: it never did. ``stage``: how long it had waited, 0 when it came.
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
        """Still waiting."""
        return self.wait_s is None and not self.is_gone


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Forecasts whose workloads have started, in the order of their starts."""

    sampled_s: Float64s
    told_s: Float64s
    wait_s: Float64s
    bins: WaitBins
    is_first: Bools
    since: int | None

    def take(self, rows: Bools) -> "Outcomes":
        """Some of them."""
        bins = WaitBins(self.bins.size_ratio[rows], self.bins.ahead[rows])
        return Outcomes(
            self.sampled_s[rows], self.told_s[rows], self.wait_s[rows], bins, self.is_first[rows], self.since
        )


@dataclass(frozen=True, slots=True)
class Calibrations:
    """Of forecasts when a workload comes, and of those made while it waits: who has waited long is not like who just came."""

    first: WaitCalibration
    later: WaitCalibration

    @property
    def count(self) -> int:
        """Waits that forecasts of newcomers are calibrated with."""
        return self.first.count

    def apply(self, sampled_s: Float64s, bins: WaitBins, is_first: Bools) -> Float64s:
        """Calibrated quantiles, a row per job, each by its own kind."""
        told: Float64s = self.first.apply(sampled_s, bins).copy()
        if not is_first.all():
            told[~is_first] = self.later.apply(sampled_s, bins)[~is_first]
        return told


class ForecastLog:
    """Thread-safe. Reads the store once, then writes what changes."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._days: dict[str, list[LoggedForecast]] | None = None
        self._calibrations: Calibrations | None = None

    def add(self, forecasts: Sequence[LoggedForecast]) -> None:
        """Note forecasts of workloads that have none of that stage yet."""
        with self._lock:
            days = self._load()
            known = _list_known(days)
            changed = set()
            for forecast in forecasts:
                if (forecast.workload, forecast.stage) not in known:
                    day = _day_of(forecast.made_at)
                    days.setdefault(day, []).append(forecast)
                    changed.add(day)
            self._write(changed)

    def settle(self, now: UnixMs) -> None:
        """Look up what became of open forecasts; forget days that are too old."""
        with self._lock:
            days = self._load()
            changed = set()
            for day, forecasts in days.items():
                for forecast in forecasts:
                    if forecast.is_open and self._settle(forecast):
                        changed.add(day)
            oldest = _day_of(now - KEEP_DAYS * 86_400_000)
            for day in [day for day in days if day < oldest]:
                del days[day]
                self._records.remove_document(KIND, day)
                changed.discard(day)
            self._write(changed)

    def known(self) -> set[tuple[str, int]]:
        """Workloads that have a forecast, with the stage of it."""
        with self._lock:
            return _list_known(self._load())

    def outcomes(self) -> Outcomes:
        """Of all forecasts that came to an end."""
        with self._lock:
            ended = [one for day in self._load().values() for one in day if one.wait_s is not None]
        ended.sort(key=lambda one: one.made_at + (one.wait_s or 0.0) * 1000)
        width = 7
        return Outcomes(
            np.array([one.sampled_s for one in ended], np.float64).reshape(-1, width),
            np.array([one.told_s for one in ended], np.float64).reshape(-1, width),
            np.array([one.wait_s for one in ended], np.float64),
            WaitBins(np.array([one.size_ratio for one in ended]), np.array([float(one.ahead) for one in ended])),
            np.array([one.stage == 0 for one in ended], np.bool_),
            min((one.made_at for one in ended), default=None),
        )

    def open_count(self) -> int:
        """Forecasts whose workloads still wait."""
        with self._lock:
            return sum(one.is_open for day in self._load().values() for one in day)

    def calibrations(self) -> Calibrations:
        """From the newest outcomes; made anew when there are others."""
        known = self._calibrations
        if known is None:
            found = self.outcomes()
            known = Calibrations(_calibrate(found, found.is_first), _calibrate(found, ~found.is_first))
            self._calibrations = known
        return known

    def _settle(self, forecast: LoggedForecast) -> bool:
        workload = self._records.workload(WorkloadId(forecast.workload))
        if workload is None or (not workload.state.is_active and workload.started_at is None):
            forecast.is_gone = True
            return True
        if workload.state.value == "waiting" or workload.started_at is None:
            return False
        forecast.wait_s = max(0.0, (workload.started_at - forecast.made_at) / 1000)
        return True

    def _load(self) -> dict[str, list[LoggedForecast]]:
        if self._days is None:
            self._days = {
                document.key: [_parse(one) for one in _list(document.body)]
                for document in self._records.documents(KIND)
            }
        return self._days

    def _write(self, days: set[str]) -> None:
        if days:
            self._calibrations = None
        for day in days:
            forecasts = (self._days or {})[day]
            newest = UnixMs(max(one.made_at for one in forecasts))
            self._records.write_document(KIND, day, {"forecasts": [asdict(one) for one in forecasts]}, at_ms=newest)


def _list_known(days: Mapping[str, Sequence[LoggedForecast]]) -> set[tuple[str, int]]:
    return {(one.workload, one.stage) for day in days.values() for one in day}


def _calibrate(found: Outcomes, rows: Bools) -> WaitCalibration:
    used = found.take(rows) if int(rows.sum()) >= ENOUGH else found
    return calibrate(used.sampled_s, used.wait_s, used.bins) if len(used.wait_s) else NOT_CALIBRATED


def _list(body: Mapping[str, object]) -> list[dict[str, Any]]:
    forecasts = body.get("forecasts")
    return forecasts if isinstance(forecasts, list) else []


def _parse(one: Mapping[str, Any]) -> LoggedForecast:
    return LoggedForecast(**one)


def _day_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
