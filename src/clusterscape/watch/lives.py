"""Statistics over the life of every workload on every unit, updated with every scrape, and the limits of units (power, memory)
that shares are computed from. Importing this imports numba.

Owns which samples count for which life. Rows that missed samples (restart, late allocation, import, new rule) are marked as
pending and read from the store by ``catching_up``; until then live samples are not added to them, because the store has them.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from clusterscape.analyze.stats.bins import Limit, limit_of
from clusterscape.analyze.stats.contract import Needs
from clusterscape.analyze.stats.sketch import RING_SAMPLES, MetricSketch
from clusterscape.model import Allocation, Names, SampleBatch, Unit, UnitId, UnixMs
from clusterscape.model.arrays import Bools, Float64s, Int32s, Int64s
from clusterscape.watch.slots import LifeKey, Slots


@njit(cache=True, nogil=True)
def route_samples(
    unit: Int32s, metric: Int32s, time_ms: Int64s, value: Float64s,
    unit_of: Int32s, metric_of: Int32s, metric_count: int,
    life_offsets: Int64s, life_rows: Int64s, from_at: Int64s, until_at: Int64s,
) -> tuple[Int64s, Int64s, Int64s, Float64s, bool]:  # fmt: skip
    """Assign each sample to the lives of its unit at its time, grouped by metric.

    ``unit_of`` and ``metric_of`` map the batch's codes to ours; −1 drops the sample. Lives of unit ``u`` are
    ``life_rows[life_offsets[u]:life_offsets[u + 1]]``; row ``r`` lasts from ``from_at[r]`` until before ``until_at[r]``.

    Returns offsets of the metrics, rows, times, values, and whether every series is in time order.
    """
    counts = np.zeros(metric_count + 1, np.int64)
    for i in range(len(value)):
        u, m = unit_of[unit[i]], metric_of[metric[i]]
        if u < 0 or m < 0:
            continue
        for k in range(life_offsets[u], life_offsets[u + 1]):
            row = life_rows[k]
            if from_at[row] <= time_ms[i] < until_at[row]:
                counts[m + 1] += 1
    offsets = np.cumsum(counts)
    place = offsets[:-1].copy()
    rows, times = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    values = np.empty(offsets[-1], np.float64)
    newest = np.zeros((metric_count, len(from_at)), np.int64)
    in_order = True
    for i in range(len(value)):
        u, m = unit_of[unit[i]], metric_of[metric[i]]
        if u < 0 or m < 0:
            continue
        for k in range(life_offsets[u], life_offsets[u + 1]):
            row = life_rows[k]
            if from_at[row] <= time_ms[i] < until_at[row]:
                rows[place[m]], times[place[m]], values[place[m]] = row, time_ms[i], value[i]
                place[m] += 1
                in_order = in_order and time_ms[i] >= newest[m, row]
                newest[m, row] = time_ms[i]
    return offsets, rows, times, values, in_order


SAME_WITHIN = 0.005
"""Relative tolerance: sources round memory sizes differently, by less than half a bin."""


class UnitLimits:
    """The known limits of every unit."""

    def __init__(self) -> None:
        self._limits: dict[Limit, dict[UnitId, float]] = {Limit.POWER: {}, Limit.MEMORY: {}}

    def learn(self, units: Iterable[Unit]) -> list[UnitId]:
        """Update the limits of ``units``; returns the units with a new or changed limit."""
        changed = []
        for unit in units:
            reported = {Limit.POWER: unit.power_limit_watts, Limit.MEMORY: unit.memory_bytes}
            for limit, number in reported.items():
                before = self._limits[limit].get(unit.id)
                if number and (before is None or abs(number - before) > before * SAME_WITHIN):
                    self._limits[limit][unit.id] = float(number)
                    changed.append(unit.id)
        return changed

    def of(self, metric: str, units: Sequence[str]) -> Float64s:
        """The limit that ``metric`` of each unit is a share of; NaN if unknown."""
        limit = limit_of(metric)
        if limit is Limit.ONE:
            return np.ones(len(units))
        limits = self._limits.get(limit, {}) if limit else {}
        return np.array([limits.get(UnitId(unit), np.nan) for unit in units], np.float64)


KEEP_ENDED_MS = 10 * 60_000
"""How long an ended life stays readable."""

MAPS_KEPT = 8


@dataclass(slots=True)
class TrackedSketch:
    """The sketch of one metric. ``is_pending`` rows lack samples that only the store has."""

    sketch: MetricSketch
    is_pending: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))

    def grow(self, row_count: int) -> None:
        """Make room for more rows."""
        self.sketch.grow(row_count)
        more = row_count - len(self.is_pending)
        if more > 0:
            self.is_pending = np.concatenate([self.is_pending, np.zeros(more, np.bool_)])


@dataclass(slots=True)
class _CodeMap:
    """The codes of a batch's names in our dictionary (−1: unknown); valid until either dictionary grows."""

    names: Names
    codes: Int32s
    lengths: tuple[int, int]


class Lives:
    """All lives and their statistics. Thread-safe: one thread adds, others read."""

    def __init__(
        self, needs: Needs | None = None, *, ring_samples: int = RING_SAMPLES, keep_ended_ms: int = KEEP_ENDED_MS
    ) -> None:
        self.lock = threading.RLock()
        self.slots = Slots()
        self.serving: dict[str, TrackedSketch] = {}
        self.building: dict[str, TrackedSketch] = {}  # not visible until every row is filled
        self.needs = Needs()
        self.newest_ms = UnixMs(0)
        self.version = 0  # grows with every visible change
        self.layout_version = 0  # grows when rows get other lives
        self._ring_samples = ring_samples
        self._keep_ended_ms = keep_ended_ms
        self._limits = UnitLimits()
        self._maps: list[_CodeMap] = []
        self.require(needs or Needs())

    @property
    def nbytes(self) -> int:
        """Memory of the statistics."""
        with self.lock:
            return sum(tracked.sketch.nbytes for tracked in self.all_sketches())

    def all_sketches(self) -> list[TrackedSketch]:
        """Sketches that are visible, and those that are being built."""
        return [*self.serving.values(), *self.building.values()]

    # Metrics and thresholds

    def require(self, needs: Needs) -> None:
        """Keep only the statistics that these rules need. New ones are visible once they are read from the store."""
        with self.lock:
            self.needs = needs
            for sketches in (self.serving, self.building):
                for metric in sketches.keys() - needs.metrics:
                    del sketches[metric]
            for metric in needs.metrics:
                thresholds = {threshold for threshold in needs.thresholds if threshold.metric == metric}
                self.building.pop(metric, None)
                if metric not in self.serving or not thresholds <= set(self.serving[metric].sketch.thresholds):
                    self._build(metric, needs)
            self.promote()
            self.version += 1

    def _build(self, metric: str, needs: Needs) -> None:
        thresholds = sorted((t for t in needs.thresholds if t.metric == metric), key=repr)
        tracked = TrackedSketch(MetricSketch(metric, thresholds=thresholds, ring_samples=self._ring_samples))
        tracked.grow(self.slots.row_count)
        rows = self.slots.used_rows()
        tracked.sketch.clear(rows, self.limits(metric, rows))
        tracked.is_pending[rows] = True
        self.building[metric] = tracked

    def promote(self) -> None:
        """Make finished sketches visible."""
        is_used = self.slots.is_used
        for metric in [m for m, tracked in self.building.items() if not (tracked.is_pending & is_used).any()]:
            self.serving[metric] = self.building.pop(metric)
            self.version += 1

    # Units and allocations

    def follow_units(self, units: Iterable[Unit]) -> None:
        """Update the limits of units. A life that was counted with another limit is counted again."""
        with self.lock:
            codes = [self.slots.units.find(unit) for unit in set(self._limits.learn(units))]
            rows = self.slots.rows_of(np.array([code for code in codes if code is not None], np.int64))
            if not len(rows):
                return
            self.slots.generation[rows] += 1
            for tracked in self.all_sketches():
                limits = self.limits(tracked.sketch.metric, rows)
                differs = ~np.isclose(limits, tracked.sketch.arrays.limit[rows], equal_nan=True)
                self._reset(tracked, rows[differs])
            self.version += 1
            self.layout_version += 1

    def follow_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Start and end lives: ``open_allocations`` are all that are open at ``at_ms``."""
        keys: list[LifeKey] = [(a.workload, a.unit, a.from_at) for a in open_allocations]
        with self.lock:
            began, resumed = self.slots.follow(keys, at_ms, keep_ended_ms=self._keep_ended_ms)
            for tracked in self.all_sketches():
                tracked.grow(self.slots.row_count)
                self._reset(tracked, began)
                # A life that starts after the newest sample has missed none.
                tracked.is_pending[began] = self.slots.from_at[began] <= self.newest_ms
                tracked.is_pending[resumed] = True
            self.promote()
            self.version += 1
            self.layout_version += 1

    def restore(self, rows: Sequence[int], keys: Sequence[LifeKey], until_at: Int64s, generation: Int64s) -> None:
        """Load the lives of a checkpoint, all of them pending; only into empty lives."""
        with self.lock:
            self.slots.restore(rows, keys, until_at, generation)
            for tracked in self.all_sketches():
                tracked.grow(self.slots.row_count)
                self._reset(tracked, self.slots.used_rows())
            self.version += 1
            self.layout_version += 1

    def _reset(self, tracked: TrackedSketch, rows: Int64s) -> None:
        tracked.sketch.clear(rows, self.limits(tracked.sketch.metric, rows))
        tracked.is_pending[rows] = True

    def limits(self, metric: str, rows: Int64s) -> Float64s:
        """The limit that ``metric`` is a share of, for each of ``rows``; NaN if unknown."""
        units = self.slots.units.values
        return self._limits.of(metric, [units[code] for code in self.slots.unit[rows].tolist()])

    # Samples

    def add(self, batch: SampleBatch) -> None:
        """Count the samples of a scrape for the lives at their time."""
        if not len(batch):
            return
        with self.lock:
            for tracked, row, time_ms, value in self._route(batch, self.all_sketches()):
                whole = ~tracked.is_pending[row]
                if whole.all():
                    tracked.sketch.add(row, time_ms, value)
                else:
                    tracked.sketch.add(row[whole], time_ms[whole], value[whole])
            self.newest_ms = UnixMs(max(self.newest_ms, int(batch.time_ms.max())))
            self.version += 1

    def add_history(self, batches: Sequence[SampleBatch]) -> None:
        """Past samples were stored: their lives are counted again from the store."""
        with self.lock:
            for batch in batches:
                if not len(batch):
                    continue
                first_ms, last_ms = int(batch.time_ms.min()), int(batch.time_ms.max())
                codes = self._codes(batch.units, self.slots.units)[np.unique(batch.unit)]
                rows = self.slots.rows_of(codes[codes >= 0])
                is_affected = (self.slots.from_at[rows] <= last_ms) & (self.slots.until_at[rows] > first_ms)
                metrics = {batch.metrics.values[code] for code in np.unique(batch.metric).tolist()}
                self.slots.generation[rows[is_affected]] += 1
                for tracked in self.all_sketches():
                    if tracked.sketch.metric in metrics:
                        self._reset(tracked, rows[is_affected])
                self.newest_ms = UnixMs(max(self.newest_ms, last_ms))
            self.version += 1
            self.layout_version += 1

    def fill(self, batch: SampleBatch, rows: Int64s, sketches: Sequence[TrackedSketch]) -> None:
        """Count samples from the store, later than those counted before, for pending ``rows`` of ``sketches`` only."""
        with self.lock:
            for tracked, row, time_ms, value in self._route(batch, sketches):
                is_selected = tracked.is_pending[row] & np.isin(row, rows)
                tracked.sketch.add(row[is_selected], time_ms[is_selected], value[is_selected])

    def refill_rings(self, batch: SampleBatch, rows: Int64s, sketches: Sequence[TrackedSketch]) -> None:
        """Fill the sample rings of pending ``rows`` after a restart; ``batch`` has all their samples."""
        with self.lock:
            for tracked, row, time_ms, value in self._route(batch, sketches):
                is_selected = tracked.is_pending[row] & tracked.sketch.has_lost_ring[row] & np.isin(row, rows)
                tracked.sketch.refill_rings(row[is_selected], time_ms[is_selected], value[is_selected])

    def _route(
        self, batch: SampleBatch, sketches: Sequence[TrackedSketch]
    ) -> Iterator[tuple[TrackedSketch, Int64s, Int64s, Float64s]]:
        """Rows, times and values for each sketch, in time order."""
        slots = self.slots
        metrics = Names(tracked.sketch.metric for tracked in sketches)
        offsets, rows, times, values, in_order = route_samples(
            batch.unit, batch.metric, batch.time_ms, batch.value,
            self._codes(batch.units, slots.units), _translate(batch.metrics, metrics), len(metrics),
            slots.life_offsets, slots.life_rows, slots.from_at, slots.until_at,
        )  # fmt: skip
        for tracked in sketches:
            place = metrics.code(tracked.sketch.metric)
            piece = slice(int(offsets[place]), int(offsets[place + 1]))
            row, time_ms, value = rows[piece], times[piece], values[piece]
            if not in_order:
                order = np.argsort(time_ms, kind="stable")
                row, time_ms, value = row[order], time_ms[order], value[order]
            yield tracked, row, time_ms, value

    def _codes(self, theirs: Names, ours: Names) -> Int32s:
        """Codes of units, cached: a normalizer uses the same dictionary for all its batches."""
        lengths = (len(theirs), len(ours))
        for code_map in self._maps:
            if code_map.names is theirs:
                if code_map.lengths != lengths:
                    code_map.codes, code_map.lengths = _translate(theirs, ours), lengths
                return code_map.codes
        self._maps = [_CodeMap(theirs, _translate(theirs, ours), lengths), *self._maps[: MAPS_KEPT - 1]]
        return self._maps[0].codes


def _translate(theirs: Names, ours: Names) -> Int32s:
    codes = (ours.find(name) for name in theirs.values)
    return np.array([-1 if code is None else code for code in codes], np.int32)
