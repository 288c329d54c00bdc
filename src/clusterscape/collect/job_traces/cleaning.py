"""Converts the text of a trace's rows into columns: times, durations and job statuses. Each row that is dropped or changed is
counted by reason.

Only this module decides what a row must have; readers only map texts to fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from zoneinfo import ZoneInfo

import polars as pl

from clusterscape.collect.job_traces.text import EXAMPLES, FileFaults
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.jobs import JOB_COLUMNS, CleaningNote, JobStatus, JobTrace, SizeUnit
from clusterscape.model.timezones import find_timezone

SWF_STATUSES = {
    "1": JobStatus.COMPLETED,
    "0": JobStatus.FAILED,
    "5": JobStatus.CANCELLED,
    "3": JobStatus.COMPLETED,  # the last part of a job that was interrupted
    "4": JobStatus.FAILED,
    "2": JobStatus.UNKNOWN,  # a part that was continued
    "-1": JobStatus.UNKNOWN,
}
SLURM_STATUSES = {
    "completed": JobStatus.COMPLETED,
    "failed": JobStatus.FAILED,
    "node_fail": JobStatus.FAILED,
    "boot_fail": JobStatus.FAILED,
    "out_of_memory": JobStatus.FAILED,
    "launch_failed": JobStatus.FAILED,
    "reconfig_fail": JobStatus.FAILED,
    "cancelled": JobStatus.CANCELLED,
    "preempted": JobStatus.CANCELLED,
    "revoked": JobStatus.CANCELLED,
    "requeued": JobStatus.CANCELLED,  # one execution of a job that continues in another record
    "resizing": JobStatus.UNKNOWN,
    "timeout": JobStatus.TIMEOUT,
    "deadline": JobStatus.TIMEOUT,
}
SLURM_ACTIVE_STATES = ("pending", "running", "suspended", "completing", "configuring", "stopped")
PHILLY_STATUSES = {"pass": JobStatus.COMPLETED, "killed": JobStatus.CANCELLED, "failed": JobStatus.FAILED}
POD_STATUSES = {
    "succeeded": JobStatus.COMPLETED,
    "failed": JobStatus.FAILED,
    "running": JobStatus.UNKNOWN,
    "pending": JobStatus.UNKNOWN,
}


_CLOCK = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?$"
UNREADABLE = "unreadable"


def unix_seconds(column: str, timezone: str = "UTC") -> pl.Expr:
    """Unix seconds, as text, of ``2023-03-01 00:18:22``, also with ``T``, with an offset, or already as Unix seconds.

    A time without an offset is in ``timezone``.
    """
    text = pl.col(column).str.strip_chars()
    plain = text.str.replace("T", " ", literal=True)
    local = plain.str.slice(0, 19).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="ms")
    offset = plain.str.extract(r"([+-]\d\d:?\d\d)$", 1)
    sign = pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)
    digits = offset.str.replace(":", "", literal=True)
    offset_s = sign * (
        digits.str.slice(1, 2).cast(pl.Int64, strict=False) * 3600
        + digits.str.slice(3, 2).cast(pl.Int64, strict=False) * 60
    )
    at_utc_s = local.dt.epoch("s") - offset_s
    at_zone_s = local.dt.replace_time_zone(timezone, ambiguous="earliest", non_existent="null").dt.epoch("s")
    seconds = pl.when(offset.is_not_null()).then(at_utc_s).otherwise(at_zone_s).cast(pl.String)
    is_number = text.str.contains(r"^\d+(\.\d+)?$")
    is_missing = text.is_null() | text.is_in(["", "Unknown", "None", "N/A", "NaT", "nan"])
    return pl.when(is_missing).then(None).when(is_number).then(text).otherwise(seconds.fill_null(pl.lit(UNREADABLE)))


def check_zone(timezone: str) -> ZoneInfo:
    """The time zone. Raises QueryError if its name is unknown."""
    try:
        return find_timezone(timezone)
    except ValueError:
        raise QueryError(f"unknown time zone {timezone!r}", hint="Use a name such as UTC or Europe/Berlin.") from None


def clock_seconds(column: str) -> pl.Expr:
    """Seconds, as text, of Slurm's ``1-02:03:04``, ``02:03:04`` or ``03:04``; null if there is no limit."""
    text = pl.col(column).str.strip_chars()
    parts = [text.str.extract(_CLOCK, group).cast(pl.Int64, strict=False).fill_null(0) for group in range(1, 5)]
    seconds = (parts[0] * 86_400 + parts[1] * 3600 + parts[2] * 60 + parts[3]).cast(pl.String)
    is_missing = text.is_null() | text.str.to_lowercase().is_in(["", "unlimited", "partition_limit", "invalid"])
    return pl.when(is_missing).then(None).when(text.str.contains(_CLOCK)).then(seconds).otherwise(pl.lit(UNREADABLE))


Action = Literal["dropped", "repaired", "kept"]
NUMBERS = ("submit_s", "wait_s", "run_s", "processors", "gpus", "nodes", "requested_s")
_NO_TEXT = ("", "-", "nan", "NaN", "None", "NULL", "null", "N/A", "Unknown")
MAX_UNKNOWN_STATUSES = 20
"""Unknown statuses that have a note of their own; the others share one."""
MAX_NAME_CHARACTERS = 256
LATEST_S = 4_102_444_800
"""The year 2100. Later submissions are not Unix times in seconds, but mostly in milliseconds."""
MAX_DURATION_S = 100 * 365 * 86_400
"""A century. Longer waits, run times and limits are placeholders or errors."""
SMALLEST = 1e-6
"""Smaller numbers are zero: their ratios would overflow."""
MAX_SIZE = 10**9
"""Units of a job or a machine: a hundred times those of the largest machine."""
_NAMES = ("job_id", "user", "project", "queue")
_ACTIONS: tuple[Action, ...] = ("dropped", "repaired", "kept")


@dataclass
class Notes:
    """Counts by (action, reason), with the first lines of each."""

    counts: dict[tuple[Action, str], int] = field(default_factory=dict)
    lines: dict[tuple[Action, str], list[int]] = field(default_factory=dict)

    def add(self, action: Action, reason: str, count: int, lines: list[int]) -> None:
        """Add to a count and its example lines."""
        if count:
            key = (action, reason)
            self.counts[key] = self.counts.get(key, 0) + count
            examples = self.lines.setdefault(key, [])
            examples.extend(lines[: EXAMPLES - len(examples)])

    def mark(self, action: Action, reason: str, frame: pl.DataFrame, where: pl.Expr) -> None:
        """Count the rows of ``frame`` that match ``where``."""
        self._find(action, reason, frame, where)

    def drop(self, reason: str, frame: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
        """Remove the rows that match ``where``, and count them."""
        is_hit = self._find("dropped", reason, frame, where)
        return frame.filter(~is_hit) if is_hit.any() else frame

    def _find(self, action: Action, reason: str, frame: pl.DataFrame, where: pl.Expr) -> pl.Series:
        is_hit = frame.select(where.fill_null(False).alias("is_hit"))["is_hit"]
        if is_hit.any():
            lines = frame["line"].filter(is_hit)
            self.add(action, reason, lines.len(), lines.head(EXAMPLES).to_list())
        return is_hit

    def listed(self) -> tuple[CleaningNote, ...]:
        """All notes: dropped rows first, then repaired, then kept."""
        keys = sorted(self.counts, key=lambda key: _ACTIONS.index(key[0]))
        return tuple(CleaningNote(key[0], key[1], self.counts[key], tuple(self.lines[key])) for key in keys)


class Cleaner:
    """Converts blocks of text columns to a trace. ``statuses`` maps the source's statuses, in lower case, to ours."""

    def __init__(self, statuses: Mapping[str, JobStatus], *, missing: float | None = None) -> None:
        self.notes = Notes()
        self.faults = FileFaults()
        self._statuses = statuses
        self._missing = missing
        self._unknown_statuses: set[str] = set()
        self._blocks: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Add one block: ``line`` and any columns of a trace, as text or numbers."""
        missing = [
            pl.lit(None, pl.String).alias(name) for name in JOB_COLUMNS if name not in frame.columns and name != "line"
        ]
        frame = self._to_numbers(frame.with_columns(missing))
        frame = self._to_statuses(frame)
        is_long = pl.any_horizontal(
            pl.col(name).cast(pl.String).str.len_chars() > MAX_NAME_CHARACTERS for name in _NAMES
        )
        frame = self.notes.drop(f"a name of more than {MAX_NAME_CHARACTERS} characters", frame, is_long)
        texts = [pl.col(name).cast(pl.String).str.strip_chars().replace(list(_NO_TEXT), None) for name in _NAMES]
        texts.append(
            pl.col("name")
            .cast(pl.String)
            .str.strip_chars()
            .replace(list(_NO_TEXT), None)
            .str.slice(0, MAX_NAME_CHARACTERS)
        )
        integers = [pl.col(name).floor().cast(pl.Int64, strict=False) for name in ("processors", "nodes")]
        self._blocks.append(
            frame.with_columns(texts).with_columns(integers).select(list(JOB_COLUMNS)).cast(pl.Schema(JOB_COLUMNS))
        )

    def _to_numbers(self, frame: pl.DataFrame) -> pl.DataFrame:
        for name in NUMBERS:
            if frame.schema[name] != pl.String:
                frame = frame.with_columns(pl.col(name).cast(pl.Float64))
                continue
            text = pl.col(name).str.strip_chars().replace(list(_NO_TEXT), None)
            frame = frame.with_columns(text.alias(name), text.cast(pl.Float64, strict=False).alias("_number"))
            is_unreadable = pl.col(name).is_not_null() & (pl.col("_number").is_null() | ~pl.col("_number").is_finite())
            frame = self.notes.drop(f"{name} cannot be read", frame, is_unreadable)
            frame = frame.with_columns(pl.col("_number").alias(name)).drop("_number")
        frame = frame.with_columns(
            pl.when(pl.col(name).abs() < SMALLEST).then(0.0).otherwise(pl.col(name)).alias(name) for name in NUMBERS
        )
        if self._missing is not None:
            frame = frame.with_columns(
                pl.when(pl.col(name) != self._missing).then(pl.col(name)).alias(name) for name in NUMBERS
            )
        return frame

    def _to_statuses(self, frame: pl.DataFrame) -> pl.DataFrame:
        statuses = pl.col("status").cast(pl.String).str.strip_chars().str.to_lowercase().replace("", None)
        frame = frame.with_columns(statuses.alias("_text"))
        our_statuses = {text: status.value for text, status in self._statuses.items()}
        unknown = frame.filter(pl.col("_text").is_not_null() & ~pl.col("_text").is_in(list(our_statuses)))
        counted = unknown.group_by("_text", maintain_order=True).agg(pl.len(), pl.col("line").head(EXAMPLES))
        for text, count, lines in counted.iter_rows():
            if text in self._unknown_statuses or len(self._unknown_statuses) < MAX_UNKNOWN_STATUSES:
                self._unknown_statuses.add(text)
                self.notes.add("kept", f"unknown status {text[:40]!r}", count, lines)
            else:
                self.notes.add("kept", "other unknown statuses", count, lines)
        silent = [text for text, status in our_statuses.items() if status == JobStatus.UNKNOWN.value]
        is_silent = pl.col("_text").is_null() | pl.col("_text").is_in(silent)
        self.notes.mark("kept", "the trace does not say how the job ended", frame, is_silent)
        status = pl.col("_text").replace_strict(our_statuses, default=JobStatus.UNKNOWN.value, return_dtype=pl.String)
        return frame.with_columns(status.fill_null(JobStatus.UNKNOWN.value).alias("status")).drop("_text")

    def finish(
        self,
        name: str,
        format: str,
        size_unit: SizeUnit,
        *,
        total: int | None = None,
        header: Mapping[str, str] | None = None,
    ) -> JobTrace:
        """Build the trace. Raises SourceError if no rows are left."""
        frame = pl.concat(self._blocks) if self._blocks else pl.DataFrame(schema=JOB_COLUMNS)
        self._blocks.clear()  # each step below copies what it keeps
        self._note_faults()
        frame = self._drop_impossible(frame, size_unit, total)
        self._mark_odd(frame)
        frame = self._sort(frame)
        notes = self.notes.listed()
        if frame.height == 0:
            reasons = "\n".join(str(note) for note in notes)
            message = f"{name}: no row is a valid job" if notes else f"{name} has no jobs"
            raise SourceError(message, hint=reasons or "The file is empty, or has only a header.")
        unread = self.faults.unused_share
        return JobTrace(name, format, frame, size_unit, total, dict(header or {}), notes, unread_share=unread)

    def _note_faults(self) -> None:
        faults = self.faults
        reason = "bytes that are not UTF-8 were read as Latin-1"
        self.notes.add("repaired", reason, faults.undecodable, faults.undecodable_lines)
        if faults.is_cut_off:
            self.notes.add(
                "kept", "the compressed file is truncated or damaged: only the part before that is read", 1, []
            )
        elif faults.damage is not None:
            self.notes.add("kept", f"{faults.damage}: only the part before that is read", 1, [])

    def _drop_impossible(self, frame: pl.DataFrame, size_unit: SizeUnit, total: int | None) -> pl.DataFrame:
        drop = self.notes.drop
        frame = drop("no submit time", frame, pl.col("submit_s").is_null())
        frame = drop("negative submit time", frame, pl.col("submit_s") < 0)
        is_late = pl.col("submit_s") > LATEST_S
        frame = drop("submitted after the year 2100: is the time in milliseconds?", frame, is_late)
        frame = drop("negative run time", frame, pl.col("run_s") < 0)
        frame = drop("a run time of more than a century", frame, pl.col("run_s") > MAX_DURATION_S)
        sizes = [pl.col(name) for name in ("processors", "gpus", "nodes")]
        frame = drop("negative size", frame, pl.any_horizontal(size < 0 for size in sizes))
        frame = drop("no size above zero", frame, pl.max_horizontal(*sizes).fill_null(0) <= 0)
        frame = drop(f"a size above {MAX_SIZE:,}", frame, pl.any_horizontal(size > MAX_SIZE for size in sizes))
        size = pl.col(size_unit)
        if total is not None:
            frame = drop(f"larger than the machine ({total:,} {size_unit})", frame, size > total)
        return frame

    def _mark_odd(self, frame: pl.DataFrame) -> None:
        mark = self.notes.mark
        has_times = frame["run_s"].null_count() < frame.height
        reason = "no run time: the job never ran" if has_times else "the trace has no run times"
        mark("kept", reason, frame, pl.col("run_s").is_null())
        mark("kept", "run time is zero", frame, pl.col("run_s") == 0)
        mark("repaired", "negative wait: treated as missing", frame, pl.col("wait_s") < 0)
        mark("repaired", "a wait of more than a century: treated as missing", frame, pl.col("wait_s") > MAX_DURATION_S)
        mark("repaired", "requested time is not above zero: treated as missing", frame, pl.col("requested_s") <= 0)
        is_endless = pl.col("requested_s") > MAX_DURATION_S
        mark("repaired", "a requested time of more than a century: treated as missing", frame, is_endless)
        mark(
            "kept",
            "ran longer than requested",
            frame,
            (pl.col("run_s") > pl.col("requested_s")) & (pl.col("requested_s") > 0),
        )

    def _sort(self, frame: pl.DataFrame) -> pl.DataFrame:
        is_out_of_order = pl.col("submit_s") < pl.col("submit_s").cum_max()
        self.notes.mark("repaired", "not in submit order: sorted", frame, is_out_of_order)
        cleaned = (
            pl.when(pl.col("requested_s").is_between(0, MAX_DURATION_S, "right")).then(pl.col("requested_s")),
            pl.when(pl.col("wait_s").is_between(0, MAX_DURATION_S)).then(pl.col("wait_s")),
        )
        return frame.sort("submit_s", maintain_order=True).with_columns(cleaned)

    def forget_failures_without_successes(self, reason: str) -> None:
        """Treat "failed" as unknown if no row completed: then the source writes its code of failures where it knows nothing."""
        rows = pl.concat([block.select("line", "status") for block in self._blocks]) if self._blocks else None
        if rows is None or (rows["status"] == JobStatus.COMPLETED.value).any():
            return
        is_failed = pl.col("status") == JobStatus.FAILED.value
        self.notes.mark("repaired", reason, rows, is_failed)
        unknown = pl.when(~is_failed).then("status").otherwise(pl.lit(JobStatus.UNKNOWN.value, JOB_COLUMNS["status"]))
        self._blocks = [block.with_columns(unknown.alias("status")) for block in self._blocks]

    def share_with(self, name: str) -> float:
        """The fraction of rows so far whose ``name`` (a size) is above zero."""
        rows = sum(block.height for block in self._blocks)
        return sum(int((block[name] > 0).sum()) for block in self._blocks) / rows if rows else 0.0
