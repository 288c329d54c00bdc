"""The words of the rule language: names of metrics and statistics, units, and which of them go together.

Owns names only; what a text means as a whole is the parser's, what a number means is ``quantities``.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from clusterscape.model.metrics import ALIASES, CATALOGUE, METRICS, Metric, MetricUnit
from clusterscape.model.rules import Statistic, StatisticKind
from clusterscape.model.statistics import RUNS, SHARES, STATISTIC_CATALOGUE, Argument

# The endings that name a unit; the longest first.
_UNIT_ENDINGS = (
    "_bytes_per_second",
    "_ratio",
    "_watts",
    "_joules",
    "_bytes",
    "_hertz",
    "_celsius",
    "_seconds",
    "_count",
    "_code",
)
# What people say first. Each must be a metric of the catalogue.
_SPOKEN: Mapping[str, str] = MappingProxyType(
    {
        "util": "gpu_util_ratio",
        "utilization": "gpu_util_ratio",
        "utilisation": "gpu_util_ratio",
        "memory": "memory_used_bytes",
        "mem": "memory_used_bytes",
        "temperature": "gpu_temperature_celsius",
        "temp": "gpu_temperature_celsius",
        "clock": "sm_clock_hertz",
        "tensor": "tensor_active_ratio",
        "dram": "dram_active_ratio",
        "nvlink": "nvlink_tx_bytes_per_second",
        "pcie": "pcie_tx_bytes_per_second",
        "xid": "xid_error_code",
        "ecc": "ecc_dbe_volatile_count",
    }
)
MIN_PREFIX = 2
"""A shorter beginning of a name is not taken for the name."""

LIMITED_METRICS = frozenset({"power_watts", "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes"})
"""Metrics that have a limit on each GPU (its power limit, its memory), so that ``70%`` means something."""


def short_name(metric: str) -> str:
    """The metric's name without its unit: how a rule's text names it."""
    for ending in _UNIT_ENDINGS:
        if metric.endswith(ending):
            return metric.removesuffix(ending)
    return metric


SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    {short_name(metric.name): metric.name for metric in CATALOGUE} | dict(_SPOKEN)
)
"""Every exact short name → canonical name."""


def find_metrics(name: str) -> tuple[str, ...]:
    """Canonical names that ``name`` may mean: one where it is exact or the only one it begins, else all candidates."""
    name = name.lower()
    if name in METRICS:
        return (name,)
    if name in SHORT_NAMES:
        return (SHORT_NAMES[name],)
    if len(name) < MIN_PREFIX:
        return ()
    return tuple(metric.name for metric in CATALOGUE if metric.name.startswith(name))


def names_of(metric: Metric) -> list[str]:
    """Every exact name of the metric, the one used in canonical text first."""
    spoken = sorted(name for name, meant in _SPOKEN.items() if meant == metric.name)
    return list(dict.fromkeys((short_name(metric.name), *spoken, metric.name)))


def suggest_metric(name: str) -> str | None:
    """The short name closest to ``name``; a source's own name leads to what it is called here."""
    source = {alias.lower(): meant.metric for alias, meant in ALIASES.items()}.get(name.lower())
    if source is not None:
        return short_name(source.name)
    close = closest(name, (*SHORT_NAMES, *METRICS))
    return None if close is None else short_name(close) if close in METRICS else close


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most like ``word``, or None where nothing is."""
    found = difflib.get_close_matches(word.lower(), list(choices), n=1, cutoff=0.6)
    return found[0] if found else None


def _statistic_words() -> Iterator[tuple[str, Statistic]]:
    for entry in STATISTIC_CATALOGUE:
        if entry.argument is None:
            yield from ((word, Statistic(entry.kind)) for word in (entry.kind.value, *entry.words))
        elif entry.argument is Argument.PERCENTILE:
            yield "median", Statistic(entry.kind, percentile=50.0)


STATISTIC_WORDS: Mapping[str, Statistic] = MappingProxyType(dict(_statistic_words()))
"""Words after a metric; ``p95`` and the shares come besides."""


@dataclass(frozen=True, slots=True)
class UnitWord:
    """A unit as written; ``number × scale`` is canonical."""

    word: str
    scale: Decimal


def _units(**scales: str) -> tuple[UnitWord, ...]:
    return tuple(UnitWord(word, Decimal(scale)) for word, scale in scales.items())


_BYTES = tuple(
    UnitWord(word, Decimal(scale))
    for word, scale in (
        ("GB", 10**9), ("GiB", 2**30), ("MB", 10**6), ("MiB", 2**20), ("TB", 10**12), ("TiB", 2**40),
        ("kB", 10**3), ("KiB", 2**10), ("B", 1),
    )
)  # fmt: skip
DURATIONS = _units(s="1", m="60", h="3600", d="86400", ms="0.001", min="60")
PERCENT = UnitWord("%", Decimal("0.01"))

UNIT_WORDS: Mapping[MetricUnit, tuple[UnitWord, ...]] = MappingProxyType(
    {
        MetricUnit.RATIO: (PERCENT,),
        MetricUnit.WATTS: _units(W="1", kW="1000"),
        MetricUnit.JOULES: _units(J="1", kJ="1000", MJ="1000000", kWh="3600000"),
        MetricUnit.BYTES: _BYTES,
        MetricUnit.BYTES_PER_SECOND: tuple(UnitWord(f"{unit.word}/s", unit.scale) for unit in _BYTES),
        MetricUnit.HERTZ: _units(MHz="1000000", GHz="1000000000", kHz="1000", Hz="1"),
        MetricUnit.CELSIUS: (UnitWord("C", Decimal(1)), UnitWord("°C", Decimal(1))),
        MetricUnit.SECONDS: DURATIONS,
        MetricUnit.COUNT: (),
    }
)
"""Units by what they measure; the one offered first comes first."""


def value_units(metric: Metric, kind: StatisticKind) -> tuple[UnitWord, ...]:
    """Units in which a statistic of a metric may be written; ``%`` stands for the GPU's limit where the metric has one."""
    if kind in SHARES:
        return (PERCENT,)
    if kind in RUNS:
        return DURATIONS
    return threshold_units(metric)


def threshold_units(metric: Metric) -> tuple[UnitWord, ...]:
    """Units in which a value of the metric itself may be written."""
    own = UNIT_WORDS[metric.unit]
    return (*own, PERCENT) if metric.name in LIMITED_METRICS else own
