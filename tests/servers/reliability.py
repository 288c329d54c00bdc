"""Records promises and measurements of tests of faults and load; ``tools/reliability.py`` writes a page of them."""

import json
import os
from pathlib import Path

FILE = "RELIABILITY_ROWS"
"""The environment's name of the file to note in; without it nothing is noted."""


def note(kind: str, *, what: str, promised: str, measured: str) -> None:
    """Note one row of the page. ``kind``: ``fault``, ``load``, ``fuzz`` or ``access``."""
    if path := os.environ.get(FILE):
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        row = {"kind": kind, "what": what, "promised": promised, "measured": measured, "test": test}
        with Path(path).open("a", encoding="utf-8") as rows:
            rows.write(json.dumps(row, ensure_ascii=False) + "\n")
