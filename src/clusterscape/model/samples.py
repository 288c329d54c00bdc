"""Samples as columns: raw series of exporters, and the canonical samples that are stored.

Owns the two column layouts and their dictionaries. Does not parse, normalize or store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterscape.model.arrays import Float64s, Int32s, Int64s
from clusterscape.model.ids import NodeId, UnixMs


class Names:
    """An append-only dictionary of names: each gets a dense code, and codes never change."""

    __slots__ = ("_codes", "values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.values: list[str] = []
        self._codes: dict[str, int] = {}
        for value in values:
            self.code(value)

    def __len__(self) -> int:
        return len(self.values)

    def code(self, name: str) -> int:
        """The code of ``name``, assigned on first use."""
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self.values)
            self.values.append(name)
        return code

    def find(self, name: str) -> int | None:
        """The code of ``name``, or None if it has none."""
        return self._codes.get(name)


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Canonical samples, one row per (unit, metric, time).

    ``unit`` and ``metric`` are codes into ``units`` and ``metrics``. The unit of a node-wide metric is the node's name.
    ``value`` is in the metric's canonical unit; a missing value has no row and is never NaN.
    """

    units: Names
    metrics: Names
    unit: Int32s
    metric: Int32s
    time_ms: Int64s
    value: Float64s

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, slots=True)
class RawSeries:
    """One time series as its source names it. ``labels`` is shared between the series of one label set."""

    name: str
    labels: Mapping[str, str]


class SeriesTable:
    """The series of one source so far; codes index it. A source starts a new table when too many series are stale."""

    __slots__ = ("series",)

    def __init__(self) -> None:
        self.series: list[RawSeries] = []

    def __len__(self) -> int:
        return len(self.series)

    def add(self, series: RawSeries) -> int:
        """Append ``series`` and return its code."""
        self.series.append(series)
        return len(self.series) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RawScrape:
    """The response of one source to one fetch, before normalization: codes into ``table``, with their values."""

    source: str  # the target's address
    node: NodeId | None  # the node that the settings name for this source
    fetched_at: UnixMs
    duration_s: float
    table: SeriesTable
    series: Int32s
    value: Float64s
    time_ms: Int64s | None = None  # explicit timestamps; None: all at ``fetched_at``
    malformed: Mapping[str, int] = field(default_factory=dict)  # lines that could not be parsed, by reason
    address: str | None = None  # host:port of the request, if the source is one exporter
