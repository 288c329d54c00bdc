"""From a job trace to the jobs of a simulation. What a simulation cannot use is left out and counted, like everything changed."""

from typing import Literal

import numpy as np
import polars as pl

from clusterscape.errors import QueryError
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.model.samples import Int64s
from clusterscape.simulate.batch.contract import BatchJobs, Estimates
from clusterscape.simulate.batch.semantics import Semantics

EXAMPLES = 5


def prepare_jobs(
    trace: JobTrace, total: int, *, estimates: Estimates, semantics: Semantics
) -> tuple[BatchJobs, tuple[CleaningNote, ...]]:
    """Jobs in whole seconds and processors (of the trace's unit of size), and what was done to get them.

    Raises QueryError where none is left.
    """
    notes: list[CleaningNote] = []
    frame = trace.frame.with_row_index("row").with_columns(trace.size.cast(pl.Float64).alias("_size"))
    frame = _drop(notes, "never ran", frame, pl.col("run_s").is_null())
    frame = _drop(notes, f"asks for no {trace.size_unit}", frame, pl.col("_size").fill_null(0.0) <= 0)
    frame = _drop(notes, f"larger than the machine ({total:,} {trace.size_unit})", frame, pl.col("_size") > total)
    if frame.height == 0:
        raise QueryError(
            f"no job of {trace.name} can be simulated on {total:,} {trace.size_unit}",
            hint="\n".join(str(note) for note in notes),
        )
    shared = pl.col("_size") != pl.col("_size").ceil()
    _note(notes, "repaired", f"a part of one of the {trace.size_unit} counts as a whole one", frame, shared)
    _note(notes, "repaired", "runs less than a second: taken as one", frame, pl.col("run_s") < 1)
    if estimates == "request":
        is_unstated = pl.col("requested_s").is_null()
        _note(notes, "repaired", "no requested time: the run time is the estimate", frame, is_unstated)
    return _to_jobs(frame, estimates, semantics), tuple(notes)


def _to_jobs(frame: pl.DataFrame, estimates: Estimates, semantics: Semantics) -> BatchJobs:
    run_s = np.maximum(1, _seconds(frame["run_s"], semantics))
    request_s = np.maximum(1, _seconds(frame["requested_s"].fill_null(frame["run_s"]), semantics))
    ran_s = run_s
    if semantics.over_limit in ("kill", "exchange"):
        run_s = np.minimum(run_s, request_s)
    if semantics.over_limit in ("raise_estimate", "exchange"):
        request_s = np.maximum(request_s, ran_s)
    numbers = frame["job_id"].cast(pl.Int64, strict=False)
    ids = numbers if numbers.null_count() == 0 else frame["job_id"]
    return BatchJobs(
        row=frame["row"].cast(pl.Int64).to_numpy(),
        submit_s=_seconds(frame["submit_s"], semantics),
        run_s=run_s,
        estimate_s=run_s if estimates == "actual" else request_s,
        request_s=request_s,
        processors=np.ascontiguousarray(frame["_size"].ceil().cast(pl.Int64).to_numpy()),
        user=frame["user"].fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1,
        number=ids.rank("ordinal").fill_null(0).cast(pl.Int64).to_numpy(),
    )


def _seconds(times: pl.Series, semantics: Semantics) -> Int64s:
    whole = times.ceil() if semantics.rounding == "up" else (times + 0.5).floor()
    return np.ascontiguousarray(whole.cast(pl.Int64).to_numpy())


def _note(
    notes: list[CleaningNote], action: Literal["dropped", "repaired"], reason: str, frame: pl.DataFrame, where: pl.Expr
) -> None:
    lines = frame.filter(where)["line"]
    if lines.len():
        notes.append(CleaningNote(action, reason, lines.len(), tuple(lines.head(EXAMPLES).to_list())))


def _drop(notes: list[CleaningNote], reason: str, frame: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
    _note(notes, "dropped", reason, frame, where)
    return frame.filter(~where)
