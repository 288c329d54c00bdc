"""Usage, money and budgets of a small cluster, from real stores."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from clusters.opened import open_queries
from clusters.small import HOUR_MS, NOW, SmallCluster, unit

from clusterscape.errors import QueryError
from clusterscape.model import Allocation, Execution, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.durations import DAY_MS
from clusterscape.query import QueryContext
from clusterscape.query.usage import UsageQuery, UsageReportQuery
from clusterscape.query.usage.answers import UsageKey
from clusterscape.settings.accounting import AccountingSettings, BudgetSettings, PriceSettings

DAY = datetime.fromtimestamp(NOW / 1000, UTC).date()
MIDNIGHT = round(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp() * 1000)


def small_context(cluster: SmallCluster, accounting: AccountingSettings | None = None) -> QueryContext:
    return QueryContext(
        metrics=cluster.metrics,
        records=cluster.records,
        changes=cluster.changes,
        clock=lambda: cluster.now,
        cluster="small",
        accounting=accounting or AccountingSettings(),
    )


def usage_of(cluster: SmallCluster, accounting: AccountingSettings | None = None) -> UsageQuery:
    return open_queries(small_context(cluster, accounting)).usage


def write(cluster: SmallCluster, number: int, **fields: object) -> None:
    job = Workload(
        id=WorkloadId(f"slurm:{number}"),
        state=WorkloadState.COMPLETED,
        user="cleo",
        project="bio",
        partition="main",
        resource_type="A100-80G-2",
        gpus_requested=2,
        cpus=16,
        submitted_at=UnixMs(NOW - 30 * HOUR_MS),
        started_at=UnixMs(NOW - 29 * HOUR_MS),
        ended_at=UnixMs(NOW - 28 * HOUR_MS),
    )
    cluster.records.write_workloads([replace(job, **fields)], at_ms=NOW)  # type: ignore[arg-type]


def test_gpu_hours_are_those_of_the_list_of_workloads(small_cluster: SmallCluster) -> None:
    write(
        small_cluster,
        50,
        earlier=(
            Execution(
                started_at=UnixMs(NOW - 40 * HOUR_MS),
                ended_at=UnixMs(NOW - 38 * HOUR_MS),
                gpus=2,
                suspended_s=1800,
                word="REQUEUED",
            ),
        ),
    )
    answer = usage_of(small_cluster).usage(period=f"{DAY.year - 1}..{DAY.year + 1}")
    listed = small_cluster.queries.workloads.page(limit=100).workloads
    assert answer.total.gpu_hours == pytest.approx(sum(row.gpu_hours or 0 for row in listed))
    by_state = usage_of(small_cluster).usage(period=str(DAY.year), by=[UsageKey.END_STATE])
    hours = {group.end_state: group.figures.gpu_hours for group in by_state.groups}
    assert hours["requeued"] == pytest.approx(3.0)
    assert sum(hours.values()) == pytest.approx(answer.total.gpu_hours)


def test_groups_and_others_add_up_to_the_total(small_cluster: SmallCluster) -> None:
    for number in range(60, 70):
        write(small_cluster, number, user=f"u{number}", gpus_requested=number)
    answer = usage_of(small_cluster).usage(period=str(DAY.year), limit=3)
    assert answer.group_count > 10
    assert answer.others is not None
    shown = sum(group.figures.gpu_hours for group in answer.groups)
    assert shown + answer.others.gpu_hours == pytest.approx(answer.total.gpu_hours)
    assert [sum(group.gpu_hours) for group in answer.groups] == pytest.approx(
        [group.figures.gpu_hours for group in answer.groups]
    )
    assert sum(step.gpu_hours for step in answer.steps) == pytest.approx(answer.total.gpu_hours)


def test_filters_select_one_project(small_cluster: SmallCluster) -> None:
    write(small_cluster, 50)
    answer = usage_of(small_cluster).usage(period=str(DAY.year), names={"project": "bio"})
    (group,) = answer.groups
    assert group.user == "cleo"
    assert group.figures.gpu_hours == pytest.approx(2.0)


def test_use_of_held_gpus_is_measured_where_samples_are(small_cluster: SmallCluster) -> None:
    write(
        small_cluster,
        50,
        started_at=UnixMs(NOW - 3 * HOUR_MS),
        ended_at=UnixMs(NOW - HOUR_MS),
        submitted_at=UnixMs(NOW - 3 * HOUR_MS),
    )
    small_cluster.records.write_allocations(
        [
            Allocation(
                workload=WorkloadId("slurm:50"),
                unit=unit("n3", index),
                from_at=UnixMs(NOW - 3 * HOUR_MS),
                to_at=UnixMs(NOW - HOUR_MS),
            )
            for index in range(2)
        ]
    )
    for minute in range(0, 120, 5):
        at = NOW - 3 * HOUR_MS + minute * 60_000 + 1000
        small_cluster.store_sample("gpu_util_ratio", unit("n3", 0), at, 0.9 if minute < 60 else 0.0)
        small_cluster.store_sample("power_watts", unit("n3", 0), at, 500.0)
    figures = usage_of(small_cluster).usage(period=str(DAY.year), names={"user": "cleo"}).total
    assert figures.gpu_hours == pytest.approx(4.0)
    assert figures.used_gpu_hours == pytest.approx(1.0, abs=1 / 3)
    assert figures.idle_gpu_hours == pytest.approx(1.0, abs=1 / 3)
    assert figures.unknown_gpu_hours == pytest.approx(2.0, abs=1 / 3)
    assert figures.energy_kwh == pytest.approx(1.0, abs=0.2)


def test_budget_says_what_is_used_and_when_it_runs_out(small_cluster: SmallCluster) -> None:
    for day in range(1, 40):
        at = MIDNIGHT - day * DAY_MS
        write(
            small_cluster,
            100 + day,
            submitted_at=UnixMs(at),
            started_at=UnixMs(at + HOUR_MS),
            ended_at=UnixMs(at + 2 * HOUR_MS),
        )
    first = date.fromordinal(DAY.toordinal() - 39)
    last = date.fromordinal(DAY.toordinal() + 60)
    accounting = AccountingSettings(
        prices={date(2020, 1, 1): PriceSettings(gpu_hour=1.5)},
        budgets={
            "grant": BudgetSettings(project="bio", since=first, until=last, gpu_hours=118),
            "money": BudgetSettings(project="bio", since=first, until=last, money=1000),
            "none": BudgetSettings(user="nobody", since=first, until=last, gpu_hours=10),
        },
    )
    grant, money, none = usage_of(small_cluster, accounting).budgets()
    assert grant.used == pytest.approx(78)
    assert grant.runs_out_at is not None
    # 40 GPU-hours are left, at 2 a day.
    assert (grant.runs_out_at - NOW) / DAY_MS == pytest.approx(20, abs=1)
    assert money.currency == "EUR"
    assert money.used == pytest.approx(78 * 1.5)
    assert (none.used, none.runs_out_at) == (0, None)


@pytest.mark.parametrize(("period", "timezone"), [("2026-13", "UTC"), ("2026", "Nowhere/Else")])
def test_question_is_refused_when_period_or_time_zone_is_unknown(
    small_cluster: SmallCluster, period: str, timezone: str
) -> None:
    with pytest.raises(QueryError):
        usage_of(small_cluster).usage(period=period, timezone=timezone)


def test_report_has_every_part_with_the_same_total_and_the_periods_before(small_cluster: SmallCluster) -> None:
    past = UnixMs(NOW - 40 * DAY_MS)
    write(small_cluster, 50, submitted_at=past, started_at=past, ended_at=UnixMs(past + 3 * HOUR_MS))
    write(small_cluster, 51)
    reports = UsageReportQuery(small_context(small_cluster), usage_of(small_cluster))
    report = reports.report(period=f"{DAY:%Y-%m}")
    assert {part.by[0] for part in report.parts} == set(UsageKey)
    totals = [part.total.gpu_hours for part in report.parts]
    assert totals == pytest.approx([totals[0]] * len(totals))
    for part in report.parts:
        assert sum(group.figures.gpu_hours for group in part.groups) == pytest.approx(totals[0])
    assert report.former[-1].figures == report.parts[0].total
    assert sum(former.figures.gpu_hours for former in report.former[:-1]) == pytest.approx(6)
    assert report.findings[0].value == pytest.approx(totals[0])
    of_project = reports.report(period=f"{DAY:%Y-%m}", project="bio")
    assert UsageKey.PROJECT not in {part.by[0] for part in of_project.parts}
    assert of_project.parts[0].total.gpu_hours == pytest.approx(2)
