"""How jobs ended: shares with intervals, by size, by run time and by user, and the lost unit-hours.

Unsuccessful means failed, cancelled or timed out. Jobs with an unknown end are excluded and counted.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.jobs.columns import STATUSES, Classes, JobColumns, split_by_rank, sum_by
from clusterscape.analyze.jobs.intervals import (
    Measured,
    Resamples,
    measure_difference,
    measure_draws,
    measure_share,
)
from clusterscape.model.arrays import Bools, Float64s
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.jobs import JobStatus

TOP_USERS = 10
MIN_USER_JOBS = 10
FAILED = STATUSES.index(JobStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusShare:
    """``share``: of the jobs whose end is known, with Wilson's interval; ``share_by_user``: with users resampled."""

    status: JobStatus
    jobs: int
    share: Measured
    share_by_user: Measured | None
    unit_hours: float
    unit_hours_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassEnds:
    """Jobs whose size or run time is in [``low``, ``high``]: the share of unsuccessful and of failed jobs."""

    low: float
    high: float
    jobs: int
    unsuccessful: Measured
    failed: Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTrend:
    """Whether jobs of the upper class end unsuccessfully more often than those of the lowest.

    ``rise``: highest class minus lowest, with Newcombe's interval for these jobs. ``rise_by_user``: with users resampled; null if
    users are unknown. ``trend_z``: Cochran–Armitage statistic; above 1.96 the share rises with the class. ``rank_correlation``:
    Spearman's correlation of the value with being unsuccessful. ``falls_at``: the first class whose share is significantly below
    that of the previous class.
    """

    classes: list[ClassEnds]
    rise: Measured | None
    rise_by_user: Measured | None
    failed_rise: Measured | None
    failed_rise_by_user: Measured | None
    trend_z: float | None
    rank_correlation: float | None
    falls_at: int | None


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class UserEnds:
    """One user's jobs whose end is known."""

    user: str
    jobs: int
    unsuccessful: Measured
    lost_unit_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """``lost_unit_hours``: used by unsuccessful jobs. ``user_share_p*``: quantiles over users with at least 10 jobs.

    ``worst_tenth_share``: share of all unsuccessful jobs that belongs to the 10% of users with the most of them.
    """

    unknown_jobs: int
    unknown_share: float
    statuses: list[StatusShare]
    lost_unit_hours: float
    lost_share: float | None
    by_size: EndTrend
    by_run_time: EndTrend
    users: list[UserEnds]
    user_share_p25: float | None
    user_share_p50: float | None
    user_share_p75: float | None
    worst_tenth_share: float | None


def describe_failures(jobs: JobColumns, users: Resamples | None) -> Failures | None:
    """Statistics of ends; None if no job's end is known. O(n log n + users × draws)."""
    if not jobs.is_judged.any():
        return None
    used = float(jobs.unit_s[jobs.is_judged].sum())
    lost = float(jobs.unit_s[jobs.is_unsuccessful].sum())
    quartiles, worst = _spread_over_users(jobs)
    return Failures(
        unknown_jobs=int((~jobs.is_judged).sum()),
        unknown_share=float((~jobs.is_judged).mean()),
        statuses=_statuses(jobs, users, used),
        lost_unit_hours=lost / 3600,
        lost_share=lost / used if used else None,
        by_size=find_trend(jobs, split_by_rank(np.where(jobs.is_judged, jobs.size, np.nan)), jobs.size, users),
        by_run_time=find_trend(jobs, split_by_rank(np.where(jobs.is_judged, jobs.run_s, np.nan)), jobs.run_s, users),
        users=_top_users(jobs),
        user_share_p25=quartiles[0],
        user_share_p50=quartiles[1],
        user_share_p75=quartiles[2],
        worst_tenth_share=worst,
    )


def _statuses(jobs: JobColumns, users: Resamples | None, used: float) -> list[StatusShare]:
    total = int(jobs.is_judged.sum())
    shares = []
    for code, status in enumerate(STATUSES):
        hits = jobs.status == code
        if status is JobStatus.UNKNOWN or not hits.any():
            continue
        share = measure_share(float(hits.sum()), total)
        assert share
        unit_hours = float(jobs.unit_s[hits].sum()) / 3600
        by_user = None
        if users is not None:
            draws = users.shares(hits.astype(np.float64), jobs.is_judged.astype(np.float64))
            by_user = measure_draws(share.value, draws[:, 0])
        shares.append(
            StatusShare(
                status=status,
                jobs=int(hits.sum()),
                share=share,
                share_by_user=by_user,
                unit_hours=unit_hours,
                unit_hours_share=unit_hours * 3600 / used if used else None,
            )
        )
    return shares


def find_trend(jobs: JobColumns, classes: Classes, values: Float64s, users: Resamples | None) -> EndTrend:
    """How the share of unsuccessful jobs depends on the classes of a value."""
    totals = classes.jobs().astype(np.float64)
    chosen = classes.code >= 0
    codes = classes.code[chosen]
    unsuccessful = sum_by(codes, jobs.is_unsuccessful[chosen], classes.count)
    failed = sum_by(codes, jobs.status[chosen] == FAILED, classes.count)
    class_ends = []
    for place in range(classes.count):
        unsuccessful_share, failed_share = (
            measure_share(unsuccessful[place], totals[place]),
            measure_share(failed[place], totals[place]),
        )
        assert unsuccessful_share
        assert failed_share
        ends = ClassEnds(
            low=classes.low[place],
            high=classes.high[place],
            jobs=int(totals[place]),
            unsuccessful=unsuccessful_share,
            failed=failed_share,
        )
        class_ends.append(ends)
    rise, rise_by_user = _measure_rise(unsuccessful, totals, jobs.is_unsuccessful, classes, users)
    failed_rise, failed_by_user = _measure_rise(failed, totals, jobs.status == FAILED, classes, users)
    return EndTrend(
        classes=class_ends,
        rise=rise,
        rise_by_user=rise_by_user,
        failed_rise=failed_rise,
        failed_rise_by_user=failed_by_user,
        trend_z=_compute_trend_z(unsuccessful, totals),
        rank_correlation=_correlate(values[chosen], jobs.is_unsuccessful[chosen]),
        falls_at=next(
            (place for place in range(1, classes.count) if _measure_step(unsuccessful, totals, place).is_below_zero),
            None,
        ),
    )


def _measure_step(hits: Float64s, totals: Float64s, place: int) -> Measured:
    return measure_difference((hits[place - 1], hits[place]), (totals[place - 1], totals[place]))


def _measure_rise(
    hits: Float64s,
    totals: Float64s,
    is_hit: Bools,
    classes: Classes,
    users: Resamples | None,
) -> tuple[Measured | None, Measured | None]:
    if classes.count < 2:
        return None, None
    rise = measure_difference((hits[0], hits[-1]), (totals[0], totals[-1]))
    if users is None:
        return rise, None
    draws = users.shares(is_hit.astype(np.float64), np.ones(len(is_hit)), classes.code, classes.count)
    return rise, measure_draws(rise.value, draws[:, -1] - draws[:, 0])


def _compute_trend_z(hits: Float64s, totals: Float64s) -> float | None:
    """Cochran–Armitage statistic with scores 0, 1, 2, …; None if all jobs ended the same way."""
    scores = np.arange(len(totals), dtype=np.float64)
    number, share = totals.sum(), hits.sum() / max(totals.sum(), 1.0)
    spread = float((totals * scores**2).sum() - (totals * scores).sum() ** 2 / max(number, 1.0))
    variance = share * (1 - share) * spread
    if variance <= 0:
        return None
    return float((scores * (hits - totals * share)).sum() / np.sqrt(variance))


def _correlate(values: Float64s, is_hit: Bools) -> float | None:
    """Spearman's rank correlation with a boolean."""
    if len(values) < 3 or is_hit.all() or not is_hit.any() or np.ptp(values) == 0:
        return None
    ranks = pl.Series(values).rank("average").to_numpy()
    return float(np.corrcoef(ranks, is_hit.astype(np.float64))[0, 1])


def _top_users(jobs: JobColumns) -> list[UserEnds]:
    """The users with the most lost unit-hours."""
    chosen = jobs.is_judged & (jobs.user >= 0)
    number = len(jobs.users)
    totals = np.bincount(jobs.user[chosen], minlength=number)
    unsuccessful = np.bincount(jobs.user[chosen], weights=jobs.is_unsuccessful[chosen], minlength=number)
    lost = np.bincount(jobs.user[chosen], weights=(jobs.unit_s * jobs.is_unsuccessful)[chosen], minlength=number)
    users = []
    for code in np.argsort(-lost, kind="stable")[:TOP_USERS].tolist():
        share = measure_share(unsuccessful[code], float(totals[code]))
        if share is not None and lost[code] > 0:
            users.append(
                UserEnds(
                    user=jobs.users[code],
                    jobs=int(totals[code]),
                    unsuccessful=share,
                    lost_unit_hours=float(lost[code]) / 3600,
                )
            )
    return users


def _spread_over_users(jobs: JobColumns) -> tuple[tuple[float | None, float | None, float | None], float | None]:
    chosen = jobs.is_judged & (jobs.user >= 0)
    if not jobs.has_users or not chosen.any():
        return (None, None, None), None
    totals = np.bincount(jobs.user[chosen])
    unsuccessful = np.bincount(jobs.user[chosen], weights=jobs.is_unsuccessful[chosen])
    has_enough_jobs = totals >= MIN_USER_JOBS
    active = unsuccessful[totals > 0]
    tenth = -(-len(active) // 10)
    worst = float(np.sort(active)[-tenth:].sum() / unsuccessful.sum()) if unsuccessful.sum() else None
    if not has_enough_jobs.any():
        return (None, None, None), worst
    p25, p50, p75 = (
        float(value)
        for value in np.quantile(unsuccessful[has_enough_jobs] / totals[has_enough_jobs], [0.25, 0.5, 0.75])
    )
    return (p25, p50, p75), worst
