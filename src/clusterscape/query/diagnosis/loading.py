"""Loads a workload's samples as (time × GPU) arrays: raw if they are few, else means of even steps. Caches the latest.

Exporters are scraped at different offsets, so raw samples are aligned to the slots of one interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model import UNIT_METRICS, UnitId, UnixMs
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.runs import is_run_unit
from clusterscape.query.cache import VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.holding import WorkloadHolding
from clusterscape.query.series import NICE_STEPS_S

_NAMES = [metric.name for metric in UNIT_METRICS]

MAX_VALUES = 3_000_000
"""Upper bound of values of one answer in memory; 64 GPUs over a week at 15 s are 2.6 million."""

PROBE_MS = 600_000
PROBED_UNITS = 4
DEFAULT_INTERVAL_MS = 15_000
RUNS_KEPT = 8
SKIPPED = 7
"""Every SKIPPED-th sample is enough to find a unit's usual offset."""


@dataclass(frozen=True, slots=True)
class Samples:
    """``values``: metric → (time × GPU), NaN if missing or not held. ``step_ms`` None: raw samples, else means of steps.

    ``low`` and ``high`` are the extremes of each step if they were loaded; else the values themselves.
    """

    times_ms: Int64s
    values: Mapping[str, Float64s]
    low: Mapping[str, Float64s]
    high: Mapping[str, Float64s]
    step_ms: int | None

    def thin(self, metric: str, most: int) -> "Samples":
        """One metric with at most ``most`` values: means over as many rows as necessary."""
        values = self.values[metric]
        rows = -(-values.size // most)
        if rows <= 1 or self.times_ms.size < 2 * rows:
            return self
        blocks = self.times_ms.size // rows
        pieces = values[: blocks * rows].reshape(blocks, rows, values.shape[1])
        is_finite = np.isfinite(pieces)
        counts = is_finite.sum(axis=1)
        sums = np.where(is_finite, pieces, 0.0).sum(axis=1)
        means = {metric: np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)}
        usual_ms = float(np.median(np.diff(self.times_ms)))
        step_ms = round(usual_ms * rows)
        return Samples(self.times_ms[: blocks * rows : rows] + step_ms // 2, means, means, means, step_ms)


class RunLoader:
    """Loads samples of workloads and caches the latest."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._runs = VersionedCache(RUNS_KEPT)
        self._probes = VersionedCache(64)

    def find_metrics(self, holding: WorkloadHolding) -> frozenset[str]:
        """The metrics that the workload's GPUs have near the end of the window, or earlier if they have no samples then."""
        return self._probe(holding)[0]

    def interval_ms(self, holding: WorkloadHolding) -> int:
        """The usual time between samples."""
        return self._probe(holding)[1]

    def load(self, holding: WorkloadHolding, metrics: Sequence[str], *, most: int = MAX_VALUES) -> Samples:
        """Samples of the window while the units were held, at most ``most`` values in total."""
        if holding.window is None:
            return _empty(metrics, 0)
        start, end = holding.window
        size = max(1, len(holding.units) * len(metrics))
        interval = self.interval_ms(holding)
        wanted_ms = (end - start) * size / most
        step = None if wanted_ms <= interval else nice_step_ms(wanted_ms, at_least=2 * interval)
        return self.load_steps(holding, metrics, step)

    def load_steps(
        self, holding: WorkloadHolding, metrics: Sequence[str], step_ms: int | None, *, with_range: bool = False
    ) -> Samples:
        """The same by steps, or raw for None; ``with_range``: also the extremes of each step."""
        names = tuple(sorted(set(metrics)))
        key = (holding.key, names, step_ms, with_range)
        version = self.version(holding)
        return self._runs.get(key, version, lambda: self._read(holding, names, step_ms, with_range=with_range))

    def _read(
        self, holding: WorkloadHolding, metrics: Sequence[str], step_ms: int | None, *, with_range: bool
    ) -> Samples:
        if holding.window is None or not holding.units:
            return _empty(metrics, len(holding.units))
        start, end = holding.window
        table = self._context.metrics.series(
            metrics, holding.names, start_ms=UnixMs(start), end_ms=UnixMs(end), step_ms=step_ms
        )
        if table.is_empty():
            return _empty(metrics, len(holding.units))
        column = _columns_of(table["unit"], holding.names)
        times_ms = table["time_ms"].to_numpy()
        if step_ms is None:
            grid, row = align(times_ms, column, self.interval_ms(holding))
        else:
            first = int(times_ms.min())
            grid = np.arange(first, int(times_ms.max()) + 1, step_ms, dtype=np.int64)
            row = (times_ms - first) // step_ms
        is_held = holding.mask(grid, step_ms=step_ms or 0)
        picks = {
            name: (slice(begin, stop), row[begin:stop], column[begin:stop])
            for name, begin, stop in _ranges(table["metric"])
        }
        parts = {}
        for part in ("value", "min", "max") if with_range and step_ms is not None else ("value",):
            numbers = table[part].to_numpy()
            parts[part] = {name: _fill(picks.get(name), numbers, is_held) for name in metrics}
        value = parts["value"]
        return Samples(grid, value, parts.get("min", value), parts.get("max", value), step_ms)

    def version(self, holding: WorkloadHolding) -> tuple[int, int]:
        """The cache version: past samples may still arrive, by backfill, or from tracked runs."""
        versions = self._context.changes.versions
        return versions.history, versions.runs if is_run_unit(holding.workload.id) else 0

    def _probe(self, holding: WorkloadHolding) -> tuple[frozenset[str], int]:
        version = self.version(holding)
        return self._probes.get(holding.key, version, lambda: self._read_probe(holding))

    def _read_probe(self, holding: WorkloadHolding) -> tuple[frozenset[str], int]:
        """The metrics of a few units near the end of the window, or earlier if they have no samples then; and their interval.

        The interval is the longest of the usual ones near the start, middle and end: history may be coarser than live samples.
        """
        if holding.window is None:
            return frozenset(), DEFAULT_INTERVAL_MS
        start, end = holding.window
        units = [holding.names[i] for i in np.unique(np.linspace(0, len(holding.names) - 1, PROBED_UNITS).astype(int))]
        starts = [max(start, end - PROBE_MS), max(start, (start + end - PROBE_MS) // 2), start]
        found_metrics: list[str] = []
        intervals = []
        for begin in dict.fromkeys(starts):
            table = self._read_names(found_metrics[:2] or _NAMES, units, begin, min(begin + PROBE_MS, end))
            found_metrics = found_metrics or table["metric"].unique().to_list()
            gaps = table.select(gap=pl.col("time_ms").diff().over("metric", "unit"))["gap"]
            usual = gaps.filter(gaps > 0).median()
            intervals += [int(usual)] if isinstance(usual, (int, float)) else []
        if not found_metrics:
            # All probes fell into gaps, so the whole window is read.
            table = self._read_names(_NAMES, units, start, end, step_ms=nice_step_ms((end - start) / 50))
            found_metrics = table["metric"].unique().to_list()
        return frozenset(found_metrics), max(intervals, default=DEFAULT_INTERVAL_MS)

    def _read_names(
        self, metrics: Sequence[str], units: Sequence[UnitId], start: int, end: int, step_ms: int | None = None
    ) -> pl.DataFrame:
        table = self._context.metrics.series(
            metrics, units, start_ms=UnixMs(start), end_ms=UnixMs(end), step_ms=step_ms
        )
        return table.select("metric", "unit", "time_ms")


def nice_step_ms(wanted_ms: float, *, at_least: float = 0.0) -> int:
    """The shortest round step that is at least ``wanted_ms`` and ``at_least``."""
    wanted_s = max(wanted_ms, at_least) / 1000
    return next((step for step in NICE_STEPS_S if step >= wanted_s), NICE_STEPS_S[-1]) * 1000


def align(times_ms: Int64s, column: Int64s, interval_ms: int) -> tuple[Int64s, Int64s]:
    """The grid of times and the row of each sample.

    If all units have the same times, these are the grid. Otherwise each unit has slots of the interval at its own usual offset,
    and the grid has the slots' times at the median offset; several samples of a slot become their mean.
    """
    shared = np.unique(times_ms[column == np.bincount(column).argmax()])
    rough = times_ms[::SKIPPED]
    if np.isin(rough, shared).all():
        row = np.minimum(np.searchsorted(shared, times_ms), shared.size - 1)
        if np.array_equal(shared[row], times_ms):
            return shared, row
    angle = 2.0 * np.pi * ((rough % interval_ms) / interval_ms)
    size, of = int(column.max()) + 1, column[::SKIPPED]
    sine, cosine = (np.bincount(of, part, minlength=size) for part in (np.sin(angle), np.cos(angle)))
    offset = (np.arctan2(sine, cosine) / (2.0 * np.pi) % 1.0) * interval_ms
    slot = np.rint((times_ms - offset[column]) / interval_ms).astype(np.int64)
    first, last = int(slot.min()), int(slot.max())
    usual = int(np.median(offset[np.unique(of)]))
    return np.arange(first, last + 1) * interval_ms + usual, slot - first


def _columns_of(unit: pl.Series, names: Sequence[UnitId]) -> Int64s:
    """The index of each row's unit in ``names``. Rows of a unit are contiguous: one lookup per run of rows."""
    runs = unit.rle().struct.unnest()
    column_of = {name: column for column, name in enumerate(names)}
    return np.repeat(np.array([column_of[UnitId(name)] for name in runs["value"]], np.int64), runs["len"].to_numpy())


def _ranges(metric: pl.Series) -> list[tuple[str, int, int]]:
    """(name, begin, stop) of each metric's rows; the table is sorted by metric."""
    runs = metric.rle().struct.unnest()
    stops = runs["len"].cum_sum()
    return [(name, stop - length, stop) for length, name, stop in zip(runs["len"], runs["value"], stops, strict=True)]


def _fill(pick: tuple[slice, Int64s, Int64s] | None, numbers: Float64s, is_held: NDArray[np.bool_]) -> Float64s:
    """(time × GPU); several samples of one cell become their mean."""
    out = np.full(is_held.shape, np.nan)
    if pick is None:
        return out
    rows, row, column = pick
    out[row, column] = numbers[rows]
    if row.size > np.count_nonzero(np.isfinite(out)):
        cell = row * is_held.shape[1] + column
        counts = np.bincount(cell, minlength=out.size)
        sums = np.bincount(cell, numbers[rows], minlength=out.size)
        out = np.divide(sums, counts, out=out.reshape(-1), where=counts > 1).reshape(is_held.shape)
    out[~is_held] = np.nan
    return out


def _empty(metrics: Sequence[str], units: int) -> Samples:
    empty = {name: np.empty((0, units)) for name in metrics}
    return Samples(np.empty(0, np.int64), empty, empty, empty, None)
