"""How much shorter a step would be without a cause: its steps re-simulated (``resimulate.py``) with the time that the cause
takes removed from the lags in which it lies. Verdicts and their what-if questions use the same simulation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clusterscape.analyze.trace.attribution import Attribution
from clusterscape.analyze.trace.causes import Cause
from clusterscape.analyze.trace.intervals import cover_until
from clusterscape.analyze.trace.match import BOOTSTRAP_DRAWS, MIN_STEPS
from clusterscape.analyze.trace.resimulate import StepGraph
from clusterscape.model.arrays import Float64s
from clusterscape.model.trace_report import TimeKind

HIDDEN_SHARE = 0.01
"""A cause of a rank is hidden by another one if removing it alone saves less than this share of the step."""

MAX_JOINT = 8


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds by step. ``is_hidden``: the most, and only after larger causes are gone. ``joint_ranks``: other ranks whose causes
    delay the same steps about as much: the seconds are saved only without all of them.
    """

    cause: Cause
    seconds: Float64s
    is_hidden: bool
    joint_ranks: tuple[int, ...] = ()

    @property
    def mean_s(self) -> float:
        """Mean over all steps, at least 0."""
        return max(0.0, float(self.seconds.mean())) if self.seconds.size else 0.0


def rank_causes(causes: Sequence[Cause], graphs: Sequence[StepGraph], attribution: Attribution) -> list[Saving]:
    """What a step without each cause is shorter; of causes that larger ones hide, the most that it can be once those are gone."""
    simulation = _Simulation(graphs, attribution)
    alone = simulation.save([[cause] for cause in causes])
    least_s = HIDDEN_SHARE * float(np.nanmean(attribution.step_s)) if attribution.ranks and attribution.steps else 0.0
    order = sorted(range(len(causes)), key=lambda at: -float(alone[at].mean()))
    savings: list[Saving] = []
    hidden: list[Cause] = []
    for at in order:
        cause = causes[at]
        if cause.rank is not None and not cause.is_work and float(alone[at].mean()) < least_s:
            hidden.append(cause)
        else:
            savings.append(Saving(cause, alone[at], is_hidden=False))
    # Causes that save time only together save equally much: the largest comes first.
    hidden.sort(key=_own_seconds, reverse=True)
    joint, joint_s = _find_joint(hidden, simulation, least_s)
    for cause in hidden:
        if any(cause is other for other in joint):
            others = sorted({int(other.rank) for other in joint if other.rank not in (None, cause.rank)})
            savings.append(Saving(cause, joint_s, is_hidden=False, joint_ranks=tuple(others)))
        else:
            savings.append(Saving(cause, _most_seconds(cause, attribution), is_hidden=True))
    return savings


def _find_joint(hidden: Sequence[Cause], simulation: "_Simulation", least_s: float) -> tuple[list[Cause], Float64s]:
    """The largest causes that save nothing alone, but do together, and the seconds by step; none if even all save nothing.

    ``hidden``: the largest first.
    """
    ordered = hidden[:MAX_JOINT]
    prefixes = [ordered[: count + 1] for count in range(1, len(ordered))]
    for group, saved in zip(prefixes, simulation.save(prefixes), strict=True):
        if float(saved.mean()) < least_s:
            continue
        parts = simulation.save([[cause for cause in group if cause is not left_out] for left_out in group])
        needed = [cause for cause, part in zip(group, parts, strict=True) if (saved - part).mean() >= least_s]
        return (needed, saved) if len(needed) > 1 else ([], saved)
    return [], np.zeros(0)


def _own_seconds(cause: Cause) -> float:
    return float(np.maximum(cause.seconds, 0.0).sum())


def _most_seconds(cause: Cause, attribution: Attribution) -> Float64s:
    """The most that fixing a hidden cause can save: its own seconds, by step; of data loading also what the device hides."""
    own: Float64s = np.maximum(cause.seconds, 0.0).sum(axis=0)
    if cause.kind is not TimeKind.DATA_LOADING or cause.rank is None:
        return own
    row = attribution.ranks.index(cause.rank)
    peers = np.median(np.delete(attribution.loading_s, row, axis=0), axis=0)
    return np.where(own > 0, np.maximum(own, attribution.loading_s[row] - peers), 0.0)


def find_interval(seconds: Float64s, generator: np.random.Generator) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean over steps, by bootstrap; None with too few steps."""
    if seconds.size < MIN_STEPS:
        return None, None
    means = generator.choice(seconds, (BOOTSTRAP_DRAWS, seconds.size)).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


class _Simulation:
    """The steps of a run, with the parts of lags that each cause takes."""

    def __init__(self, graphs: Sequence[StepGraph], attribution: Attribution) -> None:
        self._attribution = attribution
        place = {step: at for at, step in enumerate(attribution.steps)}
        self._graphs = [(place[graph.step], graph) for graph in graphs if graph.step in place]
        self._rows = {rank: at for at, rank in enumerate(attribution.ranks)}
        self._since = [np.array([event.since_ns for event in graph.events], np.int64) for _, graph in self._graphs]
        self._lags = [graph.lags for _, graph in self._graphs]
        self._row_of = [
            np.array([self._rows.get(event.rank, -1) for event in graph.events], np.int64) for _, graph in self._graphs
        ]

    def save(self, sets: Sequence[Sequence[Cause]]) -> list[Float64s]:
        """Seconds by step that each set of causes costs."""
        saved = np.zeros((len(sets), len(self._graphs)))
        for at, (place, graph) in enumerate(self._graphs):
            reduced = [
                sum((self._reduction(at, place, cause) for cause in causes), np.zeros(self._lags[at].size))
                for causes in sets
            ]
            lags = np.stack([self._lags[at], *(np.maximum(self._lags[at] - part, 0.0) for part in reduced)], axis=1)
            transfers = np.repeat(graph.transfers[:, None], lags.shape[1], axis=1)
            lengths = graph.run(lags, transfers) / 1e9
            saved[:, at] = lengths[0] - lengths[1:]
        return list(saved)

    def _reduction(self, at: int, place: int, cause: Cause) -> Float64s:
        """Nanoseconds of each event's lag that the cause takes."""
        reduced = np.zeros(self._lags[at].size)
        rows, since = self._row_of[at], self._since[at]
        until = since + self._lags[at].astype(np.int64)
        for kind, removed in cause.removed.items():
            # Compute beyond what is expected lies somewhere within the compute.
            source = TimeKind.COMPUTE if kind is TimeKind.SLOWER_COMPUTE else kind
            for row in np.flatnonzero(removed[:, place]):
                total_s = self._attribution.covered_s[source][row, place]
                if not total_s > 0:
                    continue
                mine = rows == row
                times = self._attribution.times[self._attribution.ranks[row], source]
                covered = cover_until(times, until[mine]) - cover_until(times, since[mine])
                reduced[mine] += covered * min(1.0, removed[row, place] / total_s)
        return reduced
