"""The interface of metric stores. The embedded store and VictoriaMetrics both pass ``tests/contract/test_metric_store.py``."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import polars as pl

from clusterscape.model import SampleBatch, UnitId, UnixMs


class SeriesStatistic(StrEnum):
    """A statistic of one series over a time range. Quantiles interpolate linearly (numpy's default)."""

    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    STD = "std"  # population standard deviation
    P5 = "p5"
    P25 = "p25"
    P50 = "p50"
    P75 = "p75"
    P95 = "p95"
    COUNT = "count"
    FIRST = "first"
    LAST = "last"
    INCREASE = "increase"  # of a counter, corrected for resets


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricStoreInfo:
    """Contents and size of a store.

    For a store on a server: ``spooled_samples`` wait here until it accepts them, ``lost_samples`` were dropped or rejected since
    the start; ``trouble`` is the reason why it accepts none now.
    """

    engine: str
    samples: int | None
    bytes_on_disk: int | None
    oldest_at: UnixMs | None
    newest_at: UnixMs | None
    spooled_samples: int = 0
    lost_samples: int = 0
    trouble: str | None = None


class MetricReader(Protocol):
    """Reads samples by (metric, unit, time). Thread-safe.

    All times are Unix ms, ranges are [start, end). A missing value is an absent row or null, never 0. Unknown metric or unit
    names give empty results. Two samples of the same (metric, unit, time): the last one written wins.
    """

    def latest(self, metrics: Sequence[str], *, at_ms: UnixMs, lookback_ms: int) -> pl.DataFrame:
        """The last value of each unit in [at − lookback, at]: ``unit`` (String) and one Float64 column per metric.

        One row per unit that has any of the metrics; the order of rows is not defined. Units of tracked runs may be left out.
        """
        ...

    def series(
        self,
        metrics: Sequence[str],
        units: Sequence[UnitId],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        step_ms: int | None = None,
    ) -> pl.DataFrame:
        """``metric``, ``unit`` (String), ``time_ms`` (Int64), ``value`` (Float64), sorted by (metric, unit, time).

        With ``step_ms``, one row per step that has samples, at the step's start (aligned to multiples of the step since 1970):
        ``value`` is the mean of gauges and the last of counters, with additional columns ``min`` and ``max``.
        """
        ...

    def statistics(
        self,
        metric: str,
        statistics: Sequence[SeriesStatistic],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        units: Sequence[UnitId] | None = None,
    ) -> pl.DataFrame:
        """``unit`` and one Float64 column per statistic, over all units that have samples, or over ``units``."""
        ...

    def info(self) -> MetricStoreInfo:
        """Contents and size of the store."""
        ...


class MetricStore(MetricReader, Protocol):
    """Also writes samples durably. One writer, any number of readers."""

    def append(self, batch: SampleBatch) -> None:
        """Store ``batch``; durable when it returns. Raises StoreFullError without storing anything if there is no space."""
        ...

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Store much older data at once (backfill, migration), in any order of time."""
        ...

    def remove_unit(self, unit: UnitId, *, start_ms: UnixMs, end_ms: UnixMs) -> bool:
        """Remove the samples of ``unit`` and of units below it (``unit/…``), which all are in [start, end).

        Safe while other units are read and written. Returns whether they were removed; False: the server does not support it.
        """
        ...

    def maintain(self, *, now_ms: UnixMs) -> None:
        """Compaction, downsampling, retention; called every minute or so from a background thread."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


@dataclass(frozen=True, slots=True)
class DayContents:
    """The samples of one UTC day. ``samples`` is an upper estimate, for planning."""

    day: int  # since 1970
    metrics: tuple[str, ...]
    samples: int


class ListedMetricStore(MetricStore, Protocol):
    """A store that can list and export all its samples, as the source of a move."""

    def days(self, *, start_ms: UnixMs, end_ms: UnixMs) -> list[DayContents]:
        """The days with samples in [start, end), oldest first."""
        ...

    def read_all(self, metrics: Sequence[str], *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """As ``series`` without a step, of all units, in any order of rows."""
        ...
