"""What is known about a job at a moment, as numbers a model can learn from. Only ends before that moment count.

Owns the groups in which former jobs are looked up and the names of the columns. Does not learn or predict.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.model.jobs import JobStatus, JobTrace
from clusterscape.model.samples import Float64s, Int64s

GROUPS: tuple[tuple[str, ...], ...] = (
    ("user",),
    ("user", "size"),
    ("user", "size", "requested_s"),
    ("user", "requested_s"),
    ("project",),
    (),
)
"""Former jobs are looked up by each of these; the last is everybody's."""

OWN = (
    "log_request",
    "log_size",
    "hour",
    "weekday",
    "log_elapsed",
    "elapsed_share",
    "hour_now",
    "weekday_now",
    "log_left",
)
_PER_GROUP = (
    "count",
    "last",
    "before_last",
    "median",
    "tenth",
    "ninetieth",
    "completed",
    "age",
    "outlived",
    "outlived_median",
    "outlived_ratio",
    "outlived_last_ratio",
)
FEATURES: tuple[str, ...] = (
    *OWN,
    *(f"{'_'.join(group) or 'all'}_{name}" for group in GROUPS for name in _PER_GROUP),
)
_DAY_S, _HOUR_S = 86_400.0, 3_600.0


@dataclass(frozen=True, slots=True)
class RanJobs:
    """Jobs as predictions need them, by row: ``end_s`` is infinite and ``run_s`` NaN while a job has not ended.

    ``frame`` holds the words: ``user``, ``project``, ``queue``, ``size``, ``requested_s``. A job without a time limit has
    the longest known one as its request.
    """

    frame: pl.DataFrame
    submit_s: Float64s
    start_s: Float64s
    run_s: Float64s
    request_s: Float64s
    size: Float64s
    is_completed: Float64s

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def end_s(self) -> Float64s:
        """When each ended; infinite where it has not."""
        ends = self.start_s + self.run_s
        return np.where(np.isnan(ends), np.inf, ends)


def take_jobs(trace: JobTrace, start_s: Float64s | None = None) -> RanJobs:
    """The jobs of a trace that ran, in its order. ``start_s``: of each row, where not the recorded wait decides.

    A run lasts at least a second. Rows that never ran, have no size or no start are left out.
    """
    starts = trace.frame["submit_s"] + trace.frame["wait_s"] if start_s is None else pl.Series(start_s).fill_nan(None)
    frame = trace.frame.with_columns(size=trace.size.cast(pl.Float64), start_s=starts)
    frame = frame.filter(
        pl.col("run_s").is_not_null()
        & pl.col("start_s").is_not_null()
        & (pl.col("size").fill_null(0.0) > 0)
        & (pl.col("run_s") >= 0)
    )
    return to_ran_jobs(frame)


def to_ran_jobs(frame: pl.DataFrame) -> RanJobs:
    """Columns ``user``, ``project``, ``queue``, ``submit_s``, ``start_s``, ``run_s``, ``size``, ``requested_s``, ``status``."""
    longest = frame["requested_s"].max()
    request = frame["requested_s"].fill_null(longest if isinstance(longest, float) else _DAY_S)
    return RanJobs(
        frame=frame.select("user", "project", "queue", "size", "requested_s"),
        submit_s=frame["submit_s"].to_numpy(),
        start_s=frame["start_s"].cast(pl.Float64).to_numpy(),
        run_s=np.maximum(frame["run_s"].cast(pl.Float64).to_numpy(), 1.0),
        request_s=np.maximum(request.to_numpy(), 1.0),
        size=frame["size"].to_numpy(),
        is_completed=(frame["status"].cast(pl.String) == JobStatus.COMPLETED.value).cast(pl.Float64).to_numpy(),
    )


def _keys(frame: pl.DataFrame, group: tuple[str, ...]) -> pl.Series:
    """One word per job; null where a part of it is unknown."""
    if not group:
        return pl.repeat("", frame.height, dtype=pl.String, eager=True)
    return frame.select(pl.concat_str([pl.col(name).cast(pl.String) for name in group], separator="\x1f")).to_series()


@dataclass(frozen=True, slots=True)
class _Group:
    """The ended jobs of one kind of group: groups one after the other, each by end."""

    codes: pl.DataFrame
    offsets: Int64s
    ends: Float64s
    log_runs: Float64s
    log_ratios: Float64s
    completed: Float64s

    def find(self, keys: pl.Series) -> Int64s:
        """The group of each key; −1 where nobody of it ended yet."""
        found = pl.DataFrame({"key": keys}).join(self.codes, on="key", how="left", maintain_order="left")["code"]
        return found.fill_null(-1).cast(pl.Int64).to_numpy()


@dataclass(frozen=True, slots=True)
class AskedJobs:
    """Jobs whose run times are asked for, in numbers: ``codes`` are their groups in one history, a column per kind of group."""

    submit_s: Float64s
    request_s: Float64s
    size: Float64s
    codes: Int64s

    def __len__(self) -> int:
        return len(self.submit_s)

    def take(self, rows: Int64s) -> "AskedJobs":
        """Some of them, in this order."""
        return AskedJobs(self.submit_s[rows], self.request_s[rows], self.size[rows], self.codes[rows])


class RunHistory:
    """The jobs that ended, looked up by group. Immutable; answers for any moment, with what had ended by then."""

    def __init__(self, jobs: RanJobs) -> None:
        ended = np.isfinite(jobs.end_s)
        self._groups = [_collect(jobs, ended, group) for group in GROUPS]
        self.count = int(ended.sum())

    def find(self, jobs: RanJobs) -> AskedJobs:
        """The same jobs with their groups found."""
        codes = np.column_stack(
            [found.find(_keys(jobs.frame, group)) for group, found in zip(GROUPS, self._groups, strict=True)]
        )
        return AskedJobs(jobs.submit_s, jobs.request_s, jobs.size, codes)

    def describe(self, jobs: AskedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """One row of FEATURES per job, as known at ``at_s``, when it had run for ``elapsed_s``; NaN is missing."""
        from clusterscape.analyze.jobs.features_kernels import PER_GROUP, describe_groups

        table = np.empty((len(jobs), len(FEATURES)))
        table[:, 0] = np.log(jobs.request_s)
        table[:, 1] = np.log(jobs.size)
        table[:, 2] = jobs.submit_s % _DAY_S / _HOUR_S
        table[:, 3] = jobs.submit_s // _DAY_S % 7
        table[:, 4] = np.log1p(elapsed_s)
        table[:, 5] = elapsed_s / jobs.request_s
        table[:, 6] = at_s % _DAY_S / _HOUR_S
        table[:, 7] = at_s // _DAY_S % 7
        table[:, 8] = np.log(np.maximum(jobs.request_s - elapsed_s, 1.0))
        at_s, elapsed_s = np.ascontiguousarray(at_s, np.float64), np.ascontiguousarray(elapsed_s, np.float64)
        for place, found in enumerate(self._groups):
            part = np.empty((len(jobs), PER_GROUP))
            codes = np.ascontiguousarray(jobs.codes[:, place])
            describe_groups(
                found.offsets,
                found.ends,
                found.log_runs,
                found.log_ratios,
                found.completed,
                codes,
                at_s,
                elapsed_s,
                part,
            )
            begin = len(OWN) + place * PER_GROUP
            table[:, begin : begin + PER_GROUP] = part
        return table


def _collect(jobs: RanJobs, ended: np.ndarray[tuple[int], np.dtype[np.bool_]], group: tuple[str, ...]) -> _Group:
    keys = _keys(jobs.frame, group)
    known = ended & keys.is_not_null().to_numpy()
    rows = np.flatnonzero(known)
    words = keys.gather(rows).unique(maintain_order=True)
    codes = pl.DataFrame({"key": words, "code": np.arange(words.len(), dtype=np.int64)})
    code = pl.DataFrame({"key": keys.gather(rows)}).join(codes, on="key", how="left", maintain_order="left")["code"]
    order = np.lexsort((jobs.end_s[rows], code.to_numpy()))
    rows, code_of = rows[order], code.to_numpy()[order]
    offsets = np.searchsorted(code_of, np.arange(words.len() + 1)).astype(np.int64)
    log_runs = np.log(jobs.run_s[rows])
    return _Group(
        codes, offsets, jobs.end_s[rows], log_runs, log_runs - np.log(jobs.request_s[rows]), jobs.is_completed[rows]
    )
