"""A month or other period in full: by owner, GPU model, job size and end state, compared with those before, with findings."""

from collections.abc import Mapping

from clusterscape.analyze.usage.calendar import (
    CalendarStep,
    Period,
    find_kind,
    name_period,
    period_after,
    period_around,
    periods_before,
)
from clusterscape.analyze.usage.findings import PeriodSums, find_usage
from clusterscape.analyze.usage.sums import group_sums
from clusterscape.model import UnitKind
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.timezones import find_timezone
from clusterscape.query.context import QueryContext
from clusterscape.query.usage.answers import (
    FormerPeriod,
    PeriodName,
    UsageAnswer,
    UsageFigures,
    UsageGroup,
    UsageKey,
    UsageReport,
)
from clusterscape.query.usage.query import UsageQuery, describe_figures

FORMER_PERIODS = 6
SHOWN_GROUPS = 25
PARTS = (
    UsageKey.PROJECT,
    UsageKey.USER,
    UsageKey.PARTITION,
    UsageKey.GPU_MODEL,
    UsageKey.JOB_SIZE,
    UsageKey.QOS,
    UsageKey.END_STATE,
)


class UsageReportQuery:
    """Queries on reports of usage."""

    def __init__(self, context: QueryContext, usage: UsageQuery) -> None:
        self._context = context
        self._usage = usage

    def report(
        self,
        *,
        period: str | None = None,
        timezone: str | None = None,
        user: str | None = None,
        project: str | None = None,
    ) -> UsageReport:
        """The report of a period (by default the current month), of the cluster, a project, a user, or both."""
        names = {key: name for key, name in (("user", user), ("project", project)) if name is not None}
        zone_name = timezone or self._context.accounting.timezone
        zone = find_timezone(zone_name)
        chosen = self._usage.find_period(period, zone_name)
        parts = {
            key: self._usage.usage(
                period=name_period(chosen, zone), by=[key], timezone=zone_name, names=names, limit=SHOWN_GROUPS
            )
            for key in PARTS
            if key.value not in names
        }
        owner = next(key for key in parts if key in (UsageKey.PROJECT, UsageKey.USER, UsageKey.PARTITION))
        owners, ends = parts[owner], parts[UsageKey.END_STATE]
        former = self._read_former(chosen, zone_name, names)
        before = former[-1] if former else None
        former.append(FormerPeriod(name=owners.name, start=chosen.start, figures=owners.total))
        return UsageReport(
            cluster=self._context.cluster,
            user=user,
            project=project,
            parts=list(parts.values()),
            previous=name_period(periods_before(chosen, zone, 1)[0], zone),
            next=name_period(period_after(chosen, zone), zone),
            kind=find_kind(chosen, zone),
            kinds=[
                PeriodName(kind=kind, name=name_period(period_around(chosen.start, kind, zone), zone))
                for kind in CalendarStep
            ],
            former=former,
            findings=find_usage(
                _sums(owners.name, owners.total),
                before=None if before is None else _sums(before.name, before.figures),
                is_complete=owners.until >= owners.end,
                owners=[_sums(_name(group, owner), group.figures) for group in owners.groups],
                owner_word=owner.value,
                ends=[_sums(_name(group, UsageKey.END_STATE), group.figures) for group in ends.groups],
                capacity_gpu_hours=None if names else self._capacity(owners),
                currency=owners.currency,
            ),
            budgets=[
                budget
                for budget in self._usage.budgets()
                if not names or (budget.project == project if project else budget.user == user)
            ],
        )

    def _read_former(self, period: Period, timezone: str, names: Mapping[str, str]) -> list[FormerPeriod]:
        """The periods before, from the first one with any usage on."""
        zone = find_timezone(timezone)
        before = periods_before(period, zone, FORMER_PERIODS)
        read = []
        for period_before in before:
            cube = self._usage.cube(period_before, CalendarStep.YEAR, timezone, measures=False)
            figures = describe_figures(group_sums(cube.only(names), []).row(0, named=True))
            read.append(FormerPeriod(name=name_period(period_before, zone), start=period_before.start, figures=figures))
        first = next((place for place, former in enumerate(read) if former.figures.jobs), len(read))
        return read[first:]

    def _capacity(self, answer: UsageAnswer) -> float:
        """GPU-hours that all GPUs of today could have given until now."""
        gpus = sum(unit.kind is UnitKind.GPU for unit in self._context.records.units())
        return gpus * max(0, answer.until - answer.start) / HOUR_MS


def _name(group: UsageGroup, key: UsageKey) -> str:
    return getattr(group, key.value) or "unknown"


def _sums(name: str, figures: UsageFigures) -> PeriodSums:
    return PeriodSums(
        name=name,
        gpu_hours=figures.gpu_hours,
        idle_gpu_hours=figures.idle_gpu_hours,
        execution_idle_gpu_hours=figures.execution_idle_gpu_hours,
        unknown_gpu_hours=figures.unknown_gpu_hours,
        suspended_gpu_hours=figures.suspended_gpu_hours,
        jobs=figures.jobs,
        started=figures.started,
        wait_hours=figures.wait_hours,
        median_wait_s=figures.median_wait_s,
        money=figures.money,
    )
