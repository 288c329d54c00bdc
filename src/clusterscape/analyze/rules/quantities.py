"""Numbers with units: from what is written to canonical and back, exactly.

Decimal arithmetic throughout: ``57%`` becomes the float nearest 0.57 and comes back as ``57%``.
"""

from decimal import Context, Decimal, DecimalException

from clusterscape.analyze.rules.vocabulary import (
    DURATIONS,
    LIMITED_METRICS,
    PERCENT,
    UnitWord,
    threshold_units,
    value_units,
)
from clusterscape.model.metrics import Metric, MetricUnit
from clusterscape.model.rules import Basis, Quantity, StatisticKind
from clusterscape.model.statistics import RUNS, SHARES

_EXACT = Context(prec=80)
MAX_NUMBER = 1e18
"""Larger numbers of anything are typing errors."""

_MAX_WRITTEN = Decimal(10) ** 21  # in the smallest unit
_BARE = UnitWord("", Decimal(1))
MAX_RATIO = 1.02
"""A bare number above this is no ratio: whoever writes ``util > 90`` means ``90%``."""


class UnitMismatchError(ValueError):
    """The unit does not go with the metric. ``suggestion`` is what may have been meant."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.suggestion = suggestion


def read_quantity(number: Decimal, unit: str, metric: Metric, kind: StatisticKind | None) -> Quantity:
    """The canonical quantity of ``number`` ``unit``; ``kind`` None for a threshold, a value of the metric itself."""
    allowed = threshold_units(metric) if kind is None else value_units(metric, kind)
    if unit == "":
        if abs(number) > Decimal(MAX_NUMBER):
            raise UnitMismatchError("this number is too large")
        if PERCENT in allowed and metric.name not in LIMITED_METRICS and abs(number) > Decimal(str(MAX_RATIO)):
            raise UnitMismatchError("this is a ratio from 0 to 1", f"{number:f}%")
        return Quantity(_float(number))
    found = find_unit(unit, allowed)
    if found is None:
        raise UnitMismatchError(_describe_mismatch(unit, metric, kind, allowed))
    if abs(number) * found.scale > Decimal(MAX_NUMBER):
        raise UnitMismatchError("this number is too large")
    is_limit = found is PERCENT and metric.unit is not MetricUnit.RATIO and kind not in SHARES
    return Quantity(_float(_EXACT.multiply(number, found.scale)), Basis.LIMIT if is_limit else Basis.UNIT)


def find_unit(word: str, allowed: tuple[UnitWord, ...]) -> UnitWord | None:
    """As written, else whatever the case."""
    exact = next((unit for unit in allowed if unit.word == word), None)
    return exact or next((unit for unit in allowed if unit.word.lower() == word.lower()), None)


def _describe_mismatch(unit: str, metric: Metric, kind: StatisticKind | None, allowed: tuple[UnitWord, ...]) -> str:
    if unit == "%" and kind not in SHARES and kind not in RUNS:
        return f"{metric.label} has no limit of the GPU's own, so a percentage of it means nothing"
    if not allowed:
        return f"{metric.label} is a plain number and takes no unit"
    return f"`{unit}` is no unit here; one of {', '.join(each.word for each in allowed)}"


def write_quantity(quantity: Quantity, metric: Metric, kind: StatisticKind | None) -> tuple[str, str]:
    """The shortest exact number and its unit; reading them back gives the same quantity."""
    allowed = threshold_units(metric) if kind is None else value_units(metric, kind)
    if quantity.basis is Basis.LIMIT:
        choices: tuple[UnitWord, ...] = (PERCENT,)
    else:
        own = tuple(
            unit for unit in allowed if unit is not PERCENT or metric.name not in LIMITED_METRICS or kind in SHARES
        )
        choices = own or (_BARE,)
    return _shortest(quantity.number, choices)


def write_duration(milliseconds: int) -> str:
    """``30m``, ``1h``, ``1500ms``; the largest unit that leaves a whole number."""
    for word, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{word}"
    return f"{milliseconds}ms" if milliseconds else "0s"


def read_duration(number: Decimal, unit: str) -> Decimal | None:
    """Milliseconds, or None where ``unit`` is no time."""
    found = find_unit(unit, DURATIONS)
    return None if found is None else _EXACT.multiply(number, found.scale * 1000)


def _shortest(number: float, choices: tuple[UnitWord, ...]) -> tuple[str, str]:
    exact = Decimal(repr(number))
    written = []
    for unit in choices:
        text = format_decimal(_EXACT.divide(exact, unit.scale))
        if _float(_EXACT.multiply(Decimal(text), unit.scale)) == number:
            written.append((text, unit.word))
    # Every family holds a unit of scale 1 or 0.01, which always comes back the same. The length decides, then the order.
    return min(written, key=lambda pair: len(pair[0]) + len(pair[1]))


def format_decimal(number: Decimal) -> str:
    """Plain digits where they stay readable, else with an exponent."""
    normal = number.normalize(_EXACT)
    plain = f"{normal:f}"
    return plain if len(plain) <= 24 else str(normal)


def parse_decimal(text: str) -> Decimal | None:
    """The number, or None where it is none or larger than any sensible one."""
    try:
        number = Decimal(text)
        return number if number.is_finite() and abs(number) <= _MAX_WRITTEN else None
    except DecimalException:
        return None


def _float(number: Decimal) -> float:
    # No negative zero: it would not come back from text.
    return float(number) + 0.0
