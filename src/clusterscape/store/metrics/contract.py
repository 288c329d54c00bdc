"""What a metric store promises. The embedded store and VictoriaMetrics both pass ``tests/contract/test_metric_store.py``."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import polars as pl

from clusterscape.model import SampleBatch, UnitId, UnixMs


class Statistic(StrEnum):
    """A number that sums up one series over a time range. Quantiles interpolate linearly (numpy's default)."""

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
    INCREASE = "increase"  # of a counter, resets added up


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricStoreInfo:
    """What a store holds and what it costs.

    Of a store on a server: ``spooled_samples`` wait here until it takes them, ``lost_samples`` were dropped or refused since
    the start; ``trouble`` says in one line why it takes none now.
    """

    engine: str
    samples: int | None
    bytes_on_disk: int | None
    oldest_at: UnixMs | None
    newest_at: UnixMs | None
    spooled_samples: int = 0
    lost_samples: int = 0
    trouble: str | None = None


class MetricStore(Protocol):
    """Durable samples by (metric, unit, time). Thread-safe: one writer, any number of readers.

    All times are Unix ms, ranges are [start, end). A missing value is an absent row or null, never 0. Unknown metric or unit
    names give empty results. Two samples of the same (metric, unit, time): the last one written wins.
    """

    def append(self, batch: SampleBatch) -> None:
        """Store ``batch``; durable when it returns. Raises StoreFullError without storing anything where there is no space."""
        ...

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Store much older data at once (backfill, migration), in any order of time."""
        ...

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
        ``value`` is the mean of gauges and the last of counters, and ``min`` and ``max`` columns stand beside it.
        """
        ...

    def statistics(
        self,
        metric: str,
        statistics: Sequence[Statistic],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        units: Sequence[UnitId] | None = None,
    ) -> pl.DataFrame:
        """``unit`` and one Float64 column per statistic, over all units that have samples or over those named."""
        ...

    def remove_unit(self, unit: UnitId, *, start_ms: UnixMs, end_ms: UnixMs) -> bool:
        """Forget the samples of ``unit`` and of those below it (``unit/…``), which all lie in [start, end).

        Safe beside reading and writing other units. Returns whether they are gone; False: this server removes nothing.
        """
        ...

    def maintain(self, *, now_ms: UnixMs) -> None:
        """Compaction, downsampling, retention; called every minute or so from a background thread."""
        ...

    def info(self) -> MetricStoreInfo:
        """What the store holds and costs."""
        ...

    def close(self) -> None:
        """Release files and connections; what was appended stays."""
        ...


@dataclass(frozen=True, slots=True)
class DayContents:
    """The samples of one UTC day. ``samples`` may be a little more than there are: an amount to plan by."""

    day: int  # since 1970
    metrics: tuple[str, ...]
    samples: int


class ListedMetricStore(MetricStore, Protocol):
    """A store that can say what it holds, and hand it out whole: what another one is filled from."""

    def days(self, *, start_ms: UnixMs, end_ms: UnixMs) -> list[DayContents]:
        """The days with samples in [start, end), oldest first."""
        ...

    def read_all(self, metrics: Sequence[str], *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """As ``series`` without a step, of all units, in any order of rows."""
        ...
