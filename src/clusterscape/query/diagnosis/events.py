"""What happened to a workload: start, end, violations, XID errors, other workloads on its GPUs, what people wrote."""

from collections.abc import Iterator, Mapping

import polars as pl

from clusterscape.analyze.rules.explaining import format_values
from clusterscape.model import UnixMs
from clusterscape.model.rules import Rule, Violation
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.answers import EventKind, WorkloadEvent
from clusterscape.query.diagnosis.holding import Holding
from clusterscape.query.diagnosis.loading import nice_step_ms
from clusterscape.query.rule_notes import RuleNotes

XID_METRIC = "xid_error_code"
XID_STEPS = 2000
MOST_EVENTS = 1000


def list_events(
    context: QueryContext, holding: Holding, rules: Mapping[str, Rule], notes: RuleNotes
) -> list[WorkloadEvent]:
    """Events of the window by time, at most MOST_EVENTS."""
    if holding.window is None:
        return []
    events = [
        *_life(holding),
        *_violations(context, holding, rules),
        *_xids(context, holding),
        *_cotenants(context, holding),
        *_annotations(holding, notes),
    ]
    return sorted(events, key=lambda event: (event.at, event.kind, event.unit or ""))[:MOST_EVENTS]


def _event(at: int, kind: EventKind, text: str, *, unit: str | None = None, until: int | None = None) -> WorkloadEvent:
    return WorkloadEvent(at=at, until=until, kind=kind, unit=unit, text=text)


def _life(holding: Holding) -> Iterator[WorkloadEvent]:
    start, end = holding.window or (0, 0)
    workload = holding.workload
    if workload.started_at is not None and start <= workload.started_at < end:
        yield _event(workload.started_at, EventKind.START, "Started")
    if workload.ended_at is not None and start <= workload.ended_at <= end:
        yield _event(workload.ended_at, EventKind.END, f"Ended: {workload.state.value.replace('_', ' ')}")


def _violations(context: QueryContext, holding: Holding, rules: Mapping[str, Rule]) -> Iterator[WorkloadEvent]:
    """One event for all units that broke a rule at the same time."""
    start, end = holding.window or (0, 0)
    found = context.records.violations(workload=holding.workload.id, start_ms=UnixMs(start), end_ms=UnixMs(end))
    groups: dict[tuple[str, int, int | None], list[Violation]] = {}
    for each in found:
        groups.setdefault((each.rule, each.since, each.until), []).append(each)
    for (key, since, until), group in groups.items():
        rule = rules.get(key)
        units = sorted({each.unit for each in group if each.unit is not None})
        readings = format_values(rule, group[0].values) if rule else ""
        text = (rule.name if rule else key) + (f" on {len(units)} GPUs" if len(units) > 1 else "")
        unit = units[0] if len(units) == 1 else None
        yield _event(since, EventKind.VIOLATION, f"{text}: {readings}" if readings else text, unit=unit, until=until)


def _xids(context: QueryContext, holding: Holding) -> Iterator[WorkloadEvent]:
    """Where the code of the last XID error became another, and not 0."""
    start, end = holding.window or (0, 0)
    table = context.metrics.series(
        [XID_METRIC],
        holding.names,
        start_ms=UnixMs(start),
        end_ms=UnixMs(end),
        step_ms=nice_step_ms((end - start) / XID_STEPS),
    )
    turned = table.with_columns(before=pl.col("max").shift(1).over("unit")).filter(
        (pl.col("max") > 0) & pl.col("before").is_not_null() & (pl.col("max") != pl.col("before"))
    )
    spans = {each.unit: each.clip(start, end) for each in holding.units}
    for unit, at, code in turned.select("unit", "time_ms", "max").iter_rows():
        if any(begin <= at < stop for begin, stop in spans[unit]):
            yield _event(at, EventKind.XID, f"XID {code:.0f}", unit=unit)


def _cotenants(context: QueryContext, holding: Holding) -> Iterator[WorkloadEvent]:
    """Another workload comes to or leaves a GPU that this one holds."""
    start, end = holding.window or (0, 0)
    spans = {each.unit: each.clip(start, end) for each in holding.units}
    everyone = context.records.allocation_spans(start_ms=UnixMs(start), end_ms=UnixMs(end))
    others = everyone.filter(pl.col("unit").is_in(holding.names) & (pl.col("workload") != holding.workload.id)).select(
        "workload", "unit", "from_at", "to_at"
    )
    for workload, unit, begins, ends in others.iter_rows():
        for begin, stop in spans[unit]:
            if begins >= stop or (ends is not None and ends <= begin):
                continue
            yield _event(max(begins, begin), EventKind.COTENANT_IN, f"{workload} shares {unit}", unit=unit)
            if ends is not None and ends < stop:
                yield _event(ends, EventKind.COTENANT_OUT, f"{workload} leaves {unit}", unit=unit)


def _annotations(holding: Holding, notes: RuleNotes) -> Iterator[WorkloadEvent]:
    start, end = holding.window or (0, 0)
    for comment in notes.comments(holding.workload.id):
        if start <= comment.created_at < end:
            yield _event(comment.created_at, EventKind.ANNOTATION, f"{comment.author}: {comment.text}")
