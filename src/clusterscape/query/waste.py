"""GPU-hours that were held and not used: what idle allocations of the last hours add up to.

An allocation is idle if the mean utilization of its unit while it held it, within the range, is below IDLE_BELOW. Its hours
count as wasted; those of a shared unit are split evenly, so that none counts twice. Hours without samples are not judged.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model import UnitId, UnixMs
from clusterscape.query.answers import WasteAnswer
from clusterscape.query.cache import VersionedCache
from clusterscape.query.cluster import ClusterQuery
from clusterscape.query.context import QueryContext
from clusterscape.query.past import SETTLED_MS
from clusterscape.query.timeline import UNITS_AT_ONCE, Times, find_steps, find_units

IDLE_BELOW = 0.05
STEP_MS = 600_000
HOUR_MS = 3_600_000
ROUNDING = 1e-9
"""Differences of running sums are off by less than this."""


class WasteQuery:
    """Questions about what was held in vain."""

    def __init__(self, context: QueryContext, cluster: ClusterQuery) -> None:
        self._context = context
        self._cluster = cluster
        self._cache = VersionedCache(4)

    def waste(self, *, hours: int = 24) -> WasteAnswer:
        """The last ``hours`` in whole steps of ten minutes; computed at most once in each."""
        now = self._context.clock()
        return self._cache.get(hours, now // SETTLED_MS, lambda: self._compute(now // STEP_MS * STEP_MS, hours))

    def _compute(self, end: int, hours: int) -> WasteAnswer:
        start = end - hours * HOUR_MS
        records = self._context.records
        known = records.workload_spans(since_ms=UnixMs(start)).select("workload", "ends_at")
        held = (
            records.allocation_spans(start_ms=UnixMs(start), end_ms=UnixMs(end))
            .join(known, on="workload", how="inner")
            .with_columns(to=pl.min_horizontal("to_at", "ends_at").fill_null(end))
        )
        units = self._cluster.places()["unit"]
        # A step belongs to whoever holds the unit in its middle.
        middles = np.arange(start, end, STEP_MS, dtype=np.int64) + STEP_MS // 2
        row = find_units(units, held["unit"])
        begin, stop = find_steps(middles, held["from_at"]), find_steps(middles, held["to"])
        is_counted = (row >= 0) & (begin < stop)
        row, begin, stop = row[is_counted], begin[is_counted], stop[is_counted]
        steps, measured, wasted = 0, 0, 0.0
        for first in range(0, len(units), UNITS_AT_ONCE):
            here = (row >= first) & (row < first + UNITS_AT_ONCE)
            values = self._utilization(units[first : first + UNITS_AT_ONCE], np.unique(row[here]) - first, start, end)
            held_here, measured_here, wasted_here = add_up(row[here] - first, begin[here], stop[here], values)
            steps, measured, wasted = steps + held_here, measured + measured_here, wasted + wasted_here
        to_hours = STEP_MS / HOUR_MS
        return WasteAnswer(
            start=start,
            end=end,
            idle_below_ratio=IDLE_BELOW,
            held_gpu_hours=steps * to_hours,
            measured_gpu_hours=measured * to_hours,
            wasted_gpu_hours=wasted * to_hours if measured else None,
        )

    def _utilization(self, units: pl.Series, rows: Times, start: int, end: int) -> NDArray[np.float64]:
        """Mean utilization, units × steps; NaN where there is no sample, and for units that nobody held."""
        values = np.full((len(units), (end - start) // STEP_MS), np.nan)
        if len(rows) == 0:
            return values
        table = self._context.metrics.series(
            ["gpu_util_ratio"],
            [UnitId(unit) for unit in units[rows]],
            start_ms=UnixMs(start),
            end_ms=UnixMs(end),
            step_ms=STEP_MS,
        )
        values[find_units(units, table["unit"]), (table["time_ms"].to_numpy() - start) // STEP_MS] = table["value"]
        return values


def add_up(row: Times, begin: Times, stop: Times, values: NDArray[np.float64]) -> tuple[int, int, float]:
    """Unit-steps that were held, that were also measured, and that idle allocations wasted.

    Allocation i held unit ``row[i]`` in the steps [begin[i], stop[i]); ``values``: units × steps, NaN is missing.
    """
    change = np.zeros((values.shape[0], values.shape[1] + 1), np.int16)
    np.add.at(change, (row, begin), 1)
    np.add.at(change, (row, stop), -1)
    holders = np.cumsum(change[:, :-1], axis=1, dtype=np.int16)
    is_measured = (holders > 0) & np.isfinite(values)
    share = np.divide(1.0, holders, out=np.zeros(values.shape), where=is_measured)
    total = _running_sum(np.where(is_measured, values, 0.0))
    count = _running_sum(is_measured.astype(np.float64))
    shares = _running_sum(share)
    counted = count[row, stop] - count[row, begin]
    used = total[row, stop] - total[row, begin]
    is_idle = (counted > 0) & (used < IDLE_BELOW * counted - ROUNDING)
    wasted = (shares[row, stop] - shares[row, begin])[is_idle].sum()
    return int((holders > 0).sum()), int(is_measured.sum()), float(wasted)


def _running_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the first 0, 1, 2, … steps of each row."""
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))
