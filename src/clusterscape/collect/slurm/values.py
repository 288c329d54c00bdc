"""Tolerant readers of Slurm's drifting values: what cannot be read is None, and nothing here raises.

A number is ``5``, ``"5"`` or ``{"set": true, "infinite": false, "number": 5}``; a state is a word, ``A+B`` or a list of words;
"not set" is also 0xfffffffe, its 64-bit kin, ``(null)`` and ``None assigned``.
"""

import math
from typing import cast

from clusterscape.model import UnixMs

NO_VALUE = 0xFFFFFFFE
"""Slurm's NO_VAL; INFINITE and the 64-bit forms lie above. No value we read is ever as large."""

_NO_TEXT = frozenset({"", "(null)", "None assigned", "N/A", "None", "n/a"})


def as_object(value: object) -> dict[str, object]:
    """``value`` if it is a JSON object, else an empty one."""
    return cast(dict[str, object], value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """``value`` if it is a JSON array, else an empty one."""
    return cast(list[object], value) if isinstance(value, list) else []


def read_int(value: object) -> int | None:
    """A non-negative number in any of Slurm's forms; None where unset, infinite, negative or not a number."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite", False):
            return None
        value = value.get("number")
    number = _number(value)
    return number if number is not None and 0 <= number < NO_VALUE else None


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdigit():
        return int(value)
    return None


def read_time(seconds: object) -> UnixMs | None:
    """An instant from Unix seconds; 0 and unset are None."""
    value = read_int(seconds)
    return UnixMs(value * 1000) if value else None


def read_minutes(value: object) -> int | None:
    """A duration in seconds from Slurm's minutes; None where unset or without limit."""
    minutes = read_int(value)
    return None if minutes is None else minutes * 60


def read_text(value: object) -> str | None:
    """A non-empty text, or None."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair could not be stored
    return None if text in _NO_TEXT else text


def read_words(value: object) -> tuple[str, ...]:
    """States or flags in upper case, from ``"mixed"``, ``"IDLE+DRAIN"``, ``"CANCELLED by 0"`` or ``["IDLE", "DRAIN"]``."""
    if isinstance(value, str):
        return tuple(value.upper().split(" BY ")[0].replace("+", " ").split())
    return tuple(word.strip().upper() for word in as_list(value) if isinstance(word, str) and word.strip())


def read_names(value: object) -> tuple[str, ...]:
    """Names from ``"a,b"`` or ``["a", "b"]``, without the ``*`` that marks a default."""
    parts = value.split(",") if isinstance(value, str) else as_list(value)
    names = (read_text(part) for part in parts)
    return tuple(name.rstrip("*") for name in names if name and name.rstrip("*"))
