"""A job trace as arrays, which all statistics read (missing is NaN here and null in responses), and jobs grouped into classes:
thirds by rank, powers of two by size.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.model.jobs import UNTIL_KEY, JobStatus, JobTrace, SizeUnit

STATUSES: tuple[JobStatus, ...] = tuple(JobStatus)
"""A status code of ``JobColumns`` is an index into this tuple."""
EARLIEST_CLOCK_S = 1e8
"""An earlier time (before 1973) is relative to the start of the trace: the hour of the day is unknown."""

MAX_EPOCH_DIGITS = 10
"""Of a start in Unix seconds, until the year 2286. Larger numbers are not in seconds."""


@dataclass(frozen=True)
class JobColumns:
    """Jobs in submit order. ``user``: index into ``users``, −1 if unknown; ``size``: in ``size_unit``, NaN if unknown.

    ``until_s``: when a live history was read; None for a finished trace.
    ``epoch_s``: added to ``submit_s`` gives Unix time; None if the source does not state its start.
    """

    name: str
    size_unit: SizeUnit
    total: int | None
    epoch_s: float | None
    until_s: float | None
    submit_s: Float64s
    wait_s: Float64s
    run_s: Float64s
    requested_s: Float64s
    size: Float64s
    status: Int64s
    user: Int64s
    users: list[str]

    def __len__(self) -> int:
        return len(self.submit_s)

    @cached_property
    def start_s(self) -> Float64s:
        """Start times; NaN if the wait is unknown or the job never ran."""
        return np.where(np.isnan(self.run_s), np.nan, self.submit_s + self.wait_s)

    @cached_property
    def is_running(self) -> Bools:
        """Whether the job was running when the history was read."""
        return self._is_open & ~np.isnan(self.wait_s)

    @cached_property
    def is_waiting(self) -> Bools:
        """Whether the job was waiting when the history was read."""
        return self._is_open & np.isnan(self.wait_s)

    @property
    def _is_open(self) -> Bools:
        return ~self.is_judged & np.isnan(self.run_s) if self.until_s is not None else np.zeros(len(self), np.bool_)

    @cached_property
    def unit_s(self) -> Float64s:
        """Unit-seconds that each job used, so far if it still runs; 0 if unknown."""
        run_s = self.run_s
        if self.until_s is not None:
            run_s = np.where(self.is_running, np.maximum(self.until_s - self.submit_s - self.wait_s, 0.0), run_s)
        return np.nan_to_num(run_s * self.size)

    @cached_property
    def is_judged(self) -> Bools:
        """Whether it is known how the job ended."""
        return np.not_equal(self.status, STATUSES.index(JobStatus.UNKNOWN))

    @cached_property
    def is_unsuccessful(self) -> Bools:
        """Whether the job failed, was cancelled or timed out."""
        is_completed = np.equal(self.status, STATUSES.index(JobStatus.COMPLETED))
        return np.greater(self.is_judged, is_completed)

    @cached_property
    def has_users(self) -> bool:
        """Whether most jobs name a user."""
        return len(self.users) > 1 and bool((self.user >= 0).mean() > 0.5)


def read_columns(trace: JobTrace) -> JobColumns:
    """Convert a trace to arrays."""
    frame = trace.frame
    users = frame["user"].drop_nulls().unique().sort()
    codes = frame["user"].replace_strict(
        users, pl.int_range(users.len(), eager=True), default=-1, return_dtype=pl.Int64
    )
    return JobColumns(
        name=trace.name,
        size_unit=trace.size_unit,
        total=trace.total,
        epoch_s=_find_epoch(trace),
        until_s=float(trace.header[UNTIL_KEY]) if UNTIL_KEY in trace.header else None,
        submit_s=_floats(frame["submit_s"]),
        wait_s=_floats(frame["wait_s"]),
        run_s=_floats(frame["run_s"]),
        requested_s=_floats(frame["requested_s"]),
        size=_floats(trace.size),
        status=frame["status"].to_physical().cast(pl.Int64).to_numpy(),
        user=codes.fill_null(-1).to_numpy(),
        users=users.to_list(),
    )


def _floats(series: pl.Series) -> Float64s:
    return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _find_epoch(trace: JobTrace) -> float | None:
    start_text = trace.header.get("UnixStartTime", "")
    if trace.format == "swf":
        is_time = start_text.isascii() and start_text.isdigit() and len(start_text) <= MAX_EPOCH_DIGITS
        return float(start_text) if is_time and int(start_text) > 0 else None
    first = trace.frame["submit_s"][0] if len(trace) else 0.0
    return 0.0 if first >= EARLIEST_CLOCK_S else None


MAX_DOUBLINGS = 10


@dataclass(frozen=True)
class Classes:
    """``code``: the class of each job, −1 if its value is unknown; ``low``/``high``: range of each class. No class is empty."""

    code: Int64s
    low: list[float]
    high: list[float]

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.low)

    def jobs(self) -> Int64s:
        """Number of jobs of each class."""
        return np.bincount(self.code[self.code >= 0], minlength=self.count).astype(np.int64)


def split_by_rank(values: Float64s, parts: int = 3) -> Classes:
    """``parts`` classes of about equal size; equal values have their mean rank and stay together."""
    is_known = ~np.isnan(values)
    number = int(is_known.sum())
    ranks = pl.Series(values[is_known]).rank("average").to_numpy() if number else np.empty(0)
    raw = np.full(len(values), -1, np.int64)
    raw[is_known] = np.floor((ranks - 1) * parts / max(number, 1)).astype(np.int64)
    return _compact_classes(values, raw)


def split_by_doubling(values: Float64s) -> Classes:
    """Classes 0, 1, 2–3, 4–7, …; if there would be more than ten, steps of 4×, 8×, …. Fractions below 1 are one class."""
    is_known = ~np.isnan(values)
    raw = np.full(len(values), -1, np.int64)
    if not is_known.any():
        return _compact_classes(values, raw)
    top = float(values[is_known].max())
    step = 1
    while np.log2(max(top, 1.0)) / step >= MAX_DOUBLINGS:
        step += 1
    octave = np.floor(np.log2(np.maximum(values[is_known], 1.0)) / step)
    raw[is_known] = np.where(values[is_known] < 1, np.where(values[is_known] > 0, 1, 0), octave + 2).astype(np.int64)
    return _compact_classes(values, raw)


def sum_by(code: Int64s, values: NDArray[np.generic], count: int) -> Float64s:
    """Sums of ``values`` by code 0 … ``count`` − 1."""
    return np.bincount(code, weights=values.astype(np.float64), minlength=count).astype(np.float64)


def _compact_classes(values: Float64s, raw: Int64s) -> Classes:
    """Only the non-empty classes, numbered from 0, with the minimum and maximum of each."""
    used = np.unique(raw[raw >= 0])
    code = np.where(raw >= 0, np.searchsorted(used, raw), -1).astype(np.int64)
    class_values = [values[code == place] for place in range(len(used))]
    return Classes(
        code, [float(members.min()) for members in class_values], [float(members.max()) for members in class_values]
    )
