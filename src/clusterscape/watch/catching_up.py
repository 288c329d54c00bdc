"""Reads from the store what lives have missed: after a restart, for lives that were told late, for new metrics and thresholds.

Memory is bounded: few units at a time, and of those a slice of time. Ingest waits only for the last, short slice of each.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.stats.kernels import COUNT, INTERVAL_MS, LAST_MS
from clusterscape.model import Names, SampleBatch, UnitId, UnixMs
from clusterscape.model.samples import Int64s
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.watch.lives import Kept, Lives

log = logging.getLogger(__name__)

UNITS_AT_ONCE = 128
SAMPLES_AT_ONCE = 1_000_000
FIRST_SLICE_MS = 3_600_000
LAST_SLICE_MS = 5 * 60_000
DAY_MS = 86_400_000
"""Ingest takes nothing from so far in the future."""

LOG_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that lack samples from ``start_ms`` on."""

    rows: Int64s
    generation: Int64s
    units: Sequence[UnitId]
    sketches: Sequence[Kept]
    start_ms: int

    @property
    def metrics(self) -> list[str]:
        """What is to be read."""
        return list(dict.fromkeys(kept.sketch.metric for kept in self.sketches))


def catch_up(lives: Lives, store: MetricStore) -> int:
    """Fill every pending row; returns how many. Lives may go on and end meanwhile. Raises what the store raises."""
    begin, filled, told_at = time.monotonic(), 0, time.monotonic()
    total = len(_pending_rows(lives))
    while (gap := _find_gap(lives)) is not None:
        _refill_rings(lives, store, gap)
        _fill(lives, store, gap)
        filled += len(gap.rows)
        if time.monotonic() - told_at > LOG_AFTER_S:
            told_at = time.monotonic()
            log.info("read the past of %d of %d lives from the store", filled, max(total, filled))
    took_s = time.monotonic() - begin
    if took_s > LOG_AFTER_S:
        log.info("read the past of %d lives from the store in %.1f s", filled, took_s)
    return filled


def _pending_rows(lives: Lives) -> Int64s:
    with lives.lock:
        is_pending = np.zeros(lives.slots.row_count, np.bool_)
        for kept in lives.all_kept():
            is_pending |= kept.is_pending
        return np.flatnonzero(is_pending & lives.slots.is_used)


def _find_gap(lives: Lives) -> Gap | None:
    """The pending rows of the units whose gaps begin first, so that long pasts are read together, and short ones."""
    with lives.lock:
        rows = _pending_rows(lives)
        if not len(rows):
            lives.promote()
            return None
        slots = lives.slots
        start_ms = np.full(len(rows), np.iinfo(np.int64).max)
        sketches = []
        for kept in lives.all_kept():
            is_pending = kept.is_pending[rows]
            if is_pending.any():
                sketches.append(kept)
                last_ms = kept.sketch.last_ms(rows)
                wanted = np.maximum(slots.from_at[rows], np.where(last_ms > 0, last_ms + 1, 0))
                start_ms = np.where(is_pending, np.minimum(start_ms, wanted), start_ms)
        order = np.argsort(start_ms, kind="stable")
        units = list(dict.fromkeys(slots.unit[rows[order]].tolist()))[:UNITS_AT_ONCE]
        chosen = np.isin(slots.unit[rows], units)
        names = [UnitId(slots.units.values[unit]) for unit in units]
        return Gap(rows[chosen], slots.generation[rows[chosen]], names, sketches, int(start_ms[chosen].min()))


def _same_rows(lives: Lives, gap: Gap) -> Int64s:
    """Those that still belong to the same lives, none of which was to be counted anew meanwhile."""
    same: Int64s = gap.rows[lives.slots.generation[gap.rows] == gap.generation]
    return same


def _fill(lives: Lives, store: MetricStore, gap: Gap) -> None:
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
        # Nothing is added while the lock is held, and what is added later and was read here counts once.
        rows = _same_rows(lives, gap)
        end = max(cursor, lives.newest_ms) + DAY_MS
        lives.fill(read_batch(store, gap.metrics, gap.units, cursor, end), rows, gap.sketches)
        for kept in gap.sketches:
            kept.is_pending[rows] = False
        lives.promote()
        lives.version += 1


def _refill_rings(lives: Lives, store: MetricStore, gap: Gap) -> None:
    """After a checkpoint was read: the last samples before it, for all rows that were alive then."""
    with lives.lock:
        start_ms, end_ms = np.inf, 0.0
        for kept in gap.sketches:
            lost = gap.rows[kept.sketch.has_lost_ring[gap.rows] & kept.is_pending[gap.rows]]
            if len(lost):
                moments = kept.sketch.arrays.moments[lost]
                last_ms = moments[:, LAST_MS]
                capacity = kept.sketch.arrays.ring_value.shape[1]
                span_ms = np.minimum(moments[:, COUNT], capacity) * moments[:, INTERVAL_MS]
                alive = last_ms > last_ms.max() - LAST_SLICE_MS  # what fell silent long ago would stretch the slice
                start_ms = min(start_ms, float((last_ms - span_ms)[alive].min()) - LAST_SLICE_MS)
                end_ms = max(end_ms, float(last_ms.max()) + 1)
    if start_ms < end_ms:
        batch = read_batch(store, gap.metrics, gap.units, int(start_ms), int(end_ms))
        with lives.lock:
            lives.refill_rings(batch, _same_rows(lives, gap), gap.sketches)


def read_batch(
    store: MetricStore, metrics: Sequence[str], units: Sequence[UnitId], start_ms: int, end_ms: int
) -> SampleBatch:
    """Samples of the store as a batch."""
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
