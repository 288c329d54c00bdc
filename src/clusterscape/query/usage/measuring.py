"""What held GPUs did in a period, from stored samples, by workload and span (``analyze/usage/measured.py``)."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.usage.measured import UnitSteps, sum_measured
from clusterscape.analyze.usage.sums import MEASURED_SCHEMA
from clusterscape.model import UnitId, UnixMs
from clusterscape.model.arrays import Int64s
from clusterscape.model.durations import HOUR_MS, MINUTE_MS
from clusterscape.query.context import QueryContext
from clusterscape.query.timeline import UNITS_AT_ONCE, find_steps, find_units

STEPS_MS = (10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS, 2 * HOUR_MS, 6 * HOUR_MS)
MAX_CELLS = 6_000_000
"""Upper bound of units × steps; beyond it, nothing is measured."""

_METRICS = ("gpu_util_ratio", "sm_active_ratio", "memory_used_bytes", "power_watts")


def measure(context: QueryContext, start_ms: int, end_ms: int, edges: Int64s) -> pl.DataFrame | None:
    """MEASURED_SCHEMA of [start, end), with the span between two ``edges``; None if there are too many units and steps."""
    oldest = context.metrics.info().oldest_at
    if oldest is None or oldest >= end_ms:
        return pl.DataFrame(schema=MEASURED_SCHEMA)
    start_ms = max(start_ms, oldest)
    held = _read_held(context, start_ms, end_ms)
    units = held["unit"].unique(maintain_order=True)
    if not len(units):
        return pl.DataFrame(schema=MEASURED_SCHEMA)
    step_ms = next((step for step in STEPS_MS if len(units) * (end_ms - start_ms) <= MAX_CELLS * step), None)
    if step_ms is None:
        return None
    first = start_ms // step_ms * step_ms
    # A step counts for the allocation that holds the unit at its middle.
    middles = np.arange(first, end_ms, step_ms, dtype=np.int64) + step_ms // 2
    middles = middles[(middles >= start_ms) & (middles < end_ms)]
    if not len(middles):
        return pl.DataFrame(schema=MEASURED_SCHEMA)
    span = np.clip(np.searchsorted(edges, middles, side="right") - 1, 0, len(edges) - 2)
    row = find_units(units, held["unit"])
    begin, stop = find_steps(middles, held["from_at"]), find_steps(middles, held["to"])
    parts = []
    for low in range(0, len(units), UNITS_AT_ONCE):
        here = np.flatnonzero((row >= low) & (row < low + UNITS_AT_ONCE) & (begin < stop))
        values = _read_values(context, units[low : low + UNITS_AT_ONCE], middles, step_ms)
        workloads = held["workload"].gather(here)
        parts.append(
            sum_measured(workloads, row[here] - low, begin[here], stop[here], values, span=span, step_s=step_ms / 1000)
        )
    return pl.concat(parts).group_by("id", "span").sum()


def _read_held(context: QueryContext, start_ms: int, end_ms: int) -> pl.DataFrame:
    """Allocations with their end as ``to``; an allocation lasts no longer than its workload."""
    records = context.records
    ends = records.workload_spans(since_ms=UnixMs(start_ms)).select("workload", "ends_at")
    return (
        records.allocation_spans(start_ms=UnixMs(start_ms), end_ms=UnixMs(end_ms))
        .join(ends, on="workload", how="inner")
        .with_columns(to=pl.min_horizontal("to_at", "ends_at").fill_null(end_ms))
    )


def _read_values(context: QueryContext, units: pl.Series, middles: Int64s, step_ms: int) -> UnitSteps:
    first = int(middles[0]) - step_ms // 2
    table = context.metrics.series(
        _METRICS,
        [UnitId(unit) for unit in units],
        start_ms=UnixMs(first),
        end_ms=UnixMs(int(middles[-1]) + step_ms // 2),
        step_ms=step_ms,
    )
    values: dict[str, NDArray[np.float64]] = {}
    for metric in _METRICS:
        rows = table.filter(pl.col("metric") == metric)
        cells = np.full((len(units), len(middles)), np.nan)
        column = (rows["time_ms"].to_numpy() - first) // step_ms
        is_inside = (column >= 0) & (column < len(middles))
        place = find_units(units, rows["unit"])
        cells[place[is_inside], column[is_inside]] = rows["value"].to_numpy()[is_inside]
        values[metric] = cells
    return UnitSteps(*(values[metric] for metric in _METRICS))
