"""Turns the texts of a trace's rows into its columns. Each row that is dropped or changed is counted under its reason.

The one place that decides what a row must have; readers only say which text is which field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from clusterscape.collect.job_traces.text import EXAMPLES, FileFaults
from clusterscape.errors import SourceError
from clusterscape.model.jobs import JOB_COLUMNS, CleaningNote, JobStatus, JobTrace, SizeUnit

Action = Literal["dropped", "repaired", "kept"]
NUMBERS = ("submit_s", "wait_s", "run_s", "processors", "gpus", "nodes", "requested_s")
_NO_TEXT = ("", "-", "nan", "NaN", "None", "NULL", "null", "N/A", "Unknown")
MOST_UNKNOWN_STATUSES = 20
"""Words for how a job ended that are noted one by one."""
MOST_NAME_CHARACTERS = 256
_NAMES = ("job_id", "user", "project", "queue")
_ACTIONS: tuple[Action, ...] = ("dropped", "repaired", "kept")


@dataclass
class Notes:
    """Counts by (action, reason), with the first lines of each."""

    counts: dict[tuple[Action, str], int] = field(default_factory=dict)
    lines: dict[tuple[Action, str], list[int]] = field(default_factory=dict)

    def add(self, action: Action, reason: str, count: int, lines: list[int]) -> None:
        """More of the same."""
        if count:
            key = (action, reason)
            self.counts[key] = self.counts.get(key, 0) + count
            examples = self.lines.setdefault(key, [])
            examples.extend(lines[: EXAMPLES - len(examples)])

    def mark(self, action: Action, reason: str, frame: pl.DataFrame, where: pl.Expr) -> None:
        """Count the rows of ``frame`` for which ``where`` holds."""
        hits = frame.filter(where)["line"]
        self.add(action, reason, hits.len(), hits.head(EXAMPLES).to_list())

    def drop(self, reason: str, frame: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
        """``frame`` without the rows for which ``where`` holds, which are counted."""
        self.mark("dropped", reason, frame, where)
        return frame.filter(~where.fill_null(False))

    def listed(self) -> tuple[CleaningNote, ...]:
        """Dropped first, then repaired, then what was only noticed."""
        keys = sorted(self.counts, key=lambda key: _ACTIONS.index(key[0]))
        return tuple(CleaningNote(key[0], key[1], self.counts[key], tuple(self.lines[key])) for key in keys)


class Cleaner:
    """Takes blocks of text columns, gives a trace. ``statuses``: the source's words, in lower case, and what they mean."""

    def __init__(self, statuses: Mapping[str, JobStatus], *, missing: float | None = None) -> None:
        self.notes = Notes()
        self.faults = FileFaults()
        self._statuses = statuses
        self._missing = missing
        self._unknown_statuses: set[str] = set()
        self._blocks: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """One block: ``line`` and any of the columns of a trace, as text or already as numbers."""
        missing = [
            pl.lit(None, pl.String).alias(name) for name in JOB_COLUMNS if name not in frame.columns and name != "line"
        ]
        frame = self._to_numbers(frame.with_columns(missing))
        frame = self._to_statuses(frame)
        is_long = pl.any_horizontal(
            pl.col(name).cast(pl.String).str.len_chars() > MOST_NAME_CHARACTERS for name in _NAMES
        )
        frame = self.notes.drop(f"a name of more than {MOST_NAME_CHARACTERS} characters", frame, is_long)
        texts = [pl.col(name).cast(pl.String).str.strip_chars().replace(list(_NO_TEXT), None) for name in _NAMES]
        whole = [pl.col(name).floor().cast(pl.Int64, strict=False) for name in ("processors", "nodes")]
        self._blocks.append(
            frame.with_columns(texts).with_columns(whole).select(list(JOB_COLUMNS)).cast(pl.Schema(JOB_COLUMNS))
        )

    def _to_numbers(self, frame: pl.DataFrame) -> pl.DataFrame:
        for name in NUMBERS:
            if frame.schema[name] != pl.String:
                frame = frame.with_columns(pl.col(name).cast(pl.Float64))
                continue
            text = pl.col(name).str.strip_chars().replace(list(_NO_TEXT), None)
            frame = frame.with_columns(text.alias(name), text.cast(pl.Float64, strict=False).alias("_number"))
            wrong = pl.col(name).is_not_null() & (pl.col("_number").is_null() | ~pl.col("_number").is_finite())
            frame = self.notes.drop(f"{name} cannot be read", frame, wrong)
            frame = frame.with_columns(pl.col("_number").alias(name)).drop("_number")
        if self._missing is not None:
            frame = frame.with_columns(
                pl.when(pl.col(name) != self._missing).then(pl.col(name)).alias(name) for name in NUMBERS
            )
        return frame

    def _to_statuses(self, frame: pl.DataFrame) -> pl.DataFrame:
        words = pl.col("status").cast(pl.String).str.strip_chars().str.to_lowercase()
        frame = frame.with_columns(words.alias("_word"))
        known = {word: status.value for word, status in self._statuses.items()}
        unknown = frame.filter(pl.col("_word").is_not_null() & ~pl.col("_word").is_in(list(known)))
        counted = unknown.group_by("_word", maintain_order=True).agg(pl.len(), pl.col("line").head(EXAMPLES))
        for word, count, lines in counted.iter_rows():
            if word in self._unknown_statuses or len(self._unknown_statuses) < MOST_UNKNOWN_STATUSES:
                self._unknown_statuses.add(word)
                self.notes.add("kept", f"status {word[:40]!r} is not known", count, lines)
            else:
                self.notes.add("kept", "other statuses are not known", count, lines)
        status = pl.col("_word").replace_strict(known, default=JobStatus.UNKNOWN.value, return_dtype=pl.String)
        return frame.with_columns(status.fill_null(JobStatus.UNKNOWN.value).alias("status")).drop("_word")

    def finish(
        self,
        name: str,
        format: str,
        size_unit: SizeUnit,
        *,
        total: int | None = None,
        header: Mapping[str, str] | None = None,
    ) -> JobTrace:
        """The trace; raises SourceError where no row is left."""
        frame = pl.concat(self._blocks) if self._blocks else pl.DataFrame(schema=JOB_COLUMNS)
        self._blocks.clear()  # each step below copies what it keeps
        self._tell_faults()
        frame = self._drop_impossible(frame, size_unit, total)
        self._mark_odd(frame)
        frame = self._sort(frame)
        notes = self.notes.listed()
        if frame.height == 0:
            what = "\n".join(str(note) for note in notes)
            said = f"{name}: no row is a job" if notes else f"{name} holds no jobs"
            raise SourceError(said, hint=what or "The file is empty, or has nothing but a header.")
        return JobTrace(name, format, frame, size_unit, total, dict(header or {}), notes)

    def _tell_faults(self) -> None:
        faults = self.faults
        reason = "bytes that are not UTF-8 were read as Latin-1"
        self.notes.add("repaired", reason, faults.undecodable, faults.undecodable_lines)
        if faults.is_cut_off:
            self.notes.add("kept", "the compressed file breaks off: what came before that is here", 1, [])

    def _drop_impossible(self, frame: pl.DataFrame, size_unit: SizeUnit, total: int | None) -> pl.DataFrame:
        drop = self.notes.drop
        frame = drop("no submit time", frame, pl.col("submit_s").is_null())
        frame = drop("negative submit time", frame, pl.col("submit_s") < 0)
        frame = drop("negative run time", frame, pl.col("run_s") < 0)
        sizes = [pl.col(name) for name in ("processors", "gpus", "nodes")]
        frame = drop("negative size", frame, pl.any_horizontal(size < 0 for size in sizes))
        frame = drop("no size above zero", frame, pl.max_horizontal(*sizes).fill_null(0) <= 0)
        size = pl.col(size_unit)
        if total is not None:
            frame = drop(f"larger than the machine ({total:,} {size_unit})", frame, size > total)
        return frame

    def _mark_odd(self, frame: pl.DataFrame) -> None:
        mark = self.notes.mark
        mark("kept", "no run time: the job never ran", frame, pl.col("run_s").is_null())
        mark("kept", "run time is zero", frame, pl.col("run_s") == 0)
        mark("repaired", "negative wait: taken as not stated", frame, pl.col("wait_s") < 0)
        mark("repaired", "requested time is not above zero: taken as not stated", frame, pl.col("requested_s") <= 0)
        mark(
            "kept",
            "ran longer than requested",
            frame,
            (pl.col("run_s") > pl.col("requested_s")) & (pl.col("requested_s") > 0),
        )

    def _sort(self, frame: pl.DataFrame) -> pl.DataFrame:
        late = pl.col("submit_s") < pl.col("submit_s").cum_max()
        self.notes.mark("repaired", "not in submit order: sorted", frame, late)
        stated = (
            pl.when(pl.col("requested_s") > 0).then(pl.col("requested_s")).alias("requested_s"),
            pl.when(pl.col("wait_s") >= 0).then(pl.col("wait_s")).alias("wait_s"),
        )
        return frame.sort("submit_s", maintain_order=True).with_columns(stated)

    def share_with(self, name: str) -> float:
        """The share of rows so far in which a size is above zero."""
        rows = sum(block.height for block in self._blocks)
        return sum(int((block[name] > 0).sum()) for block in self._blocks) / rows if rows else 0.0
