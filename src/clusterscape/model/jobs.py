"""A job trace as columns: what a recorded history of jobs says, in our units, and what was done to its rows.

Owns the column layout and the words for how a job ended. Does not read files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import polars as pl

from clusterscape.model.identity_fields import PublicText


class JobStatus(StrEnum):
    """How a job ended. ``unknown`` is for traces that do not say, or in a word we do not know."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"


SizeUnit = Literal["processors", "gpus", "nodes"]

JOB_COLUMNS: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "job_id": pl.String(),
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

``line``: where the job stands in its file (1 is the first line; in JSON the place in the list). ``submit_s``: seconds, Unix time
where the source says so, else since the trace's own beginning. ``wait_s``: the recorded wait. ``run_s``: null where the job never
ran. ``gpus``: GPUs in all, a fraction where a GPU is shared. ``requested_s``: the time limit the user asked for.
"""


UNTIL_KEY = "Until"
"""In a trace's header: Unix seconds when a history that goes on was read. Only there can a job still run or wait."""


@dataclass(frozen=True, slots=True)
class CleaningNote:
    """What was found in the rows of a trace and done about it. ``lines`` are examples, not all."""

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

    ``size_unit`` names the column that says how large a job is. ``total`` is the machine's size in that unit, where the source
    states it. ``header`` is what the source says about itself.
    """

    name: str
    format: str
    frame: pl.DataFrame
    size_unit: SizeUnit
    total: int | None = None
    header: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[CleaningNote, ...] = ()

    def __post_init__(self) -> None:
        if dict(self.frame.schema) != JOB_COLUMNS:
            raise ValueError("the columns of a trace are those of JOB_COLUMNS")

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
