"""How the command talks: a console for answers, one for everything else, and JSON where it is asked for."""

import dataclasses
from typing import Any

import orjson
from rich.console import Console

answers = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
    answers.out(orjson.dumps(plain, option=orjson.OPT_INDENT_2).decode(), highlight=False)


def percent(ratio: float | None) -> str:
    """A ratio as whole percent; an en dash where it is not known."""
    return "–" if ratio is None else f"{ratio:.0%}"


def count(number: int, noun: str) -> str:
    """``1 node``, ``1,250 nodes``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
