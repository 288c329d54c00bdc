"""Tolerant readers of the API's JSON: invalid values are None; nothing here raises."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from clusterscape.model import UnixMs

Json = Mapping[str, object]

_QUANTITY = re.compile(r"(\d{1,18})(?:\.\d*)?([KMGTPE]i|[kMGTPEm])?", re.ASCII)
_FACTORS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_FACTORS |= {f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTPE", 1)}


def as_object(value: object) -> dict[str, object]:
    """``value`` if it is a JSON object, else an empty one."""
    return cast(dict[str, object], value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """``value`` if it is a JSON array, else an empty one."""
    return cast(list[object], value) if isinstance(value, list) else []


def iter_objects(value: object) -> Iterator[dict[str, object]]:
    """The objects of a JSON array; items that are not objects are skipped."""
    for item in as_list(value):
        if isinstance(item, dict):
            yield cast(dict[str, object], item)


def dig(value: object, *path: str) -> object:
    """The value below ``path`` of nested objects, or None."""
    for key in path:
        value = as_object(value).get(key)
    return value


def read_text(value: object) -> str | None:
    """A text that says something, or None."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # unpaired surrogates cannot be stored
    return text or None


def read_int(value: object) -> int | None:
    """A whole number; texts and booleans are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_count(value: object) -> int:
    """A quantity of something countable or of bytes: ``8``, ``"8"``, ``"64Gi"``, ``"1k"``; thousandths count as none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2] == "m":
        return 0
    return int(match[1]) * _FACTORS.get(match[2] or "", 1)


def read_time(value: object) -> UnixMs | None:
    """An instant from RFC 3339, to the second or the microsecond."""
    text = read_text(value)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return UnixMs(round(at.timestamp() * 1000)) if at.tzinfo else None


def read_texts(value: object) -> dict[str, str]:
    """Labels or annotations: those whose value is a text."""
    return {key: text for key, text in as_object(value).items() if isinstance(text, str)}


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """One of ``status.conditions``."""

    type: str
    is_true: bool
    is_unknown: bool
    reason: str | None
    message: str | None
    at: UnixMs | None


def read_conditions(value: object) -> dict[str, StatusCondition]:
    """By type; where a type is there twice, the later one counts (Volcano appends)."""
    conditions: dict[str, StatusCondition] = {}
    for item in iter_objects(value):
        kind = read_text(item.get("type"))
        if kind is not None:
            status = item.get("status")
            conditions[kind] = StatusCondition(
                kind,
                status == "True",
                status == "Unknown",
                read_text(item.get("reason")),
                read_text(item.get("message")),
                read_time(item.get("lastTransitionTime")),
            )
    return conditions
