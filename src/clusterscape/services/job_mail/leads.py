"""The weekly digest to the leads of projects: who used how much, and how much of it was idle."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import polars as pl

from clusterscape.model import UnixMs
from clusterscape.model.access import Account, Role
from clusterscape.model.durations import DAY_MS
from clusterscape.services.job_mail.composing import UserWeek

SEND_HOUR = 7
"""UTC, on Mondays."""


def week_before(now: UnixMs) -> tuple[str, UnixMs, UnixMs] | None:
    """The name and range of the last calendar week (UTC), from Monday at SEND_HOUR on; None before that hour."""
    moment = datetime.fromtimestamp(now / 1000, UTC)
    monday = (moment - timedelta(days=moment.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    if moment < monday + timedelta(hours=SEND_HOUR):
        return None
    end = UnixMs(int(monday.timestamp() * 1000))
    year, week, _ = (monday - timedelta(days=1)).isocalendar()
    return f"{year}-W{week:02d}", UnixMs(end - 7 * DAY_MS), end


def find_leads(accounts: Iterable[Account]) -> list[tuple[str, str]]:
    """(login, project) of everybody who leads a project."""
    return sorted(
        (account.login, project)
        for account in accounts
        if account.role is Role.LEAD and not account.is_disabled
        for project in account.projects
    )


def sum_users(summaries: pl.DataFrame, project: str) -> list[UserWeek]:
    """What each user of a project used, from the summaries of jobs that ended."""
    hours = pl.col("run_s") / 3600
    table = (
        summaries.filter(pl.col("project") == project, pl.col("user").is_not_null())
        .group_by("user", maintain_order=True)
        .agg(
            jobs=pl.len(),
            gpu_hours=(hours * pl.col("gpus")).sum(),
            idle_gpu_hours=(hours * pl.col("gpus_idle").fill_null(0)).sum(),
            core_hours=(hours * pl.col("cpus").fill_null(0)).sum(),
        )
    )
    return [UserWeek(**row) for row in table.iter_rows(named=True)]
