"""Statistics of GPUs, nodes and sources for rules that judge these: read from the store, for one moment or for a past.

Importing this imports numba: import it late where the start must be quick.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.model import Node, NodeId, Unit, UnitId, UnitKind, UnixMs, WorkloadId
from clusterscape.model.hardware import node_subject, source_subject, source_unit
from clusterscape.model.rules import Rule, Statistic, Subject
from clusterscape.model.samples import Float64s, Int32s, Int64s
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.limits import UnitLimits

NOW_WITHIN_MS = 300_000
"""A value older than this is not that of now: what rests on it cannot be judged, and stays as it was judged last."""

PARTITIONS_JOINED = "\n"
AGELESS_MS = 2**53


@dataclass(frozen=True, slots=True)
class HardwareRow:
    """One GPU, node or source: the name its metrics stand under, whom its violations name, and what scopes ask of it."""

    unit: UnitId
    subject: WorkloadId
    name: str | None = None  # of the node
    partitions: tuple[str, ...] = ()
    machine_type: str | None = None
    gpus: int = 1


def list_rows(subject: Subject, records: RecordStore) -> list[HardwareRow]:
    """All that there is to judge now."""
    nodes = {node.id: node for node in records.nodes()}
    if subject is Subject.GPUS:
        return [_gpu_row(unit, nodes) for unit in records.units() if unit.kind is not UnitKind.REQUESTED and unit.node]
    if subject is Subject.NODES:
        return [
            HardwareRow(
                UnitId(node.id), node_subject(node.id), node.id, node.partitions, node.machine_type, node.gpu_count
            )
            for node in nodes.values()
        ]
    kinds = sorted({status.kind for status in records.sources() if status.node is None})
    return [HardwareRow(source_unit(kind), source_subject(kind), kind, gpus=0) for kind in kinds]


def _gpu_row(unit: Unit, nodes: Mapping[NodeId, Node]) -> HardwareRow:
    assert unit.node is not None
    node = nodes.get(unit.node)
    machine_type = unit.machine_type or (node.machine_type if node else None)
    return HardwareRow(unit.id, node_subject(unit.node), unit.node, node.partitions if node else (), machine_type)


class HardwareColumns:
    """``LifeColumns`` of hardware: every row is open and without age. Without a window, a value is that of now."""

    def __init__(self, rows: Sequence[HardwareRow], columns: ExactColumns, at: UnixMs) -> None:
        self.rows = rows
        self.workloads: Sequence[WorkloadId] = list(dict.fromkeys(row.subject for row in rows))
        self.units: Sequence[UnitId] = [row.unit for row in rows]
        places = {subject: place for place, subject in enumerate(self.workloads)}
        self.workload: Int32s = np.array([places[row.subject] for row in rows], np.int32)
        self.unit: Int32s = np.arange(len(rows), dtype=np.int32)
        self.from_at: Int64s = np.zeros(len(rows), np.int64)
        self.until_at: Int64s = np.full(len(rows), at, np.int64)
        self.is_open: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        self.is_complete: NDArray[np.bool_] = self.is_open
        self.gpus: Int64s = np.array([row.gpus for row in rows], np.int64)
        self._columns = columns.at(at)

    @property
    def row_count(self) -> int:
        """How many."""
        return len(self.rows)

    def column(self, metric: str, statistic: Statistic, *, window_ms: int | None = None) -> Float64s:
        """See ``StatisticColumns``."""
        return self._columns.column(metric, statistic, window_ms=window_ms or NOW_WITHIN_MS)

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        """See ``StatisticColumns``."""
        return self._columns.samples(metric, window_ms=window_ms or NOW_WITHIN_MS)

    def limits(self, metric: str) -> Float64s:
        """See ``StatisticColumns``."""
        return self._columns.limits(metric)

    def facts(self, subject: Subject) -> LifeFacts:
        """What scopes ask; ``subject``: what the rows are."""
        first = {row.subject: row for row in reversed(self.rows)}
        nameless: list[str | None] = [None] * len(self.workloads)
        return LifeFacts(
            units=self.units,
            workload=self.workload,
            age_ms=np.full(len(self.rows), AGELESS_MS, np.int64),
            workloads=self.workloads,
            users=nameless,
            projects=nameless,
            partitions=[PARTITIONS_JOINED.join(first[each].partitions) or None for each in self.workloads],
            machine_types=[first[each].machine_type for each in self.workloads],
            names=[first[each].name for each in self.workloads],
            gpus=np.bincount(self.workload, minlength=len(self.workloads)),
            subject=subject,
        )


def find_windows(rules: Iterable[Rule]) -> dict[str, int | None]:
    """How far back each metric is looked at; None where only its last value is."""
    found: dict[str, int | None] = {}
    for condition in (each for rule in rules for each in iter_conditions(rule.expression)):
        known, window = found.get(condition.metric), condition.window_ms
        found[condition.metric] = max(known or 0, window or 0) or None
    return found


def read_now(
    store: MetricStore, rules: Sequence[Rule], rows: Sequence[HardwareRow], units: Iterable[Unit], at: UnixMs
) -> HardwareColumns:
    """What the rules ask of ``rows`` at ``at``. Last values of all are one look at the store; windows are read row by row."""
    windows = find_windows(rules)
    lasting = [metric for metric, window_ms in windows.items() if window_ms is None]
    series = _read_last(store, lasting, rows, at) if lasting else {}
    for metric, window_ms in windows.items():
        if window_ms is not None:
            start = at - max(window_ms, NOW_WITHIN_MS)
            series |= read_series(store, [metric], rows, start, at + 1)
    return HardwareColumns(rows, make_columns(series, rows, units), at)


def make_columns(series: Mapping[str, Series], rows: Sequence[HardwareRow], units: Iterable[Unit]) -> ExactColumns:
    """Columns of ``rows``, with the limits of those that are GPUs."""
    limits = UnitLimits()
    limits.learn(units)
    names = [row.unit for row in rows]
    return ExactColumns(series, len(rows), limits={metric: limits.of(metric, names) for metric in series})


def read_series(
    store: MetricStore, metrics: Sequence[str], rows: Sequence[HardwareRow], start_ms: int, end_ms: int
) -> dict[str, Series]:
    """All samples of ``rows`` in [start, end)."""
    units = list(dict.fromkeys(row.unit for row in rows))
    if not units:
        return {}
    frame = store.series(metrics, units, start_ms=UnixMs(start_ms), end_ms=UnixMs(end_ms))
    places = pl.DataFrame({"unit": units, "row": np.arange(len(units))})
    found = frame.with_columns(pl.col("unit").cast(pl.String)).join(places, on="unit", how="inner")
    return {
        metric: _series_of(found.filter(pl.col("metric").cast(pl.String) == metric), len(units)) for metric in metrics
    }


def _series_of(frame: pl.DataFrame, row_count: int) -> Series:
    columns = (frame["row"].to_numpy(), frame["time_ms"].to_numpy(), frame["value"].to_numpy())
    return Series.from_rows(*columns, row_count)


def _read_last(
    store: MetricStore, metrics: Sequence[str], rows: Sequence[HardwareRow], at: UnixMs
) -> dict[str, Series]:
    table = store.latest(metrics, at_ms=at, lookback_ms=NOW_WITHIN_MS)
    order = pl.DataFrame({"unit": [str(row.unit) for row in rows]}, schema={"unit": pl.String})
    values = order.join(table, on="unit", how="left", maintain_order="left")
    moment = np.array([at], np.int64)
    return {metric: Series.from_table(moment, values[metric].to_numpy()[:, np.newaxis]) for metric in metrics}
