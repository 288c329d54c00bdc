"""Converts a job trace to the jobs of a simulation. Counts dropped and repaired rows."""

from typing import Literal

import numpy as np
import polars as pl

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Int64s
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.simulate.batch.contract import BatchJobs, Estimates
from clusterscape.simulate.batch.semantics import Semantics

EXAMPLES = 5


def prepare_jobs(
    trace: JobTrace, total: int, *, estimates: Estimates, semantics: Semantics
) -> tuple[BatchJobs, tuple[CleaningNote, ...]]:
    """Jobs in whole seconds and processors (in the trace's size unit), and notes on dropped and repaired rows.

    Raises QueryError if no job is left.
    """
    notes: list[CleaningNote] = []
    frame = trace.frame.with_row_index("row").with_columns(trace.size.cast(pl.Float64).alias("_size"))
    frame = drop_rows(notes, "never ran", frame, pl.col("run_s").is_null())
    frame = drop_rows(notes, f"requests no {trace.size_unit}", frame, pl.col("_size").fill_null(0.0) <= 0)
    frame = drop_rows(notes, f"larger than the machine ({total:,} {trace.size_unit})", frame, pl.col("_size") > total)
    if frame.height == 0:
        raise QueryError(
            f"no job of {trace.name} can be simulated on {total:,} {trace.size_unit}",
            hint="\n".join(str(note) for note in notes),
        )
    is_fraction = pl.col("_size") != pl.col("_size").ceil()
    note_rows(
        notes, "repaired", f"a fraction of one of the {trace.size_unit} counts as a whole one", frame, is_fraction
    )
    note_rows(notes, "repaired", "run time below 1 s: counts as 1 s", frame, pl.col("run_s") < 1)
    if estimates != "actual":
        is_unstated = pl.col("requested_s").is_null()
        note_rows(notes, "repaired", "no requested time: the run time is the estimate", frame, is_unstated)
    return _to_jobs(frame, estimates, semantics), tuple(notes)


def _to_jobs(frame: pl.DataFrame, estimates: Estimates, semantics: Semantics) -> BatchJobs:
    run_s, request_s = read_times(frame, semantics)
    return BatchJobs(
        row=frame["row"].cast(pl.Int64).to_numpy(),
        submit_s=to_seconds(frame["submit_s"], semantics),
        run_s=run_s,
        estimate_s=run_s if estimates == "actual" else request_s,
        request_s=request_s,
        processors=np.ascontiguousarray(frame["_size"].ceil().cast(pl.Int64).to_numpy()),
        user=number_users(frame),
        number=number_jobs(frame),
    )


def read_times(frame: pl.DataFrame, semantics: Semantics) -> tuple[Int64s, Int64s]:
    """Run time and request in whole seconds, at least 1; runs beyond their limit are handled as the semantics define."""
    run_s = np.maximum(1, to_seconds(frame["run_s"], semantics))
    request_s = np.maximum(1, to_seconds(frame["requested_s"].fill_null(frame["run_s"]), semantics))
    ran_s = run_s
    if semantics.over_limit in ("kill", "exchange"):
        run_s = np.minimum(run_s, request_s)
    if semantics.over_limit in ("raise_estimate", "exchange"):
        request_s = np.maximum(request_s, ran_s)
    return run_s, request_s


def number_users(frame: pl.DataFrame) -> Int64s:
    """A code for each user, by name."""
    return np.ascontiguousarray(frame["user"].fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1)


def number_jobs(frame: pl.DataFrame) -> Int64s:
    """The rank of each job's id among the ids, compared as numbers if all ids are numbers."""
    numbers = frame["job_id"].cast(pl.Int64, strict=False)
    ids = numbers if numbers.null_count() == 0 else frame["job_id"]
    return np.ascontiguousarray(ids.rank("ordinal").fill_null(0).cast(pl.Int64).to_numpy())


def to_seconds(times: pl.Series, semantics: Semantics) -> Int64s:
    """Whole seconds, rounded as the semantics define."""
    whole = times.ceil() if semantics.rounding == "up" else (times + 0.5).floor()
    return np.ascontiguousarray(whole.cast(pl.Int64).to_numpy())


def note_rows(
    notes: list[CleaningNote], action: Literal["dropped", "repaired"], reason: str, frame: pl.DataFrame, where: pl.Expr
) -> None:
    """Add a note that counts the rows of a condition, with some of their lines."""
    lines = frame.filter(where)["line"]
    if lines.len():
        notes.append(CleaningNote(action, reason, lines.len(), tuple(lines.head(EXAMPLES).to_list())))


def drop_rows(notes: list[CleaningNote], reason: str, frame: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
    """Drop the rows of a condition and note them."""
    note_rows(notes, "dropped", reason, frame, where)
    return frame.filter(~where)
