"""How the live queue is printed: as a table, as a story, as differences."""

from datetime import datetime
from typing import Any

from rich.markup import escape
from rich.table import Table

from clusterscape.cli.output import answers, duration

_VERDICTS = {"better": "green", "worse": "yellow", "unclear": "dim", "same": "dim"}


def _moment(at_ms: int | None) -> str:
    return "–" if at_ms is None else datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%a %d %b %H:%M")


def _change(seconds: float) -> str:
    if abs(seconds) < 30:
        return "±0"
    return f"{'+' if seconds > 0 else '−'}{duration(abs(seconds))}"


def print_queue(found: dict[str, Any]) -> None:
    """Everybody who waits, in queue order."""
    rows = found["workloads"]
    if not rows:
        answers.print("Nothing waits.")
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading, justify in (
        ("#", "right"),
        ("workload", "left"),
        ("user", "left"),
        ("partition", "left"),
        ("GPUs", "right"),
        ("waited", "right"),
        ("likely start", "left"),
        ("at the latest", "left"),
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
            duration(row["waited_s"]) if row["waited_s"] is not None else "–",
            interval,
            _moment(row["planned_at"]),
            row["reason_text"] or "–",
        ]
        table.add_row(*(escape(cell) for cell in cells))
    answers.print(table)
    asked = f"{len(rows)} wait for {sum(row['gpus'] for row in rows):,} GPUs"
    answers.print(f"{asked}; intervals hold 8 of 10 sampled futures.", style="dim", highlight=False)


def print_story(found: dict[str, Any]) -> None:
    """Why one waits."""
    answers.print(found["workload"], style="bold", highlight=False, markup=False)
    for line in found["text"]:
        answers.print(line, highlight=False, markup=False)
    row = found["row"]
    if row is not None and row["likely"] is not None:
        likely = row["likely"]
        told = f"{_moment(likely['likely_at'])} ({_moment(likely['from_at'])} – {_moment(likely['to_at'])}, 8 of 10)"
        answers.print(f"Likely start: {told}.", highlight=False, markup=False)
    if found["ahead"]:
        answers.print("\nAhead, the nearest last:", style="dim")
        for other in found["ahead"]:
            line = f"  {other['workload']}  {other['user'] or '–'}  {other['gpus']} GPUs  {other['why']}"
            answers.print(line, highlight=False, markup=False)
    if found["holders"]:
        answers.print("\nWho holds its space:", style="dim")
        for holder in found["holders"]:
            ends = f"until {_moment(holder['ends_by'])} at most, likely {_moment(holder['likely_end_at'])}"
            line = f"  {holder['workload']}  {holder['user'] or '–'}  {holder['gpus']} GPUs  {ends}"
            answers.print(line, highlight=False, markup=False)
    _print_promise(found["promise"])
    if found["changes"]:
        answers.print("\nWhat would start it sooner than at the latest, the cheapest first:", style="dim")
        for change in found["changes"]:
            answers.print(f"  {change['words']}: {duration(change['gain_s'])} sooner", highlight=False, markup=False)


def _print_promise(promise: dict[str, Any] | None) -> None:
    if promise is None:
        return
    answers.print("\nPromises:", style="dim")
    answers.print(f"  first for {_moment(promise['first_at'])}", highlight=False, markup=False)
    for slip in promise["slips"]:
        names = f" ({', '.join(slip['by'])})" if slip["by"] else ""
        line = f"  {_change(slip['change_s'])}  {slip['words']}{names}"
        answers.print(line, highlight=False, markup=False)
    end = promise["started_at"] or promise["last_at"]
    line = f"  in all {_change(promise['slipped_s'])}: {_moment(end)}"
    answers.print(line, highlight=False, markup=False)


def print_what_if(found: dict[str, Any]) -> None:
    """Differences, paired."""
    title = ", ".join(found["changes"]) or "nothing changed"
    answers.print(f"With {title}: {found['simulated']} waiting, {found['futures']} futures", style="bold", markup=False)
    table = Table(box=None, header_style="dim", pad_edge=False)
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
        answers.print(f"{warning['title']}: {warning['text']}", style="yellow", highlight=False, markup=False)


def _value(value: float, unit: str) -> str:
    sign = "−" if value < 0 else ""
    if unit == "s":
        return f"{sign}{duration(abs(value))}"
    return f"{sign}{abs(value):,.1f} {unit}".strip()
