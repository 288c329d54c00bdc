"""Model features of a job at a point in time. Only jobs that had ended by then are used.

Owns the groups by which earlier jobs are looked up and the names of the columns. Does not train or predict.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.durations import DAY_S, HOUR_S
from clusterscape.model.jobs import JobStatus, JobTrace

GROUPS: tuple[tuple[str, ...], ...] = (
    ("user",),
    ("user", "size"),
    ("user", "size", "requested_s"),
    ("user", "requested_s"),
    ("project",),
    (),
)
"""Earlier jobs are looked up by each of these; the last group is all jobs."""

SAME_NAME = ("user", "name", "size")
"""Looked up, too, but no feature: most logs have no names. Numbers in names do not count, so that ``train_17`` and ``train_18``
are one."""
_LOOKED_UP = (*GROUPS, SAME_NAME)

OWN_FEATURES = (
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
GROUP_COLUMNS = {name: place for place, name in enumerate(_PER_GROUP)}
"""Columns of ``RunHistory.describe_group``."""
FEATURES: tuple[str, ...] = (
    *OWN_FEATURES,
    *(f"{'_'.join(group) or 'all'}_{name}" for group in GROUPS for name in _PER_GROUP),
)


@dataclass(frozen=True, slots=True)
class JobTable:
    """Jobs as predictors need them, one per row; if a job has not ended, ``end_s`` is infinite and ``run_s`` NaN.

    ``frame`` has the columns ``name``, ``user``, ``project``, ``queue``, ``size`` and ``requested_s``. For a job without a time
    limit, ``request_s`` is the longest known limit.
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
        """End times; infinite if a job has not ended."""
        ends = self.start_s + self.run_s
        return np.where(np.isnan(ends), np.inf, ends)


RAN = (
    pl.col("run_s").is_not_null()
    & pl.col("start_s").is_not_null()
    & (pl.col("size").fill_null(0.0) > 0)
    & (pl.col("run_s") >= 0)
)
"""The rows that predictors use."""


def find_starts(trace: JobTrace) -> Float64s:
    """Recorded starts; a job without a recorded wait counts as started when it was submitted."""
    starts: Float64s = (trace.frame["submit_s"] + trace.frame["wait_s"].fill_null(0.0)).to_numpy()
    return starts


def select_ran_jobs(trace: JobTrace, start_s: Float64s | None = None) -> JobTable:
    """The jobs of a trace that ran, in its order. ``start_s``: start of each row; None: from the recorded waits.

    Run times are at least 1 s. Jobs that never ran or have no size or start are excluded.
    """
    starts = trace.frame["submit_s"] + trace.frame["wait_s"] if start_s is None else pl.Series(start_s).fill_nan(None)
    return to_job_table(trace.frame.with_columns(size=trace.size.cast(pl.Float64), start_s=starts).filter(RAN))


def to_job_table(frame: pl.DataFrame) -> JobTable:
    """From a frame with ``user``, ``project``, ``queue``, ``submit_s``, ``start_s``, ``run_s``, ``size``, ``requested_s``,
    ``status`` and, if jobs have names, ``name``.
    """
    longest = frame["requested_s"].max()
    request = frame["requested_s"].fill_null(longest if isinstance(longest, float) else DAY_S)
    names = pl.col("name") if "name" in frame.columns else pl.lit(None, pl.String).alias("name")
    return JobTable(
        frame=frame.select(names, "user", "project", "queue", "size", "requested_s"),
        submit_s=frame["submit_s"].to_numpy(),
        start_s=frame["start_s"].cast(pl.Float64).to_numpy(),
        run_s=np.maximum(frame["run_s"].cast(pl.Float64).to_numpy(), 1.0),
        request_s=np.maximum(request.to_numpy(), 1.0),
        size=frame["size"].to_numpy(),
        is_completed=(frame["status"].cast(pl.String) == JobStatus.COMPLETED.value).cast(pl.Float64).to_numpy(),
    )


def _make_keys(frame: pl.DataFrame, group: tuple[str, ...]) -> pl.Series:
    """The group key of each job; null if a part of it is unknown."""
    if not group:
        return pl.repeat("", frame.height, dtype=pl.String, eager=True)
    parts = [_name_without_numbers() if name == "name" else pl.col(name).cast(pl.String) for name in group]
    return frame.select(pl.concat_str(parts, separator="\x1f")).to_series()


def _name_without_numbers() -> pl.Expr:
    """The name with each number as ``#``; a name that is only a number, such as that of an executable, as it is."""
    name = pl.col("name").cast(pl.String)
    return pl.when(name.str.contains(r"\D")).then(name.str.replace_all(r"\d+", "#")).otherwise(name)


@dataclass(frozen=True, slots=True)
class _Group:
    """The ended jobs by one grouping: groups are contiguous, each sorted by end."""

    codes: pl.DataFrame
    offsets: Int64s
    ends: Float64s
    log_runs: Float64s
    log_ratios: Float64s
    completed: Float64s

    def find(self, keys: pl.Series) -> Int64s:
        """The group of each key; −1 if no job of it has ended."""
        codes = pl.DataFrame({"key": keys}).join(self.codes, on="key", how="left", maintain_order="left")["code"]
        return codes.fill_null(-1).cast(pl.Int64).to_numpy()


@dataclass(frozen=True, slots=True)
class EncodedJobs:
    """Jobs to predict, with their groups encoded: ``codes`` (job × grouping) are group numbers in one ``RunHistory``."""

    submit_s: Float64s
    request_s: Float64s
    size: Float64s
    codes: Int64s

    def __len__(self) -> int:
        return len(self.submit_s)

    def take(self, rows: Int64s) -> "EncodedJobs":
        """The given rows, in this order."""
        return EncodedJobs(self.submit_s[rows], self.request_s[rows], self.size[rows], self.codes[rows])


class RunHistory:
    """The ended jobs, looked up by group. Immutable; for any point in time it uses only jobs that had ended by then."""

    def __init__(self, jobs: JobTable) -> None:
        ended = np.isfinite(jobs.end_s)
        self._groups = {group: _index_jobs(jobs, ended, group) for group in _LOOKED_UP}
        self.count = int(ended.sum())

    def encode(self, jobs: JobTable) -> EncodedJobs:
        """The same jobs with the numbers of their groups."""
        codes = np.column_stack([index.find(_make_keys(jobs.frame, group)) for group, index in self._groups.items()])
        return EncodedJobs(jobs.submit_s, jobs.request_s, jobs.size, codes)

    def describe(self, jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s) -> Float64s:
        """FEATURES of each job (job × feature) at ``at_s``, when it had run for ``elapsed_s``; NaN is missing."""
        table = np.empty((len(jobs), len(FEATURES)))
        table[:, 0] = np.log(jobs.request_s)
        table[:, 1] = np.log(jobs.size)
        table[:, 2] = jobs.submit_s % DAY_S / HOUR_S
        table[:, 3] = jobs.submit_s // DAY_S % 7
        table[:, 4] = np.log1p(elapsed_s)
        table[:, 5] = elapsed_s / jobs.request_s
        table[:, 6] = at_s % DAY_S / HOUR_S
        table[:, 7] = at_s // DAY_S % 7
        table[:, 8] = np.log(np.maximum(jobs.request_s - elapsed_s, 1.0))
        begin = len(OWN_FEATURES)
        for group in GROUPS:
            table[:, begin : begin + len(_PER_GROUP)] = self.describe_group(group, jobs, at_s, elapsed_s)
            begin += len(_PER_GROUP)
        return table

    def describe_group(
        self, group: tuple[str, ...], jobs: EncodedJobs, at_s: Float64s, elapsed_s: Float64s
    ) -> Float64s:
        """GROUP_COLUMNS of the ended jobs of each job's ``group`` (one of GROUPS, or SAME_NAME); NaN if there are none."""
        from clusterscape.analyze.jobs.kernels import PER_GROUP, describe_groups

        index, part = self._groups[group], np.empty((len(jobs), PER_GROUP))
        describe_groups(
            index.offsets,
            index.ends,
            index.log_runs,
            index.log_ratios,
            index.completed,
            np.ascontiguousarray(jobs.codes[:, _LOOKED_UP.index(group)]),
            np.ascontiguousarray(at_s, np.float64),
            np.ascontiguousarray(elapsed_s, np.float64),
            part,
        )
        return part


def _index_jobs(jobs: JobTable, ended: np.ndarray[tuple[int], np.dtype[np.bool_]], group: tuple[str, ...]) -> _Group:
    keys = _make_keys(jobs.frame, group)
    is_usable = ended & keys.is_not_null().to_numpy()
    rows = np.flatnonzero(is_usable)
    distinct_keys = keys.gather(rows).unique(maintain_order=True)
    codes = pl.DataFrame({"key": distinct_keys, "code": np.arange(distinct_keys.len(), dtype=np.int64)})
    code = pl.DataFrame({"key": keys.gather(rows)}).join(codes, on="key", how="left", maintain_order="left")["code"]
    order = np.lexsort((jobs.end_s[rows], code.to_numpy()))
    rows, code_of = rows[order], code.to_numpy()[order]
    offsets = np.searchsorted(code_of, np.arange(distinct_keys.len() + 1)).astype(np.int64)
    log_runs = np.log(jobs.run_s[rows])
    return _Group(
        codes, offsets, jobs.end_s[rows], log_runs, log_runs - np.log(jobs.request_s[rows]), jobs.is_completed[rows]
    )
