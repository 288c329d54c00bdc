"""User behavior: repeated jobs, what users submit when the queue is long, and run times by how jobs end."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.columns import STATUSES, JobColumns, split_by_rank
from clusterscape.analyze.jobs.intervals import (
    Measured,
    Resamples,
    Z,
    divide,
    measure_draws,
    resample_medians,
)
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.jobs import JobStatus

TOLERANCE = 0.1
TOP_GROUPS = 10
MIN_JOBS = 5
"""Minimum number of jobs of a status for a user's median run time to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """Groups of repeated jobs: same user, same size, and a run time within 10 % of the group's mean so far.

    ``cover[i]``: share of all jobs that are in the i + 1 largest groups of their users. ``top_10_cover``: the last of these, with
    users resampled. ``mean_user_cover``: its mean over users, with equal weights.
    """

    groups: int
    users: int
    jobs: int
    cover: list[float]
    top_10_cover: Measured
    mean_user_cover: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueThird:
    """Jobs that were submitted when ``low`` to ``high`` jobs waited."""

    low: float
    high: float
    jobs: int
    median_size_units: float
    mean_size_units: float
    median_run_s: float | None
    median_requested_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionBehavior:
    """By thirds of the queue length at submission. ``*_ratio``: median (size: mean) in the longest third / in the shortest."""

    thirds: list[QueueThird]
    size_ratio: Measured | None
    run_ratio: Measured | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRunTime:
    """Run times of jobs with this status. ``ratio_to_completed``: median over users of their median with this status / completed.

    Only users with at least 5 jobs of both kinds count (``users``); the interval resamples them.
    """

    status: JobStatus
    jobs: int
    median_run_s: float
    users: int
    ratio_to_completed: Measured | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBehavior:
    """``repetition`` is null if users are unknown; ``submission`` if waits are unknown.

    ``largest_user_share``: share of jobs of the user with the most jobs; near 1, the name may be a placeholder for unknown users.
    """

    users: int | None
    largest_user_share: float | None
    repetition: Repetition | None
    submission: SubmissionBehavior | None
    run_time_by_status: list[StatusRunTime]


def describe_users(
    jobs: JobColumns, waiting_jobs: Float64s, users: Resamples | None, random: np.random.Generator
) -> UserBehavior:
    """Statistics of user behavior. ``waiting_jobs``: queue length at each submission. O(n log n + jobs × groups per user and
    size).
    """
    return UserBehavior(
        users=len(jobs.users) if jobs.has_users else None,
        largest_user_share=float(np.bincount(jobs.user[jobs.user >= 0]).max()) / len(jobs) if jobs.has_users else None,
        repetition=_repetition(jobs, random) if jobs.has_users else None,
        submission=_submission(jobs, waiting_jobs, users, random),
        run_time_by_status=_run_time_by_status(jobs, random),
    )


def _repetition(jobs: JobColumns, random: np.random.Generator) -> Repetition | None:
    from clusterscape.analyze.jobs.kernels import group_repeats

    chosen = np.flatnonzero(~np.isnan(jobs.run_s) & ~np.isnan(jobs.size) & (jobs.user >= 0))
    if chosen.size == 0:
        return None
    kinds = np.unique(np.column_stack([jobs.user[chosen], jobs.size[chosen]]), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(kinds, kind="stable")
    kind, user_of_job = kinds[order].astype(np.int64), jobs.user[chosen][order]
    group = group_repeats(kind, jobs.run_s[chosen][order], TOLERANCE)
    sizes = np.bincount(group)
    owner = np.empty(len(sizes), np.int64)
    owner[group] = user_of_job
    present = np.unique(owner)
    top = _largest_groups(np.searchsorted(present, owner), sizes, len(present))
    totals = np.bincount(np.searchsorted(present, user_of_job)).astype(np.float64)
    covered = top.sum(axis=1)
    resamples = Resamples(np.arange(len(present)), random)
    draws = resamples.shares(covered, totals)[:, 0]
    return Repetition(
        groups=len(sizes),
        users=len(present),
        jobs=len(chosen),
        cover=[float(share) for share in np.cumsum(top.sum(axis=0)) / len(chosen)],
        top_10_cover=measure_draws(float(covered.sum()) / len(chosen), draws),
        mean_user_cover=float((covered / totals).mean()),
    )


def _largest_groups(owner: Int64s, sizes: Int64s, users: int) -> Float64s:
    """Number of jobs in each user's ten largest groups: users × 10, largest first."""
    order = np.lexsort((-sizes, owner))
    owner, sizes = owner[order], sizes[order]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner, side="left")
    top = np.zeros((users, TOP_GROUPS))
    chosen = rank < TOP_GROUPS
    top[owner[chosen], rank[chosen]] = sizes[chosen]
    return top


def _submission(
    jobs: JobColumns, waiting_jobs: Float64s, users: Resamples | None, random: np.random.Generator
) -> SubmissionBehavior | None:
    thirds = split_by_rank(waiting_jobs)
    if thirds.count == 0:
        return None
    queue_thirds = []
    for place in range(thirds.count):
        chosen = thirds.code == place
        queue_thirds.append(
            QueueThird(
                low=thirds.low[place],
                high=thirds.high[place],
                jobs=int(chosen.sum()),
                median_size_units=find_median(jobs.size[chosen]) or 0.0,
                mean_size_units=float(np.nan_to_num(jobs.size[chosen]).mean()),
                median_run_s=find_median(jobs.run_s[chosen]),
                median_requested_s=find_median(jobs.requested_s[chosen]),
            )
        )
    if thirds.count < 2:
        return SubmissionBehavior(thirds=queue_thirds, size_ratio=None, run_ratio=None)
    return SubmissionBehavior(
        thirds=queue_thirds,
        size_ratio=_size_ratio(jobs, queue_thirds, thirds.code, users),
        run_ratio=_run_ratio(jobs, queue_thirds, thirds.code, users, random),
    )


def _size_ratio(jobs: JobColumns, thirds: list[QueueThird], code: Int64s, users: Resamples | None) -> Measured | None:
    if thirds[0].mean_size_units <= 0:
        return None
    ratio = thirds[-1].mean_size_units / thirds[0].mean_size_units
    if users is None:
        return _mean_ratio(jobs.size[code == 0], jobs.size[code == len(thirds) - 1], ratio)
    means = users.shares(np.nan_to_num(jobs.size), np.ones(len(jobs)), code, len(thirds))
    return measure_draws(ratio, divide(means[:, -1], means[:, 0]))


def _mean_ratio(short: Float64s, long: Float64s, ratio: float) -> Measured:
    """The ratio with an interval for independent jobs, by the delta method on the logarithm."""
    if min(len(short), len(long)) < MIN_JOBS or np.isnan(short).any() or np.isnan(long).any():
        return Measured(value=ratio)
    variances = [float(side.var(ddof=1)) / len(side) / float(side.mean()) ** 2 for side in (short, long)]
    half = float(np.exp(Z * sum(variances) ** 0.5))
    return Measured(value=ratio, low=ratio / half, high=ratio * half)


def _run_ratio(
    jobs: JobColumns, thirds: list[QueueThird], code: Int64s, users: Resamples | None, random: np.random.Generator
) -> Measured | None:
    short, long = thirds[0].median_run_s, thirds[-1].median_run_s
    if not short or long is None:
        return None
    ends = [np.where(code == place, jobs.run_s, np.nan) for place in (0, len(thirds) - 1)]
    medians = [resample_medians(end, users, random) for end in ends]
    return measure_draws(long / short, divide(medians[1], medians[0]))


def _run_time_by_status(jobs: JobColumns, random: np.random.Generator) -> list[StatusRunTime]:
    frame = pl.DataFrame({"user": jobs.user, "status": jobs.status, "run_s": jobs.run_s}).filter(
        pl.col("run_s").is_not_nan()
    )
    medians = (
        frame.filter(pl.col("user") >= 0)
        .group_by("user", "status")
        .agg(pl.col("run_s").median(), pl.len())
        .filter((pl.col("len") >= MIN_JOBS) & (pl.col("run_s") > 0))
    )
    completed = medians.filter(pl.col("status") == STATUSES.index(JobStatus.COMPLETED)).select(
        "user", completed_s="run_s"
    )
    run_times = []
    for code, status in enumerate(STATUSES):
        runs = frame.filter(pl.col("status") == code)["run_s"].to_numpy()
        median = find_median(runs)
        if status is JobStatus.UNKNOWN or median is None:
            continue
        pairs = medians.filter(pl.col("status") == code).join(completed, on="user").sort("user")
        ratios = (pairs["run_s"] / pairs["completed_s"]).to_numpy()
        is_paired = status is not JobStatus.COMPLETED and len(ratios) > 0
        run_times.append(
            StatusRunTime(
                status=status,
                jobs=len(runs),
                median_run_s=median,
                users=len(ratios),
                ratio_to_completed=_median_of(ratios, random) if is_paired else None,
            )
        )
    return run_times


def _median_of(values: Float64s, random: np.random.Generator) -> Measured:
    draws = np.median(random.choice(values, size=(500, len(values))), axis=1) if len(values) > 1 else np.empty(0)
    return measure_draws(float(np.median(values)), draws)


def find_median(values: Float64s) -> float | None:
    """The median of the values that are not missing; None if all are."""
    present = values[~np.isnan(values)]
    return float(np.median(present)) if present.size else None
