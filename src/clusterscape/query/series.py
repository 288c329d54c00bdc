"""Metrics over time, of units, of a node, or of a workload over its life."""

from collections.abc import Sequence

import polars as pl

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import METRICS, Allocation, UnitId, UnixMs
from clusterscape.model.runs import run_of_unit
from clusterscape.query.context import QueryContext
from clusterscape.query.workloads import WorkloadQuery

MAX_VALUES = 4_000_000
"""Upper bound of values in one answer; a browser could not hold more."""

NICE_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


class SeriesQuery:
    """Queries on metrics over time."""

    def __init__(self, context: QueryContext, workloads: WorkloadQuery) -> None:
        self._context = context
        self._workloads = workloads

    def series(
        self,
        *,
        metrics: Sequence[str],
        units: Sequence[str] = (),
        workload: str | None = None,
        node: str | None = None,
        start_ms: int | None = None,
        end_ms: int | None = None,
        points: int = 300,
    ) -> pl.DataFrame:
        """``metric``, ``unit``, ``time_ms``, ``value``, ``min``, ``max``, sorted; about ``points`` steps per series at most.

        For a workload, only the times in which it held each unit; by default its whole life.
        """
        unknown = [name for name in metrics if name not in METRICS]
        if unknown or not metrics:
            raise QueryError(
                f"unknown metric {', '.join(unknown)}" if unknown else "no metric in the request",
                hint="GET /api/v1/metrics lists them.",
            )
        if sum(map(bool, (units, workload, node))) != 1:
            raise QueryError("pass exactly one of units, workload and node")
        self._check_runs(units)
        now = self._context.clock()
        allocations: Sequence[Allocation] = []
        if workload:
            record = self._workloads.find(workload)
            allocations = self._context.records.allocations(workload=record.id)
            started_at = record.earlier[0].started_at if record.earlier else record.started_at
            start = start_ms if start_ms is not None else started_at or now - 3_600_000
            end = end_ms if end_ms is not None else record.ended_at or now
        else:
            end = end_ms if end_ms is not None else now
            start = start_ms if start_ms is not None else end - 3_600_000
        names = [UnitId(unit) for unit in units] or (
            sorted({a.unit for a in allocations}) if workload else self._units_of(node or "")
        )
        if end <= start:
            raise QueryError("the end must be after the start")
        if len(names) * len(metrics) * points > MAX_VALUES:
            raise QueryError(
                f"{len(names)} units × {len(metrics)} metrics × {points} points are too many for one request",
                hint=f"Request fewer points or units: at most {MAX_VALUES} values.",
            )
        step = _step_ms(end - start, points)
        # The range is half-open, so it must end after the last sample, which may be at `now`.
        table = self._context.metrics.series(
            list(metrics), names, start_ms=UnixMs(start), end_ms=UnixMs(end + 1), step_ms=step
        )
        return _while_held(table, allocations, step) if allocations else table

    def _check_runs(self, units: Sequence[str]) -> None:
        """Raise NotFoundError for units of runs that the viewer may not see."""
        for run in {run for unit in units if (run := run_of_unit(unit)) is not None}:
            if self._context.records.run_record(run) is None:
                raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")

    def _units_of(self, node: str) -> list[UnitId]:
        return [unit.id for unit in self._context.records.units() if unit.node == node]


def _step_ms(span_ms: int, points: int) -> int:
    """The shortest round step that gives at most ``points`` steps."""
    wanted = span_ms / 1000 / max(1, points)
    return next((step for step in NICE_STEPS_S if step >= wanted), NICE_STEPS_S[-1]) * 1000


def _while_held(table: pl.DataFrame, allocations: Sequence[Allocation], step_ms: int) -> pl.DataFrame:
    """Keeps the rows whose step overlaps a time in which the unit was held."""
    spans = pl.DataFrame(
        {
            "unit": [a.unit for a in allocations],
            "from_at": [a.from_at - step_ms for a in allocations],
            "to_at": [a.to_at if a.to_at is not None else 2**62 for a in allocations],
        },
        schema={"unit": pl.String, "from_at": pl.Int64, "to_at": pl.Int64},
    )
    if spans["unit"].n_unique() == len(spans):
        kept = table.join(spans, on="unit", how="inner", maintain_order="left")
        return kept.filter(pl.col("time_ms").is_between("from_at", "to_at", closed="left")).select(table.columns)
    joined = table.join(spans, on="unit", how="inner", maintain_order="left")
    inside = joined.filter(pl.col("time_ms").is_between("from_at", "to_at", closed="left"))
    return inside.select(table.columns).unique(maintain_order=True)
