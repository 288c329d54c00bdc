"""Results that were published about job traces, to compare simulations with: the table of Zhang & Dai."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

_MEASURES = ("wait_s", "bounded_slowdown", "utilization", "violation_s")


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """Published wait (s), bounded slowdown, utilization and violation (s), and the number of nodes.

    ``path``: in the folder of reference data; ``source``: where the trace can be had, if not there.
    """

    name: str
    path: str
    total: int
    baseline: dict[str, float]
    adaptive: dict[str, float]
    source: str | None = None


PUBLISHED: Mapping[str, PublishedRows] = {
    "mira": PublishedRows(
        "Mira",
        "sched/alcf/mira_2018_lumos.csv.gz",
        49_152,
        dict(zip(_MEASURES, (34_199.90, 37.81, 0.8792, 670.31), strict=True)),
        dict(zip(_MEASURES, (36_210.37, 39.40, 0.8805, 344.89), strict=True)),
    ),
    "blue-waters": PublishedRows(
        "Blue Waters",
        "sched/blue-waters/torque.log.gz",
        26_864,  # 22,636 XE and 4,228 XK nodes
        dict(zip(_MEASURES, (7_513.02, 39.02, 0.7164, 1_258.35), strict=True)),
        dict(zip(_MEASURES, (7_520.38, 38.99, 0.7165, 1_200.81), strict=True)),
        "NCSA publishes it at https://bluewaters.ncsa.illinois.edu/data-sets (Globus, torque_logs_anonimized): "
        "unpack the days into one file.",
    ),
}


def find_published(trace: str) -> PublishedRows | None:
    """The published rows of a trace, by its name (``mira``), its file name, or the file name without suffixes."""
    named = PUBLISHED.get(trace)
    name = PurePath(trace).name
    return named or next(
        (rows for rows in PUBLISHED.values() if name in (PurePath(rows.path).name, name_trace(rows))), None
    )


def name_trace(rows: PublishedRows) -> str:
    """The name of an uploaded trace with these rows: its file name without suffixes, or that of its folder."""
    path = PurePath(rows.path)
    stem = path.name.partition(".")[0]
    return path.parent.name if stem == "torque" else stem
