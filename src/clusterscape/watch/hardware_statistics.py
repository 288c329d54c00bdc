"""Statistics of GPUs, nodes and sources for hardware rules, read from the store for one time or for a past range; and trials
of such rules.

Importing this imports numba: import it lazily for a fast start.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.model import Node, NodeId, Unit, UnitId, UnitKind, UnixMs, WorkloadId
from clusterscape.model.arrays import Float64s, Int32s, Int64s
from clusterscape.model.rules import Rule, Statistic, Subject, Violation, node_subject, source_subject, source_unit
from clusterscape.store.metrics.contract import MetricReader
from clusterscape.store.records.contract import RecordReader
from clusterscape.watch.judging import ViolationKeeper, add_values, judge
from clusterscape.watch.lives import UnitLimits

NOW_WITHIN_MS = 300_000
"""A value older than this is not current: rules that depend on it cannot be judged, and keep their last verdict."""

PARTITIONS_JOINED = "\n"
AGELESS_MS = 2**53


@dataclass(frozen=True, slots=True)
class HardwareRow:
    """One GPU, node or source: the unit of its metrics, the subject of its violations, and its properties for scopes."""

    unit: UnitId
    subject: WorkloadId
    name: str | None = None  # of the node
    partitions: tuple[str, ...] = ()
    machine_type: str | None = None
    gpus: int = 1


def list_rows(subject: Subject, records: RecordReader) -> list[HardwareRow]:
    """All rows of a subject that exist now."""
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
    """``LifeColumns`` of hardware: every row is open and has no age. Without a window, a value is the current one."""

    def __init__(self, rows: Sequence[HardwareRow], columns: ExactColumns, at: UnixMs) -> None:
        self.rows = rows
        self.workloads: Sequence[WorkloadId] = list(dict.fromkeys(row.subject for row in rows))
        self.units: Sequence[UnitId] = [row.unit for row in rows]
        codes = {subject: code for code, subject in enumerate(self.workloads)}
        self.workload: Int32s = np.array([codes[row.subject] for row in rows], np.int32)
        self.unit: Int32s = np.arange(len(rows), dtype=np.int32)
        self.from_at: Int64s = np.zeros(len(rows), np.int64)
        self.until_at: Int64s = np.full(len(rows), at, np.int64)
        self.is_open: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        self.is_complete: NDArray[np.bool_] = self.is_open
        self.gpus: Int64s = np.array([row.gpus for row in rows], np.int64)
        self._columns = columns.at(at)

    @property
    def row_count(self) -> int:
        """Number of rows."""
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
        """The properties that scopes filter by; ``subject``: the kind of the rows."""
        first = {row.subject: row for row in reversed(self.rows)}
        no_names: list[str | None] = [None] * len(self.workloads)
        return LifeFacts(
            units=self.units,
            workload=self.workload,
            age_ms=np.full(len(self.rows), AGELESS_MS, np.int64),
            workloads=self.workloads,
            users=no_names,
            projects=no_names,
            partitions=[PARTITIONS_JOINED.join(first[subject].partitions) or None for subject in self.workloads],
            machine_types=[first[subject].machine_type for subject in self.workloads],
            names=[first[subject].name for subject in self.workloads],
            gpus=np.bincount(self.workload, minlength=len(self.workloads)),
            subject=subject,
        )


def find_windows(rules: Iterable[Rule]) -> dict[str, int | None]:
    """The longest window of each metric in ms; None: only its last value is needed."""
    windows: dict[str, int | None] = {}
    for rule in rules:
        for condition in iter_conditions(rule.expression):
            longest, window = windows.get(condition.metric), condition.window_ms
            windows[condition.metric] = max(longest or 0, window or 0) or None
    return windows


def read_now(
    store: MetricReader, rules: Sequence[Rule], rows: Sequence[HardwareRow], units: Iterable[Unit], at: UnixMs
) -> HardwareColumns:
    """The columns that the rules need at ``at``. Last values are read in one query; windows are read row by row."""
    windows = find_windows(rules)
    last_value_metrics = [metric for metric, window_ms in windows.items() if window_ms is None]
    series = _read_last(store, last_value_metrics, rows, at) if last_value_metrics else {}
    for metric, window_ms in windows.items():
        if window_ms is not None:
            start = at - max(window_ms, NOW_WITHIN_MS)
            series |= read_series(store, [metric], rows, start, at + 1)
    return HardwareColumns(rows, make_columns(series, rows, units), at)


def make_columns(series: Mapping[str, Series], rows: Sequence[HardwareRow], units: Iterable[Unit]) -> ExactColumns:
    """Columns of ``rows``, with the limits of GPUs."""
    limits = UnitLimits()
    limits.learn(units)
    names = [row.unit for row in rows]
    return ExactColumns(series, len(rows), limits={metric: limits.of(metric, names) for metric in series})


def read_series(
    store: MetricReader, metrics: Sequence[str], rows: Sequence[HardwareRow], start_ms: int, end_ms: int
) -> dict[str, Series]:
    """All samples of ``rows`` in [start, end)."""
    units = list(dict.fromkeys(row.unit for row in rows))
    if not units:
        return {}
    frame = store.series(metrics, units, start_ms=UnixMs(start_ms), end_ms=UnixMs(end_ms))
    row_numbers = pl.DataFrame({"unit": units, "row": np.arange(len(units))})
    samples = frame.with_columns(pl.col("unit").cast(pl.String)).join(row_numbers, on="unit", how="inner")
    return {
        metric: _series_of(samples.filter(pl.col("metric").cast(pl.String) == metric), len(units)) for metric in metrics
    }


def _series_of(frame: pl.DataFrame, row_count: int) -> Series:
    columns = (frame["row"].to_numpy(), frame["time_ms"].to_numpy(), frame["value"].to_numpy())
    return Series.from_rows(*columns, row_count)


def _read_last(
    store: MetricReader, metrics: Sequence[str], rows: Sequence[HardwareRow], at: UnixMs
) -> dict[str, Series]:
    table = store.latest(metrics, at_ms=at, lookback_ms=NOW_WITHIN_MS)
    order = pl.DataFrame({"unit": [str(row.unit) for row in rows]}, schema={"unit": pl.String})
    values = order.join(table, on="unit", how="left", maintain_order="left")
    moment = np.array([at], np.int64)
    return {metric: Series.from_table(moment, values[metric].to_numpy()[:, np.newaxis]) for metric in metrics}


SAMPLES_AT_ONCE = 4_000_000
EXPECTED_INTERVAL_MS = 15_000


def follow_hardware(
    rule: Rule, *, records: RecordReader, metrics: MetricReader, start_ms: UnixMs, end_ms: UnixMs, step_ms: int
) -> Generator[float, None, tuple[int, int, list[Violation]]]:
    """Judge all rows that exist now at every step of [start, end), a part of them at a time; yields the progress, 0–1.

    Returns the number of rows, the number that could be judged at least once, and the violations.
    """
    rows, units = list_rows(rule.scope.subject, records), records.units()
    violations: list[Violation] = []
    judged = done = 0
    for part in _in_parts(rule, rows, end_ms - start_ms):
        replay = _Replay(rule, part, units, metrics, start_ms, end_ms)
        for share in replay.run(start_ms, end_ms, step_ms):
            yield (done + share * len(part)) / len(rows)
        violations += replay.violations()
        judged += replay.judged
        done += len(part)
    return len(rows), judged, violations


def _in_parts(rule: Rule, rows: Sequence[HardwareRow], span_ms: int) -> Iterator[list[HardwareRow]]:
    """Split rows into parts whose samples fit into memory; rows of one node stay together."""
    samples_each = max(1, span_ms // EXPECTED_INTERVAL_MS) * max(1, len(find_windows([rule])))
    most = max(1, SAMPLES_AT_ONCE // samples_each)
    part: list[HardwareRow] = []
    for row in sorted(rows, key=lambda row: row.subject):
        if len(part) >= most and row.subject != part[-1].subject:
            yield part
            part = []
        part.append(row)
    if part:
        yield part


class _Replay:
    def __init__(
        self,
        rule: Rule,
        rows: Sequence[HardwareRow],
        units: Sequence[Unit],
        metrics: MetricReader,
        start_ms: int,
        end_ms: int,
    ) -> None:
        self._rule = rule
        self._rows = rows
        windows = find_windows([rule])
        before_ms = max(NOW_WITHIN_MS, *(window or 0 for window in windows.values()))
        series = read_series(metrics, list(windows), rows, start_ms - before_ms, end_ms)
        self._columns = make_columns(series, rows, units)
        self._keeper = ViolationKeeper()
        self._ended: list[Violation] = []
        self._was_judged = np.zeros(len(rows), np.bool_)

    @property
    def judged(self) -> int:
        """Number of rows that could be judged at least once."""
        return int(self._was_judged.sum())

    def run(self, start_ms: int, end_ms: int, step_ms: int) -> Iterator[float]:
        """Judge step by step; yields the progress, 0–1."""
        moments = [*range(start_ms + step_ms, end_ms, step_ms), end_ms]
        for number, moment in enumerate(moments, 1):
            self._judge(UnixMs(moment))
            yield number / len(moments)

    def _judge(self, at: UnixMs) -> None:
        columns = HardwareColumns(self._rows, self._columns, at)
        judged = judge([self._rule], columns, columns.facts(self._rule.scope.subject), at=at, gpus=columns.gpus)
        self._was_judged |= np.asarray(judged.verdicts.states[0] % 2 == 0)  # TRUE or FALSE
        changes = add_values(self._keeper.judge(judged.judgement), judged)
        self._ended += changes.stopped
        self._keeper.amend(changes.started)

    def violations(self) -> list[Violation]:
        """All violations; open ones have no end."""
        return [*self._ended, *self._keeper.open.values()]
