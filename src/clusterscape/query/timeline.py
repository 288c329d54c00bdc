"""The cluster's history at even steps: allocated GPUs, requested GPUs by resource type, and utilization.

Counts agree with the picture of that minute (``query/past.py``). Cost: O(allocations and workloads of the range + units × steps).
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.errors import QueryError
from clusterscape.model import UnitId, UnixMs, WorkloadState
from clusterscape.model.arrays import Int64s
from clusterscape.model.durations import DAY_MS, MINUTE_MS
from clusterscape.query.answers import Timeline, WaitingTrend
from clusterscape.query.cache import VersionedCache
from clusterscape.query.cluster import ClusterQuery
from clusterscape.query.context import QueryContext
from clusterscape.query.past import SETTLED_MS
from clusterscape.query.picture import MAX_REQUESTED_PER_WORKLOAD
from clusterscape.query.series import NICE_STEPS_S
from clusterscape.store.records.contract import WorkloadFilter

MAX_CELLS = 50_000_000
"""Upper bound of units × steps in one answer."""

MAX_MEASURED_CELLS = 4_000_000
"""Upper bound of units × steps for utilization; beyond it, utilization is null. A million takes up to a second."""

UNITS_AT_ONCE = 4096
"""Units whose samples are read together: limits memory, and smaller sorts are faster."""

_NEVER = np.iinfo(np.int64).max

Times = Int64s


class TimelineQuery:
    """Queries on the whole stored history."""

    def __init__(self, context: QueryContext, cluster: ClusterQuery) -> None:
        self._context = context
        self._cluster = cluster
        self._cache = VersionedCache(16)

    def timeline(self, *, start_ms: int | None = None, end_ms: int | None = None, points: int = 300) -> Timeline:
        """Curves over [start, end], by default the whole history; at most ``points`` + 1 steps of at least a minute."""
        now = self._context.clock()
        oldest = self._oldest_at()
        end = min(now, end_ms) if end_ms is not None else now
        start = start_ms if start_ms is not None else min(end, oldest if oldest is not None else end)
        if end < start or start < 0:
            raise QueryError("the end must be after the start, and the start not in the future", hint=f"Now is {now}.")
        step = _step_ms(end - start, points)
        grid = np.arange(-(-start // step), end // step + 1, dtype=np.int64) * step

        def compute() -> Timeline:
            return self._compute(UnixMs(start), UnixMs(end), step, oldest, grid)

        # The past rarely changes; the version limits how long the cache misses late samples and backfilled history.
        version = (now // min(step, SETTLED_MS), self._sample_magnitude())
        return self._cache.get((start // step, end // step, step), version, compute)

    def _sample_magnitude(self) -> int:
        """The number of samples in steps of 10 %: changes often while history is backfilled, and rarely afterwards."""
        samples = self._context.metrics.info().samples
        return int(10 * math.log(samples)) if samples else 0

    def _compute(self, start: UnixMs, end: UnixMs, step: int, oldest: UnixMs | None, grid: Times) -> Timeline:
        units = self._cluster.places()["unit"]
        if len(units) * len(grid) > MAX_CELLS:
            raise QueryError(f"{len(units)} units × {len(grid)} points are too many", hint="Request fewer points.")
        records = self._context.records
        workloads = records.workload_spans(since_ms=start)
        allocations = records.allocation_spans(start_ms=start, end_ms=UnixMs(end + 1))
        held, waiting = sweep(grid, units, workloads, allocations)
        return Timeline(
            start=start,
            end=end,
            step_ms=step,
            oldest_at=oldest,
            total_gpus=len(units),
            time_ms=grid.tolist(),
            allocated_gpus=held.sum(axis=0).tolist(),
            waiting_gpus=waiting.gpus.sum(axis=0).tolist(),
            gpu_util_ratio=self._utilization(grid, step, units, held),
            waiting=_list_trends(waiting),
        )

    def _utilization(self, grid: Times, step: int, units: pl.Series, held: NDArray[np.bool_]) -> list[float | None]:
        """The mean over each step of the units held at its start; null without samples, or above MAX_MEASURED_CELLS."""
        if held.size == 0 or held.size > MAX_MEASURED_CELLS:
            return [None] * len(grid)
        used = units.filter(pl.Series(held.any(axis=1)))
        values, counts = np.zeros(len(grid)), np.zeros(len(grid), np.int64)
        for first in range(0, len(used), UNITS_AT_ONCE):
            table = self._context.metrics.series(
                ["gpu_util_ratio"],
                [UnitId(unit) for unit in used[first : first + UNITS_AT_ONCE]],
                start_ms=UnixMs(int(grid[0])),
                end_ms=UnixMs(int(grid[-1]) + step),
                step_ms=step,
            )
            column = (table["time_ms"].to_numpy() - grid[0]) // step
            counted = held[find_units(units, table["unit"]), column]
            values += np.bincount(column[counted], table["value"].to_numpy()[counted], minlength=len(grid))
            counts += np.bincount(column[counted], minlength=len(grid))
        return [float(value / count) if count else None for value, count in zip(values, counts, strict=True)]

    def _oldest_at(self) -> UnixMs | None:
        """The time of the first sample, or without samples the earliest time of a workload."""
        sampled = self._context.metrics.info().oldest_at
        if sampled is not None:
            return sampled
        records = self._context.records
        total = records.workloads(WorkloadFilter(), limit=1).total
        page = records.workloads(WorkloadFilter(), limit=1, offset=max(0, total - 1)).workloads
        times = [at for w in page for at in (w.submitted_at, w.eligible_at, w.started_at, w.ended_at) if at is not None]
        return times[0] if times else None


@dataclass(frozen=True, slots=True, eq=False)
class WaitingCounts:
    """Waiting workloads and the GPUs they requested, each types × times."""

    resource_types: list[str | None]
    workloads: Int64s
    gpus: Int64s


def _list_trends(counts: WaitingCounts) -> list[WaitingTrend]:
    order = np.argsort(-counts.gpus.sum(axis=1), kind="stable")
    return [
        WaitingTrend(
            resource_type=counts.resource_types[row],
            workloads=counts.workloads[row].tolist(),
            gpus=counts.gpus[row].tolist(),
        )
        for row in order
        if counts.gpus[row].any()
    ]


def sweep(
    grid: Times, units: pl.Series, workloads: pl.DataFrame, allocations: pl.DataFrame
) -> tuple[NDArray[np.bool_], WaitingCounts]:
    """Which unit was held at each time of ``grid`` (units × times), and what waited then.

    ``workloads`` and ``allocations`` are spans of the record store; the rules are those of ``past.reconstruct_at``.
    """
    spans = workloads.with_columns(
        stop=pl.min_horizontal(
            pl.when(pl.col("state") != WorkloadState.WAITING.value).then(pl.col("started_at")),
            "ends_at",
        ).fill_null(_NEVER),
        gpus=pl.col("gpus_requested").clip(0, MAX_REQUESTED_PER_WORKLOAD),
        row=pl.int_range(pl.len()),
    )
    counted = allocations.join(spans.select("workload", "ends_at", "row"), on="workload", how="inner").with_columns(
        to=pl.min_horizontal("to_at", "ends_at").fill_null(_NEVER)
    )
    begin, end = find_steps(grid, counted["from_at"]), find_steps(grid, counted["to"])
    place = find_units(units, counted["unit"])
    is_shown = (place >= 0) & (begin < end)
    held = _cover(place[is_shown], begin[is_shown], end[is_shown], len(units), len(grid))

    first, stop = find_steps(grid, spans["begins_at"]), find_steps(grid, spans["stop"])
    resource_types = spans["resource_type"].unique().sort(nulls_last=True)
    kind = spans["resource_type"].rank("dense").fill_null(len(resource_types)).to_numpy().astype(np.int64) - 1
    amounts = np.stack([(spans["gpus"] > 0).to_numpy().astype(np.int64), spans["gpus"].to_numpy()])
    does_wait = first < stop
    change = np.zeros((2, len(resource_types), len(grid) + 1), np.int64)
    for row, amount in enumerate(amounts[:, does_wait]):
        np.add.at(change[row], (kind[does_wait], first[does_wait]), amount)
        np.add.at(change[row], (kind[does_wait], stop[does_wait]), -amount)
    waiting = np.cumsum(change[:, :, :-1], axis=2)

    # A requeued workload did not wait while it held units.
    owner = counted["row"].to_numpy()
    begin, end = np.maximum(begin, first[owner]), np.minimum(end, stop[owner])
    ran = begin < end
    rows, owners = np.unique(owner[ran], return_inverse=True)
    earlier = _cover(owners, begin[ran], end[ran], len(rows), len(grid))
    for row, amount in enumerate(amounts[:, rows]):
        np.subtract.at(waiting[row], kind[rows], amount[:, None] * earlier)
    return held, WaitingCounts(resource_types.to_list(), waiting[0], waiting[1])


def _cover(row: Times, begin: Times, end: Times, rows: int, columns: int) -> NDArray[np.bool_]:
    """Which cells of a rows × columns table are covered by a span [begin, end) of their row."""
    change = np.zeros((rows, columns + 1), np.int16)
    np.add.at(change, (row, begin), 1)
    np.add.at(change, (row, end), -1)
    return np.cumsum(change[:, :-1], axis=1, dtype=np.int16) > 0


def find_steps(grid: Times, time_ms: pl.Series) -> Times:
    """The index of the first step at or after each time."""
    return np.searchsorted(grid, time_ms.to_numpy(), side="left").astype(np.int64)


def find_units(units: pl.Series, wanted: pl.Series) -> Times:
    """The row of each wanted unit in ``units``; −1 for units that no longer exist."""
    indexed = pl.DataFrame({"unit": units, "row": pl.int_range(len(units), eager=True)})
    joined = wanted.to_frame("unit").join(indexed, on="unit", how="left", maintain_order="left")
    return joined["row"].fill_null(-1).to_numpy()


def _step_ms(span_ms: int, points: int) -> int:
    """The shortest round step of whole minutes that gives at most ``points`` steps."""
    wanted_ms = span_ms / max(1, points)
    nice = (step_s * 1000 for step_s in NICE_STEPS_S if step_s * 1000 % MINUTE_MS == 0)
    return next((step for step in nice if step >= wanted_ms), math.ceil(wanted_ms / DAY_MS) * DAY_MS)
