"""Usage by user, project, partition, GPU model, QOS, job size and end state over any period, and budgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from clusterscape.analyze.usage.budgets import BudgetForecast, forecast_budget
from clusterscape.analyze.usage.calendar import (
    CalendarStep,
    Period,
    choose_step,
    local_date,
    midnight,
    name_period,
    parse_period,
    split_period,
)
from clusterscape.analyze.usage.prices import JOULES_PER_KWH, PriceList, add_money, cut_at_prices
from clusterscape.analyze.usage.sums import GROUPS, group_sums, sum_executions
from clusterscape.errors import QueryError
from clusterscape.model import UnixMs
from clusterscape.model.durations import DAY_MS, HOUR_S, MINUTE_MS
from clusterscape.model.timezones import find_timezone
from clusterscape.query.cache import VersionedCache
from clusterscape.query.context import QueryContext
from clusterscape.query.redaction.scoped_records import ScopedRecords
from clusterscape.query.usage.answers import BudgetAnswer, UsageAnswer, UsageFigures, UsageGroup, UsageKey
from clusterscape.query.usage.measuring import measure
from clusterscape.settings.accounting import BudgetSettings

RECENT_MS, RECENT_REFRESH_MS, PAST_REFRESH_MS = 3 * DAY_MS, 5 * MINUTE_MS, 60 * MINUTE_MS
"""Accounting of the past may come late: the sums of recent periods are computed again more often."""
MAX_GROUPS = 1000


@dataclass(frozen=True, slots=True)
class UsageCube:
    """The sums of a period by span and all groups. ``periods``: the step of each span, which a change of prices cuts."""

    period: Period
    step: CalendarStep
    timezone: str
    edges: list[int]
    periods: list[int]
    until: UnixMs
    sums: pl.DataFrame
    is_measured: bool
    has_prices: bool

    def only(self, names: Mapping[str, str]) -> pl.DataFrame:
        """The sums with these names."""
        return self.sums.filter(*(pl.col(key) == name for key, name in names.items()))


class UsageQuery:
    """Queries on usage."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._cache: VersionedCache = context.new_cache("usage", 16)

    def usage(
        self,
        *,
        period: str | None = None,
        step: CalendarStep | None = None,
        by: Sequence[UsageKey] = (UsageKey.USER,),
        timezone: str | None = None,
        names: Mapping[str, str] | None = None,
        limit: int = 50,
    ) -> UsageAnswer:
        """Usage of a period (``calendar.FORMS``; by default the current month), by one or several keys."""
        zone_name = timezone or self._context.accounting.timezone
        return self._answer(self.cube(self.find_period(period, zone_name), step, zone_name), by, names or {}, limit)

    def find_period(self, text: str | None, timezone: str) -> Period:
        """The named period; None: the current month. Raises QueryError if there is no such period or time zone."""
        try:
            zone = find_timezone(timezone)
            return parse_period(text or f"{local_date(self._context.clock(), zone):%Y-%m}", zone)
        except ValueError as error:
            raise QueryError(str(error), hint="Periods are written like 2026, 2026-10 or 2026-10-05.") from None

    def cube(self, period: Period, step: CalendarStep | None, timezone: str, *, measures: bool = True) -> UsageCube:
        """The sums of a period by all groups, cached."""
        step = step or choose_step(period)
        now = self._context.clock()
        refresh = RECENT_REFRESH_MS if now - period.end < RECENT_MS else PAST_REFRESH_MS
        key = (period, step, timezone, measures)
        return self._cache.get(key, now // refresh, lambda: self._compute(period, step, timezone, now, measures))

    def _compute(self, period: Period, step: CalendarStep, timezone: str, now: UnixMs, measures: bool) -> UsageCube:
        try:
            steps = split_period(period, step, find_timezone(timezone))
        except ValueError as error:
            raise QueryError(str(error), hint="Choose a shorter period or longer steps.") from None
        prices = self._prices()
        edges, periods = cut_at_prices(steps, prices)
        until = UnixMs(min(now, period.end))
        records = self._context.records
        measured = None
        if measures and until > period.start:
            measured = measure(self._context, period.start, until, np.asarray(edges, np.int64))
        sums = sum_executions(
            records.iter_executions(start_ms=period.start, end_ms=until) if until > period.start else (),
            edges=edges,
            periods=periods,
            now_ms=until,
            models={node.id: node.machine_type for node in records.nodes() if node.machine_type is not None},
            measured=measured,
        )
        if prices:
            sums = add_money(sums, edges, prices)
        sums = sums.with_columns(step=pl.col("span").replace_strict(dict(enumerate(periods)), return_dtype=pl.Int64))
        return UsageCube(period, step, timezone, edges, periods, until, sums, measured is not None, bool(prices))

    def _prices(self) -> list[PriceList]:
        zone = find_timezone(self._context.accounting.timezone)
        return [
            PriceList(
                since_ms=midnight(day, zone),
                gpu_hour=price.gpu_hour,
                gpu_models=price.gpu_models,
                cpu_hour=price.cpu_hour,
                energy_kwh=price.energy_kwh,
            )
            for day, price in self._context.accounting.prices.items()
        ]

    def _answer(self, cube: UsageCube, by: Sequence[UsageKey], names: Mapping[str, str], limit: int) -> UsageAnswer:
        sums = cube.only(names)
        keys = [key.value for key in dict.fromkeys(by)]
        groups = group_sums(sums, keys) if keys else group_sums(sums, []).head(0)
        shown = groups.head(min(limit, MAX_GROUPS))
        steps = [*dict.fromkeys(edge for edge, _ in self._step_edges(cube)), cube.edges[-1]]
        rest = None
        if groups.height > shown.height:
            rest = group_sums(sums.join(shown.select(keys), on=keys, how="anti", nulls_equal=True), [])
        by_step = {row["step"]: row for row in group_sums(_per_step(sums), ["step"]).iter_rows(named=True)}
        return UsageAnswer(
            name=name_period(cube.period, find_timezone(cube.timezone)),
            start=cube.period.start,
            end=cube.period.end,
            until=cube.until,
            step=cube.step,
            timezone=cube.timezone,
            currency=self._context.accounting.currency if cube.has_prices else None,
            by=[UsageKey(key) for key in keys],
            edges=steps,
            total=describe_figures(group_sums(sums, []).row(0, named=True)),
            steps=[describe_figures(by_step.get(index, {})) for index in range(len(steps) - 1)],
            groups=_describe_groups(shown, sums, keys, len(steps) - 1),
            others=None if rest is None else describe_figures(rest.row(0, named=True)),
            group_count=groups.height,
            is_measured=cube.is_measured,
        )

    def _step_edges(self, cube: UsageCube) -> list[tuple[int, int]]:
        """The start and number of every step."""
        first: dict[int, int] = {}
        for edge, number in zip(cube.edges[:-1], cube.periods, strict=True):
            first.setdefault(number, edge)
        return [(edge, number) for number, edge in first.items()]

    # budgets

    def budgets(self) -> list[BudgetAnswer]:
        """The budgets of the settings; on a private site only those in the viewer's scope."""
        records = self._context.records
        return [
            self._budget(name, budget)
            for name, budget in self._context.accounting.budgets.items()
            if not isinstance(records, ScopedRecords) or records.scope.covers(budget.user, budget.project)
        ]

    def _budget(self, name: str, budget: BudgetSettings) -> BudgetAnswer:
        settings = self._context.accounting
        zone = find_timezone(settings.timezone)
        period = Period(midnight(budget.since, zone), midnight(budget.until + timedelta(days=1), zone))
        now = self._context.clock()
        has_energy = budget.money is not None and any(price.energy_kwh for price in settings.prices.values())
        cube = self.cube(period, CalendarStep.DAY, settings.timezone, measures=has_energy)
        owner = {"project": budget.project} if budget.project is not None else {"user": budget.user or ""}
        value = pl.col("gpu_s") / HOUR_S if budget.money is None else _money(cube)
        days = self._days(cube)
        used_by_day = np.zeros(days)
        table = cube.only(owner).group_by("step").agg(value.sum().alias("value"))
        used_by_day[table["step"].to_numpy()] = table["value"].to_numpy()
        used, granted = float(used_by_day.sum()), float(budget.gpu_hours or budget.money or 0)
        passed = int(np.searchsorted([edge for edge, _ in self._step_edges(cube)], now, side="right")) - 1
        forecast: BudgetForecast | None = None
        if period.start <= now < period.end:
            # Today is not complete.
            forecast = forecast_budget(
                used_by_day[: max(passed, 0)], left=granted - used, days_to_end=days - passed, used=used
            )

        def moment(days_left: float | None) -> int | None:
            return None if days_left is None else int(now + days_left * DAY_MS)

        return BudgetAnswer(
            name=name,
            user=budget.user,
            project=budget.project,
            start=period.start,
            end=period.end,
            currency=None if budget.money is None else settings.currency,
            granted=granted,
            used=used,
            used_ratio=used / granted,
            time_ratio=min(1.0, max(0.0, (now - period.start) / (period.end - period.start))),
            has_forecast=forecast is not None,
            runs_out_at=moment(forecast.days) if forecast else None,
            runs_out_low=moment(forecast.days_low) if forecast else None,
            runs_out_high=moment(forecast.days_high) if forecast else None,
            used_by_end=forecast.by_end if forecast else None,
        )

    def _days(self, cube: UsageCube) -> int:
        return max(cube.periods) + 1


def _money(cube: UsageCube) -> pl.Expr:
    return pl.col("money") if cube.has_prices else pl.lit(0.0)


def _per_step(sums: pl.DataFrame) -> pl.DataFrame:
    """In a step a job counts once, even if it also ran before."""
    return sums.with_columns(new_jobs=pl.col("jobs"))


def describe_figures(row: Mapping[str, float | int | None]) -> UsageFigures:
    """The figures of a row of ``group_sums``; an empty row has none."""

    def hours(name: str) -> float:
        return (row.get(name) or 0.0) / HOUR_S

    measured = {name: hours(f"{name}_gpu_s") for name in ("used", "stalled", "execution_idle", "idle")}
    energy, money = row.get("energy_joules") or 0.0, row.get("money")
    return UsageFigures(
        gpu_hours=hours("gpu_s"),
        used_gpu_hours=measured["used"],
        stalled_gpu_hours=measured["stalled"],
        execution_idle_gpu_hours=measured["execution_idle"],
        idle_gpu_hours=measured["idle"],
        unknown_gpu_hours=max(0.0, hours("gpu_s") - sum(measured.values())),
        suspended_gpu_hours=hours("suspended_gpu_s"),
        cpu_hours=hours("cpu_s"),
        energy_kwh=energy / JOULES_PER_KWH if energy else None,
        money=money,
        jobs=int(row.get("new_jobs") or 0),
        submitted=int(row.get("submitted") or 0),
        started=int(row.get("started") or 0),
        ended=int(row.get("ended") or 0),
        users=int(row.get("users") or 0),
        wait_hours=hours("wait_s"),
        mean_wait_s=row.get("mean_wait_s"),
        median_wait_s=row.get("median_wait_s"),
    )


def _describe_groups(shown: pl.DataFrame, sums: pl.DataFrame, keys: list[str], steps: int) -> list[UsageGroup]:
    if not keys:
        return []
    has_money = "money" in sums.columns
    columns = ["gpu_s", "cpu_s", *(["money"] if has_money else [])]
    numbered = shown.select(keys).with_row_index("group")
    table = (
        sums.join(numbered, on=keys, how="inner", nulls_equal=True)
        .group_by("group", "step")
        .agg(pl.col(name).sum() for name in columns)
    )
    series = {name: np.zeros((shown.height, steps)) for name in columns}
    for name in columns:
        series[name][table["group"].to_numpy(), table["step"].to_numpy()] = table[name].to_numpy()
    return [
        UsageGroup(
            **{key: row[key] if key in keys else None for key in GROUPS},
            figures=describe_figures(row),
            gpu_hours=(series["gpu_s"][index] / HOUR_S).tolist(),
            cpu_hours=(series["cpu_s"][index] / HOUR_S).tolist(),
            money=series["money"][index].tolist() if has_money else None,
        )
        for index, row in enumerate(shown.iter_rows(named=True))
    ]
