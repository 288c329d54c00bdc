"""Tolerant readers of values whose JSON format changes between Slurm versions (invalid values are None; the readers do not
raise), and expansion of hostlists: ``gpu[01-08,12],vgpu3``, ``rack[1-2]n[01-16]-ib``.

A number is ``5``, ``"5"`` or ``{"set": true, "infinite": false, "number": 5}``; a state is a word, ``A+B`` or a list of words;
0xfffffffe, its 64-bit form, ``(null)`` and ``None assigned`` mean "not set".
"""

import itertools
import math
import re
from typing import cast

from clusterscape.model import UnixMs

NO_VALUE = 0xFFFFFFFE
"""Slurm's NO_VAL; INFINITE and the 64-bit forms are larger. No real value is as large."""

_NO_TEXT = frozenset({"", "(null)", "None assigned", "N/A", "None", "n/a"})


def as_object(value: object) -> dict[str, object]:
    """``value`` if it is a JSON object, else an empty one."""
    return cast(dict[str, object], value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """``value`` if it is a JSON array, else an empty one."""
    return cast(list[object], value) if isinstance(value, list) else []


def read_int(value: object) -> int | None:
    """A non-negative number in any of Slurm's formats; None if unset, infinite, negative or not a number."""
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
    """Convert Unix seconds to milliseconds; 0 and unset become None."""
    value = read_int(seconds)
    return UnixMs(value * 1000) if value else None


def read_minutes(value: object) -> int | None:
    """Convert Slurm's minutes to seconds; None if unset or unlimited."""
    minutes = read_int(value)
    return None if minutes is None else minutes * 60


_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTPE]?)", re.ASCII)
_MIB_OF = {"K": 2.0**-10, "": 1.0, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30, "E": 2.0**40}


def read_mebibytes(text: str) -> int | None:
    """MiB of ``128G`` or ``350M``; Slurm's units are powers of 1024. None if it is not a size, or zero."""
    match = _MEMORY.fullmatch(text.strip())
    return None if match is None else round(float(match[1]) * _MIB_OF[match[2]]) or None


def read_tres_count(text: str, kind: str) -> int | None:
    """The count of ``cpu=12,mem=128G,gres/gpu=1`` for a kind; None if it is not there."""
    counts = (part.partition("=")[2] for part in text.split(",") if part.partition("=")[0] == kind)
    return next((read_int(count) for count in counts), None)


def read_tres_bytes(text: str) -> int | None:
    """The memory of ``cpu=12,mem=128G,gres/gpu=1``, None if it is not there."""
    sizes = (part.partition("=")[2] for part in text.split(",") if part.startswith("mem="))
    mebibytes = next((read_mebibytes(size) for size in sizes), None)
    return None if mebibytes is None else mebibytes * 2**20


def read_text(value: object) -> str | None:
    """A non-empty text, or None."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # unpaired surrogates cannot be stored
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


MAX_HOSTS = 65_536
"""More than any cluster has. Without a limit, a damaged range such as ``n[0-999999999]`` would fill the memory."""

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


def expand_hostlist(text: str) -> list[str]:
    """Expand a hostlist, in order. Raises ValueError if it is malformed or too large."""
    names: list[str] = []
    for part in split_outside(text, "[", "]"):
        if part:
            names.extend(_expand_part(part, MAX_HOSTS - len(names)))
    return names


def split_outside(text: str, opening: str, closing: str) -> list[str]:
    """Split at commas outside of brackets. Raises ValueError if brackets are unbalanced."""
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(text):
        if character == opening:
            depth += 1
        elif character == closing:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
        if depth not in (0, 1):
            raise ValueError(f"unpaired {opening}{closing} in {text[:80]!r}")
    if depth:
        raise ValueError(f"unpaired {opening}{closing} in {text[:80]!r}")
    parts.append(text[start:].strip())
    return parts


def _expand_part(part: str, room: int) -> list[str]:
    # "rack[1-2]n[01-16]-ib" splits into "rack", "1-2", "n", "01-16", "-ib": every second piece is a set of numbers.
    pieces = re.split(r"[\[\]]", part)
    choices = [_expand_numbers(piece) if odd else [piece] for odd, piece in zip(itertools.cycle((False, True)), pieces)]
    size = 1
    for choice in choices:
        size *= len(choice)
    if size > room:
        raise ValueError(f"{part[:80]!r} expands to more than {MAX_HOSTS} hosts")
    return ["".join(combination) for combination in itertools.product(*choices)]


def _expand_numbers(text: str) -> list[str]:
    numbers: list[str] = []
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None:
            raise ValueError(f"{piece[:80]!r} is not a range of numbers")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= MAX_HOSTS:
            raise ValueError(f"{piece[:80]!r} is not a range of numbers")
        width = len(first)
        numbers.extend(f"{number:0{width}d}" for number in range(int(first), int(last) + 1))
    return numbers
