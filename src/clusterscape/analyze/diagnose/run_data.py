"""The input of a diagnosis: samples, units, attributes and limits of one run with common accessors, and the rules of thumb of
``thumb_rules.toml``.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import numpy as np

from clusterscape.analyze.diagnose.explain import Value
from clusterscape.analyze.diagnose.features import row_medians
from clusterscape.analyze.diagnose.samples import OrderedSamples
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.findings import FindingKind
from clusterscape.model.ids import UnitId, UnixMs


@dataclass(frozen=True, slots=True)
class ThumbRule:
    """Thresholds above which a pattern becomes a finding, and the reason shown with it."""

    reason: str
    numbers: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]


@cache
def read_thumb_rules() -> Mapping[FindingKind, ThumbRule]:
    """The rule of every kind of finding."""
    text = files("clusterscape.analyze.diagnose").joinpath("thumb_rules.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return MappingProxyType({kind: _parse_rule(tables[kind]) for kind in FindingKind})


def _parse_rule(table: Mapping[str, str | float]) -> ThumbRule:
    numbers = {name: float(value) for name, value in table.items() if name != "reason"}
    return ThumbRule(str(table["reason"]), MappingProxyType(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the hardware; None if unknown."""

    memory_bytes: float | None = None
    nvlink_bytes_per_second: float | None = None
    pcie_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class RunData:
    """``samples.metrics``: (T × GPU) in the order of ``units``; ``attributes``: a value or None for each unit."""

    samples: OrderedSamples
    units: tuple[UnitId, ...]
    attributes: Mapping[str, Sequence[Value | None]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def find(self, metric: str) -> Float64s | None:
        """The values of a metric (T × GPU); None if no GPU has it."""
        values = self.samples.metrics.get(metric)
        return values if values is not None and np.isfinite(values).any() else None

    def median_series(self, metric: str) -> Float64s | None:
        """The median over all GPUs at each time (T,); None if no GPU has the metric."""
        values = self.find(metric)
        return None if values is None else row_medians(values)

    @property
    def times_s(self) -> Float64s:
        """Seconds since the first sample."""
        times = self.samples.times_ms
        return (times - times[0]) / 1000.0 if times.size else np.empty(0)

    @property
    def step_s(self) -> float:
        """Median seconds between samples."""
        return self.samples.step_ms / 1000.0

    @property
    def start_at(self) -> UnixMs:
        """Time of the first sample."""
        return UnixMs(int(self.samples.times_ms[0]))

    @property
    def end_at(self) -> UnixMs:
        """Time of the last sample."""
        return UnixMs(int(self.samples.times_ms[-1]))

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last sample."""
        return float(self.times_s[-1]) if self.samples.times_ms.size else 0.0

    def at(self, row: int) -> UnixMs:
        """The time of a row."""
        return UnixMs(int(self.samples.times_ms[row]))

    def pick(self, columns: Int64s | Sequence[int]) -> tuple[UnitId, ...]:
        """The units of these columns."""
        return tuple(self.units[int(column)] for column in columns)

    def held_hours(self, values: Float64s) -> Float64s:
        """Hours from the first to the last sample of each GPU plus one step; 0 without samples."""
        is_known = np.isfinite(values)
        first, last = is_known.argmax(axis=0), len(values) - 1 - is_known[::-1].argmax(axis=0)
        times = self.samples.times_ms
        hours = (times[last] - times[first] + self.samples.step_ms) / HOUR_MS
        return np.where(is_known.any(axis=0), hours, 0.0)


def compute_block_error(values: Float64s, *, blocks: int = 12) -> float:
    """Half-width of the 95 % interval of the mean of an autocorrelated series, from block means."""
    finite = values[np.isfinite(values)]
    if finite.size < 2 * blocks:
        blocks = max(2, finite.size // 2)
    if finite.size < 4:
        return float("nan")
    means = np.array([piece.mean() for piece in np.array_split(finite, blocks)])
    return float(1.96 * means.std(ddof=1) / blocks**0.5)


def format_seconds(seconds: float) -> str:
    """A measured time in one unit: ``0.3 s``, ``45 s``, ``12 min``, ``3.5 h``, ``2.1 d``."""
    if abs(seconds) < 1.0:
        return f"{seconds:.1g} s"
    for limit, size, unit in ((120.0, 1.0, "s"), (7_200.0, 60.0, "min"), (172_800.0, 3_600.0, "h")):
        if abs(seconds) < limit:
            return f"{seconds / size:.0f} {unit}" if unit != "h" else f"{seconds / size:.1f} {unit}"
    return f"{seconds / 86_400.0:.1f} d"


def count_gpus(count: int, total: int) -> str:
    """``all 64 GPUs``, ``8 of 64 GPUs``, ``the GPU``."""
    if total == 1:
        return "the GPU"
    return f"all {total} GPUs" if count == total else f"{count} of {total} GPUs"
