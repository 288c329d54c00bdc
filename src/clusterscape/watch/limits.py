"""The limits of units that values are shares of: power limit and memory size."""

from collections.abc import Iterable, Sequence

import numpy as np

from clusterscape.analyze.stats.bins import Limit, limit_of
from clusterscape.model import Unit, UnitId
from clusterscape.model.samples import Float64s

SAME_WITHIN = 0.005
"""Sources round a memory size differently; that is no other GPU, and less than half a bin."""


class UnitLimits:
    """What is known of every unit's limits."""

    def __init__(self) -> None:
        self._known: dict[Limit, dict[UnitId, float]] = {Limit.POWER: {}, Limit.MEMORY: {}}

    def learn(self, units: Iterable[Unit]) -> list[UnitId]:
        """Take over what ``units`` say; returns those of which a limit is new or another one."""
        changed = []
        for unit in units:
            told = {Limit.POWER: unit.power_limit_watts, Limit.MEMORY: unit.memory_bytes}
            for limit, number in told.items():
                before = self._known[limit].get(unit.id)
                if number and (before is None or abs(number - before) > before * SAME_WITHIN):
                    self._known[limit][unit.id] = float(number)
                    changed.append(unit.id)
        return changed

    def of(self, metric: str, units: Sequence[str]) -> Float64s:
        """What ``metric`` of each unit is a share of; NaN where that is not known."""
        limit = limit_of(metric)
        if limit is Limit.ONE:
            return np.ones(len(units))
        known = self._known.get(limit, {}) if limit else {}
        return np.array([known.get(UnitId(unit), np.nan) for unit in units], np.float64)
