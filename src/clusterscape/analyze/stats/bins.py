"""How each metric is counted into bins, and the error that follows: the only place where the bound is decided.

A percentile read from bins lies between two samples whose bins are known. Each is taken as its bin's middle, so the answer is
off by half a bin at most, whatever the samples were; the least and the greatest sample are known exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from clusterscape.model import METRICS, MetricKind, MetricUnit
from clusterscape.model.metrics import PERCENT


class Limit(StrEnum):
    """The limit that a value can be relative to."""

    POWER = "power"  # the unit's power limit
    MEMORY = "memory"  # the unit's memory size
    ONE = "one"  # the value is already a ratio


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of one metric.

    Linear: bin ``k`` holds what rounds to ``k × step`` (in full scales), so whole percents, degrees, codes and 15 MHz clock
    steps come out exactly; beyond the last bin only the greatest sample is known. Logarithmic (``octave`` given): bin 0 holds
    what is below ``least``, each further one spans ``octave`` doublings. No bins (count 0): counters, of which a percentile
    means nothing.
    """

    count: int
    step: float = 0.0
    full_scale: float = 1.0  # in the canonical unit; used if the GPU's limit is unknown
    by_limit: bool = False  # the GPU's limit is full scale if it is known
    least: float = 0.0
    octave: float = 0.0


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """A percentile over a life is off by at most ``of_full_scale`` × full scale, or ``of_value`` × itself where that is given.

    Full scale is the GPU's own limit where it is known, else ``full_scale``. All other statistics over a life are exact, but
    shares of time whose threshold is not registered: there, samples in the threshold's bin count as equal to it.
    """

    of_full_scale: float
    of_value: float
    full_scale: float


NO_BINS = Bins(0)
RATIO = Bins(104, PERCENT)
WATTS = Bins(128, PERCENT, full_scale=1_000.0, by_limit=True)
MEMORY = Bins(128, PERCENT, full_scale=100 * 2.0**30, by_limit=True)
CELSIUS = Bins(128, PERCENT, full_scale=100.0)
COUNT = Bins(256, 1.0)
HERTZ = Bins(256, 15e6)
MEMORY_HERTZ = Bins(256, 50e6)
# 16 KiB/s (below is idle) up to 4 TiB/s, four times an NVLink of today, in 255 bins.
BYTES_PER_SECOND = Bins(256, least=2.0**14, octave=28 / 255)
# A metric that is not in the catalogue: its values are only known not to be negative.
UNLISTED = Bins(256, least=2.0**-20, octave=60 / 255)

_BY_UNIT: Mapping[MetricUnit, Bins] = MappingProxyType(
    {
        MetricUnit.RATIO: RATIO,
        MetricUnit.WATTS: WATTS,
        MetricUnit.BYTES: MEMORY,
        MetricUnit.CELSIUS: CELSIUS,
        MetricUnit.COUNT: COUNT,
        MetricUnit.HERTZ: HERTZ,
        MetricUnit.BYTES_PER_SECOND: BYTES_PER_SECOND,
    }
)

_LIMITS: Mapping[MetricUnit, Limit] = MappingProxyType(
    {MetricUnit.WATTS: Limit.POWER, MetricUnit.BYTES: Limit.MEMORY, MetricUnit.RATIO: Limit.ONE}
)


def bins_of(metric: str) -> Bins:
    """The bins of ``metric``."""
    entry = METRICS.get(metric)
    if entry is None:
        return UNLISTED
    if entry.kind is MetricKind.COUNTER:
        return NO_BINS
    return MEMORY_HERTZ if metric == "memory_clock_hertz" else _BY_UNIT.get(entry.unit, UNLISTED)


def error_bound(metric: str) -> ErrorBound:
    """Maximum error of a percentile of ``metric`` over a life."""
    bins = bins_of(metric)
    if bins.octave:
        return ErrorBound(0.0, 2 ** (bins.octave / 2) - 1, bins.full_scale)
    scale = bins.full_scale if bins.step < 1.0 else bins.step * bins.count
    return ErrorBound(bins.step / 2 * bins.full_scale / scale, 0.0, scale)


def limit_of(metric: str) -> Limit | None:
    """The limit of a unit that is full scale of ``metric``; None if there is none."""
    entry = METRICS.get(metric)
    if entry is None or entry.kind is MetricKind.COUNTER:
        return None
    return _LIMITS.get(entry.unit)
