"""GPU-hours that were allocated and not used: the sum over idle allocations of the last hours.

An allocation is idle if the mean utilization of its unit while it held it, within the range, is below IDLE_BELOW. Its hours
count as wasted; those of a shared unit are split evenly, so that none counts twice. Hours without samples are not judged.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model import UnitId, UnixMs
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.job_summaries import IDLE_BELOW
from clusterscape.query.answers import WasteAnswer
from clusterscape.query.cache import VersionedCache
from clusterscape.query.cluster import ClusterQuery
from clusterscape.query.context import QueryContext
from clusterscape.query.past import SETTLED_MS
from clusterscape.query.timeline import UNITS_AT_ONCE, Times, find_steps, find_units

STEP_MS = 600_000
ROUNDING = 1e-9
"""Differences of running sums are off by less than this."""


@dataclass(frozen=True, slots=True)
class JudgedWaste:
    """GPU-hours held and wasted, in total and by unit and workload."""

    total: WasteAnswer
    by_unit: pl.DataFrame


class WasteQuery:
    """Queries on wasted GPU-hours."""

    def __init__(self, context: QueryContext, cluster: ClusterQuery) -> None:
        self._context = context
        self._cluster = cluster
        self._cache = VersionedCache(16)

    def waste(self, *, hours: int = 24, at_ms: int | None = None) -> WasteAnswer:
        """The last ``hours``, or those before ``at_ms``, in whole steps of ten minutes; computed at most once per step."""
        return self._judge(hours, at_ms).total

    def by_unit(self, *, hours: int = 24) -> pl.DataFrame:
        """The same by ``unit`` and ``workload``: held, measured and wasted GPU-hours, which add up over any group of units.

        Hours of a shared unit are split evenly among its holders; wasted hours are null if nothing was measured.
        """
        return self._judge(hours).by_unit

    def _judge(self, hours: int, at_ms: int | None = None) -> JudgedWaste:
        now = self._context.clock()
        end = (now if at_ms is None else min(now, at_ms)) // STEP_MS * STEP_MS
        # The distant past does not change; recent data may still be completed.
        version = now // SETTLED_MS if now - end < 2 * SETTLED_MS else None
        return self._cache.get((hours, end), version, lambda: self._compute(end, hours))

    def _compute(self, end: int, hours: int) -> JudgedWaste:
        start = end - hours * HOUR_MS
        held = self._held(start, end)
        units = self._cluster.places()["unit"]
        # A step is attributed to the allocation that holds the unit at its middle.
        middles = np.arange(start, end, STEP_MS, dtype=np.int64) + STEP_MS // 2
        row = find_units(units, held["unit"])
        begin, stop = find_steps(middles, held["from_at"]), find_steps(middles, held["to"])
        is_counted = (row >= 0) & (begin < stop)
        held = held.filter(pl.Series(is_counted))
        row, begin, stop = row[is_counted], begin[is_counted], stop[is_counted]
        shares = np.zeros((len(row), 3))
        steps, measured = 0, 0
        for first in range(0, len(units), UNITS_AT_ONCE):
            here = np.flatnonzero((row >= first) & (row < first + UNITS_AT_ONCE))
            values = self._utilization(units[first : first + UNITS_AT_ONCE], np.unique(row[here]) - first, start, end)
            held_here, measured_here, shares[here] = share_out(row[here] - first, begin[here], stop[here], values)
            steps, measured = steps + held_here, measured + measured_here
        to_hours = STEP_MS / HOUR_MS
        total = WasteAnswer(
            start=start,
            end=end,
            idle_below_ratio=IDLE_BELOW,
            held_gpu_hours=steps * to_hours,
            measured_gpu_hours=measured * to_hours,
            wasted_gpu_hours=float(shares[:, 2].sum()) * to_hours if measured else None,
        )
        return JudgedWaste(total, _sum_by_unit(held, shares * to_hours))

    def _held(self, start: int, end: int) -> pl.DataFrame:
        """Allocations with their end as ``to``; an allocation lasts no longer than its workload."""
        records = self._context.records
        ends = records.workload_spans(since_ms=UnixMs(start)).select("workload", "ends_at")
        return (
            records.allocation_spans(start_ms=UnixMs(start), end_ms=UnixMs(end))
            .join(ends, on="workload", how="inner")
            .with_columns(to=pl.min_horizontal("to_at", "ends_at").fill_null(end))
        )

    def _utilization(self, units: pl.Series, rows: Times, start: int, end: int) -> NDArray[np.float64]:
        """Mean utilization, units × steps; NaN without samples, and for units without a holder."""
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


def share_out(
    row: Times, begin: Times, stop: Times, values: NDArray[np.float64]
) -> tuple[int, int, NDArray[np.float64]]:
    """Unit-steps that were held, those that were also measured, and each allocation's share of held, measured and wasted ones.

    Allocation i held unit ``row[i]`` in the steps [begin[i], stop[i]); ``values``: units × steps, NaN is missing. Shares have
    the shape allocations × 3. All measured steps of an idle allocation are wasted.
    """
    change = np.zeros((values.shape[0], values.shape[1] + 1), np.int16)
    np.add.at(change, (row, begin), 1)
    np.add.at(change, (row, stop), -1)
    holders = np.cumsum(change[:, :-1], axis=1, dtype=np.int16)
    is_held = holders > 0
    is_measured = is_held & np.isfinite(values)
    share = np.divide(1.0, holders, out=np.zeros(values.shape), where=is_held)

    def add(cells: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = _running_sum(cells)
        return np.asarray(sums[row, stop] - sums[row, begin])

    counted = add(is_measured.astype(np.float64))
    used = add(np.where(is_measured, values, 0.0))
    measured = add(np.where(is_measured, share, 0.0))
    is_idle = (counted > 0) & (used < IDLE_BELOW * counted - ROUNDING)
    shares = np.column_stack([add(share), measured, np.where(is_idle, measured, 0.0)])
    return int(is_held.sum()), int(is_measured.sum()), shares


def _sum_by_unit(held: pl.DataFrame, hours: NDArray[np.float64]) -> pl.DataFrame:
    names = ("held_gpu_hours", "measured_gpu_hours", "wasted_gpu_hours")
    columns = [pl.Series(name, hours[:, index], dtype=pl.Float64) for index, name in enumerate(names)]
    return (
        held.select("unit", "workload")
        .with_columns(columns)
        .group_by("unit", "workload", maintain_order=True)
        .sum()
        .with_columns(wasted_gpu_hours=pl.when(pl.col("measured_gpu_hours") > ROUNDING).then("wasted_gpu_hours"))
    )


def _running_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the first 0, 1, 2, … steps of each row."""
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))
