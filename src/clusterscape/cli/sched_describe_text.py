"""Text output of ``clusterscape sched describe``: verdicts on claims, then a table of the traces."""

from collections.abc import Callable
from typing import Any

from clusterscape.cli.output import listing_table, stderr, stdout
from clusterscape.model.quantities import format_duration

VERDICTS = {"supported": "supported", "not_supported": "not supported", "cannot_tell": "cannot tell"}
_STYLES = {"supported": "green", "not_supported": "yellow", "cannot_tell": "dim"}
NONE = "–"


def print_description(document: dict[str, Any]) -> None:
    """Print a description. ``document``: as in the API."""
    printed: set[str] = set()
    for claim in document["claims"]:
        stdout.print(
            f"{VERDICTS[claim['verdict']]:<13} {claim['statement']}",
            style=_STYLES[claim["verdict"]],
            highlight=False,
        )
        new_caveats = [text for text in claim["caveats"] if text not in printed]
        printed.update(new_caveats)
        for text in (claim["sentence"], format_effect(claim), *new_caveats):
            if text:
                stdout.print(f"{'':<14}{text}", style="dim", highlight=False, soft_wrap=True)
    stdout.print()
    table = listing_table()
    table.add_column("")
    for trace in document["traces"]:
        table.add_column(trace["name"], justify="right", no_wrap=True)
    for label, cell in FACTS:
        table.add_row(label, *(cell(trace) for trace in document["traces"]))
    stdout.print(table, highlight=False)
    for trace in document["traces"]:
        for note in trace["notes"]:
            lines = ", ".join(str(number) for number in note["lines"])
            where = f" (line {lines}{', …' if note['count'] > len(note['lines']) else ''})" if lines else ""
            stderr.print(
                f"{trace['name']}: {note['count']:,} {note['action']}: {note['reason']}{where}",
                style="dim" if note["action"] == "kept" else "yellow",
                highlight=False,
                soft_wrap=True,
            )


def format_effect(claim: dict[str, Any]) -> str:
    """``effect 0.22 times (95 %: 0.21 to 0.22; users resampled: 0.16 to 0.30)``; empty if there is none."""
    effect = claim["effect"]
    if effect is None:
        return ""
    show = _ratio if claim["effect_unit"] == "ratio" else _points
    parts = []
    if effect["low"] is not None:
        parts.append(f"95 %: {show(effect['low'])} to {show(effect['high'])}")
    by_user = claim["effect_by_user"]
    if by_user is not None and by_user["low"] is not None:
        parts.append(f"users resampled: {show(by_user['low'])} to {show(by_user['high'])}")
    unit = "" if claim["effect_unit"] == "ratio" else " points"
    return f"{claim['effect_name']}: {show(effect['value'])}{unit}" + (f" ({'; '.join(parts)})" if parts else "")


def _ratio(value: float) -> str:
    return f"{value:.3g}"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def find(tree: Any, *path: str) -> Any:
    """The value at a path of keys; None if a part of the path is None."""
    for key in path:
        tree = None if tree is None else tree[key]
    return tree


def unit_word(trace: dict[str, Any]) -> str:
    """The unit of job sizes."""
    return "GPUs" if trace["size_unit"] == "gpus" else str(trace["size_unit"])


def _seconds(*path: str) -> Callable[[dict[str, Any]], str]:
    return lambda trace: format_duration(find(trace, *path))


def _share(*path: str) -> Callable[[dict[str, Any]], str]:
    def cell(trace: dict[str, Any]) -> str:
        value = find(trace, *path)
        return NONE if value is None else f"{value:.1%}"

    return cell


def _number(*path: str) -> Callable[[dict[str, Any]], str]:
    def cell(trace: dict[str, Any]) -> str:
        value = find(trace, *path)
        return NONE if value is None else f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"

    return cell


def _unsuccessful(trace: dict[str, Any]) -> str:
    statuses = find(trace, "failures", "statuses")
    if statuses is None:
        return NONE
    return f"{sum(status['share']['value'] for status in statuses if status['status'] != 'completed'):.1%}"


def _capacity(trace: dict[str, Any]) -> str:
    if trace["total_units"] is not None:
        return f"{trace['total_units']:,} {unit_word(trace)}"
    capacity = find(trace, "occupancy", "capacity_units")
    return NONE if capacity is None else f"{capacity:,.0f} {unit_word(trace)} (a guess)"


FACTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("jobs", _number("jobs")),
    ("dropped rows", _number("dropped")),
    ("users", _number("users", "users")),
    ("jobs of the most active user", _share("users", "largest_user_share")),
    ("submissions span", lambda trace: format_duration(trace["last_submit_s"] - trace["first_submit_s"])),
    ("sizes in", lambda trace: unit_word(trace)),
    ("machine", _capacity),
    ("unit-hours used", _number("unit_hours")),
    ("utilization", _share("occupancy", "utilization")),
    ("time over capacity", _share("occupancy", "over_capacity_share")),
    ("median run time", _seconds("run_s", "quantiles", "p50")),
    ("95th percentile run time", _seconds("run_s", "quantiles", "p95")),
    ("median size", _number("size_units", "quantiles", "p50")),
    ("largest size", _number("size_units", "quantiles", "maximum")),
    ("median wait", _seconds("waiting", "wait_s", "quantiles", "p50")),
    ("mean wait", _seconds("waiting", "wait_s", "mean")),
    ("mean bounded slowdown", _number("waiting", "mean_bounded_slowdown")),
    ("mean queue, jobs", _number("occupancy", "mean_waiting_jobs")),
    ("busiest / quietest hour", _number("arrivals", "busiest_to_quietest_hour")),
    (
        "jobs of unknown end",
        lambda trace: _share("failures", "unknown_share")(trace) if trace["failures"] else "100.0%",
    ),
    ("unsuccessful, of the others", _unsuccessful),
    ("unit-hours lost", _number("failures", "lost_unit_hours")),
    ("unit-hours lost, share", _share("failures", "lost_share")),
    ("in users' 10 largest groups", _share("users", "repetition", "top_10_cover", "value")),
)
"""Rows of the table: label, and a function that formats the cell of a trace."""
