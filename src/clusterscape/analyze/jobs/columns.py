"""A job trace as arrays: what every characterisation reads. Missing is NaN here, and null in every answer."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.model.jobs import UNTIL_KEY, JobStatus, JobTrace, SizeUnit
from clusterscape.model.samples import Float64s, Int64s

Booleans = NDArray[np.bool_]

STATUSES: tuple[JobStatus, ...] = tuple(JobStatus)
"""A status code of ``JobColumns`` is a place in here."""
EARLIEST_CLOCK_S = 1e8
"""A submission before this (1973) is counted from the trace's own beginning: its hour of the day is not known."""


@dataclass(frozen=True)
class JobColumns:
    """Jobs in submit order. ``user``: a place in ``users``, −1 where nobody is named; ``size``: NaN or in ``size_unit``.

    ``until_s``: when a history that goes on was read; None where every job had ended.
    ``epoch_s``: what makes ``submit_s`` Unix time; None where the source does not say when it began.
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
        """NaN where the wait is not known or the job never ran."""
        return np.where(np.isnan(self.run_s), np.nan, self.submit_s + self.wait_s)

    @cached_property
    def is_running(self) -> Booleans:
        """Began and had not ended when the history was read."""
        return self._is_open & ~np.isnan(self.wait_s)

    @cached_property
    def is_waiting(self) -> Booleans:
        """Had not begun when the history was read."""
        return self._is_open & np.isnan(self.wait_s)

    @property
    def _is_open(self) -> Booleans:
        return ~self.is_judged & np.isnan(self.run_s) if self.until_s is not None else np.zeros(len(self), np.bool_)

    @cached_property
    def unit_s(self) -> Float64s:
        """What each job used, in seconds of the size unit, so far where it still runs; 0 where that is not known."""
        run_s = self.run_s
        if self.until_s is not None:
            run_s = np.where(self.is_running, np.maximum(self.until_s - self.submit_s - self.wait_s, 0.0), run_s)
        return np.nan_to_num(run_s * self.size)

    @cached_property
    def is_judged(self) -> Booleans:
        """Whether it is known how the job ended."""
        return np.not_equal(self.status, STATUSES.index(JobStatus.UNKNOWN))

    @cached_property
    def is_unsuccessful(self) -> Booleans:
        """Ended otherwise than completed: failed, cancelled or out of time."""
        done = np.equal(self.status, STATUSES.index(JobStatus.COMPLETED))
        return np.greater(self.is_judged, done)

    @cached_property
    def has_users(self) -> bool:
        """Whether most jobs name a user."""
        return len(self.users) > 1 and bool((self.user >= 0).mean() > 0.5)


def read_columns(trace: JobTrace) -> JobColumns:
    """The arrays of a trace."""
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
    begun = trace.header.get("UnixStartTime", "")
    if trace.format == "swf":
        return float(begun) if begun.isascii() and begun.isdigit() and int(begun) > 0 else None
    first = trace.frame["submit_s"][0] if len(trace) else 0.0
    return 0.0 if first >= EARLIEST_CLOCK_S else None
