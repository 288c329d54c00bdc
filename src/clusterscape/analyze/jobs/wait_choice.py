"""Chooses the estimate of each wait and its interval: what was best recently for its size and queue length, forward in time.

The point with the smallest median error of the newest forecasts wins: a simulation, the plan (both also shifted by their past
errors), or a simple guess. The interval is made of the past errors of the base with the smallest interval score, weighted by age
(Barber et al. 2023) and with jobs that still wait as censored (Kaplan–Meier). Its miss rate follows the misses (Gibbs & Candès
2021), so that coverage returns to the nominal level when the world changes; forecasts whose outcome is not known yet count with
the misses that their rate promises (Smith 1957), or the rate would swing. A wait counts once it is over, or once it has outlasted
its interval; of many that are open together only some count. One forecast costs O(candidates × WINDOW log WINDOW).
"""

from dataclasses import dataclass, field

import numpy as np

from clusterscape.analyze.jobs.wait_guesses import GUESSES, PLAN
from clusterscape.analyze.jobs.wait_intervals import INTERVALS, LEVELS, MIDDLE, WaitBins, to_scale
from clusterscape.model.arrays import Bools, Float64s, Int64s

SIMULATION = len(GUESSES)
RAW = (*GUESSES, "simulation")
_SHIFTED = np.array([PLAN, SIMULATION])
CANDIDATES = (*RAW, "plan by limits, corrected by its past errors", "simulation, corrected by its past errors")
"""Names of the estimates that compete."""

_BASES = np.array([0, 3, 4, PLAN, 6, GUESSES.index("jobs ahead at the recent pace"), SIMULATION])
"""Columns of RAW whose past errors may make an interval; guesses that are the same constant for all jobs count once."""
_SHIFTED_BASES = np.searchsorted(_BASES, _SHIFTED)

NARROWEST = 0.05
"""Added to the half-width of the simulated interval, on the scale of logarithms, so that no error is divided by zero."""

GRID: Float64s = np.array([0.002, 0.005, 0.01, 0.015, *np.arange(1, 50) / 50, 0.985, 0.99, 0.995, 0.998])
_NOMINAL = sorted(INTERVALS, reverse=True)
TARGETS: Float64s = np.array([1.0 - nominal for nominal in _NOMINAL])
STEP = 0.1
"""Step of the miss rates after each outcome."""

MOST_TOGETHER = 25.0
"""The number of simultaneously open forecasts above which only some of them decide about later ones."""

FORGET = 0.995
"""Weight of a forecast relative to the next newer one of its context (Barber et al. 2023 use 0.99)."""

LITTLE_S = 86_400.0
LITTLE_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class WaitQuestions:
    """Forecasts to make: seconds, ``guesses_s`` (job × GUESSES) and ``sampled_s`` (job × LEVELS), simulated waits."""

    guesses_s: Float64s
    sampled_s: Float64s
    bins: WaitBins

    def points(self) -> Float64s:
        """The raw points, job × RAW."""
        return np.column_stack([self.guesses_s, self.sampled_s[:, MIDDLE]])

    def centers(self) -> tuple[Float64s, Float64s]:
        """Center and scale of the errors of each base, on the scale of logarithms."""
        centers = to_scale(self.points()[:, _BASES])
        scales = np.ones_like(centers)
        spread = to_scale(self.sampled_s[:, -1]) - to_scale(self.sampled_s[:, 0])
        scales[:, int(np.searchsorted(_BASES, SIMULATION))] = spread / 2 + NARROWEST
        return centers, scales

    def chains(self) -> Int64s:
        """Contexts of each job, finest first: size and queue length, queue length, all."""
        return _chain(self.bins.cells())


def _chain(cells: Int64s) -> Int64s:
    queues = cells % WaitBins.QUEUES
    return np.column_stack([cells, WaitBins.CELLS + queues, np.full(len(cells), WaitBins.CELLS + WaitBins.QUEUES)])


@dataclass(frozen=True, slots=True)
class ReportedWaits:
    """Quantiles at LEVELS, seconds; ``chosen``: index in CANDIDATES, ``base``: in RAW of the interval; −1: the simulation
    as it is, because too few waits are known.
    """

    quantiles_s: Float64s
    chosen: Int64s
    base: Int64s


@dataclass(frozen=True, slots=True)
class WaitChooser:
    """What past forecasts say about the next ones. ``count``: known waits it was made from; 0: forecasts stay as simulated."""

    count: int = 0
    points: Int64s = field(default_factory=lambda: np.full(WaitBins.CELLS, -1, np.int64))
    bases: Int64s = field(default_factory=lambda: np.full(WaitBins.CELLS, -1, np.int64))
    tables: Float64s = field(default_factory=lambda: np.zeros((WaitBins.CELLS, len(_BASES), len(GRID))))
    rates: Float64s = field(default_factory=TARGETS.copy)

    def predict(self, questions: WaitQuestions) -> ReportedWaits:
        """Forecasts of all jobs."""
        from clusterscape.analyze.jobs.wait_kernels import predict_all

        count = len(questions.sampled_s)
        reported, chosen, base = questions.sampled_s.copy(), np.full(count, -1), np.full(count, -1)
        if self.count and count:
            centers, scales = questions.centers()
            cells = questions.bins.cells()
            predict_all(
                questions.points(), centers, scales, _SHIFTED_BASES, cells, self.points, self.bases, self.tables, GRID,
                self.rates, reported,
            )  # fmt: skip
            chosen, base = self.points[cells], _name_bases(self.bases[cells])
        return ReportedWaits(reported, chosen, base)


NOT_CHOSEN = WaitChooser()


def walk_forward(
    questions: WaitQuestions, made_s: Float64s, wait_s: Float64s, now_s: float
) -> tuple[ReportedWaits, WaitChooser]:
    """Every past forecast, each from what was known when it was made, and what they say at ``now_s`` about the next ones.

    Rows are sorted by ``made_s``; ``wait_s`` is infinite if the job still waits. A wait is known from ``made_s + wait_s`` on.
    """
    from clusterscape.analyze.jobs.wait_kernels import choose_cells, walk

    count, bases, contexts = len(made_s), len(_BASES), WaitBins.CELLS + WaitBins.QUEUES + 1
    reported, points = np.full((count, len(LEVELS)), np.nan), np.zeros((count, len(CANDIDATES)))
    choices = np.full((count, 2), -1, np.int64)
    rates = TARGETS.copy()
    lists, counts = np.full((contexts, count), -1, np.int64), np.zeros(contexts, np.int64)
    ends = np.zeros((count, bases, 2))
    centers, scales = questions.centers()
    wait_s = np.ascontiguousarray(wait_s, np.float64)
    decides = select_deciding(made_s, wait_s)
    now_s = max(now_s, float(made_s[-1])) if count else now_s
    walk(
        now_s, made_s, wait_s, questions.points(), centers, scales, _SHIFTED_BASES, questions.chains(), decides, GRID,
        TARGETS, STEP, FORGET, reported, points, choices, rates, lists, counts, ends,
    )  # fmt: skip
    is_raw = choices[:, 0] < 0
    reported[is_raw] = questions.sampled_s[is_raw]
    chosen = np.full((WaitBins.CELLS, 2), -1, np.int64)
    tables = np.zeros((WaitBins.CELLS, bases, len(GRID)))
    choose_cells(
        now_s, _chain(np.arange(WaitBins.CELLS)), lists, counts, made_s, wait_s, points, centers, scales, ends, GRID,
        FORGET, chosen, tables,
    )  # fmt: skip
    waits = int(np.isfinite(wait_s).sum()) if (chosen >= 0).all() else 0
    chooser = WaitChooser(waits, chosen[:, 0].copy(), chosen[:, 1].copy(), tables, rates)
    return ReportedWaits(reported, choices[:, 0].copy(), _name_bases(choices[:, 1])), chooser


def select_deciding(made_s: Float64s, wait_s: Float64s) -> Bools:
    """Which forecasts decide about later ones: all, but evenly fewer where more than MOST_TOGETHER were open when they were made.

    Jobs that wait at the same time wait for the same events: hundreds of one burst alone must not decide about later ones.
    """
    over = np.searchsorted(np.sort(made_s + wait_s), made_s, side="right")
    share = MOST_TOGETHER / np.maximum(np.arange(len(made_s)) - over, MOST_TOGETHER)
    decides: Bools = np.diff(np.floor(np.cumsum(share) + 1e-9), prepend=0.0) > 0
    return decides


def _name_bases(bases: Int64s) -> Int64s:
    return np.where(bases < 0, -1, _BASES[bases])


def says_little(quantiles_s: Float64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether a 90 % interval is too wide to be of use: more than a day, and more than twice the likely wait."""
    low, high = INTERVALS[0.9]
    width = quantiles_s[:, high] - quantiles_s[:, low]
    return width > np.maximum(LITTLE_S, LITTLE_RATIO * quantiles_s[:, MIDDLE])


def name_candidate(index: int) -> str:
    """The name of an estimate; the simulation before any choice."""
    return CANDIDATES[index] if index >= 0 else RAW[SIMULATION]
