"""Statistics over the life of every workload on every unit, kept up with every scrape. Importing this imports numba.

Owns which samples count for which life. What was missed (a start, a late allocation, an import, a new rule) is marked as
pending and read from the store by ``catching_up``; until then live samples leave such a row alone, because the store has them.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from clusterscape.analyze.stats.kernels import Bools
from clusterscape.analyze.stats.needs import Needs
from clusterscape.analyze.stats.sketch import RING_SAMPLES, MetricSketch
from clusterscape.model import Allocation, Names, SampleBatch, Unit, UnixMs
from clusterscape.model.samples import Float64s, Int32s, Int64s
from clusterscape.watch.kernels import route_samples
from clusterscape.watch.limits import UnitLimits
from clusterscape.watch.slots import LifeKey, Slots

KEEP_ENDED_MS = 10 * 60_000
"""How long an ended life stays readable."""

MAPS_KEPT = 8


@dataclass(slots=True)
class Kept:
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
    """Somebody's names in our codes (−1: not ours), good as long as neither side has learnt a new name."""

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
        self.serving: dict[str, Kept] = {}
        self.building: dict[str, Kept] = {}  # not shown until every row is filled
        self.needs = Needs()
        self.newest_ms = UnixMs(0)
        self.version = 0  # grows with every change that a reader can see
        self.layout_version = 0  # grows when rows change hands
        self._ring_samples = ring_samples
        self._keep_ended_ms = keep_ended_ms
        self._limits = UnitLimits()
        self._maps: list[_CodeMap] = []
        self.require(needs or Needs())

    @property
    def nbytes(self) -> int:
        """Memory of the statistics."""
        with self.lock:
            return sum(kept.sketch.nbytes for kept in self.all_kept())

    def all_kept(self) -> list[Kept]:
        """Sketches that are shown and those that are being built."""
        return [*self.serving.values(), *self.building.values()]

    # what is kept

    def require(self, needs: Needs) -> None:
        """Keep what these rules need, and nothing else. New metrics and thresholds show once they are read from the store."""
        with self.lock:
            self.needs = needs
            for shown in (self.serving, self.building):
                for metric in shown.keys() - needs.metrics:
                    del shown[metric]
            for metric in needs.metrics:
                wanted = {threshold for threshold in needs.thresholds if threshold.metric == metric}
                self.building.pop(metric, None)
                if metric not in self.serving or not wanted <= set(self.serving[metric].sketch.thresholds):
                    self._build(metric, needs)
            self.promote()
            self.version += 1

    def _build(self, metric: str, needs: Needs) -> None:
        thresholds = sorted((t for t in needs.thresholds if t.metric == metric), key=repr)
        kept = Kept(MetricSketch(metric, thresholds=thresholds, ring_samples=self._ring_samples))
        kept.grow(self.slots.row_count)
        rows = self.slots.used_rows()
        kept.sketch.clear(rows, self.limits(metric, rows))
        kept.is_pending[rows] = True
        self.building[metric] = kept

    def promote(self) -> None:
        """Show the sketches that are built."""
        is_used = self.slots.is_used
        for metric in [m for m, kept in self.building.items() if not (kept.is_pending & is_used).any()]:
            self.serving[metric] = self.building.pop(metric)
            self.version += 1

    # the site

    def follow_units(self, units: Iterable[Unit]) -> None:
        """Learn limits of units. A life that was counted by another limit is counted anew."""
        with self.lock:
            codes = [self.slots.units.find(unit) for unit in set(self._limits.learn(units))]
            rows = self.slots.rows_of(np.array([code for code in codes if code is not None], np.int64))
            if not len(rows):
                return
            self.slots.generation[rows] += 1
            for kept in self.all_kept():
                limits = self.limits(kept.sketch.metric, rows)
                differs = ~np.isclose(limits, kept.sketch.arrays.limit[rows], equal_nan=True)
                self._forget(kept, rows[differs])
            self.version += 1
            self.layout_version += 1

    def follow_allocations(self, open_allocations: Iterable[Allocation], at_ms: UnixMs) -> None:
        """Begin and end lives: ``open_allocations`` are all that are open at ``at_ms``."""
        keys: list[LifeKey] = [(a.workload, a.unit, a.from_at) for a in open_allocations]
        with self.lock:
            began, resumed = self.slots.follow(keys, at_ms, keep_ended_ms=self._keep_ended_ms)
            for kept in self.all_kept():
                kept.grow(self.slots.row_count)
                self._forget(kept, began)
                # What begins after the newest sample has missed none.
                kept.is_pending[began] = self.slots.from_at[began] <= self.newest_ms
                kept.is_pending[resumed] = True
            self.promote()
            self.version += 1
            self.layout_version += 1

    def restore(self, rows: Sequence[int], keys: Sequence[LifeKey], until_at: Int64s, generation: Int64s) -> None:
        """Begin with the lives of a checkpoint, all of them pending; only before anything else was followed."""
        with self.lock:
            self.slots.restore(rows, keys, until_at, generation)
            for kept in self.all_kept():
                kept.grow(self.slots.row_count)
                self._forget(kept, self.slots.used_rows())
            self.version += 1
            self.layout_version += 1

    def _forget(self, kept: Kept, rows: Int64s) -> None:
        kept.sketch.clear(rows, self.limits(kept.sketch.metric, rows))
        kept.is_pending[rows] = True

    def limits(self, metric: str, rows: Int64s) -> Float64s:
        """What ``metric`` is a share of, for each of ``rows``; NaN where that is not known."""
        units = self.slots.units.values
        return self._limits.of(metric, [units[code] for code in self.slots.unit[rows].tolist()])

    # samples

    def add(self, batch: SampleBatch) -> None:
        """Count the samples of a scrape for all lives that were going on."""
        if not len(batch):
            return
        with self.lock:
            for kept, row, time_ms, value in self._route(batch, self.all_kept()):
                whole = ~kept.is_pending[row]
                if whole.all():
                    kept.sketch.add(row, time_ms, value)
                else:
                    kept.sketch.add(row[whole], time_ms[whole], value[whole])
            self.newest_ms = UnixMs(max(self.newest_ms, int(batch.time_ms.max())))
            self.version += 1

    def add_history(self, batches: Sequence[SampleBatch]) -> None:
        """Samples of the past were stored: the lives they belong to are counted anew from the store."""
        with self.lock:
            for batch in batches:
                if not len(batch):
                    continue
                first_ms, last_ms = int(batch.time_ms.min()), int(batch.time_ms.max())
                codes = self._codes(batch.units, self.slots.units)[np.unique(batch.unit)]
                rows = self.slots.rows_of(codes[codes >= 0])
                went_on = (self.slots.from_at[rows] <= last_ms) & (self.slots.until_at[rows] > first_ms)
                metrics = {batch.metrics.values[code] for code in np.unique(batch.metric).tolist()}
                self.slots.generation[rows[went_on]] += 1
                for kept in self.all_kept():
                    if kept.sketch.metric in metrics:
                        self._forget(kept, rows[went_on])
                self.newest_ms = UnixMs(max(self.newest_ms, last_ms))
            self.version += 1
            self.layout_version += 1

    def fill(self, batch: SampleBatch, rows: Int64s, sketches: Sequence[Kept]) -> None:
        """Count samples from the store, later than those counted before, for pending ``rows`` of ``sketches`` alone."""
        with self.lock:
            for kept, row, time_ms, value in self._route(batch, sketches):
                meant = kept.is_pending[row] & np.isin(row, rows)
                kept.sketch.add(row[meant], time_ms[meant], value[meant])

    def refill_rings(self, batch: SampleBatch, rows: Int64s, sketches: Sequence[Kept]) -> None:
        """Give pending ``rows`` whose rings were lost their samples back; ``batch`` has all of them at once."""
        with self.lock:
            for kept, row, time_ms, value in self._route(batch, sketches):
                meant = kept.is_pending[row] & kept.sketch.has_lost_ring[row] & np.isin(row, rows)
                kept.sketch.refill_rings(row[meant], time_ms[meant], value[meant])

    def _route(self, batch: SampleBatch, sketches: Sequence[Kept]) -> Iterator[tuple[Kept, Int64s, Int64s, Float64s]]:
        """Rows, times and values for each sketch, in time order."""
        slots = self.slots
        metrics = Names(kept.sketch.metric for kept in sketches)
        offsets, rows, times, values, in_order = route_samples(
            batch.unit, batch.metric, batch.time_ms, batch.value,
            self._codes(batch.units, slots.units), _translate(batch.metrics, metrics), len(metrics),
            slots.life_offsets, slots.life_rows, slots.from_at, slots.until_at,
        )  # fmt: skip
        for kept in sketches:
            place = metrics.code(kept.sketch.metric)
            piece = slice(int(offsets[place]), int(offsets[place + 1]))
            row, time_ms, value = rows[piece], times[piece], values[piece]
            if not in_order:
                order = np.argsort(time_ms, kind="stable")
                row, time_ms, value = row[order], time_ms[order], value[order]
            yield kept, row, time_ms, value

    def _codes(self, theirs: Names, ours: Names) -> Int32s:
        """Codes of units, remembered: a normalizer uses the same dictionary for all its batches."""
        lengths = (len(theirs), len(ours))
        for known in self._maps:
            if known.names is theirs:
                if known.lengths != lengths:
                    known.codes, known.lengths = _translate(theirs, ours), lengths
                return known.codes
        self._maps = [_CodeMap(theirs, _translate(theirs, ours), lengths), *self._maps[: MAPS_KEPT - 1]]
        return self._maps[0].codes


def _translate(theirs: Names, ours: Names) -> Int32s:
    codes = (ours.find(name) for name in theirs.values)
    return np.array([-1 if code is None else code for code in codes], np.int32)
