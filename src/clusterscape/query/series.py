"""Metrics over time: of named units, of a node, or of a workload over its life."""

from collections.abc import Sequence

import polars as pl

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import METRICS, Allocation, UnitId, UnixMs
from clusterscape.model.run_units import run_of_unit
from clusterscape.query.context import QueryContext
from clusterscape.query.workloads import WorkloadQuery

MAX_VALUES = 4_000_000
"""Values in one answer; more would not be looked at and would not fit a browser."""

NICE_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


class SeriesQuery:
    """Questions about metrics over time."""

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
        """``metric``, ``unit``, ``time_ms``, ``value``, ``min``, ``max``, sorted; at most about ``points`` steps a series.

        Of a workload, only the times in which it held each unit count; by default its whole life.
        """
        unknown = [name for name in metrics if name not in METRICS]
        if unknown or not metrics:
            raise QueryError(
                f"unknown metric {', '.join(unknown)}" if unknown else "no metric is named",
                hint="GET /api/v1/metrics lists them.",
            )
        if sum(map(bool, (units, workload, node))) != 1:
            raise QueryError("name units, a workload or a node: exactly one of them")
        self._check_runs(units)
        now = self._context.clock()
        held: Sequence[Allocation] = []
        if workload:
            found = self._workloads.find(workload)
            held = self._context.records.allocations(workload=found.id)
            begun = found.earlier[0].started_at if found.earlier else found.started_at
            start = start_ms if start_ms is not None else begun or now - 3_600_000
            end = end_ms if end_ms is not None else found.ended_at or now
        else:
            end = end_ms if end_ms is not None else now
            start = start_ms if start_ms is not None else end - 3_600_000
        names = [UnitId(unit) for unit in units] or (
            sorted({a.unit for a in held}) if workload else self._units_of(node or "")
        )
        if end <= start:
            raise QueryError("the end must be after the start")
        if len(names) * len(metrics) * points > MAX_VALUES:
            raise QueryError(
                f"{len(names)} units × {len(metrics)} metrics × {points} points are too many for one answer",
                hint=f"Ask for fewer points or units: at most {MAX_VALUES} values.",
            )
        step = _step_ms(end - start, points)
        # The last sample stands at `now`: the range is half-open, so it must end after it.
        table = self._context.metrics.series(
            list(metrics), names, start_ms=UnixMs(start), end_ms=UnixMs(end + 1), step_ms=step
        )
        return _while_held(table, held, step) if held else table

    def _check_runs(self, units: Sequence[str]) -> None:
        """What a run measured is for those who may see the run."""
        for run in {run for unit in units if (run := run_of_unit(unit)) is not None}:
            if self._context.records.run_record(run) is None:
                raise NotFoundError(f"no run `{run}`", hint="GET /api/v1/runs lists them.")

    def _units_of(self, node: str) -> list[UnitId]:
        return [unit.id for unit in self._context.records.units() if unit.node == node]


def _step_ms(span_ms: int, points: int) -> int:
    """The shortest nice step that gives at most ``points`` steps."""
    wanted = span_ms / 1000 / max(1, points)
    return next((step for step in NICE_STEPS_S if step >= wanted), NICE_STEPS_S[-1]) * 1000


def _while_held(table: pl.DataFrame, held: Sequence[Allocation], step_ms: int) -> pl.DataFrame:
    """Only rows whose step overlaps a time in which the unit was held."""
    spans = pl.DataFrame(
        {
            "unit": [a.unit for a in held],
            "from_at": [a.from_at - step_ms for a in held],
            "to_at": [a.to_at if a.to_at is not None else 2**62 for a in held],
        },
        schema={"unit": pl.String, "from_at": pl.Int64, "to_at": pl.Int64},
    )
    if spans["unit"].n_unique() == len(spans):
        kept = table.join(spans, on="unit", how="inner", maintain_order="left")
        return kept.filter(pl.col("time_ms").is_between("from_at", "to_at", closed="left")).select(table.columns)
    joined = table.join(spans, on="unit", how="inner", maintain_order="left")
    inside = joined.filter(pl.col("time_ms").is_between("from_at", "to_at", closed="left"))
    return inside.select(table.columns).unique(maintain_order=True)
