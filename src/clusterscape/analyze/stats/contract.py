"""Statistics that rules are evaluated on, as columns over many lives, and the metrics and thresholds that rules need.
A life is one workload on one unit.

``exact.ExactColumns`` computes the statistics from samples, ``watch`` from sketches; the definitions are the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clusterscape.model import UnitId, WorkloadId
from clusterscape.model.arrays import Float64s, Int32s, Int64s
from clusterscape.model.rules import Condition, Quantity, Statistic
from clusterscape.model.statistics import STATISTICS

EQUAL_WITHIN = 1e-9
"""Relative tolerance for equality with a threshold: in floating point, 35 × 0.01 is not 0.35."""


class StatisticColumns(Protocol):
    """Statistics of lives, one row per life (a workload on a unit).

    All arrays have shape (row_count,) and the same order. Metrics without samples give NaN and a count of 0.
    """

    @property
    def row_count(self) -> int:
        """Number of lives."""
        ...

    def column(self, metric: str, statistic: Statistic, *, window_ms: int | None = None) -> Float64s:
        """One value per row, shape (row_count,), in the metric's canonical unit; NaN if there are no samples.

        Shares of time are 0–1, longest runs seconds, slopes per hour. A threshold with ``Basis.LIMIT`` is a share of the row's
        limit. ``window_ms``: use only the samples of this long before now. The array is shared and must not be modified.
        """
        ...

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        """Number of samples of each row, shape (row_count,); ``window_ms`` as in ``column``."""
        ...

    def limits(self, metric: str) -> Float64s:
        """Limits that ``Basis.LIMIT`` refers to, shape (row_count,): power limit, memory size, 1 for ratios; NaN if unknown."""
        ...


class LifeColumns(StatisticColumns, Protocol):
    """Statistics of lives, with their workloads and units."""

    @property
    def workloads(self) -> Sequence[WorkloadId]:
        """The workloads that ``workload`` indexes."""
        ...

    @property
    def units(self) -> Sequence[UnitId]:
        """The units that ``unit`` indexes."""
        ...

    @property
    def workload(self) -> Int32s:
        """Index into ``workloads``, per row."""
        ...

    @property
    def unit(self) -> Int32s:
        """Index into ``units``, per row."""
        ...

    @property
    def from_at(self) -> Int64s:
        """Start of the life, Unix ms."""
        ...

    @property
    def until_at(self) -> Int64s:
        """End of the life, or now if it has not ended, Unix ms; ``until_at − from_at`` is its age."""
        ...

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Whether the life has not ended. Ended lives stay readable for some minutes, for a last evaluation."""
        ...

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """False while its history is still being read from the store: keep the previous verdict of such a row."""
        ...


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold and a side of it; samples and runs beyond it are counted over the whole life."""

    metric: str
    is_above: bool
    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Needs:
    """Metrics to keep statistics of, and thresholds to count exactly."""

    metrics: frozenset[str] = frozenset()
    thresholds: frozenset[Threshold] = field(default_factory=frozenset)

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(self.metrics | other.metrics, self.thresholds | other.thresholds)

    def __le__(self, other: "Needs") -> bool:
        return self.metrics <= other.metrics and self.thresholds <= other.thresholds


def needs_of(conditions: Iterable[Condition]) -> Needs:
    """Metrics and thresholds needed to evaluate ``conditions``; windows need no threshold, because their samples are kept."""
    metrics, thresholds = set(), set()
    for condition in conditions:
        metrics.add(condition.metric)
        statistic = condition.statistic
        is_above = STATISTICS[statistic.kind].is_above
        if is_above is not None and statistic.threshold is not None and condition.window_ms is None:
            thresholds.add(Threshold(condition.metric, is_above, statistic.threshold))
    return Needs(frozenset(metrics), frozenset(thresholds))
