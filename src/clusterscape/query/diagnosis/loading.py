"""A workload's samples as (time × GPU) arrays: raw while they are few, means of even steps beyond that; kept for who asks next.

Exporters are scraped at offsets of their own, so raw samples are brought onto the slots of one interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model import METRICS, UnitId, UnixMs
from clusterscape.model.run_units import is_run_unit
from clusterscape.query.cache import VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.holding import Holding
from clusterscape.query.series import NICE_STEPS_S

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_VALUES = 3_000_000
"""Values of one answer in memory; 64 GPUs over a week at 15 s are 2.6 million."""

PROBE_MS = 600_000
PROBED_UNITS = 4
DEFAULT_INTERVAL_MS = 15_000
RUNS_KEPT = 8
SKIPPED = 7
"""Every so many samples are enough to find a unit's usual offset."""


@dataclass(frozen=True, slots=True)
class Samples:
    """``values``: metric → (time × GPU), NaN where missing or not held. ``step_ms`` None: raw samples, else means of steps.

    ``low`` and ``high`` are the extremes of each step, where they were asked for; else they are the values themselves.
    """

    times_ms: Ints
    values: Mapping[str, Floats]
    low: Mapping[str, Floats]
    high: Mapping[str, Floats]
    step_ms: int | None

    def thin(self, metric: str, most: int) -> "Samples":
        """One metric with at most ``most`` values: means of as many rows as that needs."""
        values = self.values[metric]
        rows = -(-values.size // most)
        if rows <= 1 or self.times_ms.size < 2 * rows:
            return self
        blocks = self.times_ms.size // rows
        pieces = values[: blocks * rows].reshape(blocks, rows, values.shape[1])
        is_known = np.isfinite(pieces)
        counts = is_known.sum(axis=1)
        sums = np.where(is_known, pieces, 0.0).sum(axis=1)
        means = {metric: np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)}
        usual_ms = float(np.median(np.diff(self.times_ms)))
        step_ms = round(usual_ms * rows)
        return Samples(self.times_ms[: blocks * rows : rows] + step_ms // 2, means, means, means, step_ms)


class RunLoader:
    """Loads samples of workloads and keeps the last few."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._runs = VersionedCache(RUNS_KEPT)
        self._probes = VersionedCache(64)

    def known_metrics(self, holding: Holding) -> frozenset[str]:
        """The metrics that the workload's GPUs have near the end of the window, or earlier where they are silent then."""
        return self._probe(holding)[0]

    def interval_ms(self, holding: Holding) -> int:
        """The usual time between samples."""
        return self._probe(holding)[1]

    def load(self, holding: Holding, metrics: Sequence[str], *, most: int = MOST_VALUES) -> Samples:
        """Samples of the window while the units were held, at most ``most`` values in all."""
        if holding.window is None:
            return _empty(metrics, 0)
        start, end = holding.window
        size = max(1, len(holding.units) * len(metrics))
        interval = self.interval_ms(holding)
        wanted_ms = (end - start) * size / most
        step = None if wanted_ms <= interval else nice_step_ms(wanted_ms, at_least=2 * interval)
        return self.load_steps(holding, metrics, step)

    def load_steps(
        self, holding: Holding, metrics: Sequence[str], step_ms: int | None, *, with_range: bool = False
    ) -> Samples:
        """The same by steps, or raw for None; ``with_range`` also the extremes of each step."""
        names = tuple(sorted(set(metrics)))
        key = (holding.key, names, step_ms, with_range)
        version = self.version(holding)
        return self._runs.get(key, version, lambda: self._read(holding, names, step_ms, with_range=with_range))

    def _read(self, holding: Holding, metrics: Sequence[str], step_ms: int | None, *, with_range: bool) -> Samples:
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

    def version(self, holding: Holding) -> tuple[int, int]:
        """Samples of a past may still come: those of tracked runs with every piece."""
        versions = self._context.changes.versions
        return versions.history, versions.runs if is_run_unit(holding.workload.id) else 0

    def _probe(self, holding: Holding) -> tuple[frozenset[str], int]:
        version = self.version(holding)
        return self._probes.get(holding.key, version, lambda: self._read_probe(holding))

    def _read_probe(self, holding: Holding) -> tuple[frozenset[str], int]:
        """What a few units have near the end of the window, or earlier where they are silent then; and how often.

        The longest of the usual intervals near the begin, the middle and the end: history may be coarser than what is live.
        """
        if holding.window is None:
            return frozenset(), DEFAULT_INTERVAL_MS
        start, end = holding.window
        chosen = [holding.names[i] for i in np.unique(np.linspace(0, len(holding.names) - 1, PROBED_UNITS).astype(int))]
        places = [max(start, end - PROBE_MS), max(start, (start + end - PROBE_MS) // 2), start]
        known: list[str] = []
        intervals = []
        for begin in dict.fromkeys(places):
            table = self._read_names(known[:2] or list(METRICS), chosen, begin, min(begin + PROBE_MS, end))
            known = known or table["metric"].unique().to_list()
            gaps = table.select(gap=pl.col("time_ms").diff().over("metric", "unit"))["gap"]
            usual = gaps.filter(gaps > 0).median()
            intervals += [int(usual)] if isinstance(usual, (int, float)) else []
        if not known:
            # A gap wherever we looked: what is known must then come from the whole window.
            table = self._read_names(list(METRICS), chosen, start, end, step_ms=nice_step_ms((end - start) / 50))
            known = table["metric"].unique().to_list()
        return frozenset(known), max(intervals, default=DEFAULT_INTERVAL_MS)

    def _read_names(
        self, metrics: Sequence[str], units: Sequence[UnitId], start: int, end: int, step_ms: int | None = None
    ) -> pl.DataFrame:
        table = self._context.metrics.series(
            metrics, units, start_ms=UnixMs(start), end_ms=UnixMs(end), step_ms=step_ms
        )
        return table.select("metric", "unit", "time_ms")


def nice_step_ms(wanted_ms: float, *, at_least: float = 0.0) -> int:
    """The shortest nice step that is not shorter than either."""
    wanted_s = max(wanted_ms, at_least) / 1000
    return next((step for step in NICE_STEPS_S if step >= wanted_s), NICE_STEPS_S[-1]) * 1000


def align(times_ms: Ints, column: Ints, interval_ms: int) -> tuple[Ints, Ints]:
    """The grid of times and the row of each sample.

    Where units share their times these are the grid. Otherwise each unit has slots of the interval at its own usual offset, and
    the grid has the slots' times at the offset of the usual unit; several samples of a slot become their mean.
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


def _columns_of(unit: pl.Series, names: Sequence[UnitId]) -> Ints:
    """The place of each row's unit among ``names``; rows of a unit stand together, so that few need a look."""
    runs = unit.rle().struct.unnest()
    place = {name: column for column, name in enumerate(names)}
    return np.repeat(np.array([place[UnitId(name)] for name in runs["value"]], np.int64), runs["len"].to_numpy())


def _ranges(metric: pl.Series) -> list[tuple[str, int, int]]:
    """(name, begin, stop) of each metric's rows; the table is sorted by metric."""
    runs = metric.rle().struct.unnest()
    stops = runs["len"].cum_sum()
    return [(name, stop - length, stop) for length, name, stop in zip(runs["len"], runs["value"], stops, strict=True)]


def _fill(pick: tuple[slice, Ints, Ints] | None, numbers: Floats, is_held: NDArray[np.bool_]) -> Floats:
    """(time × GPU); several samples of one place become their mean."""
    out = np.full(is_held.shape, np.nan)
    if pick is None:
        return out
    rows, row, column = pick
    out[row, column] = numbers[rows]
    if row.size > np.count_nonzero(np.isfinite(out)):
        place = row * is_held.shape[1] + column
        counts = np.bincount(place, minlength=out.size)
        sums = np.bincount(place, numbers[rows], minlength=out.size)
        out = np.divide(sums, counts, out=out.reshape(-1), where=counts > 1).reshape(is_held.shape)
    out[~is_held] = np.nan
    return out


def _empty(metrics: Sequence[str], units: int) -> Samples:
    nothing = {name: np.empty((0, units)) for name in metrics}
    return Samples(np.empty(0, np.int64), nothing, nothing, nothing, None)
