"""Sums over executions, compared with a sum over single jobs that is written as simply as possible."""

import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC

import numpy as np
import polars as pl
import pytest

from clusterscape.analyze.usage.budgets import forecast_budget
from clusterscape.analyze.usage.calendar import CalendarStep, parse_period, split_period
from clusterscape.analyze.usage.measured import UnitSteps, sum_measured
from clusterscape.analyze.usage.prices import PriceList, add_money, cut_at_prices
from clusterscape.analyze.usage.sums import MEASURED_SCHEMA, group_sums, sum_executions
from clusterscape.model.durations import DAY_MS, HOUR_MS, HOUR_S

START = parse_period("2026-10", UTC).start
NOW = START + 20 * DAY_MS
COLUMNS = {
    **dict.fromkeys(
        ("id", "user", "project", "partition", "qos", "resource_type", "first_node", "end_state"), pl.String
    ),
    **dict.fromkeys(
        ("gpus", "cpus", "submitted_at", "eligible_at", "started_at", "ended_at", "suspended_s", "suspended_at"),
        pl.Int64,
    ),
    **dict.fromkeys(("is_active", "is_first", "is_last"), pl.Boolean),
}


def table(*executions: Mapping[str, object]) -> pl.DataFrame:
    default = {
        "id": "slurm:1",
        "user": "ada",
        "project": "nlp",
        "partition": "main",
        "resource_type": "A100-80G-2",
        "end_state": "completed",
        "gpus": 2,
        "cpus": 8,
        "submitted_at": START,
        "started_at": START,
        "suspended_s": 0,
        "is_active": False,
        "is_first": True,
        "is_last": True,
    }
    return pl.DataFrame([{**dict.fromkeys(COLUMNS), **default, **values} for values in executions], schema=COLUMNS)


def make_executions(seed: int, jobs: int) -> list[dict[str, object]]:
    chance = random.Random(seed)
    made: list[dict[str, object]] = []
    for job in range(jobs):
        at = START + chance.randint(-5 * DAY_MS, 25 * DAY_MS)
        count = chance.choice((1, 1, 1, 3))
        user = f"u{chance.randint(1, 5)}"
        gpus = chance.choice((0, 1, 4, 16))
        for index in range(count):
            started = at + chance.randint(0, HOUR_MS)
            ended = started + chance.choice((0, chance.randint(0, HOUR_MS), chance.randint(0, 6 * DAY_MS)))
            is_active = index == count - 1 and ended > NOW
            made.append(
                {
                    "id": f"slurm:{job}",
                    "user": user,
                    "gpus": gpus,
                    "resource_type": None if gpus == 0 else f"H100-{gpus}",
                    "submitted_at": at,
                    "eligible_at": at + 1000,
                    "started_at": started,
                    "ended_at": None if is_active else ended,
                    "suspended_s": min(chance.choice((0, 0, 60)), (ended - started) // 1000),
                    "is_active": is_active,
                    "is_first": index == 0,
                    "is_last": index == count - 1,
                    "end_state": "running" if is_active else "completed" if index == count - 1 else "requeued",
                }
            )
            at = ended
    return made


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sums_equal_those_over_single_executions_in_whatever_tables_they_come(seed: int) -> None:
    made = make_executions(seed, 200)
    edges = [int(edge) for edge in split_period(parse_period("2026-10", UTC), CalendarStep.DAY, UTC)]
    expected: Counter[tuple[int, str]] = Counter()
    for row in made:
        start, end = int(row["started_at"]), int(row["ended_at"] or NOW)  # type: ignore[call-overload]
        share = 1 - int(row["suspended_s"]) * 1000 / max(end - start, 1)  # type: ignore[call-overload]
        for day in range(len(edges) - 1):
            overlap = max(0, min(end, edges[day + 1]) - max(start, edges[day]))
            expected[day, str(row["user"])] += overlap / 1000 * share * int(row["gpus"])  # type: ignore[call-overload]
    whole = table(*made)
    halves = [whole.filter(pl.col("id").hash() % 2 == part) for part in range(2)]
    cube = sum_executions(halves, edges=edges, now_ms=NOW)
    sums = {
        (row["span"], row["user"]): row["gpu_s"] for row in group_sums(cube, ["span", "user"]).iter_rows(named=True)
    }
    for key in expected.keys() | sums.keys():
        assert sums.get(key, 0.0) == pytest.approx(expected[key], abs=1e-6)
    total = group_sums(cube, []).row(0, named=True)
    inside = {
        row["id"]
        for row in made
        if int(row["started_at"]) < edges[-1] and int(row["ended_at"] or NOW) >= edges[0]  # type: ignore[call-overload]
        if int(row["ended_at"] or NOW) > edges[0] or int(row["started_at"]) >= edges[0]  # type: ignore[call-overload]
    }
    assert total["new_jobs"] == len(inside)
    assert total["started"] == sum(edges[0] <= int(row["started_at"]) < edges[-1] for row in made)  # type: ignore[call-overload]


def test_job_counts_once_in_total_and_in_every_day_it_ran() -> None:
    cube = sum_executions(
        [table({"ended_at": START + 2 * DAY_MS + 1})], edges=[START + day * DAY_MS for day in range(5)], now_ms=NOW
    )
    assert group_sums(cube, ["span"]).sort("span")["jobs"].to_list() == [1, 1, 1]
    total = group_sums(cube, []).row(0, named=True)
    assert (total["new_jobs"], total["ended"], total["submitted"], total["users"]) == (1, 1, 1, 1)


def test_suspended_seconds_are_taken_off_gpus_and_cpus() -> None:
    cube = sum_executions(
        [table({"ended_at": START + 2 * HOUR_MS, "suspended_s": 1800})],
        edges=[START, START + HOUR_MS, START + DAY_MS],
        now_ms=NOW,
    )
    sums = group_sums(cube, ["span"]).sort("span")
    assert sums["gpu_s"].to_list() == [5400, 5400]
    assert sums["suspended_gpu_s"].to_list() == [1800, 1800]
    assert sums["cpu_s"].to_list() == [4 * 5400, 4 * 5400]


def test_waits_count_where_the_job_starts_and_since_it_became_eligible() -> None:
    rows = [
        {"id": f"slurm:{wait}", "eligible_at": START + 1000, "started_at": START + 1000 + wait * 1000, "ended_at": NOW}
        for wait in (10, 20, 90)
    ]
    total = group_sums(sum_executions([table(*rows)], edges=[START, NOW], now_ms=NOW), []).row(0, named=True)
    assert (total["wait_s"], total["mean_wait_s"], total["median_wait_s"]) == (120, 40, 20)


def test_model_is_that_of_the_node_when_the_job_requested_none() -> None:
    rows: list[dict[str, object]] = [
        {"id": "slurm:1", "resource_type": None, "first_node": "n1", "ended_at": START + HOUR_MS},
        {"id": "slurm:2", "ended_at": START + HOUR_MS, "gpus": 5},
        {"id": "slurm:3", "resource_type": None, "gpus": 0, "ended_at": START + HOUR_MS},
    ]
    cube = sum_executions([table(*rows)], edges=[START, NOW], now_ms=NOW, models={"n1": "V100"})
    sums = group_sums(cube, ["gpu_model", "job_size"]).select("gpu_model", "job_size").rows()
    assert sorted(sums, key=str) == sorted([("V100", "2-4"), ("A100-80G", "5-8"), (None, "0")], key=str)


def test_nothing_is_summed_when_there_are_no_executions() -> None:
    cube = sum_executions([], edges=[START, NOW], now_ms=NOW)
    assert group_sums(cube, ["user"]).height == 0
    assert group_sums(cube, []).row(0, named=True)["gpu_s"] == 0


def test_money_follows_the_price_of_the_time_and_model_when_prices_change_within_a_month() -> None:
    change = START + 10 * DAY_MS + HOUR_MS
    prices = [
        PriceList(since_ms=START - DAY_MS, gpu_hour=1.0, cpu_hour=0.5),
        PriceList(since_ms=change, gpu_hour=2.0, gpu_models={"A100-80G": 3.0}, energy_kwh=1.0),
    ]
    edges, periods = cut_at_prices([START, START + 31 * DAY_MS], prices)
    assert edges == [START, change, START + 31 * DAY_MS]
    assert periods == [0, 0]
    rows = [
        {"id": "slurm:1", "started_at": change - HOUR_MS, "ended_at": change + HOUR_MS},
        {"id": "slurm:2", "started_at": change - HOUR_MS, "ended_at": change + HOUR_MS, "resource_type": "V100-2"},
    ]
    measured = pl.DataFrame([("slurm:1", 1, 0.0, 0.0, 0.0, 0.0, 3.6e6)], schema=MEASURED_SCHEMA, orient="row")
    cube = sum_executions([table(*rows)], edges=edges, periods=periods, now_ms=NOW, measured=measured)
    money = group_sums(add_money(cube, edges, prices), ["gpu_model"])
    assert dict(money.select("gpu_model", "money").rows()) == {
        "A100-80G": pytest.approx(2 * 1 + 8 * 0.5 + 2 * 3 + 1),
        "V100": pytest.approx(2 * 1 + 8 * 0.5 + 2 * 2),
    }


def test_usage_before_the_first_price_costs_nothing() -> None:
    cube = sum_executions([table({"ended_at": START + HOUR_MS})], edges=[START, NOW], now_ms=NOW)
    priced = add_money(cube, [START, NOW], [PriceList(since_ms=NOW, gpu_hour=5.0)])
    assert priced["money"].to_list() == [0.0]


def test_held_steps_are_used_stalled_execution_idle_idle_or_unknown() -> None:
    nan = np.nan
    values = UnitSteps(
        util_ratio=np.array([[0.9, 0.9, 0.0, 0.0, nan, 0.9]]),
        sm_active_ratio=np.array([[0.5, 0.01, nan, nan, nan, nan]]),
        memory_used_bytes=np.array([[nan, nan, 2.0**33, 2.0**20, nan, nan]]),
        power_watts=np.array([[100.0, 200.0, 50.0, nan, nan, 100.0]]),
    )
    sums = sum_measured(
        pl.Series(["a", "b"]),
        np.array([0, 0]),
        np.array([0, 5]),
        np.array([6, 6]),
        values,
        span=np.array([0, 0, 0, 0, 1, 1]),
        step_s=600.0,
    )
    rows = {(row["id"], row["span"]): row for row in sums.iter_rows(named=True)}
    first = rows["a", 0]
    assert [first[name] for name in ("used_gpu_s", "stalled_gpu_s", "execution_idle_gpu_s", "idle_gpu_s")] == [600] * 4
    assert first["energy_joules"] == 350 * 600
    # The last step is shared, the one before is unknown.
    assert rows["a", 1]["used_gpu_s"] == rows["b", 1]["used_gpu_s"] == 300


def test_budget_runs_out_when_the_recent_pace_reaches_what_is_left() -> None:
    week = np.tile([10.0, 10, 10, 10, 10, 0, 0], 12)
    forecast = forecast_budget(week, left=500.0, days_to_end=100, used=600.0)
    assert forecast is not None
    assert forecast.days is not None
    assert forecast.days == pytest.approx(70, abs=4)
    assert forecast.days_low is not None
    assert forecast.days_high is not None
    assert forecast.days_low <= forecast.days <= forecast.days_high
    assert forecast.by_end == pytest.approx(600 + 100 * 50 / 7, rel=0.05)


def test_budget_has_no_end_when_nothing_is_used_and_no_forecast_without_history() -> None:
    unused = forecast_budget(np.zeros(60), left=10.0, days_to_end=30, used=0.0)
    assert unused is not None
    assert (unused.days, unused.by_end) == (None, 0.0)
    assert forecast_budget(np.ones(13), left=10.0, days_to_end=30, used=0.0) is None
    spent = forecast_budget(np.ones(60), left=-5.0, days_to_end=30, used=15.0)
    assert spent is not None
    assert spent.days == 0.0


def test_forecast_interval_covers_a_known_pace_in_most_cases() -> None:
    """Uses of days with noise, forward in time: how often the day it runs out lies in the interval of 80 %."""
    random_days = np.random.default_rng(4)
    hits = 0
    for _ in range(60):
        daily = random_days.gamma(2.0, 5.0, 400)
        forecast = forecast_budget(daily[:100], left=600.0, days_to_end=200, used=0.0)
        assert forecast is not None
        assert forecast.days_low is not None
        assert forecast.days_high is not None
        day = int((np.cumsum(daily[100:]) < 600).sum())
        hits += forecast.days_low - 1 <= day <= forecast.days_high + 1
    assert 36 <= hits <= 60


def test_hours_are_those_of_the_clock_on_days_when_clocks_change() -> None:
    from clusterscape.model.timezones import find_timezone

    zone = find_timezone("Europe/Berlin")
    period = parse_period("2026-10", zone)
    edges = [int(edge) for edge in split_period(period, CalendarStep.DAY, zone)]
    row = {"started_at": period.start - DAY_MS, "ended_at": period.end + DAY_MS, "gpus": 1}
    cube = sum_executions([table(row)], edges=edges, now_ms=period.end + 2 * DAY_MS)
    hours = group_sums(cube, ["span"]).sort("span")["gpu_s"] / HOUR_S
    assert hours.to_list() == [24.0] * 24 + [25.0] + [24.0] * 6
