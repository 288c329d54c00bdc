"""An imported trace as it is kept: what is known of it, and the names of its files. Spans are ``model/spans.py``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from clusterscape.model.ids import UnixMs

TRACES_PREFIX = "traces/"
ABOUT_FILE = "about.json"
SPANS_FILE = "spans.parquet"
"""Aligned spans with the columns of ``analyze/trace/relations.py``; a span's id is its row."""
REPORT_FILE = "report.json"
STEPS_FILE = "steps.parquet"
OPERATORS_FILE = "operators.parquet"
"""The operator graph (``model/operators.py``), where the trace came with one."""
MODULES_FILE = "modules.json"
"""The modules of every stage (``StageModules``), where the run was captured."""
MEMORY_FILE = "memory.parquet"
"""Bytes allocated over time (``MEMORY_SCHEMA``), where the recorder tells."""
UPLOADS = "uploads"
"""Folder of what was sent and is not taken in yet."""


class TraceState(StrEnum):
    """How far an imported trace is. ``importing`` also while its files are being sent."""

    IMPORTING = "importing"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAbout:
    """What lists show of a trace. ``problem``: why it failed; ``headline``: its first verdict in words; ``origin_ms``: when its
    first span began, null where its clock is none of the world's.
    """

    trace_id: str
    name: str
    imported_at: UnixMs
    state: TraceState = TraceState.IMPORTING
    workload_id: str | None = None
    progress: float | None = None
    format: str | None = None
    ranks: int = 0
    steps: int = 0
    spans: int = 0
    extent_ns: float = 0.0
    origin_ms: float | None = None
    stages: Mapping[int, int | None] = field(default_factory=dict)
    """Every rank's pipeline stage."""
    notes: tuple[str, ...] = ()
    problem: str | None = None
    headline: str | None = None
    owned_by: str | None = None
    """Login of whoever sent it; null: nobody in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTrace:
    """What reading and analyzing a trace gave: facts, and local files by the name they are kept under."""

    format: str
    ranks: int
    steps: int
    spans: int
    extent_ns: float
    origin_ms: float | None
    stages: Mapping[int, int | None]
    notes: tuple[str, ...]
    headline: str | None
    files: Mapping[str, Path]


def trace_key(trace_id: str, file: str) -> str:
    """The key of a trace's file in the store of artifacts."""
    return f"{TRACES_PREFIX}{trace_id}/{file}"
