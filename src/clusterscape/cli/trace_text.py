"""Prints the report of a trace: verdicts first, then their evidence."""

from typing import Any

from rich.table import Table

from clusterscape.cli.output import count, listing_table, stderr, stdout
from clusterscape.model.trace_report import (
    RankBreakdown,
    TraceBubble,
    TraceImbalance,
    TracePath,
    TraceReportDocument,
    Verdict,
    WhatIf,
)

MAX_ROWS = 16
NO_VERDICT = "Nothing significant: no rank, stage or link stands out beyond chance and clock error."
GRAPH_ONLY = "Operator graph only: no times recorded."


def print_report(report: TraceReportDocument) -> None:
    """Print the whole report."""
    for note in report.notes:
        stderr.print(note, style="yellow", highlight=False, soft_wrap=True)
    if is_graph_only(report.spans):
        _print_line(f"{report.format}: {count(len(report.ranks), 'rank')}. {GRAPH_ONLY}")
        return
    _print_head(report)
    _print_verdicts(report.verdicts)
    _print_breakdown(report.breakdown)
    _print_imbalance(report.imbalance)
    _print_collectives(report)
    _print_bubble(report.bubble)
    _print_path(report.critical_path)
    _print_what_if(report.what_if)


def is_graph_only(spans: int) -> bool:
    """Whether the trace is an operator graph without spans, so that there are no times."""
    return spans == 0


def format_s(seconds: float | None) -> str:
    """``8.50 s``, ``12.3 ms``, ``45 µs``; an en dash if it is None."""
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


def _print_line(text: str, **style: Any) -> None:
    stdout.print(text, highlight=False, soft_wrap=True, **style)


def _print_heading(text: str) -> None:
    stdout.line()
    _print_line(text, style="bold")


def _print_head(report: TraceReportDocument) -> None:
    ranks, steps = report.ranks, report.steps
    lengths = [step.length_s for step in steps]
    error = report.alignment.error_s
    _print_line(
        f"{report.format}: {count(len(ranks), 'rank')}, {count(len(steps), 'step')} of "
        f"{format_s(sum(lengths) / len(lengths) if lengths else None)}, {count(report.spans, 'span')}; "
        f"alignment error {format_s(error)}."
    )


def _print_verdicts(verdicts: list[Verdict]) -> None:
    _print_heading("Why")
    if not verdicts:
        _print_line(NO_VERDICT)
        return
    table = _table("", "saves", "verdict")
    for number, verdict in enumerate(verdicts, start=1):
        table.add_row(f"{number}.", format_s(verdict.seconds_per_step), verdict.sentence)
    stdout.print(table, highlight=False)


def _print_breakdown(rows: list[RankBreakdown]) -> None:
    _print_heading("Where the step goes")
    names = ("step", "compute", "waiting", "transferring", "idle")
    table = _table("rank", *names)
    for row in rows[:MAX_ROWS]:
        shares = [f"{getattr(row, f'{name}_s') / row.step_s:.0%}" if row.step_s else "–" for name in names[1:]]
        table.add_row(str(row.rank), format_s(row.step_s), *shares)
    stdout.print(table, highlight=False)
    if len(rows) > MAX_ROWS:
        _print_line(f"{MAX_ROWS} of {len(rows)} ranks; --json prints all.", style="dim")


def _print_imbalance(imbalance: TraceImbalance) -> None:
    ratios = {
        "ranks": imbalance.ranks_ratio,
        "stages": imbalance.stages_ratio,
        "micro-batches of a rank": imbalance.micro_batches_ratio,
    }
    words = [f"over {name} {ratio:.0%}" for name, ratio in ratios.items() if ratio is not None]
    if words:
        _print_line(f"Load imbalance (max/mean − 1): {', '.join(words)}.")


def _print_collectives(report: TraceReportDocument) -> None:
    collectives = report.collectives
    if not collectives.matched and not collectives.messages:
        return
    _print_heading("Collectives")
    last = ", ".join(f"rank {arriver.rank} ({arriver.times}×)" for arriver in collectives.last_arrivers[:8])
    _print_line(
        f"{collectives.matched:,} matched across ranks, {count(collectives.messages, 'message')}, "
        f"{count(collectives.unmatched_spans, 'span')} unmatched." + (f" Last to arrive: {last}." if last else "")
    )
    table = _table("rank", "last", "others waited", "95 %")
    for slack in report.slack[:8]:
        has_interval = slack.low_s is not None
        between = f"{format_s(slack.low_s)} to {format_s(slack.high_s)}" if has_interval else "too few steps"
        table.add_row(str(slack.rank), f"{slack.last_times}×", format_s(slack.slack_s), between)
    if report.slack:
        stdout.print(table, highlight=False)
    table = _table("process group", "ranks", "exposed", "of it waiting")
    for group in report.exposed_communication[:8]:
        table.add_row(group.process_group, str(group.ranks), format_s(group.exposed_s), format_s(group.waiting_s))
    stdout.print(table, highlight=False)


def _print_bubble(bubble: TraceBubble | None) -> None:
    if bubble is None:
        return
    _print_heading("Pipeline")
    _print_line(
        f"{bubble.stages} stages, {bubble.micro_batches} micro-batches: bubble {bubble.measured_ratio:.1%} = "
        f"ideal {bubble.ideal_ratio:.1%} + imbalance {bubble.imbalance_ratio:.1%} + jitter {bubble.jitter_ratio:.1%}."
    )
    table = _table("stage", "compute", "bubble")
    for stage, (length, share) in enumerate(zip(bubble.stage_compute_s, bubble.stage_bubble_ratio, strict=True)):
        table.add_row(str(stage), format_s(length), f"{share:.0%}")
    stdout.print(table, highlight=False)


def _print_path(path: TracePath | None) -> None:
    if path is None:
        return
    _print_heading(f"Critical path of step {path.step}, {format_s(path.length_s)}")
    table = _table("rank", "what", "length", "share")
    for part in path.parts[:8]:
        share = part.length_s / path.length_s if path.length_s else 0.0
        table.add_row(str(part.rank), part.kind, format_s(part.length_s), f"{share:.0%}")
    stdout.print(table, highlight=False)


def _print_what_if(what_ifs: list[WhatIf]) -> None:
    if not what_ifs:
        return
    _print_heading("What if")
    table = _table("what", "step now", "with change", "speed-up")
    for what_if in what_ifs:
        speed = "–" if what_if.speed_up is None else f"{what_if.speed_up:.3f}×"
        table.add_row(what_if.question, format_s(what_if.now_s), format_s(what_if.then_s), speed)
    stdout.print(table, highlight=False)
