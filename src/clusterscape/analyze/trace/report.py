"""Runs the whole analysis of a trace, after checks for irregularities, and returns all results in one record, which
``clusterscape trace report`` and the page show.
"""

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
from clusterscape.analyze.trace.changes import ChangeAnswer, ChangedRun, answer_standard_questions
from clusterscape.analyze.trace.critical_path import CriticalPath, find_critical_paths, find_median_step
from clusterscape.analyze.trace.match import (
    MIN_STEPS,
    Matches,
    Slack,
    add_counterparts,
    match_collectives,
    measure_collectives,
    measure_slack,
    within_stages,
)
from clusterscape.analyze.trace.measures import TraceMeasures
from clusterscape.analyze.trace.pipeline import (
    Bubble,
    LoadImbalance,
    assign_stages,
    find_passes,
    measure_bubble,
    measure_imbalance,
)
from clusterscape.analyze.trace.unmarked import number_micro_batches, trim_steps
from clusterscape.analyze.trace.verdicts import attach_spans, find_verdicts
from clusterscape.analyze.trace.whatif import (
    GraphError,
    StragglerAnswer,
    analyze_stragglers,
    build_operator_graph,
    is_operator_trace,
)
from clusterscape.model.spans import SpanClass, Trace
from clusterscape.model.trace_report import TraceVerdict

WITHOUT_HOST = ("StragglerAnalysis", "Megatron")
"""Formats whose spans are whole operations: causes below them are not asked for."""
JUMP_STEPS = 10.0  # a gap between two steps longer than this many steps counts as a clock jump


def check_trace(trace: Trace) -> list[str]:
    """Notes about irregularities: missing ranks, uneven steps, clock jumps, no device."""
    return [
        *_missing_ranks(trace),
        *_uneven_steps(trace),
        *_clock_jumps(trace),
        *_ranks_without_device(trace),
        *_unjudged_causes(trace),
    ]


def list_ranks(ranks: list[int]) -> str:
    """``0, 1, 2``; long lists are truncated."""
    shown = ", ".join(str(rank) for rank in ranks[:8])
    return f"{shown} … ({len(ranks)} in all)" if len(ranks) > 8 else shown


def _missing_ranks(trace: Trace) -> list[str]:
    sizes = {facts.world_size for facts in trace.ranks if facts.world_size is not None}
    if len(sizes) > 1:
        return [f"The traces state different world sizes: {', '.join(map(str, sorted(sizes)))}."]
    if not sizes or trace.format == "StragglerAnalysis":
        return []
    missing = sorted(set(range(sizes.pop())) - {facts.rank for facts in trace.ranks})
    if not missing:
        return []
    subject = f"Rank {missing[0]} is" if len(missing) == 1 else f"Ranks {list_ranks(missing)} are"
    return [f"{subject} missing: the last rank to arrive is only known among the others."]


def _uneven_steps(trace: Trace) -> list[str]:
    marked = trace.spans.filter(pl.col("span_class") == SpanClass.STEP.value)
    if not marked.height:
        return (
            []
            if trace.spans["step"].drop_nulls().len()
            else ["No steps are marked: the whole trace counts as one step."]
        )
    counts = dict(marked.group_by("rank").agg(pl.col("step").n_unique()).sort("rank").iter_rows())
    counts = {facts.rank: counts.get(facts.rank, 0) for facts in trace.ranks}
    if len(set(counts.values())) <= 1:
        return []
    usual = max(set(counts.values()), key=list(counts.values()).count)
    odd = ", ".join(f"rank {rank} has {count}" for rank, count in list(counts.items()) if count != usual)
    return [f"Ranks recorded different numbers of steps: most have {usual}, {odd}."]


def _clock_jumps(trace: Trace) -> list[str]:
    marked = trace.spans.filter(pl.col("span_class") == SpanClass.STEP.value).sort("rank", "step")
    notes = []
    for (rank,), part in marked.group_by("rank", maintain_order=True):
        start, end = part["start_ns"].to_numpy(), part["end_ns"].to_numpy()
        if start.size < 2:
            continue
        gaps = start[1:] - end[:-1]
        usual = float(np.median(end - start))
        for at in np.flatnonzero((gaps < -usual) | (gaps > JUMP_STEPS * usual)):
            word = "back" if gaps[at] < 0 else "forward"
            notes.append(
                f"The clock of rank {rank} jumps {word} by {abs(gaps[at]) / 1e9:,.3f} s "
                f"between steps {part['step'][int(at)]} and {part['step'][int(at) + 1]} (or recording paused)."
            )
    return notes


def _ranks_without_device(trace: Trace) -> list[str]:
    with_device = set(trace.spans.filter(pl.col("is_device"))["rank"].unique())
    without = [facts.rank for facts in trace.ranks if facts.rank not in with_device]
    if not without:
        return []
    if len(without) == len(trace.ranks):
        return ["No rank has device spans: host operators count as compute."]
    return [f"Rank {list_ranks(without)} has no device spans: host operators count as compute there."]


def _unjudged_causes(trace: Trace) -> list[str]:
    """Causes for which a timeline of devices has no data, in one sentence."""
    classes = trace.spans["span_class"].cast(pl.String).unique().to_list()
    if SpanClass.COMPUTE.value not in classes or {SpanClass.HOST.value, SpanClass.STEP.value} & set(classes):
        return []
    if trace.format in WITHOUT_HOST:
        return []
    causes = ["input stalls, slow launches and garbage collection (only devices are recorded)"]
    if trace.spans["bytes"].null_count() == trace.spans.height:
        causes.append("slow links and small collectives (no sizes)")
    if trace.spans["step"].drop_nulls().n_unique() < MIN_STEPS:
        causes.append(f"slow ranks (fewer than {MIN_STEPS} steps)")
    return [f"The trace has no data to judge {'; '.join(causes)}."]


MAX_STRAGGLERS = 3
"""Number of ranks for which the report answers: what if it were as fast as its peers?"""
MAX_PATHS = 100
"""Number of steps whose critical path is computed; a graph shows no more."""


@dataclass(frozen=True, slots=True)
class TraceReport:
    """All results. ``trace`` is aligned; the functions that compute the tables describe their columns."""

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
    """Of the step with the median length."""
    critical_paths: tuple[CriticalPath, ...]
    """Of the first steps and the step with the median length."""
    stragglers: StragglerAnswer | None
    changes: tuple[ChangeAnswer, ...]
    """Answers to what-if questions; empty for traces that have ``stragglers`` instead."""
    verdicts: tuple[TraceVerdict, ...]
    notes: tuple[str, ...]


def analyze_trace(
    trace: Trace, generator: np.random.Generator, progress: Callable[[str], None] | None = None
) -> TraceReport:
    """All measures and verdicts of a trace as it was read; ``progress`` is called with the name of each stage of the work."""
    report_progress = progress or (lambda _: None)
    report_progress("matching collectives")
    notes = [*trace.notes, *check_trace(trace)]
    note_count = len(trace.notes)
    trace = number_micro_batches(trim_steps(assign_stages(trace)))
    notes += trace.notes[note_count:]
    matches = match_collectives(trace.spans)
    report_progress("aligning clocks")
    alignment = align_clocks(trace, matches)
    trace = apply_alignment(trace, alignment)
    if any(clock.offset_ns or clock.drift_ppm for clock in alignment.clocks.values()):
        matches = match_collectives(trace.spans)
    notes += [*matches.notes, *alignment.notes]
    report_progress("measuring")
    steps = find_steps(trace.spans)
    parts = communication_parts(trace.spans, matches)
    breakdown = measure_breakdown(trace.spans, steps, parts)
    collectives = measure_collectives(matches)
    slack = tuple(measure_slack(collectives, steps["step"].n_unique(), generator))
    passes = find_passes(trace.spans)
    bubble = measure_bubble(passes)
    imbalance = measure_imbalance(breakdown, passes, {facts.rank: facts.stage for facts in trace.ranks})
    report_progress("finding the critical path")
    median_step = find_median_step(steps)
    path_steps = sorted(
        {*steps["step"].unique().sort().head(MAX_PATHS), *([] if median_step is None else [median_step])}
    )
    paths = find_critical_paths(trace.spans, steps, parts, matches, path_steps)
    report_progress("answering what-if questions")
    stragglers, what_if_notes = _analyze_stragglers(trace)
    changes: list[ChangeAnswer] = []
    if stragglers is None:
        late_ranks = [
            rank_slack.rank
            for rank_slack in slack[:MAX_STRAGGLERS]
            if (rank_slack.low_ns or 0.0) > (alignment.error_ns or 0.0)
        ]
        run = ChangedRun(add_counterparts(trace.spans, parts, matches), steps, generator)
        changes = answer_standard_questions(run, [] if bubble is not None else late_ranks)
    verdict_slack = slack
    if bubble is not None:
        verdict_slack = tuple(
            measure_slack(within_stages(collectives, matches, trace.ranks), steps["step"].n_unique(), generator)
        )
    measures = TraceMeasures(
        trace.spans,
        steps,
        trace.ranks,
        breakdown,
        collectives,
        matches.messages,
        verdict_slack,
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
        critical_path=next((path for path in paths if path.step == median_step), None),
        critical_paths=paths,
        stragglers=stragglers,
        changes=tuple(changes),
        verdicts=tuple(attach_spans(verdict, measures, matches) for verdict in find_verdicts(measures)),
        notes=tuple(notes + what_if_notes),
    )


def _analyze_stragglers(trace: Trace) -> tuple[StragglerAnswer | None, list[str]]:
    if not is_operator_trace(trace):
        return None, []
    try:
        return analyze_stragglers(build_operator_graph(trace)), []
    except GraphError as error:
        return None, [f"What-if questions cannot be answered: {error}."]
