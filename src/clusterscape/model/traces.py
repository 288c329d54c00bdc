"""An imported trace as it is stored: its metadata and the names of its files. Spans are in ``model/spans.py``."""

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
"""The operator graph (``model/spans.py``), if the trace contains one."""
MODULES_FILE = "modules.json"
"""The modules of every stage (``StageModules``), if the run was captured with ``clusterscape.trace.capture``."""
MEMORY_FILE = "memory.parquet"
"""Bytes allocated over time (``MEMORY_SCHEMA``), if it was recorded."""
UPLOADS = "uploads"
"""Folder of uploads that are not imported yet."""


class TraceState(StrEnum):
    """Progress of an import. ``importing`` includes the upload of its files."""

    IMPORTING = "importing"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAbout:
    """What lists show of a trace. ``problem``: why it failed; ``headline``: its first verdict in words; ``origin_ms``: when its
    first span began, null if its clock is not Unix time.
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
    """Login of the uploader; null: not a specific person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTrace:
    """The result of importing a trace: its metadata, and local files by the name under which they are stored."""

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
    """The key of a trace's file in the artifact store."""
    return f"{TRACES_PREFIX}{trace_id}/{file}"
