"""What a diagnosis is made from: one run's samples, units, attributes and limits, and small questions everyone asks of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clusterscape.analyze.diagnose.explain import Value
from clusterscape.analyze.diagnose.features import row_medians
from clusterscape.analyze.diagnose.samples import Floats, Ints, OrderedSamples
from clusterscape.model.ids import UnitId, UnixMs

MS_PER_HOUR = 3_600_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the hardware allows, where known."""

    memory_bytes: float | None = None
    nvlink_bytes_per_second: float | None = None
    pcie_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class RunData:
    """``samples.metrics`` are (T × GPU) in the order of ``units``; ``attributes`` give a value, or None, for each of them."""

    samples: OrderedSamples
    units: tuple[UnitId, ...]
    attributes: Mapping[str, Sequence[Value | None]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def find(self, metric: str) -> Floats | None:
        """The metric's (T × GPU), None where no GPU has it."""
        values = self.samples.metrics.get(metric)
        return values if values is not None and np.isfinite(values).any() else None

    def course(self, metric: str) -> Floats | None:
        """The median of all GPUs at each time."""
        values = self.find(metric)
        return None if values is None else row_medians(values)

    @property
    def times_s(self) -> Floats:
        """Seconds since the first sample."""
        times = self.samples.times_ms
        return (times - times[0]) / 1000.0 if times.size else np.empty(0)

    @property
    def step_s(self) -> float:
        """The usual time between samples."""
        return self.samples.step_ms / 1000.0

    @property
    def start_at(self) -> UnixMs:
        """The first sample."""
        return UnixMs(int(self.samples.times_ms[0]))

    @property
    def end_at(self) -> UnixMs:
        """The last sample."""
        return UnixMs(int(self.samples.times_ms[-1]))

    @property
    def span_s(self) -> float:
        """From the first sample to the last."""
        return float(self.times_s[-1]) if self.samples.times_ms.size else 0.0

    def at(self, row: int) -> UnixMs:
        """The time of a row."""
        return UnixMs(int(self.samples.times_ms[row]))

    def pick(self, columns: Ints | Sequence[int]) -> tuple[UnitId, ...]:
        """The units of these columns."""
        return tuple(self.units[int(column)] for column in columns)

    def held_hours(self, values: Floats) -> Floats:
        """Hours from the first to the last sample of each GPU, one step included; 0 for none."""
        is_known = np.isfinite(values)
        first, last = is_known.argmax(axis=0), len(values) - 1 - is_known[::-1].argmax(axis=0)
        times = self.samples.times_ms
        hours = (times[last] - times[first] + self.samples.step_ms) / MS_PER_HOUR
        return np.where(is_known.any(axis=0), hours, 0.0)


def compute_block_error(values: Floats, *, blocks: int = 12) -> float:
    """95 % half-width of the mean of a course whose neighboring values depend on each other, from means of blocks of it."""
    known = values[np.isfinite(values)]
    if known.size < 2 * blocks:
        blocks = max(2, known.size // 2)
    if known.size < 4:
        return float("nan")
    means = np.array([piece.mean() for piece in np.array_split(known, blocks)])
    return float(1.96 * means.std(ddof=1) / blocks**0.5)


def format_duration(seconds: float) -> str:
    """``0.3 s``, ``45 s``, ``12 min``, ``3.5 h``, ``2.1 d``."""
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
