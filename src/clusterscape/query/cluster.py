"""The cluster now: the picture of all units, its metrics, and the numbers that sum it up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import METRICS, Node, NodeId, NodeState, Unit, UnitKind
from clusterscape.query.answers import (
    ClusterSummary,
    NodeAnswer,
    NodeDetail,
    PartitionSummary,
    UnitCounts,
    UnitState,
)
from clusterscape.query.context import QueryContext
from clusterscape.query.picture import build_picture, build_places
from clusterscape.query.workloads import describe_workload
from clusterscape.store.records.contract import WorkloadFilter

MISSING = 65535
STEPS = 65534
"""A tick's values are uint16: at most STEPS steps from a lower bound, MISSING for null."""

RATIO_STEP = 0.001
SHOWN_STEPS = 4095
"""Finer than any colour or table shows, and coarse enough to compress: a ratio to 0.1 %, else 1/4095 of the values' range."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Metrics of all units in the picture's row order, quantised. ``scales``: metric → (lower, upper)."""

    inventory_version: int
    tick_version: int
    sampled_at: int | None
    scales: Mapping[str, tuple[float, float]]
    table: pl.DataFrame


class ClusterQuery:
    """Questions about the cluster as a whole."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._known_places: tuple[list[Node], list[Unit], frozenset[NodeId], pl.DataFrame] | None = None

    def picture(self) -> tuple[int, pl.DataFrame]:
        """The inventory version and the table of all units (see ``query/picture.py``)."""
        version = self._context.changes.versions.inventory
        return version, self._context.cache.get("picture", version, self.build_picture)

    def build_picture(self) -> pl.DataFrame:
        """The picture from the stores, uncached."""
        records = self._context.records
        return build_picture(
            places=self._places(), workloads=records.active_workloads(), allocations=records.open_allocations()
        )

    def _places(self) -> pl.DataFrame:
        """Nodes and units as a table; the stores hand out the same list until it changes, so identity is the version."""
        nodes, units = self._context.records.nodes(), self._context.records.units()
        stale = self._stale_nodes()
        known = self._known_places
        if known is None or known[0] is not nodes or known[1] is not units or known[2] != stale:
            known = self._known_places = (nodes, units, stale, build_places(nodes, units, stale))
        return known[3]

    def tick(self, metrics: Sequence[str]) -> Tick:
        """The latest value of each metric for every row of the picture, as uint16 columns."""
        unknown = [name for name in metrics if name not in METRICS]
        if unknown:
            raise QueryError(f"unknown metric {', '.join(unknown)}", hint="GET /api/v1/metrics lists them.")
        versions = self._context.changes.versions
        version, picture = self.picture()
        names = tuple(dict.fromkeys(metrics))
        values = self._latest(names)
        rows = picture.select("unit").join(values, on="unit", how="left", maintain_order="left")
        columns: dict[str, NDArray[np.uint16]] = {}
        scales: dict[str, tuple[float, float]] = {}
        for name in names:
            columns[name], scales[name] = quantize(rows[name].to_numpy(), METRICS[name].upper)
        return Tick(version, versions.tick, versions.newest_sample_at, scales, pl.DataFrame(columns))

    def summary(self) -> ClusterSummary:
        """The numbers at the top of the page."""
        context = self._context
        versions = context.changes.versions
        version, picture = self.picture()
        now = context.clock()
        key = (version, versions.tick, versions.paused)

        def make() -> ClusterSummary:
            table = picture.join(
                self._latest(("gpu_util_ratio", "power_watts")), on="unit", how="left", maintain_order="left"
            )
            nodes = context.records.nodes()
            waiting = table.filter(pl.col("kind") == UnitKind.REQUESTED.value)
            units = table.filter(pl.col("kind") != UnitKind.REQUESTED.value)
            return ClusterSummary(
                cluster=context.cluster,
                is_demo=context.is_demo,
                at=now,
                inventory_version=version,
                tick_version=versions.tick,
                newest_sample_at=versions.newest_sample_at,
                nodes=len(nodes),
                nodes_unavailable=sum(not _serves(node.state) for node in nodes),
                units=_count(units),
                running=_distinct_workloads(units),
                waiting=_distinct_workloads(waiting),
                waiting_gpus=len(waiting),
                gpu_util_ratio=_mean_utilization(units),
                power_watts=_total(units["power_watts"]),
                partitions=self._partitions(units, waiting),
                failing_sources=sum(not status.is_ok for status in context.records.sources()),
                paused=versions.paused,
            )

        return context.cache.get("summary", key, make)

    def nodes(self) -> list[NodeAnswer]:
        """Every node with how many of its GPUs are held."""
        version, picture = self.picture()

        def make() -> list[NodeAnswer]:
            held = dict(
                picture.filter(pl.col("unit_state") == UnitState.ALLOCATED.value)["node"].value_counts().iter_rows()
            )
            stale = self._stale_nodes()
            return [
                NodeAnswer(
                    node=node.id,
                    partitions=list(node.partitions),
                    machine_type=node.machine_type,
                    state=node.state,
                    reason=node.reason,
                    rack=node.rack,
                    gpu_count=node.gpu_count,
                    gpus_allocated=held.get(node.id, 0),
                    cpu_count=node.cpu_count,
                    memory_bytes=node.memory_bytes,
                    features=list(node.features),
                    driver_version=node.driver_version,
                    is_stale=node.id in stale,
                )
                for node in self._context.records.nodes()
            ]

        return self._context.cache.get("nodes", version, make)

    def node(self, node: str) -> NodeDetail:
        """One node and the workloads on it now."""
        found = next((answer for answer in self.nodes() if answer.node == node), None)
        if found is None:
            raise NotFoundError(f"there is no node {node!r}", hint="GET /api/v1/nodes lists them.")
        _, picture = self.picture()
        holders = picture.filter((pl.col("node") == node) & pl.col("workload").is_not_null())["workload"].unique()
        page = self._context.records.workloads(WorkloadFilter(node=NodeId(node)), limit=500)
        now = self._context.clock()
        here = set(holders)
        return NodeDetail(node=found, workloads=[describe_workload(w, now) for w in page.workloads if w.id in here])

    def _latest(self, metrics: tuple[str, ...]) -> pl.DataFrame:
        context = self._context
        tick = context.changes.versions.tick
        return context.cache.get(
            ("latest", metrics),
            tick,
            lambda: context.metrics.latest(metrics, at_ms=context.clock(), lookback_ms=context.lookback_ms),
        )

    def _stale_nodes(self) -> frozenset[NodeId]:
        return frozenset(s.node for s in self._context.records.sources() if not s.is_ok and s.node is not None)

    def _partitions(self, units: pl.DataFrame, waiting: pl.DataFrame) -> list[PartitionSummary]:
        records = self._context.records
        members = {node.id: node for node in records.nodes()}
        lean = units.select(pl.col("node", "partition").cast(pl.String), "unit_state", "workload", "gpu_util_ratio")
        asked = waiting.select(pl.col("partition").cast(pl.String), "workload")
        answers = []
        for partition in records.partitions():
            mine = lean.filter(pl.col("node").is_in(list(partition.nodes)))
            queue = asked.filter(pl.col("partition") == partition.name)
            free = mine.filter(pl.col("unit_state") == UnitState.FREE.value)["node"].value_counts()["count"].max()
            nodes = [members[name] for name in partition.nodes if name in members]
            answers.append(
                PartitionSummary(
                    name=partition.name,
                    is_up=partition.is_up,
                    machine_types=sorted({node.machine_type for node in nodes if node.machine_type}),
                    nodes=len(nodes),
                    units=_count(mine),
                    running=_distinct_workloads(mine.filter(pl.col("partition") == partition.name)),
                    waiting=_distinct_workloads(queue),
                    waiting_gpus=len(queue),
                    gpu_util_ratio=_mean_utilization(mine),
                    largest_free_block=free if isinstance(free, int) else 0,
                )
            )
        return answers


def quantize(values: NDArray[np.float64], upper: float | None) -> tuple[NDArray[np.uint16], tuple[float, float]]:
    """``values`` as uint16 steps, and the bounds (lower, upper) with value = lower + step / STEPS × (upper − lower).

    NaN becomes MISSING. The error is at most half a step: 0.05 % of a ratio (``upper`` ≤ 2), else 1/8190 of the values' range.
    Ratios keep their bounds from tick to tick, so that colours do not jump.
    """
    known = values[np.isfinite(values)]
    if known.size == 0:
        return np.full(len(values), MISSING, dtype=np.uint16), (0.0, 1.0)
    if upper is not None and upper <= 2.0:
        low, step = 0.0, RATIO_STEP
    else:
        low = float(known.min())
        step = (float(known.max()) - low) / SHOWN_STEPS or 1.0
    codes = np.rint((np.nan_to_num(values, nan=low) - low) / step)
    coded = np.where(np.isfinite(values), np.clip(codes, 0, STEPS), MISSING).astype(np.uint16)
    return coded, (low, low + STEPS * step)


def _serves(state: NodeState) -> bool:
    return state.is_available or state is NodeState.UNKNOWN


def _count(units: pl.DataFrame) -> UnitCounts:
    counts: dict[str, int] = dict(units["unit_state"].value_counts().iter_rows())
    return UnitCounts(
        total=len(units),
        allocated=counts.get(UnitState.ALLOCATED, 0),
        free=counts.get(UnitState.FREE, 0),
        unavailable=counts.get(UnitState.UNAVAILABLE, 0),
        stale=counts.get(UnitState.STALE, 0),
    )


def _distinct_workloads(rows: pl.DataFrame) -> int:
    return rows["workload"].drop_nulls().n_unique()


def _mean_utilization(units: pl.DataFrame) -> float | None:
    mean = units.filter(pl.col("unit_state") == UnitState.ALLOCATED.value)["gpu_util_ratio"].mean()
    return float(mean) if isinstance(mean, float) else None


def _total(values: pl.Series) -> float | None:
    known = values.drop_nulls()
    return float(known.sum()) if len(known) else None
