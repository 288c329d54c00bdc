"""Rows of the relaxed-backfilling table of Zhang & Dai, and where its traces are found."""

import os
from dataclasses import dataclass
from pathlib import Path

from clusterscape.errors import QueryError

VARIABLE = "CLUSTERSCAPE_REFERENCE_DATA"
"""The folder of third-party data, which is never part of ClusterScape."""


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """wait (s), bounded slowdown, utilization and violation (s) of both columns, and the machine's nodes."""

    name: str
    path: str
    total: int
    baseline: dict[str, float]
    adaptive: dict[str, float]


_MEASURES = ("wait_s", "bounded_slowdown", "utilization", "violation_s")
PUBLISHED = {
    "mira": PublishedRows(
        "Mira",
        "sched/alcf/mira_2018_lumos.csv.gz",
        49_152,
        dict(zip(_MEASURES, (34_199.90, 37.81, 0.8792, 670.31), strict=True)),
        dict(zip(_MEASURES, (36_210.37, 39.40, 0.8805, 344.89), strict=True)),
    )
}


def find_published(trace: str) -> PublishedRows | None:
    """The published rows of a trace that is named, or whose file is known."""
    named = PUBLISHED.get(trace)
    return named or next((rows for rows in PUBLISHED.values() if Path(rows.path).name == Path(trace).name), None)


def find_trace(trace: str) -> Path:
    """The file of a named trace, or the file itself."""
    rows = PUBLISHED.get(trace)
    if rows is None:
        return Path(trace)
    folder = os.environ.get(VARIABLE)
    path = Path(folder or ".") / rows.path
    if folder is None or not path.is_file():
        raise QueryError(
            f"the log of {rows.name} is not part of ClusterScape",
            hint=f"Give its file (--trace {path.name}), or the folder of {rows.path} in {VARIABLE}.",
        )
    return path
