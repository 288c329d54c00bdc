"""HTML reports: the report page of the client with its data embedded, as a single file.

``web/vite.report.config.ts`` builds the page; ``web/src/report/document.ts`` defines the data of each kind.
"""

import base64
import gzip
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from clusterscape import __version__
from clusterscape.errors import ClusterScapeError

PAGE = Path(__file__).parents[1] / "serve/static/report.html"

ReportKind = Literal["job-traces", "diagnosis", "trace", "hang", "usage"]

# Placeholders in the page.
_TITLE = "<title>ClusterScape report</title>"
_SUMMARY = "<noscript></noscript>"
_DATA_START = '<script type="application/json" id="report">'
_DATA = f"{_DATA_START}</script>"


def read_page() -> str:
    """The empty page. Raises ClusterScapeError if it was not built, as in a fresh checkout."""
    try:
        return PAGE.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ClusterScapeError(
            "the page of HTML reports is not built", hint="Run `make setup` in the checkout; wheels contain it."
        ) from None


def write_report(path: Path, kind: ReportKind, title: str, answers: Mapping[str, Any], summary: str) -> None:
    """Write a report of ``answers``, encoded as in the API. ``summary``: plain text for browsers without JavaScript.

    Raises ClusterScapeError if the file cannot be written.
    """
    page = fill_page(read_page(), kind, title, answers, summary)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ClusterScapeError(f"cannot write {path}: {error.strerror}", hint="Choose another file.") from None


def fill_page(page: str, kind: ReportKind, title: str, answers: Mapping[str, Any], summary: str) -> str:
    """``page`` with the report embedded."""
    document = {
        "kind": kind,
        "title": title,
        "written_at": int(time.time() * 1000),
        "version": __version__,
        "answers": answers,
    }
    for placeholder, content in (
        (_TITLE, f"<title>{escape(title)}</title>"),
        (_SUMMARY, f"<noscript><p>The charts need JavaScript.</p><pre>{escape(summary)}</pre></noscript>"),
        (_DATA, f"{_DATA_START}{encode_for_html(document)}</script>"),
    ):
        before, separator, after = page.partition(placeholder)
        if not separator:
            raise ClusterScapeError(f"{PAGE.name} has no {placeholder}", hint="Build the client again: `make setup`.")
        page = before + content + after
    return page


def encode_for_html(value: Any) -> str:
    """JSON that is safe inside ``<script>``: no tag or comment can start in it. NaN becomes null."""
    text = msgspec.json.encode(value, enc_hook=_encode_scalar).decode("utf-8")
    # JSON has these characters only inside strings.
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _encode_scalar(value: Any) -> Any:
    """Convert numpy scalars."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be encoded")


def record_tables(body: bytes, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A binary API response, compressed, with the headers that are needed to read it."""
    packed = gzip.compress(body, compresslevel=9, mtime=0)
    return {"body": base64.b64encode(packed).decode("ascii"), "headers": dict(headers or {})}
