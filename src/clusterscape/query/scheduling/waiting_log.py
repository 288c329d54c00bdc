"""Past forecasts and their outcomes: they decide which estimate the next ones use, and are the source of the reliability chart.

One document per day in the record store, written by `services/forecasts.py`. Of each workload the first forecast is kept, which
its user sees when submitting, and one for each stage of waiting, because users check again. Each kind is evaluated, and decides
for forecasts of the same kind.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clusterscape.analyze.jobs.wait_choice import (
    NOT_CHOSEN,
    ReportedWaits,
    WaitChooser,
    WaitQuestions,
    select_deciding,
    walk_forward,
)
from clusterscape.analyze.jobs.wait_guesses import GUESSES, PastWaits, guess_waits, select_past_waits
from clusterscape.analyze.jobs.wait_intervals import LEVELS, MIDDLE, WaitBins
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.store.records.contract import RecordReader

KIND = "wait-forecasts"
STAGES_S = (3_600.0, 14_400.0, 43_200.0, 86_400.0)
"""Waiting times after which another forecast of the same workload is kept."""

MIN_OUTCOMES = 60
"""With fewer outcomes of one kind, forecasts of both kinds decide."""

NEWEST = 1500
"""Number of newest forecasts of a kind that decide, of those that ``select_deciding`` keeps."""


def find_stage(waited_s: float) -> int:
    """0 for a new workload; one more after each of STAGES_S."""
    return sum(waited_s >= edge for edge in STAGES_S)


@dataclass(frozen=True, slots=True)
class LoggedForecast:
    """A stored forecast. ``sampled_s`` and ``told_s``: quantiles of the wait from ``made_at``, as simulated and as reported;
    ``guesses_s``: GUESSES, empty in forecasts stored before there were any.

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
    partition: str | None = None
    guesses_s: list[float] = field(default_factory=list)

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
class _Kind:
    """Forecasts of one kind: what they say about the next ones, and the waits that are over."""

    chooser: WaitChooser
    past: PastWaits


@dataclass(frozen=True, slots=True)
class WaitJudge:
    """What past forecasts say about the next ones; first ones and later ones separately: workloads that have waited long differ
    from new ones.
    """

    first: _Kind
    later: _Kind
    partitions: Mapping[str | None, int]

    @property
    def count(self) -> int:
        """Number of waits that decide about first forecasts."""
        return self.first.chooser.count

    def guess(
        self, at_s: float, plan_s: Float64s, partitions: Sequence[str | None], bins: WaitBins, is_first: Bools
    ) -> Float64s:
        """GUESSES of jobs that wait now, a row per job; seconds from now."""
        # A partition without a known wait gets a number that no wait has.
        queue = np.array([self.partitions.get(name, len(self.partitions)) for name in partitions], np.int64)
        at = np.full(len(plan_s), at_s)
        guesses = guess_waits(self.first.past, at, bins, queue, plan_s)
        if not is_first.all():
            guesses[~is_first] = guess_waits(self.later.past, at, bins, queue, plan_s)[~is_first]
        return guesses

    def predict(self, questions: WaitQuestions, is_first: Bools) -> ReportedWaits:
        """Forecasts, a row per job, each decided by forecasts of its kind."""
        reported = self.first.chooser.predict(questions)
        if is_first.all():
            return reported
        later = self.later.chooser.predict(questions)
        return ReportedWaits(
            np.where(is_first[:, None], reported.quantiles_s, later.quantiles_s),
            np.where(is_first, reported.chosen, later.chosen),
            np.where(is_first, reported.base, later.base),
        )


Days = Mapping[str, Sequence[LoggedForecast]]
"""Forecasts by day, such as 2026-11-18."""


class ForecastLog:
    """Past forecasts and their outcomes. Thread-safe. Read from the store once, then replaced when days are written."""

    def __init__(self, records: RecordReader) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._days: Days | None = None
        self._judge: tuple[Days, WaitJudge] | None = None

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
        """Use these forecasts from now on. Decides before they are used, so that no request waits for it."""
        judge = _judge(days)
        with self._lock:
            self._days, self._judge = days, (days, judge)

    def logged_stages(self) -> set[tuple[str, int]]:
        """(workload, stage) of all stored forecasts."""
        return {(forecast.workload, forecast.stage) for day in self.days().values() for forecast in day}

    def outcomes(self) -> Outcomes:
        """Outcomes of all forecasts whose workloads have started."""
        return _list_outcomes(self.days())

    def open_count(self) -> int:
        """Forecasts whose workloads still wait."""
        return sum(forecast.is_open for day in self.days().values() for forecast in day)

    def judge(self) -> WaitJudge:
        """What the current forecasts say about the next ones, cached."""
        days, cached = self.days(), self._judge
        if cached is None or cached[0] is not days:
            cached = self._judge = (days, _judge(days))
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


def _judge(days: Days) -> WaitJudge:
    forecasts = [forecast for day in days.values() for forecast in day if not forecast.is_gone]
    forecasts.sort(key=lambda forecast: forecast.made_at)
    partitions = {name: number for number, name in enumerate(dict.fromkeys(row.partition for row in forecasts))}
    kinds = []
    for is_first in (True, False):
        of_kind = [forecast for forecast in forecasts if (forecast.stage == 0) == is_first]
        if sum(not forecast.is_open for forecast in of_kind) < MIN_OUTCOMES:
            of_kind = forecasts
        kinds.append(_judge_kind(of_kind, partitions))
    return WaitJudge(kinds[0], kinds[1], partitions)


def _judge_kind(forecasts: Sequence[LoggedForecast], partitions: Mapping[str | None, int]) -> _Kind:
    made_s = np.array([forecast.made_at / 1000 for forecast in forecasts], np.float64)
    wait = np.array([np.inf if forecast.wait_s is None else forecast.wait_s for forecast in forecasts], np.float64)
    bins = WaitBins(
        np.array([forecast.size_ratio for forecast in forecasts], np.float64),
        np.array([float(forecast.ahead) for forecast in forecasts], np.float64),
    )
    queue: Int64s = np.array([partitions[forecast.partition] for forecast in forecasts], np.int64)
    past = select_past_waits(made_s + wait, wait, bins, queue)
    # The newest 1,500 of a busy site are of one day, and most of their jobs still wait.
    rows = np.flatnonzero(select_deciding(made_s, wait))[-NEWEST:]
    sampled = np.array([forecasts[row].sampled_s for row in rows], np.float64).reshape(-1, len(LEVELS))
    guesses = np.array([_guesses(forecasts[row]) for row in rows], np.float64).reshape(-1, len(GUESSES))
    questions = WaitQuestions(guesses, sampled, WaitBins(bins.size_ratio[rows], bins.ahead[rows]))
    now = float(np.max(np.where(np.isfinite(wait), made_s + wait, made_s), initial=0.0))
    chooser = walk_forward(questions, made_s[rows], wait[rows], now)[1] if len(forecasts) else NOT_CHOSEN
    return _Kind(chooser, past)


def _guesses(forecast: LoggedForecast) -> list[float]:
    """Guesses of a forecast. If it was stored with other guesses, or with none, the simulation stands for all of them."""
    is_same = len(forecast.guesses_s) == len(GUESSES)
    return forecast.guesses_s if is_same else [forecast.sampled_s[MIDDLE]] * len(GUESSES)


def _list(body: Mapping[str, object]) -> list[dict[str, Any]]:
    forecasts = body.get("forecasts")
    return forecasts if isinstance(forecasts, list) else []
