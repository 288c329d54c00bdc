"""A job trace as columns: a recorded history of jobs in canonical units, and how its rows were cleaned.

Owns the column layout and the job statuses. Does not read files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import polars as pl

from clusterscape.model.identity_fields import PublicText


class JobStatus(StrEnum):
    """How a job ended. ``unknown``: the trace has no status, or one that ClusterScape does not recognize."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"


SizeUnit = Literal["processors", "gpus", "nodes"]

JOB_COLUMNS: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "job_id": pl.String(),
    "name": pl.String(),
    "user": pl.String(),
    "project": pl.String(),
    "queue": pl.String(),
    "submit_s": pl.Float64(),
    "wait_s": pl.Float64(),
    "run_s": pl.Float64(),
    "processors": pl.Int64(),
    "gpus": pl.Float64(),
    "nodes": pl.Int64(),
    "requested_s": pl.Float64(),
    "status": pl.Enum([status.value for status in JobStatus]),
}
"""Columns of a trace, in this order. Missing is null in every column but ``line``, ``submit_s`` and ``status``.

``line``: the job's line in its file, from 1 (in JSON its position in the list). ``submit_s``: seconds, Unix time if the source
states it, else since the start of the trace. ``name``: what its user called the job, or its executable. ``wait_s``: the recorded
wait. ``run_s``: null if the job never ran.
``gpus``: total GPUs, a fraction if a GPU is shared. ``requested_s``: the requested time limit.
"""


NOT_JOBS = frozenset(
    {"a job step, not a job", "the job has not ended", "submitted before the trace, or in another file of it"}
)
"""Reasons for which rows are dropped from a file that is in order."""
UNTIL_KEY = "Until"
"""Key in a trace's header: Unix seconds at which a live history was read. Only such traces have running or waiting jobs."""


@dataclass(frozen=True, slots=True)
class CleaningNote:
    """A problem in the rows of a trace and how it was handled. ``lines`` are examples, not all."""

    action: Literal["dropped", "repaired", "kept"]
    reason: PublicText
    count: int
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = f" (line {', '.join(str(line) for line in self.lines)}{', …' if self.count > len(self.lines) else ''})"
        return f"{self.count:,} {self.action}: {self.reason}{where if self.lines else ''}"


@dataclass(frozen=True, slots=True)
class JobTrace:
    """A recorded history of jobs, in submit order.

    ``size_unit`` names the column that says how large a job is. ``total`` is the machine's size in that unit, if the source
    states it. ``header`` holds the source's metadata.
    """

    name: str
    format: str
    frame: pl.DataFrame
    size_unit: SizeUnit
    total: int | None = None
    header: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[CleaningNote, ...] = ()
    unread_share: float = 0.0
    """Of the file's text: what lies behind damage."""

    def __post_init__(self) -> None:
        if dict(self.frame.schema) != JOB_COLUMNS:
            raise ValueError("the columns of a job trace must be JOB_COLUMNS")

    def __len__(self) -> int:
        return self.frame.height

    @property
    def size(self) -> pl.Series:
        """How large each job is, in ``size_unit``."""
        return self.frame[self.size_unit]

    @property
    def dropped(self) -> int:
        """Rows of the source that are not in the trace."""
        return sum(note.count for note in self.notes if note.action == "dropped")

    @property
    def unused_share(self) -> float:
        """The share of the file that describes jobs and could not be used, from 0 to 1."""
        lost = sum(note.count for note in self._losses)
        used = len(self) / (len(self) + lost) if len(self) else 0.0
        return 1 - used * (1 - self.unread_share)

    @property
    def main_loss(self) -> str:
        """Why most of the rows that could not be used were dropped, with their first lines; empty if none were."""
        return str(max(self._losses, key=lambda note: note.count, default=""))

    @property
    def _losses(self) -> list[CleaningNote]:
        return [note for note in self.notes if note.action == "dropped" and note.reason not in NOT_JOBS]
