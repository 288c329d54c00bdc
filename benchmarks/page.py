"""Writes docs/benchmarks.md from the stored results of each benchmark's last run (benchmarks/results/<name>.json)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import HEAD, Report, Row, written

INTRODUCTION = """\
<!-- Written by `make bench`; run it again instead of editing. -->
# Benchmarks

Every number here is of a run of `make bench`; `make bench ARGS="--only NAME"` runs one benchmark again and renews its part of
this page. Peers run in the same process or right after ours, on the same input and machine. A ratio above 1 means that ours
is better. Budgets are promises of the project; one that was not kept says so.
"""


@dataclass(frozen=True)
class Run:
    """The last run of one benchmark."""

    name: str
    date: str
    machine: str
    load: float
    seconds: float
    reports: list[Report]

    @classmethod
    def read(cls, path: Path) -> "Run":
        """Reads a file that :func:`benchmarks.__main__.main` wrote."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        reports = [Report.from_dict(report) for report in kept["reports"]]
        return cls(path.stem, kept["date"], kept["machine"], kept["load"], kept["seconds"], reports)

    @property
    def rows(self) -> list[tuple[str, Row]]:
        """Rows of all its reports with full names; an indented row is a part of the row above."""
        named, above = [], ""
        for row in (row for report in self.reports for row in report.rows):
            is_part = row.what.startswith(" ")
            above = above if is_part else row.what
            named.append((f"{above}: {row.what.strip()}" if is_part else row.what, row))
        return named


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.strip().replace("|", "\\|") for cell in line) + " |" for line in lines)


def compared(runs: list[Run]) -> str:
    """Every comparison with a peer, of all benchmarks."""
    rows = [
        (f"{name} ([{run.name}](#{anchor(run)}))", *row.cells()[1:4])
        for run in runs
        for name, row in run.rows
        if row.times_better is not None
    ]
    return "## Compared with peers\n\n" + table(("what", *HEAD[1:4]), rows)


def budgets(runs: list[Run]) -> str:
    """How many were kept, and which were not."""
    bound = [(run, name, row) for run in runs for name, row in run.rows if row.is_within_budget is not None]
    missed = [
        (f"{name} ([{run.name}](#{anchor(run)}))", row.cells()[1], f"{written(row.budget or 0)} {row.unit}")
        for run, name, row in bound
        if not row.is_within_budget
    ]
    text = f"## Budgets\n\n{len(bound) - len(missed)} of {len(bound)} kept."
    return text if not missed else f"{text} Not kept:\n\n" + table(("what", "measured", "budget"), missed)


def anchor(run: Run) -> str:
    """Where a benchmark's part begins on the page."""
    return run.name.replace("_", "-")


def marked(row: Row) -> tuple[str, ...]:
    """Cells of the row; a part of the row above is marked with a dash."""
    label, *cells = row.cells()
    return (f"– {label.strip()}" if label.startswith(" ") else label, *cells)


def part(run: Run) -> str:
    """One benchmark."""
    lines = [
        f"## {run.name.replace('_', ' ').capitalize()}",
        f'`make bench ARGS="--only {run.name}"`, {run.date}, {run.machine}, load average before {run.load:.1f}, '
        f"took {run.seconds:,.0f} s.",
    ]
    for report in run.reports:
        lines += [f"**{report.title}**", table(HEAD, [marked(row) for row in report.rows])]
    return "\n\n".join(lines)


def write_page(results: Path, names: tuple[str, ...], target: Path) -> None:
    """Of all benchmarks that ever ran, in their order."""
    runs = [Run.read(results / f"{name}.json") for name in names if (results / f"{name}.json").exists()]
    parts = [INTRODUCTION, budgets(runs), compared(runs), *(part(run) for run in runs)]
    target.write_text("\n\n".join(text.strip("\n") for text in parts) + "\n", encoding="utf-8")
