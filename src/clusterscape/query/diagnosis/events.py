"""Events of a workload within a window (start, end, violations, XID errors, other workloads on its GPUs, comments), its wasted
GPU-hours and its energy.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from clusterscape.analyze.diagnose.signals import sum_increases
from clusterscape.analyze.rules.writing import format_values
from clusterscape.model import UnixMs
from clusterscape.model.arrays import Float64s
from clusterscape.model.durations import HOUR_MS
from clusterscape.model.rules import Rule, Violation
from clusterscape.model.xids import find_xid
from clusterscape.query.context import QueryContext
from clusterscape.query.diagnosis.answers import EnergySource, EventKind, WorkloadEvent
from clusterscape.query.diagnosis.holding import WorkloadHolding
from clusterscape.query.diagnosis.loading import RunLoader, Samples, nice_step_ms
from clusterscape.query.rule_notes import RuleNotes
from clusterscape.query.timeline import find_steps, find_units
from clusterscape.query.waste import STEP_MS, share_out

COUNTER, POWER, UTILIZATION = "energy_joules", "power_watts", "gpu_util_ratio"


def compute_wasted_hours(context: QueryContext, holding: WorkloadHolding, loader: RunLoader) -> float | None:
    """Wasted GPU-hours of the window, as ``query/waste.py`` defines them; None if nothing was measured.

    Computed in whole steps of ten minutes; hours of a shared unit are split evenly.
    """
    if holding.window is None:
        return None
    start, end = (-(-edge // STEP_MS) * STEP_MS for edge in holding.window)
    if start >= end:
        return None
    units = pl.Series("unit", holding.names, dtype=pl.String)
    held = _holders(context, holding, units, start, end)
    # A step is attributed to the allocation that holds the unit at its middle.
    middles = np.arange(start, end, STEP_MS, dtype=np.int64) + STEP_MS // 2
    row = find_units(units, held["unit"])
    begin, stop = find_steps(middles, held["from_at"]), find_steps(middles, held["to_at"])
    is_counted = begin < stop
    values = _utilization(loader, holding, start, end)
    _, _, shares = share_out(row[is_counted], begin[is_counted], stop[is_counted], values)
    own_shares = shares[held["is_own"].to_numpy()[is_counted]]
    return float(own_shares[:, 2].sum()) * STEP_MS / HOUR_MS if own_shares[:, 1].sum() > 0 else None


def _holders(context: QueryContext, holding: WorkloadHolding, units: pl.Series, start: int, end: int) -> pl.DataFrame:
    """Spans of the workload, and of other workloads on the same units."""
    own = pl.DataFrame(
        [(held.unit, begin, stop, True) for held in holding.units for begin, stop in held.clip(start, end)],
        schema={"unit": pl.String, "from_at": pl.Int64, "to_at": pl.Int64, "is_own": pl.Boolean},
        orient="row",
    )
    allocations = context.records.allocation_spans(start_ms=UnixMs(start), end_ms=UnixMs(end))
    others = (
        allocations.filter(pl.col("unit").is_in(units.to_list()) & (pl.col("workload") != holding.workload.id))
        .with_columns(pl.col("to_at").fill_null(end), is_own=pl.lit(False))
        .select(own.columns)
    )
    return pl.concat([own, others])


def _utilization(loader: RunLoader, holding: WorkloadHolding, start: int, end: int) -> Float64s:
    """Mean utilization, units × steps; NaN without samples."""
    samples = loader.load_steps(holding, [UTILIZATION], STEP_MS, with_range=True)
    values = np.full((len(holding.units), (end - start) // STEP_MS), np.nan)
    step = (samples.times_ms - start) // STEP_MS
    is_inside = (step >= 0) & (step < values.shape[1])
    values[:, step[is_inside]] = samples.values[UTILIZATION][is_inside].T
    return values


def compute_energy(holding: WorkloadHolding, samples: Samples) -> tuple[float | None, EnergySource | None]:
    """Energy of the window in joules, from the counters, or else from mean power × time held; and its source."""
    counter = samples.values.get(COUNTER)
    if counter is not None and len(counter) > 1 and np.isfinite(counter).any(axis=0).all():
        return float(sum_increases(counter).sum()), EnergySource.COUNTER
    power = samples.values.get(POWER)
    if power is None or not np.isfinite(power).any():
        return None, None
    is_known = np.isfinite(power)
    counts = is_known.sum(axis=0)
    means = np.divide(np.where(is_known, power, 0.0).sum(axis=0), counts, out=np.zeros(counts.size), where=counts > 0)
    held_s = np.array([holding.held_ms(spans) / 1000 for spans in holding.spans()])
    return float((means * held_s).sum()), EnergySource.POWER


XID_METRIC = "xid_error_code"
XID_STEPS = 2000
MAX_EVENTS = 1000


def list_events(
    context: QueryContext, holding: WorkloadHolding, rules: Mapping[str, Rule], notes: RuleNotes
) -> list[WorkloadEvent]:
    """Events of the window by time, at most MAX_EVENTS."""
    if holding.window is None:
        return []
    events = [
        *_life(holding),
        *_violations(context, holding, rules),
        *_xids(context, holding),
        *_cotenants(context, holding),
        *_annotations(holding, notes),
    ]
    return sorted(events, key=lambda event: (event.at, event.kind, event.unit or ""))[:MAX_EVENTS]


def _event(at: int, kind: EventKind, text: str, *, unit: str | None = None, until: int | None = None) -> WorkloadEvent:
    return WorkloadEvent(at=at, until=until, kind=kind, unit=unit, text=text)


def _life(holding: WorkloadHolding) -> Iterator[WorkloadEvent]:
    start, end = holding.window or (0, 0)
    workload = holding.workload
    if workload.started_at is not None and start <= workload.started_at < end:
        yield _event(workload.started_at, EventKind.START, "Started")
    if workload.ended_at is not None and start <= workload.ended_at <= end:
        yield _event(workload.ended_at, EventKind.END, f"Ended: {workload.state.value.replace('_', ' ')}")


def _violations(context: QueryContext, holding: WorkloadHolding, rules: Mapping[str, Rule]) -> Iterator[WorkloadEvent]:
    """One event for all units that violated a rule at the same time."""
    start, end = holding.window or (0, 0)
    violations = context.records.violations(workload=holding.workload.id, start_ms=UnixMs(start), end_ms=UnixMs(end))
    groups: dict[tuple[str, int, int | None], list[Violation]] = {}
    for violation in violations:
        groups.setdefault((violation.rule, violation.since, violation.until), []).append(violation)
    for (key, since, until), group in groups.items():
        rule = rules.get(key)
        units = sorted({violation.unit for violation in group if violation.unit is not None})
        readings = format_values(rule, group[0].values) if rule else ""
        text = (rule.name if rule else key) + (f" on {len(units)} GPUs" if len(units) > 1 else "")
        unit = units[0] if len(units) == 1 else None
        yield _event(since, EventKind.VIOLATION, f"{text}: {readings}" if readings else text, unit=unit, until=until)


def _xids(context: QueryContext, holding: WorkloadHolding) -> Iterator[WorkloadEvent]:
    """Events where the code of the last XID error changed to another than 0."""
    start, end = holding.window or (0, 0)
    table = context.metrics.series(
        [XID_METRIC],
        holding.names,
        start_ms=UnixMs(start),
        end_ms=UnixMs(end),
        step_ms=nice_step_ms((end - start) / XID_STEPS),
    )
    changes = table.with_columns(before=pl.col("max").shift(1).over("unit")).filter(
        (pl.col("max") > 0) & pl.col("before").is_not_null() & (pl.col("max") != pl.col("before"))
    )
    spans = {held.unit: held.clip(start, end) for held in holding.units}
    for unit, at, code in changes.select("unit", "time_ms", "max").iter_rows():
        if any(begin <= at < stop for begin, stop in spans[unit]):
            yield _event(at, EventKind.XID, find_xid(int(code)).describe(), unit=unit)


def _cotenants(context: QueryContext, holding: WorkloadHolding) -> Iterator[WorkloadEvent]:
    """Events where another workload starts or stops sharing a GPU that this one holds."""
    start, end = holding.window or (0, 0)
    spans = {held.unit: held.clip(start, end) for held in holding.units}
    allocations = context.records.allocation_spans(start_ms=UnixMs(start), end_ms=UnixMs(end))
    others = allocations.filter(
        pl.col("unit").is_in(holding.names) & (pl.col("workload") != holding.workload.id)
    ).select("workload", "unit", "from_at", "to_at")
    for workload, unit, begins, ends in others.iter_rows():
        for begin, stop in spans[unit]:
            if begins >= stop or (ends is not None and ends <= begin):
                continue
            yield _event(max(begins, begin), EventKind.COTENANT_IN, f"{workload} starts sharing {unit}", unit=unit)
            if ends is not None and ends < stop:
                yield _event(ends, EventKind.COTENANT_OUT, f"{workload} leaves {unit}", unit=unit)


def _annotations(holding: WorkloadHolding, notes: RuleNotes) -> Iterator[WorkloadEvent]:
    start, end = holding.window or (0, 0)
    for comment in notes.comments(holding.workload.id):
        if start <= comment.created_at < end:
            yield _event(comment.created_at, EventKind.ANNOTATION, f"{comment.author}: {comment.text}")
