"""Statistics of users and projects over days, for rules: sums of their ended jobs, from summaries that are kept in memory.

A sum over days changes slowly, so it is computed at most every REFRESH_MS; a judgement in between reads the last one.
"""

import threading
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.periods.sums import MEDIAN, NodeSize, sum_jobs
from clusterscape.analyze.rules.checking import iter_conditions
from clusterscape.analyze.rules.facts import LifeFacts
from clusterscape.model import METRICS, Node, UnitId, UnixMs, WorkloadId
from clusterscape.model.arrays import Float64s, Int32s, Int64s
from clusterscape.model.durations import DAY_MS, HOUR_MS
from clusterscape.model.metrics import MetricKind, MetricSubject
from clusterscape.model.rules import Rule, Statistic, StatisticKind, Subject, project_subject, user_subject
from clusterscape.store.records.contract import RecordReader

REFRESH_MS = 300_000
LATE_MS = 2 * HOUR_MS
"""A summary may be written this long after the end of its job."""
STANDARD_WINDOW_MS = 7 * DAY_MS
_AGELESS_MS = 2**53
_DROPPED = ("family", "kind", "qos", "partition", "resource_type", "submitted_at", "started_at", "source")
"""Columns that no sum needs; a million jobs take 200 bytes each without them."""


class JobSums:
    """Sums over the jobs of the last days, by user or project and window. Thread-safe."""

    def __init__(self, records: RecordReader) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._jobs: pl.DataFrame | None = None
        self._since = 0
        self._read_at = 0
        self._sums: dict[tuple[Subject, int], pl.DataFrame] = {}

    def of(self, subject: Subject, window_ms: int, at: UnixMs, size: NodeSize) -> pl.DataFrame:
        """One row per user or project; at most REFRESH_MS old."""
        with self._lock:
            jobs = self._read(window_ms, at)
            key = (subject, window_ms)
            if key not in self._sums:
                recent = jobs.filter(pl.col("ended_at") >= at - window_ms)
                self._sums[key] = sum_jobs(recent, "user" if subject is Subject.USERS else "project", size)
            return self._sums[key]

    def _read(self, window_ms: int, at: UnixMs) -> pl.DataFrame:
        """Jobs that ended within the longest window so far; after the first time only new ones are read from the store."""
        since = at - window_ms
        if self._jobs is None or since < self._since - REFRESH_MS:
            self._jobs, self._since = self._fetch(since, at), since
        elif at - self._read_at >= REFRESH_MS:
            fresh = self._fetch(self._read_at - LATE_MS, at)
            kept = self._jobs.filter(pl.col("ended_at") >= since).join(fresh, on="workload", how="anti")
            self._jobs, self._since = pl.concat([kept, fresh]), max(self._since, since)
        else:
            return self._jobs
        self._read_at, self._sums = at, {}
        return self._jobs

    def _fetch(self, start: int, at: UnixMs) -> pl.DataFrame:
        table = self._records.summary_columns(start_ms=UnixMs(max(0, start)), end_ms=UnixMs(at + 1))
        return table.drop(_DROPPED)


class PastSums:
    """The same at any past moment, from jobs that were read once."""

    def __init__(self, jobs: pl.DataFrame) -> None:
        self._jobs = jobs

    def of(self, subject: Subject, window_ms: int, at: UnixMs, size: NodeSize) -> pl.DataFrame:
        """One row per user or project."""
        recent = self._jobs.filter(pl.col("ended_at") >= at - window_ms, pl.col("ended_at") <= at)
        return sum_jobs(recent, "user" if subject is Subject.USERS else "project", size)


def longest_window(rules: Sequence[Rule]) -> int:
    """The longest window of the rules in ms."""
    windows = (condition.window_ms for rule in rules for condition in iter_conditions(rule.expression))
    return max((window or STANDARD_WINDOW_MS for window in windows), default=STANDARD_WINDOW_MS)


class PeriodColumns:
    """``LifeColumns`` of users or projects: every row is open and has no age."""

    def __init__(
        self, subject: Subject, sums: JobSums | PastSums, rules: Sequence[Rule], at: UnixMs, size: NodeSize
    ) -> None:
        self._subject = subject
        self._by = "user" if subject is Subject.USERS else "project"
        windows = {
            condition.window_ms or STANDARD_WINDOW_MS
            for rule in rules
            for condition in iter_conditions(rule.expression)
        }
        # The longest first: it decides which jobs are read.
        self._tables = {window: sums.of(subject, window, at, size) for window in sorted(windows, reverse=True)}
        names = sorted({name for table in self._tables.values() for name in table[self._by]})
        self.names = names
        name = user_subject if subject is Subject.USERS else project_subject
        self.workloads: Sequence[WorkloadId] = [name(text) for text in names]
        self.units: Sequence[UnitId] = [UnitId(text) for text in self.workloads]
        count = len(names)
        self.workload: Int32s = np.arange(count, dtype=np.int32)
        self.unit: Int32s = np.arange(count, dtype=np.int32)
        self.from_at: Int64s = np.zeros(count, np.int64)
        self.until_at: Int64s = np.full(count, at, np.int64)
        self.is_open: NDArray[np.bool_] = np.ones(count, np.bool_)
        self.is_complete: NDArray[np.bool_] = self.is_open
        self.gpus: Int64s = np.zeros(count, np.int64)
        self._order = pl.DataFrame({self._by: names}, schema={self._by: pl.String})

    @property
    def row_count(self) -> int:
        """Number of users or projects."""
        return len(self.workloads)

    def column(self, metric: str, statistic: Statistic, *, window_ms: int | None = None) -> Float64s:
        """See ``StatisticColumns``. Sums have an increase, ratios a mean and a median; others are unknown."""
        name = _column_of(metric, statistic)
        return self._read(name, window_ms) if name is not None else np.full(self.row_count, np.nan)

    def samples(self, metric: str, *, window_ms: int | None = None) -> Int64s:
        """The number of jobs, the same for all metrics."""
        del metric
        return np.nan_to_num(self._read("period_jobs_count", window_ms)).astype(np.int64)

    def limits(self, metric: str) -> Float64s:
        """Nothing has a limit."""
        del metric
        return np.full(self.row_count, np.nan)

    def _read(self, column: str, window_ms: int | None) -> Float64s:
        table = self._tables[window_ms or STANDARD_WINDOW_MS].select(self._by, column)
        return (
            self._order.join(table, on=self._by, how="left", maintain_order="left")[column].cast(pl.Float64).to_numpy()
        )

    def facts(self) -> LifeFacts:
        """The properties that scopes filter by."""
        none: list[str | None] = [None] * self.row_count
        is_user = self._subject is Subject.USERS
        return LifeFacts(
            units=self.units,
            workload=self.workload,
            age_ms=np.full(self.row_count, _AGELESS_MS, np.int64),
            workloads=self.workloads,
            users=self.names if is_user else none,
            projects=none if is_user else self.names,
            partitions=none,
            machine_types=none,
            names=none,
            gpus=self.gpus,
            subject=self._subject,
        )


def _column_of(metric: str, statistic: Statistic) -> str | None:
    """The column that has a statistic of a metric."""
    entry = METRICS.get(metric)
    if entry is None or entry.subject is not MetricSubject.PERIOD:
        return None
    if entry.kind is MetricKind.COUNTER:
        return metric if statistic.kind is StatisticKind.INCREASE else None
    if statistic.kind is StatisticKind.PERCENTILE and statistic.percentile == 50 and metric.endswith("use_ratio"):
        return f"{metric}{MEDIAN}"
    return metric if statistic.kind in (StatisticKind.MEAN, StatisticKind.NOW) else None


def find_largest(nodes: Sequence[Node]) -> NodeSize:
    """What the largest node has."""
    return NodeSize(
        gpus=max((node.gpu_count for node in nodes), default=None),
        cores=max((node.cpu_count for node in nodes if node.cpu_count is not None), default=None),
        memory_bytes=max((node.memory_bytes for node in nodes if node.memory_bytes is not None), default=None),
    )
