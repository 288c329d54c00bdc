"""Forecasts as they were made, and what became of them: the source of calibration and of the public reliability chart.

One document a day in the record store. Only the first forecast of a workload counts: the one its user sees when submitting.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from clusterscape.analyze.jobs.wait_intervals import NOT_CALIBRATED, WaitBins, WaitCalibration, calibrate
from clusterscape.model import UnixMs, WorkloadId
from clusterscape.model.samples import Float64s
from clusterscape.store.records.contract import RecordStore

KIND = "wait-forecasts"
KEEP_DAYS = 90


@dataclass(slots=True)
class LoggedForecast:
    """``sampled_s`` and ``told_s``: quantiles of the wait from ``made_at``, before and after calibration.

    ``wait_s`` is null until the workload starts; ``is_gone``: it never did.
    """

    workload: str
    made_at: int
    sampled_s: list[float]
    told_s: list[float]
    size_ratio: float
    ahead: int
    wait_s: float | None = None
    is_gone: bool = False

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
    since: int | None


class ForecastLog:
    """Thread-safe. Reads the store once, then writes what changes."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._days: dict[str, list[LoggedForecast]] | None = None

    def add(self, forecasts: Sequence[LoggedForecast]) -> None:
        """Note forecasts of workloads that have none yet."""
        with self._lock:
            days = self._load()
            known = {one.workload for day in days.values() for one in day}
            changed = set()
            for forecast in forecasts:
                if forecast.workload not in known:
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

    def known(self) -> set[str]:
        """Workloads that have a forecast."""
        with self._lock:
            return {one.workload for day in self._load().values() for one in day}

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
            min((one.made_at for one in ended), default=None),
        )

    def open_count(self) -> int:
        """Forecasts whose workloads still wait."""
        with self._lock:
            return sum(one.is_open for day in self._load().values() for one in day)

    def calibration(self) -> WaitCalibration:
        """From the newest outcomes."""
        found = self.outcomes()
        return calibrate(found.sampled_s, found.wait_s, found.bins) if len(found.wait_s) else NOT_CALIBRATED

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
        for day in days:
            forecasts = (self._days or {})[day]
            newest = UnixMs(max(one.made_at for one in forecasts))
            self._records.write_document(KIND, day, {"forecasts": [asdict(one) for one in forecasts]}, at_ms=newest)


def _list(body: Mapping[str, object]) -> list[dict[str, Any]]:
    forecasts = body.get("forecasts")
    return forecasts if isinstance(forecasts, list) else []


def _parse(one: Mapping[str, Any]) -> LoggedForecast:
    return LoggedForecast(**one)


def _day_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
