"""How the command talks: a console for answers, one for everything else, and JSON where it is asked for."""

import dataclasses
import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

# A pipe has no width: what goes into one is not cut to a guess.
answers = Console(width=None if sys.stdout.isatty() else 240)
errors = Console(stderr=True)

_STYLES = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "bold red"}


class ConsoleLog(logging.Handler):
    """Log lines on standard error: the time and what happened, unwrapped, and above a progress bar where one runs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        errors.print(
            f"{moment} {self.format(record)}",
            style=_STYLES.get(record.levelno, ""),
            soft_wrap=True,
            markup=False,
            highlight=False,
        )


class JsonLog(logging.Handler):
    """Log lines on standard error as JSON, one object a line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = logging.Formatter().formatException(record.exc_info)
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stderr.flush()


NOISY = ("asyncio", "uvicorn.error", "aiohttp", "alembic", "httpx")
"""Loggers of libraries whose everyday lines say nothing to an operator."""


def set_up_log(level: int, *, as_json: bool = False) -> None:
    """Decide what is logged and how; the last call counts."""
    logging.basicConfig(
        level=level, format="%(message)s", handlers=[JsonLog() if as_json else ConsoleLog()], force=True
    )
    for name in NOISY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING) if level > logging.DEBUG else logging.DEBUG)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
    answers.out(json.dumps(plain, indent=2, ensure_ascii=False), highlight=False)


def percent(ratio: float | None) -> str:
    """A ratio as whole percent; an en dash where it is not known."""
    return "–" if ratio is None else f"{ratio:.0%}"


def count(number: int, noun: str) -> str:
    """``1 node``, ``1,250 nodes``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float | None) -> str:
    """``45 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``; an en dash where it is not known."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min"
