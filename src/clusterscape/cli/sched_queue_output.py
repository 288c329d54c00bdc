"""How the live queue is printed: as a table, as a story, as differences."""

from datetime import datetime
from typing import Any

from clusterscape.cli.output import answers, listing_table
from clusterscape.cli.status import describe_awaited, describe_reservations
from clusterscape.model.quantities import format_duration

_VERDICTS = {"better": "green", "worse": "yellow", "unclear": "dim", "same": "dim"}


def _moment(at_ms: int | None) -> str:
    return "–" if at_ms is None else datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%a %d %b %H:%M")


def _change(seconds: float) -> str:
    if abs(seconds) < 30:
        return "±0"
    return f"{'+' if seconds > 0 else '−'}{format_duration(abs(seconds))}"


def print_queue(found: dict[str, Any]) -> None:
    """Everybody who waits, in queue order."""
    rows = found["workloads"]
    for line in describe_reservations(found["reservations"]):
        answers.print(line, highlight=False)
    if not rows:
        awaited = describe_awaited(found["awaited"])
        answers.print(f"What waits is not known yet: {awaited}." if awaited else "Nothing waits.")
        return
    table = listing_table()
    for heading, justify in (
        ("#", "right"),
        ("workload", "left"),
        ("user", "left"),
        ("partition", "left"),
        ("GPUs", "right"),
        ("waited", "right"),
        ("likely start", "left"),
        ("latest start", "left"),
        ("scheduler says", "left"),
        ("why", "left"),
    ):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for row in rows:
        likely = row["likely"]
        interval = "–" if likely is None else f"{_moment(likely['from_at'])} – {_moment(likely['to_at'])}"
        cells = [
            "–" if row["position"] is None else str(row["position"]),
            row["workload"],
            row["user"] or "–",
            row["partition"],
            str(row["gpus"]),
            format_duration(row["waited_s"]) if row["waited_s"] is not None else "–",
            interval,
            _moment(row["planned_at"]),
            _moment(row["scheduler_at"]),
            row["reason_text"] or "–",
        ]
        table.add_row(*cells)
    answers.print(table)
    asked = f"{len(rows)} wait for {sum(row['gpus'] for row in rows):,} GPUs{_say_not_in_line(rows)}"
    answers.print(f"{asked}; intervals hold 8 of 10 sampled futures.", style="dim", highlight=False)


def _say_not_in_line(rows: list[dict[str, Any]]) -> str:
    """``, 2 held, 3 not for room``: only what somebody holds back is held."""
    held = sum(row["waits_for"] == "held" for row in rows)
    blocked = sum(row["position"] is None and row["waits_for"] != "held" for row in rows)
    return (f", {held} held" if held else "") + (f", {blocked} not for room" if blocked else "")


def print_story(found: dict[str, Any]) -> None:
    """Why one waits."""
    answers.print(found["workload"], style="bold", highlight=False)
    for line in found["text"]:
        answers.print(line, highlight=False)
    row = found["row"]
    if row is not None and row["likely"] is not None:
        likely = row["likely"]
        told = f"{_moment(likely['likely_at'])} ({_moment(likely['from_at'])} – {_moment(likely['to_at'])}, 8 of 10)"
        answers.print(f"Likely start: {told}.", highlight=False)
    if found["ahead"]:
        answers.line()
        answers.print("Ahead, the nearest last:", style="dim")
        for other in found["ahead"]:
            line = f"  {other['workload']}  {other['user'] or '–'}  {other['gpus']} GPUs  {other['why']}"
            answers.print(line, highlight=False)
    if found["holders"]:
        answers.line()
        answers.print("Who holds its space:", style="dim")
        for holder in found["holders"]:
            ends = f"until {_moment(holder['ends_by'])} at most, likely {_moment(holder['likely_end_at'])}"
            line = f"  {holder['workload']}  {holder['user'] or '–'}  {holder['gpus']} GPUs  {ends}"
            answers.print(line, highlight=False)
    _print_promise(found["promise"])
    if found["changes"]:
        answers.line()
        answers.print("What would start it sooner than at the latest, the cheapest first:", style="dim")
        for change in found["changes"]:
            answers.print(f"  {change['words']}: {format_duration(change['gain_s'])} sooner", highlight=False)


def _print_promise(promise: dict[str, Any] | None) -> None:
    if promise is None:
        return
    answers.line()
    answers.print("Promises:", style="dim")
    answers.print(f"  first for {_moment(promise['first_at'])}", highlight=False)
    for slip in promise["slips"]:
        names = f" ({', '.join(slip['by'])})" if slip["by"] else ""
        line = f"  {_change(slip['change_s'])}  {slip['words']}{names}"
        answers.print(line, highlight=False)
    end = promise["started_at"] or promise["last_at"]
    line = f"  in all {_change(promise['slipped_s'])}: {_moment(end)}"
    answers.print(line, highlight=False)


def print_what_if(found: dict[str, Any]) -> None:
    """Differences, paired."""
    title = ", ".join(found["changes"]) or "nothing changed"
    answers.print(f"With {title}: {found['simulated']} waiting, {found['futures']} futures", style="bold")
    table = listing_table()
    for heading in ("measure", "as it is", "then", "difference (95 %)"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    for measure in found["measures"]:
        low, high = (_value(measure[key], measure["unit"]) for key in ("low", "high"))
        apart = f"{_value(measure['difference'], measure['unit'])} ({low} … {high})"
        table.add_row(
            measure["title"],
            _value(measure["baseline"], measure["unit"]),
            _value(measure["changed"], measure["unit"]),
            "same" if measure["verdict"] == "same" else apart,
            style=_VERDICTS[measure["verdict"]] if measure["verdict"] in ("unclear", "same") else None,
        )
    answers.print(table)
    for warning in found["warnings"]:
        answers.print(f"{warning['title']}: {warning['text']}", style="yellow", highlight=False)


def _value(value: float, unit: str) -> str:
    sign = "−" if value < 0 else ""
    if unit == "s":
        return f"{sign}{format_duration(abs(value))}"
    return f"{sign}{abs(value):,.1f} {unit}".strip()
