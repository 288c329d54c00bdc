"""Statistics over trailing windows longer than the samples kept in memory: exact, from the store, as of their last reading.

A window is read again after a sixtieth of its length, so its answer is at most that old (six minutes for six hours), but not
more often than once a minute. All statistics asked of one metric and window share a reading; few units are read at a time.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.model import UnitId
from clusterscape.model.rules import Statistic
from clusterscape.model.samples import Float64s, Int64s
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.watch.catching_up import read_batch
from clusterscape.watch.life_columns import LifeView

READ_AFTER_SHARE = 1 / 60
READ_AFTER_MS = 60_000
SAMPLES_AT_ONCE = 2_000_000
EXPECTED_INTERVAL_MS = 5_000


@dataclass(slots=True)
class _Readings:
    """What was read for one metric and window, by slot."""

    read_at: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    generation: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    values: dict[Statistic, Float64s] = field(default_factory=dict)

    def grow(self, row_count: int) -> None:
        more = row_count - len(self.read_at)
        if more > 0:
            self.read_at = np.concatenate([self.read_at, np.zeros(more, np.int64)])
            self.generation = np.concatenate([self.generation, np.full(more, -1)])
            for statistic, column in self.values.items():
                self.values[statistic] = np.concatenate([column, np.full(more, np.nan)])


class LongWindows:
    """Reads long windows and remembers them. Called by one thread at a time: the one that judges."""

    def __init__(self, store: MetricStore) -> None:
        self._store = store
        self._readings: dict[tuple[str, int], _Readings] = defaultdict(_Readings)

    def __call__(self, view: LifeView, metric: str, statistic: Statistic, window_ms: int, places: Int64s) -> Float64s:
        """Values of the rows at ``places`` of ``view``."""
        readings = self._readings[metric, window_ms]
        readings.grow(int(view.layout.rows.max()) + 1)
        slots, turns = view.layout.rows[places], view.layout.generation[places]
        if statistic not in readings.values:
            readings.values[statistic] = np.full(len(readings.read_at), np.nan)
            readings.generation[:] = -1
        age_ms = view.at_ms - readings.read_at[slots]
        stale = (
            (readings.generation[slots] != turns)
            | (age_ms > max(READ_AFTER_MS, window_ms * READ_AFTER_SHARE))
            | (age_ms < 0)
        )
        self._read(view, metric, window_ms, places[stale], readings)
        found: Float64s = readings.values[statistic][slots]
        return found

    def _read(self, view: LifeView, metric: str, window_ms: int, places: Int64s, readings: _Readings) -> None:
        at_once = max(1, SAMPLES_AT_ONCE * EXPECTED_INTERVAL_MS // window_ms)
        order = places[np.argsort(view.unit[places], kind="stable")]
        for first in range(0, len(order), at_once):
            some = order[first : first + at_once]
            exact = self._read_rows(view, metric, window_ms, some)
            slots = view.layout.rows[some]
            for statistic, column in readings.values.items():
                column[slots] = exact.column(metric, statistic)
            readings.read_at[slots], readings.generation[slots] = view.at_ms, view.layout.generation[some]

    def _read_rows(self, view: LifeView, metric: str, window_ms: int, places: Int64s) -> ExactColumns:
        codes, which = np.unique(view.unit[places], return_inverse=True)
        units = [UnitId(view.layout.units[code]) for code in codes.tolist()]
        until = view.until_at[places]
        batch = read_batch(self._store, [metric], units, int(until.min()) - window_ms + 1, int(until.max()) + 1)
        borders = np.searchsorted(batch.unit, np.arange(len(units) + 1))
        pieces = []
        for unit, end_ms in zip(which.tolist(), until.tolist(), strict=True):
            low, high = int(borders[unit]), int(borders[unit + 1])
            first, last = np.searchsorted(batch.time_ms[low:high], [end_ms - window_ms + 1, end_ms + 1]).tolist()
            pieces.append(slice(low + first, low + last))
        series = Series(
            np.concatenate([batch.time_ms[piece] for piece in pieces]),
            np.concatenate([batch.value[piece] for piece in pieces]),
            np.cumsum([0, *(piece.stop - piece.start for piece in pieces)]),
        )
        return ExactColumns({metric: series}, len(places), limits={metric: view.limits(metric)[places]})
