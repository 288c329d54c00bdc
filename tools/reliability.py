"""Writes ``docs/design/reliability.md`` from the results of a test run (``make soak``): ``tools/reliability.py ROWS.jsonl``."""

import json
import os
import platform
import sys
import time
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/design/reliability.md"
HEADINGS = {
    "fault": "Faults",
    "load": "Load",
    "fuzz": "Made-up input",
    "access": "Access",
}
HEAD = """<!-- Written by `make soak` from what its tests measured; run it again instead of editing. -->
# Reliability

What was done to real processes, what was promised, and what was measured. `make test` runs the quick half of these tests,
`make soak` all of them, and writes this page.

"""


def main(path: Path) -> None:
    """Write the page."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if not rows:
        sys.exit(f"{path} is empty: no test recorded a result")
    parts = [
        HEAD,
        f"Run of {time.strftime('%Y-%m-%d', time.gmtime())} on {os.cpu_count()} cores, Python {platform.python_version()}.\n",
    ]
    for kind, heading in HEADINGS.items():
        # Of a test that ran twice, only the last result counts.
        results = {(row["test"].partition("[")[0], row["what"]): row for row in rows if row["kind"] == kind}
        if results:
            parts.append(f"\n## {heading}\n\n| what was done | promised | measured | test |\n|---|---|---|---|\n")
            parts.extend(_line(row) for row in sorted(results.values(), key=lambda row: (row["test"], row["what"])))
    PAGE.write_text("".join(parts), encoding="utf-8")


def _line(row: dict[str, str]) -> str:
    file, _, name = row["test"].removeprefix("tests/").partition("::")
    cells = (row["what"], row["promised"], row["measured"], f"`{file}` {name.partition('[')[0]}".strip())
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
