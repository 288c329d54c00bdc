"""The cluster now or at a past minute: the picture of all units, their metrics, statistics over the lives of workloads
(``gpu_util_ratio:p50``), and summaries.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import METRICS, UNIT_METRICS, Node, NodeId, NodeState, NodeStateChange, UnitId, UnixMs
from clusterscape.model.durations import DAY_MS
from clusterscape.model.rules import Severity, Statistic, StatisticKind, find_exporters_up
from clusterscape.model.statistics import STATISTIC_CATALOGUE, MeasuredThing
from clusterscape.query.answers import ClusterSummary, NodeAnswer, NodeDetail, NodeTurnAnswer, UnitState
from clusterscape.query.cache import SameObjects
from clusterscape.query.context import QueryContext
from clusterscape.query.past import PastPictures, PastSnapshot, derive_node_state
from clusterscape.query.picture import build_picture, build_places
from clusterscape.query.scheduling.live_queue import read_scheduler_rules
from clusterscape.query.sources import read_open_names
from clusterscape.query.summary import Demand, SummaryHeader, mark_free_use, read_demand, summarize
from clusterscape.query.violations import FAULT_DAYS, MAX_FAULTS, ViolationQuery
from clusterscape.query.workloads import describe_workload
from clusterscape.store.records.contract import WorkloadFilter
from clusterscape.watch.watcher import Watch

SEPARATOR = ":"
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")
_KINDS = {
    entry.kind.value: entry.kind
    for entry in STATISTIC_CATALOGUE
    if entry.measures is MeasuredThing.VALUE and entry.argument is None
}


def is_life_column(name: str) -> bool:
    """Whether a column is a statistic over a life, not a current value."""
    return SEPARATOR in name


def metric_of(name: str) -> str:
    """The metric of a column."""
    return name.partition(SEPARATOR)[0]


def parse_life_column(name: str) -> tuple[str, Statistic]:
    """The metric and the statistic of a column's name; raises QueryError."""
    metric, _, word = name.partition(SEPARATOR)
    if metric not in METRICS:
        raise QueryError(f"unknown metric {metric[:80]}", hint="GET /api/v1/metrics lists them.")
    if word in _KINDS:
        return metric, Statistic(_KINDS[word])
    match = _PERCENTILE.fullmatch(word)
    if match is None:
        raise QueryError(f"unknown statistic {word[:40]!r}", hint=f"One of {', '.join(_KINDS)}, and p0 to p100.")
    return metric, Statistic(StatisticKind.PERCENTILE, percentile=float(match[1]))


def read_life_columns(watch: Watch, names: Sequence[str]) -> pl.DataFrame:
    """``unit``, ``workload`` and a column for each name, one row per ongoing life; null without samples.

    Only SHOWN_METRICS and the metrics of rules have statistics; all others are null.
    """
    parsed = [(name, *parse_life_column(name)) for name in names]
    statistics = watch.statistics
    schema = {"unit": pl.String, "workload": pl.String} | dict.fromkeys(names, pl.Float64)
    if statistics is None:
        return pl.DataFrame(schema=schema)
    view = statistics.columns()
    rows = np.flatnonzero(view.is_open)
    units, workloads = view.units, view.workloads
    columns: dict[str, object] = {
        "unit": [units[code] for code in view.unit[rows].tolist()],
        "workload": [workloads[code] for code in view.workload[rows].tolist()],
    }
    for name, metric, statistic in parsed:
        columns[name] = view.column(metric, statistic)[rows]
    return pl.DataFrame(columns, schema=schema).with_columns(pl.col(list(names)).fill_nan(None))


MISSING = 65535
STEPS = 65534
"""A tick's values are uint16: at most STEPS steps from a lower bound, MISSING for null."""

SUMMED_METRICS = ("gpu_util_ratio", "power_watts")
KEPT_SUMMARIES = 64

RATIO_STEP = 0.001
SHOWN_STEPS = 2047
"""Finer than any color or table shows, and coarse enough to compress: a ratio to 0.1 %, else 1/2047 of the values' range."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Metrics of all units in the picture's row order, quantised. ``scales``: metric → (lower, upper)."""

    inventory_version: int
    tick_version: int
    sampled_at: int | None
    scales: Mapping[str, tuple[float, float]]
    table: pl.DataFrame


class ClusterQuery:
    """Queries on the whole cluster. ``at_ms`` selects a past minute (see ``query/past.py``)."""

    def __init__(self, context: QueryContext, watch: Watch, violations: ViolationQuery) -> None:
        self._context = context
        self._watch = watch
        self._violations = violations
        self.past = PastPictures(context, self.places)
        self._past_summaries = context.new_cache("past summaries", KEPT_SUMMARIES)

    def picture(self, at_ms: int | None = None) -> tuple[int, pl.DataFrame]:
        """The inventory version and the table of all units (see ``query/picture.py``), now or at a past minute."""
        if at_ms is not None:
            snapshot = self.past.snapshot(at_ms)
            return snapshot.version, snapshot.table
        version = self._context.changes.versions.inventory
        return version, self._context.cache.get("picture", version, self.build_picture)

    def build_picture(self) -> pl.DataFrame:
        """The picture from the stores, uncached."""
        records = self._context.records
        workloads, allocations = records.active_workloads(), records.open_allocations()
        table = build_picture(places=self.places(), workloads=workloads, allocations=allocations)
        return mark_free_use(table, records.partitions(), self._demand())

    def _demand(self) -> Demand:
        """The current demand, shared by the picture and all summaries until the inventory changes."""
        context, records = self._context, self._context.records

        def read() -> Demand:
            return read_demand(context, records.active_workloads(), records.open_allocations(), context.clock() // 1000)

        return context.cache.get("demand", context.changes.versions.inventory, read)

    def places(self) -> pl.DataFrame:
        """Nodes and units as a table. Stores return the same list until it changes, so object identity is the version."""
        nodes, units = self._context.records.nodes(), self._context.records.units()
        health = (self._stale_nodes(), self._faulty_units())
        return self._context.cache.get(
            "places", (SameObjects(nodes, units), health), lambda: build_places(nodes, units, *health)
        )

    def tick(self, metrics: Sequence[str], at_ms: int | None = None) -> Tick:
        """The latest value of each metric for every row of the picture, now or at a past minute, as uint16 columns.

        ``metric:statistic`` is a statistic over the life of the row's workload on its unit (see ``query/cluster.py``).
        """
        names = tuple(dict.fromkeys(metrics))
        life_columns = [name for name in names if is_life_column(name)]
        metric_columns = tuple(name for name in names if name not in life_columns)
        unknown = [name for name in metric_columns if name not in METRICS]
        if unknown:
            raise QueryError(f"unknown metric {', '.join(unknown)}", hint="GET /api/v1/metrics lists them.")
        if at_ms is None:
            versions = self._context.changes.versions
            version, picture = self.picture()
            lives = read_life_columns(self._watch, life_columns)
            scales, table = quantize_rows(picture, self._latest(metric_columns), names, lives)
            return Tick(version, versions.tick, versions.newest_sample_at, scales, table)
        snapshot = self.past.snapshot(at_ms)
        values = self._latest_at(metric_columns, snapshot.at)
        # Statistics exist only for lives that are ongoing now, not for past moments.
        no_lives = read_life_columns(self._watch, life_columns).clear()
        scales, table = quantize_rows(snapshot.table, values, names, no_lives)
        return Tick(snapshot.version, snapshot.at, None if values.is_empty() else snapshot.at, scales, table)

    def unit_table(self, at_ms: int | None = None) -> pl.DataFrame:
        """The picture joined with the latest value of every metric, for export."""
        names = tuple(metric.name for metric in UNIT_METRICS)
        if at_ms is None:
            _, picture = self.picture()
            values = self._context.metrics.latest(
                names, at_ms=self._context.clock(), lookback_ms=self._context.lookback_ms
            )
        else:
            snapshot = self.past.snapshot(at_ms)
            picture, values = snapshot.table, self._latest_at(names, snapshot.at)
        measured = [name for name in names if name in values.columns and values[name].null_count() < len(values)]
        return picture.join(values.select("unit", *measured), on="unit", how="left", maintain_order="left")

    def summary(self, at_ms: int | None = None) -> ClusterSummary:
        """The cluster in numbers, now or at a past minute."""
        if at_ms is not None:
            at = self.past.minute(at_ms)
            return self._past_summaries.get(at, self.past.validity(at), lambda: self._summarize_past(at))
        context = self._context
        versions = context.changes.versions
        version, picture = self.picture()
        now = context.clock()

        def compute() -> ClusterSummary:
            header = SummaryHeader(
                cluster=context.cluster,
                is_demo=context.is_demo,
                at=now,
                is_past=False,
                inventory_version=version,
                tick_version=versions.tick,
                newest_sample_at=versions.newest_sample_at,
                nodes_unavailable=sum(not _serves(node.state) for node in context.records.nodes()),
                failing_sources=sum(not status.is_ok for status in context.records.sources()),
                awaited=context.awaited(),
                open_questions=len(read_open_names(context.records)),
                paused=versions.paused,
                reservations=read_scheduler_rules(context.records)[0],
            )
            return self._summarize(header, picture, self._latest(SUMMED_METRICS), self._demand())

        return context.cache.get("summary", (version, versions.tick, versions.paused), compute)

    def _summarize_past(self, at: UnixMs) -> ClusterSummary:
        context = self._context
        snapshot = self.past.snapshot(at)
        header = SummaryHeader(
            cluster=context.cluster,
            is_demo=context.is_demo,
            at=at,
            is_past=True,
            inventory_version=snapshot.version,
            tick_version=at,
            nodes_unavailable=self._count_unavailable(snapshot),
        )
        return self._summarize(header, snapshot.table, self._latest_at(SUMMED_METRICS, at), snapshot.demand)

    def _count_unavailable(self, snapshot: PastSnapshot) -> int | None:
        """Of the nodes that exist now; None for times before node states were recorded."""
        turns = [turn for node in self._context.records.nodes() if (turn := snapshot.turns.get(node.id)) is not None]
        return sum(not _serves(turn.state) for turn in turns) if turns else None

    def _summarize(
        self, header: SummaryHeader, picture: pl.DataFrame, latest: pl.DataFrame, demand: Demand
    ) -> ClusterSummary:
        records = self._context.records
        table = picture.join(latest, on="unit", how="left", maintain_order="left")
        return summarize(header, table, nodes=records.nodes(), partitions=records.partitions(), demand=demand)

    def nodes(self, at_ms: int | None = None) -> list[NodeAnswer]:
        """Every node with how many of its GPUs are held. A past state that was not recorded is unknown."""
        version, picture = self.picture(at_ms)
        key = "nodes" if at_ms is None else ("nodes", self.past.minute(at_ms))

        def compute() -> list[NodeAnswer]:
            held = dict(
                picture.filter(pl.col("unit_state") == UnitState.ALLOCATED.value)["node"].value_counts().iter_rows()
            )
            nodes = self._context.records.nodes()
            if at_ms is None:
                stale = self._stale_nodes()
                return [_describe_node(node, held.get(node.id, 0), is_stale=node.id in stale) for node in nodes]
            turns = self.past.snapshot(at_ms).turns
            return [_describe_past_node(node, held.get(node.id, 0), turns.get(node.id)) for node in nodes]

        return self._context.cache.get(key, version, compute)

    def node(self, node: str, at_ms: int | None = None) -> NodeDetail:
        """One node and the workloads on it, now or at a past minute."""
        answer = next((answer for answer in self.nodes(at_ms) if answer.node == node), None)
        if answer is None:
            raise NotFoundError(f"no node {node!r}", hint="GET /api/v1/nodes lists them.")
        turns = self._turns_of(NodeId(node))
        faults = self._violations.node(NodeId(node))
        _, picture = self.picture(at_ms)
        on_node = (pl.col("node") == node) & pl.col("workload").is_not_null()
        holders = set(picture.filter(on_node)["workload"].unique())
        if at_ms is not None:
            snapshot = self.past.snapshot(at_ms)
            workloads = [describe_workload(w, snapshot.at) for w in snapshot.workloads if w.id in holders]
            return NodeDetail(node=answer, workloads=workloads, faults=faults, turns=turns)
        page = self._context.records.workloads(WorkloadFilter(node=NodeId(node)), limit=500)
        now = self._context.clock()
        workloads = [describe_workload(w, now) for w in page.workloads if w.id in holders]
        return NodeDetail(node=answer, workloads=workloads, faults=faults, turns=turns)

    def _turns_of(self, node: NodeId) -> list[NodeTurnAnswer]:
        start = UnixMs(self._context.clock() - FAULT_DAYS * DAY_MS)
        turns = self._context.records.node_state_changes(node, start_ms=start)
        return [
            NodeTurnAnswer(from_at=turn.from_at, state=turn.state, reason=turn.reason)
            for turn in reversed(turns[-MAX_FAULTS:])
        ]

    def _latest(self, metrics: tuple[str, ...]) -> pl.DataFrame:
        context = self._context
        tick = context.changes.versions.tick
        return context.cache.get(
            ("latest", metrics),
            tick,
            lambda: context.metrics.latest(metrics, at_ms=context.clock(), lookback_ms=context.lookback_ms),
        )

    def _latest_at(self, metrics: tuple[str, ...], at: UnixMs) -> pl.DataFrame:
        return self._context.metrics.latest(metrics, at_ms=at, lookback_ms=self._context.lookback_ms)

    def _faulty_units(self) -> frozenset[UnitId]:
        """GPUs that violate a rule on GPUs with a severity above info."""
        info_rules = {rule.key for rule in self._watch.book.rules() if rule.severity is Severity.INFO}
        return frozenset(
            violation.unit
            for violation in self._watch.hardware.open
            if violation.unit is not None and violation.rule not in info_rules
        )

    def _stale_nodes(self) -> frozenset[NodeId]:
        """Nodes without a responding exporter; one that responds under another address is enough."""
        answering = find_exporters_up(self._context.records.sources())
        return frozenset(node for node, is_answering in answering.items() if not is_answering)


def quantize_rows(
    picture: pl.DataFrame, values: pl.DataFrame, metrics: Sequence[str], lives: pl.DataFrame
) -> tuple[dict[str, tuple[float, float]], pl.DataFrame]:
    """Joins ``values`` by unit and ``lives`` by unit and workload to the picture's rows; returns bounds and uint16 columns."""
    rows = picture.select("unit", "workload").join(values, on="unit", how="left", maintain_order="left")
    if lives.width > 2:
        rows = rows.with_columns(pl.col("unit", "workload").cast(pl.String)).join(
            lives, on=["unit", "workload"], how="left", maintain_order="left"
        )
    columns: dict[str, NDArray[np.uint16]] = {}
    scales: dict[str, tuple[float, float]] = {}
    for name in metrics:
        columns[name], scales[name] = quantize(rows[name].to_numpy(), METRICS[metric_of(name)].upper)
    return scales, pl.DataFrame(columns)


def quantize(values: NDArray[np.float64], upper: float | None) -> tuple[NDArray[np.uint16], tuple[float, float]]:
    """``values`` as uint16 steps, and the bounds (lower, upper) with value = lower + step / STEPS × (upper − lower).

    NaN becomes MISSING. The error is at most half a step: 0.05 % of a ratio (``upper`` ≤ 2), else 1/4094 of the values' range.
    Ratios keep their bounds from tick to tick, so that colors do not jump.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return np.full(len(values), MISSING, dtype=np.uint16), (0.0, 1.0)
    if upper is not None and upper <= 2.0:
        low, step = 0.0, RATIO_STEP
    else:
        low = float(finite.min())
        step = (float(finite.max()) - low) / SHOWN_STEPS or 1.0
    codes = np.rint((np.nan_to_num(values, nan=low) - low) / step)
    coded = np.where(np.isfinite(values), np.clip(codes, 0, STEPS), MISSING).astype(np.uint16)
    return coded, (low, low + STEPS * step)


def _describe_past_node(node: Node, held: int, turn: NodeStateChange | None) -> NodeAnswer:
    """The node at a past minute; whether its exporter responded then is unknown."""
    reason = turn.reason if turn is not None and not turn.state.is_available else None
    past_node = replace(node, state=derive_node_state(turn, held, node.gpu_count), reason=reason)
    return _describe_node(past_node, held, is_stale=False)


def _describe_node(node: Node, held: int, *, is_stale: bool) -> NodeAnswer:
    return NodeAnswer(
        node=node.id,
        partitions=list(node.partitions),
        machine_type=node.machine_type,
        state=node.state,
        reason=node.reason,
        rack=node.rack,
        gpu_count=node.gpu_count,
        gpus_allocated=held,
        cpu_count=node.cpu_count,
        memory_bytes=node.memory_bytes,
        features=list(node.features),
        driver_version=node.driver_version,
        is_stale=is_stale,
    )


def _serves(state: NodeState) -> bool:
    return state.is_available or state is NodeState.UNKNOWN
