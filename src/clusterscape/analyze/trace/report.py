"""Everything that is concluded from a trace, in one record: the answer of ``clusterscape trace report`` and of the page."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.align import Alignment, align_clocks, apply_alignment
from clusterscape.analyze.trace.breakdown import (
    communication_parts,
    find_steps,
    measure_breakdown,
    measure_exposed_by_group,
)
from clusterscape.analyze.trace.changes import ChangeAnswer, ChangedRun, ask_usual
from clusterscape.analyze.trace.checks import check_trace
from clusterscape.analyze.trace.collectives import Slack, measure_collectives, measure_slack, within_stages
from clusterscape.analyze.trace.counterparts import add_counterparts
from clusterscape.analyze.trace.critical_path import CriticalPath, find_critical_paths, middle_step
from clusterscape.analyze.trace.imbalance import LoadImbalance, measure_imbalance
from clusterscape.analyze.trace.match import Matches, match_collectives
from clusterscape.analyze.trace.measures import Measures
from clusterscape.analyze.trace.operator_graph import GraphError, build_operator_graph, is_operator_trace
from clusterscape.analyze.trace.pipeline import Bubble, find_passes, measure_bubble
from clusterscape.analyze.trace.stages import assign_stages
from clusterscape.analyze.trace.verdict_spans import link_spans
from clusterscape.analyze.trace.verdicts import find_verdicts
from clusterscape.analyze.trace.whatif import StragglerAnswer, analyze_stragglers
from clusterscape.model.spans import Trace
from clusterscape.model.verdicts import TraceVerdict

MAX_STRAGGLERS = 3
"""Ranks of which it is asked what if they were as fast as their peers."""
MAX_PATHS = 100
"""Steps whose critical path is walked: a picture shows no more."""


@dataclass(frozen=True, slots=True)
class TraceReport:
    """``trace`` is aligned. Tables as their functions in this package describe them."""

    trace: Trace
    matches: Matches
    alignment: Alignment
    steps: pl.DataFrame
    breakdown: pl.DataFrame
    exposed_by_group: pl.DataFrame
    collectives: pl.DataFrame
    slack: tuple[Slack, ...]
    imbalance: LoadImbalance
    bubble: Bubble | None
    parts: pl.DataFrame
    critical_path: CriticalPath | None
    """Of the step of median length."""
    critical_paths: tuple[CriticalPath, ...]
    """Of the first steps, and of that one."""
    stragglers: StragglerAnswer | None
    changes: tuple[ChangeAnswer, ...]
    """What if; none for traces whose answer is ``stragglers``."""
    verdicts: tuple[TraceVerdict, ...]
    notes: tuple[str, ...]


def analyze_trace(
    trace: Trace, generator: np.random.Generator, progress: Callable[[str], None] | None = None
) -> TraceReport:
    """All measures and verdicts of a trace as it was read; ``progress`` is told what is being done."""
    say = progress or (lambda _: None)
    say("matching collectives")
    notes = [*trace.notes, *check_trace(trace)]
    known = len(trace.notes)
    trace = assign_stages(trace)
    notes += trace.notes[known:]
    matches = match_collectives(trace.spans)
    say("aligning clocks")
    alignment = align_clocks(trace, matches)
    trace = apply_alignment(trace, alignment)
    if any(clock.offset_ns or clock.drift_ppm for clock in alignment.clocks.values()):
        matches = match_collectives(trace.spans)
    notes += [*matches.notes, *alignment.notes]
    say("measuring")
    steps = find_steps(trace.spans)
    parts = communication_parts(trace.spans, matches)
    breakdown = measure_breakdown(trace.spans, steps, parts)
    collectives = measure_collectives(matches)
    slack = tuple(measure_slack(collectives, steps["step"].n_unique(), generator))
    passes = find_passes(trace.spans)
    bubble = measure_bubble(passes)
    imbalance = measure_imbalance(breakdown, passes, {facts.rank: facts.stage for facts in trace.ranks})
    say("finding the critical path")
    middle = middle_step(steps)
    wanted = sorted({*steps["step"].unique().sort().head(MAX_PATHS), *([] if middle is None else [middle])})
    paths = find_critical_paths(trace.spans, steps, parts, matches, wanted)
    say("asking what if")
    stragglers, more = _ask_what_if(trace)
    changes: list[ChangeAnswer] = []
    if stragglers is None:
        late = [each.rank for each in slack[:MAX_STRAGGLERS] if (each.low_ns or 0.0) > (alignment.error_ns or 0.0)]
        run = ChangedRun(add_counterparts(trace.spans, parts, matches), steps, generator)
        changes = ask_usual(run, [] if bubble is not None else late)
    blamed = slack
    if bubble is not None:
        blamed = tuple(
            measure_slack(within_stages(collectives, matches, trace.ranks), steps["step"].n_unique(), generator)
        )
    measures = Measures(
        trace.spans,
        steps,
        trace.ranks,
        breakdown,
        collectives,
        matches.messages,
        blamed,
        passes,
        bubble,
        stragglers,
        alignment.error_ns,
    )
    return TraceReport(
        trace=trace,
        matches=matches,
        alignment=alignment,
        steps=steps,
        breakdown=breakdown,
        exposed_by_group=measure_exposed_by_group(trace.spans, steps, parts),
        collectives=collectives,
        slack=slack,
        imbalance=imbalance,
        bubble=bubble,
        parts=parts,
        critical_path=next((path for path in paths if path.step == middle), None),
        critical_paths=paths,
        stragglers=stragglers,
        changes=tuple(changes),
        verdicts=tuple(link_spans(each, measures, matches) for each in find_verdicts(measures)),
        notes=tuple(notes + more),
    )


def _ask_what_if(trace: Trace) -> tuple[StragglerAnswer | None, list[str]]:
    if not is_operator_trace(trace):
        return None, []
    try:
        return analyze_stragglers(build_operator_graph(trace)), []
    except GraphError as error:
        return None, [f"No what-if: {error}."]
