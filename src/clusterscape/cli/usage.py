"""``clusterscape usage``: GPU-hours, jobs, waits and money by user, project and so on, from a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterscape.cli.options import DEFAULT_URL, OUTPUT, JsonOption, TokenOption, UrlOption
from clusterscape.cli.output import count, listing_table, percent, print_json, print_text, stdout

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS = ("user", "project", "partition", "gpu_model", "qos", "job_size", "end_state")
STEPS = ("day", "week", "month", "quarter", "year")
FILTER = "Filter"

PeriodOption = Annotated[
    str | None,
    typer.Option(
        "--period",
        "-p",
        help="2026, 2026-Q4, 2026-10, 2026-W42, 2026-10-05, or two of them: 2026-01..2026-03.",
        show_default="this month",
    ),
]
UserOption = Annotated[str | None, typer.Option("--user", help="Only this user.", rich_help_panel=FILTER)]
ProjectOption = Annotated[
    str | None, typer.Option("--project", help="Only this project (account).", rich_help_panel=FILTER)
]
TimezoneOption = Annotated[
    str | None,
    typer.Option("--timezone", help="Time zone of days and months.", show_default="that of the server's settings"),
]


def usage(
    period: PeriodOption = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", "-b", help=f"Group by {', '.join(KEYS)}; may be repeated.")
    ] = None,
    step: Annotated[
        str | None, typer.Option("--step", help=f"Also print each {', '.join(STEPS)}.", show_default="only the sum")
    ] = None,
    user: UserOption = None,
    project: ProjectOption = None,
    partition: Annotated[
        str | None, typer.Option("--partition", help="Only this partition.", rich_help_panel=FILTER)
    ] = None,
    timezone: TimezoneOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Groups with the most GPU-hours.")] = 20,
    budgets: Annotated[
        bool, typer.Option("--budgets", help="Show the budgets instead, and when they run out.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, every group and step.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: JsonOption = False,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
) -> None:
    """Show who used how much in a month or any other period: GPU-hours as Slurm's accounting counts them, jobs, waits, money."""
    from clusterscape.remote import connect

    server = connect(url, token)
    if budgets:
        listed = server.get("/budgets")
        print_json(listed) if as_json else _print_budgets(listed)
        return
    answer = server.get(
        "/usage",
        period=period,
        by=by or ["user"],
        step=step,
        timezone=timezone,
        user=user,
        project=project,
        partition=partition,
        limit=1000 if as_csv else limit,
    )
    if as_json:
        print_json(answer)
    elif as_csv:
        print_text(usage_csv(answer))
    else:
        print_usage(answer, has_steps=step is not None)


def usage_csv(answer: Mapping[str, Any]) -> str:
    """One line for every group and step, with the start of the step as a local date."""
    import csv
    import io

    keys = [str(key) for key in answer["by"]]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    has_money = answer["currency"] is not None
    writer.writerow([answer["step"], *keys, "gpu_hours", "cpu_hours", *(["money"] if has_money else [])])
    for group in answer["groups"]:
        for place, start in enumerate(answer["edges"][:-1]):
            cells = [group["gpu_hours"][place], group["cpu_hours"][place]]
            if has_money:
                cells.append(group["money"][place])
            if any(cells):
                names = [_quote_formula(group[key] or "") for key in keys]
                writer.writerow([_local_day(start, answer["timezone"]), *names, *(f"{cell:.6f}" for cell in cells)])
    return text.getvalue()


def _quote_formula(text: str) -> str:
    """Spreadsheets run texts that begin like a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def _local_day(at: int, timezone: str) -> str:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return f"{datetime.fromtimestamp(at / 1000, ZoneInfo(timezone)):%Y-%m-%d}"


def print_usage(answer: Mapping[str, Any], *, has_steps: bool) -> None:
    """Print the sums and the groups with the most GPU-hours."""
    from clusterscape.model.quantities import format_duration, format_hours

    total, currency = answer["total"], answer["currency"]
    title = f"{answer['name']} ({answer['timezone']})"
    if answer["until"] < answer["end"]:
        title += ", so far"
    stdout.print(title, highlight=False)
    facts = [
        f"{format_hours(total['gpu_hours'])} GPU-hours",
        f"{format_hours(total['cpu_hours'])} CPU-hours",
        count(total["jobs"], "job"),
        count(total["users"], "user"),
    ]
    if total["median_wait_s"] is not None:
        facts.append(f"median wait {format_duration(total['median_wait_s'])}")
    if currency:
        facts.append(f"{total['money']:,.2f} {currency}")
    stdout.print(" · ".join(facts), highlight=False)
    measured = total["gpu_hours"] - total["unknown_gpu_hours"]
    if not answer["is_measured"]:
        stdout.print("Too many GPUs and steps to measure their use; choose a shorter period.", style="dim")
    elif measured > 0:
        parts = ("used", "stalled", "execution_idle", "idle", "unknown")
        held = max(total["gpu_hours"], 1e-9)
        shares = (f"{part.replace('_', '-')} {percent(total[f'{part}_gpu_hours'] / held)}" for part in parts)
        stdout.print(f"GPUs held: {', '.join(shares)}", highlight=False)
    stdout.print("")
    table = listing_table()
    for key in answer["by"]:
        table.add_column(key.replace("_", " "), no_wrap=True)
    columns = ("GPU-hours", "share", "idle", "CPU-hours", "jobs", "median wait")
    for name in (*columns, *([currency] if currency else [])):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [([group[key] or "–" for key in answer["by"]], group["figures"]) for group in answer["groups"]]
    if answer["others"] is not None:
        rest = answer["group_count"] - len(answer["groups"])
        rows.append(([f"{rest:,} others", *[""] * (len(answer["by"]) - 1)], answer["others"]))
    for names, figures in rows:
        _add_row(table, names, figures, total["gpu_hours"], currency)
    stdout.print(table)
    if has_steps:
        stdout.print("")
        _print_steps(answer)


def _add_row(table: Any, names: list[str], figures: Mapping[str, Any], total: float, currency: str | None) -> None:
    from clusterscape.model.quantities import format_duration, format_hours

    held, unknown = figures["gpu_hours"], figures["unknown_gpu_hours"]
    idle = figures["idle_gpu_hours"] + figures["execution_idle_gpu_hours"]
    table.add_row(
        *names,
        format_hours(held),
        percent(held / total if total else None),
        percent(idle / (held - unknown) if held - unknown > 1e-9 else None),
        format_hours(figures["cpu_hours"]),
        f"{figures['jobs']:,}",
        format_duration(figures["median_wait_s"]),
        *([f"{figures['money']:,.2f}"] if currency else []),
    )


def _print_steps(answer: Mapping[str, Any]) -> None:
    table = listing_table()
    table.add_column(answer["step"], no_wrap=True)
    columns = ("GPU-hours", "share", "idle", "CPU-hours", "jobs", "median wait")
    for name in (*columns, *([answer["currency"]] if answer["currency"] else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for start, figures in zip(answer["edges"], answer["steps"], strict=False):
        day = _local_day(start, answer["timezone"])
        _add_row(table, [day], figures, answer["total"]["gpu_hours"], answer["currency"])
    stdout.print(table)


def _print_budgets(budgets: list[dict[str, Any]]) -> None:
    from datetime import UTC, datetime

    from clusterscape.model.quantities import format_hours

    if not budgets:
        stdout.print("No budgets; the settings [accounting.budgets.NAME] define them.")
        return

    def day(at: int | None) -> str:
        return "–" if at is None else f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}"

    table = listing_table()
    for name in ("budget", "of", "until"):
        table.add_column(name, no_wrap=True)
    for name in ("used", "granted", "used %", "time %", "runs out", "between"):
        table.add_column(name, justify="right", no_wrap=True)
    for budget in budgets:
        unit = budget["currency"] or "GPU-hours"
        runs_out, between = "too little history", ""
        if budget["used"] >= budget["granted"]:
            runs_out = "used up"
        elif budget["has_forecast"]:
            runs_out = day(budget["runs_out_at"]) if budget["runs_out_at"] else "not at this pace"
            if budget["runs_out_low"]:
                between = f"{day(budget['runs_out_low'])} … {day(budget['runs_out_high'])}"
        table.add_row(
            budget["name"],
            budget["project"] or budget["user"] or "–",
            day(budget["end"] - 1),
            format_hours(budget["used"]),
            f"{format_hours(budget['granted'])} {unit}",
            percent(budget["used_ratio"]),
            percent(budget["time_ratio"]),
            runs_out,
            between,
        )
    stdout.print(table)
