"""Reads samples from the store: those that lives have missed (after a restart, for late lives, for new metrics), and trailing
windows that are longer than the samples in memory.

Memory is bounded: a few units and a slice of time are read at once. Ingest waits only for the last, short slice of each.

A window is read again after a sixtieth of its length, so its value is at most that old (six minutes for six hours), but not
more often than once a minute. All statistics of one metric and window share a reading.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.analyze.stats.kernels import COUNT, INTERVAL_MS, LAST_MS
from clusterscape.model import Names, SampleBatch, UnitId, UnixMs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.durations import DAY_MS
from clusterscape.model.rules import Statistic
from clusterscape.store.metrics.contract import MetricReader
from clusterscape.watch.life_columns import LifeView
from clusterscape.watch.lives import Lives, TrackedSketch

log = logging.getLogger(__name__)

UNITS_AT_ONCE = 128
SAMPLES_AT_ONCE = 1_000_000
FIRST_SLICE_MS = 3_600_000
LAST_SLICE_MS = 5 * 60_000
"""Ingest drops samples that are so far in the future."""

LOG_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that lack samples since ``start_ms``."""

    rows: Int64s
    generation: Int64s
    units: Sequence[UnitId]
    sketches: Sequence[TrackedSketch]
    start_ms: int

    @property
    def metrics(self) -> list[str]:
        """The metrics to read."""
        return list(dict.fromkeys(tracked.sketch.metric for tracked in self.sketches))


def catch_up(lives: Lives, store: MetricReader) -> int:
    """Fill all pending rows; returns their number. Lives may start and end in the meantime. Raises the errors of the store."""
    begin, filled, logged_at = time.monotonic(), 0, time.monotonic()
    total = len(_pending_rows(lives))
    while (gap := _find_gap(lives)) is not None:
        _refill_rings(lives, store, gap)
        _fill(lives, store, gap)
        filled += len(gap.rows)
        if time.monotonic() - logged_at > LOG_AFTER_S:
            logged_at = time.monotonic()
            log.info("read past samples of %d of %d lives from the store", filled, max(total, filled))
    took_s = time.monotonic() - begin
    if took_s > LOG_AFTER_S:
        log.info("read past samples of %d lives from the store in %.1f s", filled, took_s)
    return filled


def _pending_rows(lives: Lives) -> Int64s:
    with lives.lock:
        is_pending = np.zeros(lives.slots.row_count, np.bool_)
        for tracked in lives.all_sketches():
            is_pending |= tracked.is_pending
        return np.flatnonzero(is_pending & lives.slots.is_used)


def _find_gap(lives: Lives) -> Gap | None:
    """The pending rows of the units with the earliest gaps, so that gaps of similar length are read together."""
    with lives.lock:
        rows = _pending_rows(lives)
        if not len(rows):
            lives.promote()
            return None
        slots = lives.slots
        start_ms = np.full(len(rows), np.iinfo(np.int64).max)
        sketches = []
        for tracked in lives.all_sketches():
            is_pending = tracked.is_pending[rows]
            if is_pending.any():
                sketches.append(tracked)
                last_ms = tracked.sketch.last_ms(rows)
                needed_from = np.maximum(slots.from_at[rows], np.where(last_ms > 0, last_ms + 1, 0))
                start_ms = np.where(is_pending, np.minimum(start_ms, needed_from), start_ms)
        order = np.argsort(start_ms, kind="stable")
        units = list(dict.fromkeys(slots.unit[rows[order]].tolist()))[:UNITS_AT_ONCE]
        chosen = np.isin(slots.unit[rows], units)
        names = [UnitId(slots.units.values[unit]) for unit in units]
        return Gap(rows[chosen], slots.generation[rows[chosen]], names, sketches, int(start_ms[chosen].min()))


def _same_rows(lives: Lives, gap: Gap) -> Int64s:
    """The rows that still belong to the same lives and were not reset in the meantime."""
    same: Int64s = gap.rows[lives.slots.generation[gap.rows] == gap.generation]
    return same


def _fill(lives: Lives, store: MetricReader, gap: Gap) -> None:
    cursor, slice_ms = gap.start_ms, FIRST_SLICE_MS
    while cursor + LAST_SLICE_MS < lives.newest_ms:
        end = min(cursor + slice_ms, lives.newest_ms)
        batch = read_batch(store, gap.metrics, gap.units, cursor, end)
        with lives.lock:
            lives.fill(batch, _same_rows(lives, gap), gap.sketches)
        cursor = end
        if len(batch) < SAMPLES_AT_ONCE // 2:
            slice_ms *= 2
        elif len(batch) > SAMPLES_AT_ONCE:
            slice_ms = max(LAST_SLICE_MS, slice_ms // 2)
    with lives.lock:
        # No samples are added while the lock is held; samples that are added again later count once.
        rows = _same_rows(lives, gap)
        # Ingest refuses samples that are further in the future.
        end = max(cursor, lives.newest_ms) + DAY_MS
        lives.fill(read_batch(store, gap.metrics, gap.units, cursor, end), rows, gap.sketches)
        for tracked in gap.sketches:
            tracked.is_pending[rows] = False
        lives.promote()
        lives.version += 1


def _refill_rings(lives: Lives, store: MetricReader, gap: Gap) -> None:
    """After loading a checkpoint: read the last samples before it, for all rows that were alive then."""
    with lives.lock:
        start_ms, end_ms = np.inf, 0.0
        for tracked in gap.sketches:
            lost = gap.rows[tracked.sketch.has_lost_ring[gap.rows] & tracked.is_pending[gap.rows]]
            if len(lost):
                moments = tracked.sketch.arrays.moments[lost]
                last_ms = moments[:, LAST_MS]
                capacity = tracked.sketch.arrays.ring_value.shape[1]
                span_ms = np.minimum(moments[:, COUNT], capacity) * moments[:, INTERVAL_MS]
                alive = (
                    last_ms > last_ms.max() - LAST_SLICE_MS
                )  # series that ended long ago would make the slice too long
                start_ms = min(start_ms, float((last_ms - span_ms)[alive].min()) - LAST_SLICE_MS)
                end_ms = max(end_ms, float(last_ms.max()) + 1)
    if start_ms < end_ms:
        batch = read_batch(store, gap.metrics, gap.units, int(start_ms), int(end_ms))
        with lives.lock:
            lives.refill_rings(batch, _same_rows(lives, gap), gap.sketches)


def read_batch(
    store: MetricReader, metrics: Sequence[str], units: Sequence[UnitId], start_ms: int, end_ms: int
) -> SampleBatch:
    """Read samples of the store as a batch."""
    frame = store.series(metrics, units, start_ms=UnixMs(start_ms), end_ms=UnixMs(end_ms))
    columns = frame.select(
        pl.col("unit").cast(pl.Enum(units)).to_physical().cast(pl.Int32),
        pl.col("metric").cast(pl.Enum(metrics)).to_physical().cast(pl.Int32),
        "time_ms",
        "value",
    )
    return SampleBatch(
        Names(units),
        Names(metrics),
        columns["unit"].to_numpy(),
        columns["metric"].to_numpy(),
        columns["time_ms"].to_numpy(),
        columns["value"].to_numpy(),
    )


READ_AFTER_SHARE = 1 / 60
READ_AFTER_MS = 60_000
WINDOW_SAMPLES_AT_ONCE = 2_000_000
EXPECTED_INTERVAL_MS = 5_000


@dataclass(slots=True)
class _Readings:
    """Cached values of one metric and window, by slot."""

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
    """Reads long windows and caches them. Called only by the thread that judges."""

    def __init__(self, store: MetricReader) -> None:
        self._store = store
        self._readings: dict[tuple[str, int], _Readings] = defaultdict(_Readings)

    def __call__(self, view: LifeView, metric: str, statistic: Statistic, window_ms: int, places: Int64s) -> Float64s:
        """Values of the rows at the indices ``places`` of ``view``."""
        readings = self._readings[metric, window_ms]
        readings.grow(int(view.layout.rows.max()) + 1)
        slots, generation = view.layout.rows[places], view.layout.generation[places]
        if statistic not in readings.values:
            readings.values[statistic] = np.full(len(readings.read_at), np.nan)
            readings.generation[:] = -1
        age_ms = view.at_ms - readings.read_at[slots]
        stale = (
            (readings.generation[slots] != generation)
            | (age_ms > max(READ_AFTER_MS, window_ms * READ_AFTER_SHARE))
            | (age_ms < 0)
        )
        self._read(view, metric, window_ms, places[stale], readings)
        values: Float64s = readings.values[statistic][slots]
        return values

    def _read(self, view: LifeView, metric: str, window_ms: int, places: Int64s, readings: _Readings) -> None:
        at_once = max(1, WINDOW_SAMPLES_AT_ONCE * EXPECTED_INTERVAL_MS // window_ms)
        order = places[np.argsort(view.unit[places], kind="stable")]
        for first in range(0, len(order), at_once):
            chunk = order[first : first + at_once]
            exact = self._read_rows(view, metric, window_ms, chunk)
            slots = view.layout.rows[chunk]
            for statistic, column in readings.values.items():
                column[slots] = exact.column(metric, statistic)
            readings.read_at[slots], readings.generation[slots] = view.at_ms, view.layout.generation[chunk]

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
