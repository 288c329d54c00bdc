"""Output of commands: consoles for standard output and standard error, logging, JSON.

Keeps terminals safe from untrusted text such as job names: a ``str`` is always printed as one line without markup and control
characters, also in tables. Styled text is a ``rich.text.Text``.
"""

import dataclasses
import json
import logging
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from clusterscape.cli.safe_text import one_line, plain_lines, safe_json


class SafeConsole(Console):
    """A console that escapes control characters and markup in printed values."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape a ``str``, printed or in a table."""
        return super().render_str(one_line(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape all other text; control codes of the console itself are separate segments."""
        for segment in super().render(renderable, options):
            is_text = not segment.control
            yield Segment(plain_lines(segment.text), segment.style) if is_text else segment


# A pipe has no width: do not truncate to a guess.
stdout = SafeConsole(width=None if sys.stdout.isatty() else 240)
stderr = SafeConsole(stderr=True)

_STYLES = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "bold red"}


class ConsoleLog(logging.Handler):
    """Logs to standard error: time and message, not wrapped, above a progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        lines = [f"{moment} {one_line(record.getMessage())}"]
        if record.exc_info:
            # Indented, so that no line of a traceback looks like a log line.
            traceback = plain_lines(logging.Formatter().formatException(record.exc_info))
            lines += [f"  {line}" for line in traceback.split("\n")]
        stderr.print(Text("\n".join(lines)), style=_STYLES.get(record.levelno, ""), soft_wrap=True, highlight=False)


class JsonLog(logging.Handler):
    """Logs to standard error as JSON, one object per line."""

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
        sys.stderr.write(safe_json(json.dumps(line, ensure_ascii=False)) + "\n")
        sys.stderr.flush()


NOISY = ("asyncio", "uvicorn.error", "aiohttp", "alembic", "httpx")
"""Loggers of libraries whose info messages do not help an operator."""


def set_up_log(level: int, *, as_json: bool = False) -> None:
    """Set the log level and format; replaces earlier calls."""
    logging.basicConfig(
        level=level, format="%(message)s", handlers=[JsonLog() if as_json else ConsoleLog()], force=True
    )
    for name in NOISY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING) if level > logging.DEBUG else logging.DEBUG)


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
    sys.stdout.write(safe_json(json.dumps(plain, indent=2, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def capture_text(show: Callable[[], None]) -> str:
    """What ``show`` prints to standard output, without styles; nothing is printed."""
    with stdout.capture() as captured, stderr.capture():
        show()
    return Text.from_ansi(captured.get()).plain


def print_text(text: str) -> None:
    """Print a document such as CSV or YAML unchanged; on a terminal, control characters are escaped."""
    sys.stdout.write(plain_lines(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def styled_line(*parts: str | tuple[str, str]) -> Text:
    """One line of several parts; a pair is text with its style."""
    return Text.assemble(
        *((one_line(part), "") if isinstance(part, str) else (one_line(part[0]), part[1]) for part in parts)
    )


def listing_table(*, show_header: bool = True, expand: bool = False) -> Table:
    """A table without borders, as in all listings."""
    return Table(box=None, pad_edge=False, header_style="dim", show_header=show_header, expand=expand)


def percent(ratio: float | None) -> str:
    """A ratio as whole percent; an en dash if it is None."""
    return "–" if ratio is None else f"{ratio:.0%}"


def count(number: int, noun: str) -> str:
    """``1 node``, ``1,250 nodes``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
