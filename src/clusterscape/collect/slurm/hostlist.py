"""Expands Slurm's hostlist expressions: ``gpu[01-08,12],vgpu3``, ``rack[1-2]n[01-16]-ib``."""

import itertools
import re

MAX_HOSTS = 65_536
"""More than any Slurm has; a damaged range such as ``n[0-999999999]`` must not fill the memory."""

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


def expand_hostlist(text: str) -> list[str]:
    """The names an expression stands for, in its order; raises ValueError where it is malformed or too large."""
    names: list[str] = []
    for part in split_outside(text, "[", "]"):
        if part:
            names.extend(_expand_part(part, MAX_HOSTS - len(names)))
    return names


def split_outside(text: str, opening: str, closing: str) -> list[str]:
    """Split at commas that stand outside of brackets; raises ValueError where brackets do not pair."""
    parts: list[str] = []
    depth = start = 0
    for position, sign in enumerate(text):
        if sign == opening:
            depth += 1
        elif sign == closing:
            depth -= 1
        elif sign == "," and depth == 0:
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
        raise ValueError(f"{part[:80]!r} names more than {MAX_HOSTS} hosts")
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
