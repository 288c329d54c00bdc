"""The vocabulary of the rule language: names of metrics and statistics, valid combinations, and exact conversion of numbers with
units to canonical values and back.

The grammar is in ``reading``.

Decimal arithmetic throughout: ``57%`` becomes the float nearest to 0.57 and is written as ``57%`` again.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException
from types import MappingProxyType

from clusterscape.model.metrics import ALIASES, JUDGED_METRICS, Metric, MetricUnit
from clusterscape.model.rules import Basis, Quantity, Statistic, StatisticKind
from clusterscape.model.statistics import RUNS, SHARES, STATISTIC_CATALOGUE, Argument

# Suffixes that name a unit; longest first.
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
# Common aliases. Each must be a metric of the catalogue.
_ALIASES: Mapping[str, str] = MappingProxyType(
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
"""Minimum length of a prefix that matches a metric."""

LIMITED_METRICS = frozenset({"power_watts", "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes"})
"""Metrics that have a limit on each GPU (its power limit, its memory), so that ``70%`` has a meaning."""


def short_name(metric: str) -> str:
    """The metric's name without its unit, as in rule text."""
    for ending in _UNIT_ENDINGS:
        if metric.endswith(ending):
            return metric.removesuffix(ending)
    return metric


SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    {short_name(metric.name): metric.name for metric in JUDGED_METRICS.values()} | dict(_ALIASES)
)
"""Every exact short name → canonical name."""


def find_metrics(name: str) -> tuple[str, ...]:
    """Canonical names that ``name`` may refer to: one if it is exact or a unique prefix, else all candidates."""
    name = name.lower()
    if name in JUDGED_METRICS:
        return (name,)
    if name in SHORT_NAMES:
        return (SHORT_NAMES[name],)
    if len(name) < MIN_PREFIX:
        return ()
    return tuple(metric.name for metric in JUDGED_METRICS.values() if metric.name.startswith(name))


def list_names(metric: Metric) -> list[str]:
    """Every exact name of the metric, the one used in canonical text first."""
    aliases = sorted(name for name, metric_name in _ALIASES.items() if metric_name == metric.name)
    return list(dict.fromkeys((short_name(metric.name), *aliases, metric.name)))


def suggest_metric(name: str) -> str | None:
    """The short name find_closest to ``name``; a source's metric name leads to ours."""
    aliased = {alias.lower(): metric_alias.metric for alias, metric_alias in ALIASES.items()}.get(name.lower())
    if aliased is not None and aliased.name in JUDGED_METRICS:
        return short_name(aliased.name)
    close = find_closest(name, (*SHORT_NAMES, *JUDGED_METRICS))
    return None if close is None else short_name(close) if close in JUDGED_METRICS else close


def find_closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most similar to ``word``; None if there is none."""
    matches = difflib.get_close_matches(word.lower(), list(choices), n=1, cutoff=0.6)
    return matches[0] if matches else None


def _statistic_words() -> Iterator[tuple[str, Statistic]]:
    for entry in STATISTIC_CATALOGUE:
        if entry.argument is None:
            yield from ((word, Statistic(entry.kind)) for word in (entry.kind.value, *entry.words))
        elif entry.argument is Argument.PERCENTILE:
            yield "median", Statistic(entry.kind, percentile=50.0)


STATISTIC_WORDS: Mapping[str, Statistic] = MappingProxyType(dict(_statistic_words()))
"""Words that may follow a metric, in addition to percentiles (``p95``) and shares."""


@dataclass(frozen=True, slots=True)
class UnitWord:
    """A unit as written; ``number × scale`` is the canonical value."""

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
"""Units by quantity, in the order in which they are offered."""


def value_units(metric: Metric, kind: StatisticKind) -> tuple[UnitWord, ...]:
    """Units in which a statistic of a metric may be written; ``%`` is relative to the GPU's limit if the metric has one."""
    if kind in SHARES:
        return (PERCENT,)
    if kind in RUNS:
        return DURATIONS
    return threshold_units(metric)


def threshold_units(metric: Metric) -> tuple[UnitWord, ...]:
    """Units in which a value of the metric itself may be written."""
    units = UNIT_WORDS[metric.unit]
    return (*units, PERCENT) if metric.name in LIMITED_METRICS else units


_EXACT = Context(prec=80)
MAX_NUMBER = 1e18
"""Larger numbers are rejected as typos."""

_MAX_WRITTEN = Decimal(10) ** 21  # in the smallest unit
_BARE = UnitWord("", Decimal(1))
MAX_RATIO = 1.02
"""A number without unit above this is not a ratio: ``util > 90`` means ``90%``."""


class UnitMismatchError(ValueError):
    """The unit does not match the metric. ``suggestion``: what may have been meant."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.suggestion = suggestion


def read_quantity(number: Decimal, unit: str, metric: Metric, kind: StatisticKind | None) -> Quantity:
    """The canonical quantity of ``number`` ``unit``; ``kind`` None: a threshold, in units of the metric itself."""
    allowed = threshold_units(metric) if kind is None else value_units(metric, kind)
    if unit == "":
        if abs(number) > Decimal(MAX_NUMBER):
            raise UnitMismatchError("this number is too large")
        if PERCENT in allowed and metric.name not in LIMITED_METRICS and abs(number) > Decimal(str(MAX_RATIO)):
            raise UnitMismatchError("this is a ratio from 0 to 1", f"{number:f}%")
        return Quantity(_float(number))
    unit_word = find_unit(unit, allowed)
    if unit_word is None:
        raise UnitMismatchError(_describe_mismatch(unit, metric, kind, allowed))
    if abs(number) * unit_word.scale > Decimal(MAX_NUMBER):
        raise UnitMismatchError("this number is too large")
    is_limit = unit_word is PERCENT and metric.unit is not MetricUnit.RATIO and kind not in SHARES
    return Quantity(_float(_EXACT.multiply(number, unit_word.scale)), Basis.LIMIT if is_limit else Basis.UNIT)


def find_unit(word: str, allowed: tuple[UnitWord, ...]) -> UnitWord | None:
    """The unit with this exact spelling, else ignoring case; None if there is none."""
    exact = next((unit for unit in allowed if unit.word == word), None)
    return exact or next((unit for unit in allowed if unit.word.lower() == word.lower()), None)


def _describe_mismatch(unit: str, metric: Metric, kind: StatisticKind | None, allowed: tuple[UnitWord, ...]) -> str:
    if unit == "%" and kind not in SHARES and kind not in RUNS:
        return f"{metric.label} has no limit per GPU, so it cannot be a percentage"
    if not allowed:
        return f"{metric.label} is a number without unit"
    return f"`{unit}` is not a valid unit here; use one of {', '.join(unit_word.word for unit_word in allowed)}"


def write_quantity(quantity: Quantity, metric: Metric, kind: StatisticKind | None) -> tuple[str, str]:
    """The shortest exact number and its unit; parsing them gives the same quantity."""
    allowed = threshold_units(metric) if kind is None else value_units(metric, kind)
    if quantity.basis is Basis.LIMIT:
        choices: tuple[UnitWord, ...] = (PERCENT,)
    else:
        units = tuple(
            unit for unit in allowed if unit is not PERCENT or metric.name not in LIMITED_METRICS or kind in SHARES
        )
        choices = units or (_BARE,)
    return _shortest(quantity.number, choices)


def write_duration(milliseconds: int) -> str:
    """``30m``, ``1h``, ``1500ms``; the largest unit that leaves a whole number."""
    for word, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{word}"
    return f"{milliseconds}ms" if milliseconds else "0s"


def read_duration(number: Decimal, unit: str) -> Decimal | None:
    """Milliseconds, or None if ``unit`` is not a unit of time."""
    unit_word = find_unit(unit, DURATIONS)
    return None if unit_word is None else _EXACT.multiply(number, unit_word.scale * 1000)


def _shortest(number: float, choices: tuple[UnitWord, ...]) -> tuple[str, str]:
    exact = Decimal(repr(number))
    written = []
    for unit in choices:
        text = format_decimal(_EXACT.divide(exact, unit.scale))
        if _float(_EXACT.multiply(Decimal(text), unit.scale)) == number:
            written.append((text, unit.word))
    # Every quantity has a unit of scale 1 or 0.01, which is always exact. The shortest wins, then the first.
    return min(written, key=lambda pair: len(pair[0]) + len(pair[1]))


def format_decimal(number: Decimal) -> str:
    """Plain digits if they are readable, else with an exponent."""
    normal = number.normalize(_EXACT)
    plain = f"{normal:f}"
    return plain if len(plain) <= 24 else str(normal)


def parse_decimal(text: str) -> Decimal | None:
    """The number; None if it is invalid or too large."""
    try:
        number = Decimal(text)
        return number if number.is_finite() and abs(number) <= _MAX_WRITTEN else None
    except DecimalException:
        return None


def _float(number: Decimal) -> float:
    # No negative zero: it would not round-trip through text.
    return float(number) + 0.0
