"""What rules are judged by: statistics of many lives at once, as columns. A life is one workload on one unit.

``exact.ExactColumns`` computes them from samples; the lives that ``watch`` follows give them from sketches. Both mean the same.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clusterscape.model import UnitId, WorkloadId
from clusterscape.model.rules import Statistic
from clusterscape.model.samples import Float64s, Int32s, Int64s

EQUAL_WITHIN = 1e-9
"""Values that differ from a threshold by less than this share of it equal it: 35 × 0.01 is not 0.35 in binary."""


class StatisticColumns(Protocol):
    """Statistics of the lives being judged: one row per life (a workload on a unit).

    All arrays have ``row_count`` entries in the same order. Metrics nobody measured give NaN and no samples.
    """

    @property
    def row_count(self) -> int:
        """How many lives."""
        ...

    def column(self, metric: str, statistic: Statistic, *, window_ms: int | None = None) -> Float64s:
        """One value per row in the metric's canonical unit; NaN where there are no samples or it cannot be told.

        Shares of time are 0–1, longest runs seconds, slopes per hour. A threshold with ``Basis.LIMIT`` is a share of the row's
        own limit. ``window_ms`` takes only the samples of that time before now. The array is shared: do not write into it.
        """
        ...

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        """How many samples stand behind ``column``."""
        ...

    def limits(self, metric: str) -> Float64s:
        """What ``Basis.LIMIT`` is a share of: power limit, memory size, 1 for ratios; NaN where it is not known."""
        ...


class LifeColumns(StatisticColumns, Protocol):
    """Statistics of lives, and whose lives they are."""

    @property
    def workloads(self) -> Sequence[WorkloadId]:
        """The workloads that ``workload`` counts through."""
        ...

    @property
    def units(self) -> Sequence[UnitId]:
        """The units that ``unit`` counts through."""
        ...

    @property
    def workload(self) -> Int32s:
        """Per row a place in ``workloads``."""
        ...

    @property
    def unit(self) -> Int32s:
        """Per row a place in ``units``."""
        ...

    @property
    def from_at(self) -> Int64s:
        """When the life began, Unix ms."""
        ...

    @property
    def until_at(self) -> Int64s:
        """When it ended, or now where it has not; ``until_at − from_at`` is its age."""
        ...

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Whether it still goes on. An ended life stays readable for some minutes, for a last judgement."""
        ...

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """False while its past is still being read from the store: leave the judgement of such a row as it was."""
        ...
