"""A trace's report for people in a terminal: the verdicts first, then what they rest on."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from clusterscape.cli.output import answers, count, errors, listing_table

MAX_ROWS = 16
NOTHING = "Nothing significant: no rank, stage or link stands out beyond chance and the clocks' error."
GRAPH_ONLY = "Operator graph only: no times recorded."


def print_report(document: dict[str, Any]) -> None:
    """Everything, shortest first."""
    for note in document["notes"]:
        errors.print(note, style="yellow", highlight=False, soft_wrap=True)
    if is_graph_only(document):
        _say(f"{document['format']}: {count(len(document['ranks']), 'rank')}. {GRAPH_ONLY}")
        return
    _print_head(document)
    _print_verdicts(document["verdicts"])
    _print_breakdown(document["breakdown"])
    _print_imbalance(document["imbalance"])
    _print_collectives(document)
    _print_bubble(document["bubble"])
    _print_path(document["critical_path"])
    _print_what_if(document["what_if"])


def is_graph_only(document: Mapping[str, Any]) -> bool:
    """Whether there is nothing to measure: an operator graph was read, and no spans. Of a report or of a row of a list."""
    return bool(document["spans"] == 0)


def format_s(seconds: float | None) -> str:
    """``8.50 s``, ``12.3 ms``, ``45 µs``; an en dash where it is not known."""
    if seconds is None:
        return "–"
    size = abs(seconds)
    if size >= 1:
        return f"{seconds:,.2f} s"
    return f"{seconds * 1e3:,.1f} ms" if size >= 1e-3 else f"{seconds * 1e6:,.0f} µs"


def _table(*headings: str) -> Table:
    table = listing_table()
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("what", "process group", "verdict") else "right")
    return table


def _say(text: str, **style: Any) -> None:
    answers.print(text, highlight=False, soft_wrap=True, **style)


def _head(text: str) -> None:
    answers.line()
    _say(text, style="bold")


def _print_head(document: dict[str, Any]) -> None:
    ranks, steps = document["ranks"], document["steps"]
    lengths = [step["length_s"] for step in steps]
    error = document["alignment"]["error_s"]
    _say(
        f"{document['format']}: {count(len(ranks), 'rank')}, {count(len(steps), 'step')} of "
        f"{format_s(sum(lengths) / len(lengths) if lengths else None)}, {count(document['spans'], 'span')}; "
        f"alignment error {format_s(error)}."
    )


def _print_verdicts(verdicts: list[dict[str, Any]]) -> None:
    _head("Why")
    if not verdicts:
        _say(NOTHING)
        return
    table = _table("", "saves", "verdict")
    for place, one in enumerate(verdicts, start=1):
        table.add_row(f"{place}.", format_s(one["seconds_per_step"]), one["sentence"])
    answers.print(table, highlight=False)


def _print_breakdown(rows: list[dict[str, Any]]) -> None:
    _head("Where the step goes")
    names = ("step", "compute", "waiting", "transferring", "idle")
    table = _table("rank", *names)
    for row in rows[:MAX_ROWS]:
        shares = [f"{row[f'{name}_s'] / row['step_s']:.0%}" if row["step_s"] else "–" for name in names[1:]]
        table.add_row(str(row["rank"]), format_s(row["step_s"]), *shares)
    answers.print(table, highlight=False)
    if len(rows) > MAX_ROWS:
        _say(f"{MAX_ROWS} of {len(rows)} ranks; --json has all.", style="dim")


def _print_imbalance(imbalance: dict[str, float | None]) -> None:
    words = {"ranks_ratio": "ranks", "stages_ratio": "stages", "micro_batches_ratio": "micro-batches of a rank"}
    known = [f"over {words[name]} {value:.0%}" for name, value in imbalance.items() if value is not None]
    if known:
        _say(f"Load imbalance (max/mean − 1): {', '.join(known)}.")


def _print_collectives(document: dict[str, Any]) -> None:
    found = document["collectives"]
    if not found["matched"] and not found["messages"]:
        return
    _head("Collectives")
    lone = found["unmatched_spans"]
    last = ", ".join(f"rank {each['rank']} ({each['times']}×)" for each in found["last_arrivers"][:8])
    _say(
        f"{found['matched']:,} matched across ranks, {count(found['messages'], 'message')}, "
        f"{count(lone, 'span')} unmatched." + (f" Last to come: {last}." if last else "")
    )
    table = _table("rank", "last", "others waited", "95 %")
    for each in document["slack"][:8]:
        known = each["low_s"] is not None
        between = f"{format_s(each['low_s'])} to {format_s(each['high_s'])}" if known else "too few steps"
        table.add_row(str(each["rank"]), f"{each['last_times']}×", format_s(each["slack_s"]), between)
    if document["slack"]:
        answers.print(table, highlight=False)
    table = _table("process group", "ranks", "exposed", "of it waiting")
    for each in document["exposed_communication"][:8]:
        table.add_row(
            each["process_group"], str(each["ranks"]), format_s(each["exposed_s"]), format_s(each["waiting_s"])
        )
    answers.print(table, highlight=False)


def _print_bubble(bubble: dict[str, Any] | None) -> None:
    if bubble is None:
        return
    _head("Pipeline")
    _say(
        f"{bubble['stages']} stages, {bubble['micro_batches']} micro-batches: bubble {bubble['measured_ratio']:.1%} = "
        f"ideal {bubble['ideal_ratio']:.1%} + imbalance {bubble['imbalance_ratio']:.1%} + jitter {bubble['jitter_ratio']:.1%}."
    )
    table = _table("stage", "compute", "bubble")
    for stage, (length, share) in enumerate(zip(bubble["stage_compute_s"], bubble["stage_bubble_ratio"], strict=True)):
        table.add_row(str(stage), format_s(length), f"{share:.0%}")
    answers.print(table, highlight=False)


def _print_path(path: dict[str, Any] | None) -> None:
    if path is None:
        return
    _head(f"Critical path of step {path['step']}, {format_s(path['length_s'])}")
    table = _table("rank", "what", "length", "share")
    for part in path["parts"][:8]:
        share = part["length_s"] / path["length_s"] if path["length_s"] else 0.0
        table.add_row(str(part["rank"]), part["kind"], format_s(part["length_s"]), f"{share:.0%}")
    answers.print(table, highlight=False)


def _print_what_if(answers_: list[dict[str, Any]]) -> None:
    if not answers_:
        return
    _head("What if")
    table = _table("what", "step now", "step then", "speed-up")
    for each in answers_:
        speed = "–" if each["speed_up"] is None else f"{each['speed_up']:.3f}×"
        table.add_row(each["question"], format_s(each["now_s"]), format_s(each["then_s"]), speed)
    answers.print(table, highlight=False)
