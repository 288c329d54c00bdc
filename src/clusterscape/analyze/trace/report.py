"""Runs the whole analysis of a trace, after checks for irregularities, and returns all results in one record, which
``clusterscape trace report`` and the page show.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl

from clusterscape.analyze.trace.align import Alignment, align_clocks, apply_alignment
from clusterscape.analyze.trace.attribution import Attribution, attribute_steps
from clusterscape.analyze.trace.breakdown import (
    communication_parts,
    find_steps,
    find_warm_up,
    measure_breakdown,
    measure_exposed_by_group,
)
from clusterscape.analyze.trace.causes import CauseFinder
from clusterscape.analyze.trace.changes import ChangeAnswer, ChangedRun, answer_standard_questions
from clusterscape.analyze.trace.critical_path import CriticalPath, find_critical_paths, find_median_step
from clusterscape.analyze.trace.evidence import attach_spans
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
from clusterscape.analyze.trace.savings import Saving, rank_causes
from clusterscape.analyze.trace.unmarked import number_micro_batches, number_only_step, trim_steps
from clusterscape.analyze.trace.verdicts import find_verdicts
from clusterscape.analyze.trace.whatif import (
    GraphError,
    StragglerAnswer,
    analyze_stragglers,
    build_operator_graph,
    is_operator_trace,
)
from clusterscape.analyze.trace.work import measure_work
from clusterscape.model.arrays import Float64s, Int64s
from clusterscape.model.spans import INFERRED_STEP, SpanClass, Trace
from clusterscape.model.trace_report import TimeKind, TraceVerdict

JUMP_STEPS = 10.0  # a gap between two steps longer than this many steps counts as a clock jump


SHOWN_RANKS = 8


def check_trace(trace: Trace) -> list[str]:
    """Notes about irregularities: missing ranks, uneven steps, clock jumps, no device."""
    return [
        *_missing_ranks(trace),
        *_uneven_steps(trace),
        *_clock_jumps(trace),
        *_ranks_without_device(trace),
    ]


def list_ranks(ranks: list[int], count: int | None = None) -> str:
    """``0, 1, 2``; long lists are truncated. ``count``: their number, if ``ranks`` has only the first of them."""
    count = len(ranks) if count is None else count
    shown = ", ".join(str(rank) for rank in ranks[:SHOWN_RANKS])
    return f"{shown} … ({count:,} in all)" if count > SHOWN_RANKS else shown


def _missing_ranks(trace: Trace) -> list[str]:
    sizes = {facts.world_size for facts in trace.ranks if facts.world_size is not None}
    if len(sizes) > 1:
        return [f"The traces state different world sizes: {', '.join(map(str, sorted(sizes)))}."]
    if not sizes or trace.format == "StragglerAnalysis":
        return []
    size, present = sizes.pop(), {facts.rank for facts in trace.ranks}
    count = size - sum(0 <= rank < size for rank in present)
    if count <= 0:
        return []
    # Only those that are named are listed: a file may state any size.
    missing = list(islice((rank for rank in range(size) if rank not in present), SHOWN_RANKS))
    subject = f"Rank {missing[0]} is" if count == 1 else f"Ranks {list_ranks(missing, count)} are"
    return [f"{subject} missing: the last rank to arrive is only known among the others."]


def _uneven_steps(trace: Trace) -> list[str]:
    marked = trace.spans.filter(pl.col("span_class") == SpanClass.STEP.value)
    if not marked.height:
        return (
            []
            if trace.spans["step"].drop_nulls().len()
            else ["No steps are marked: the whole trace counts as one step."]
        )
    notes = []
    if marked["name"].cast(pl.String).str.starts_with(INFERRED_STEP).all():
        notes.append("No steps are marked: each is taken to end with a call of Optimizer.step.")
    counts = dict(marked.group_by("rank").agg(pl.col("step").n_unique()).sort("rank").iter_rows())
    counts = {facts.rank: counts.get(facts.rank, 0) for facts in trace.ranks}
    if len(set(counts.values())) <= 1:
        return notes
    usual = max(set(counts.values()), key=list(counts.values()).count)
    odd = ", ".join(f"rank {rank} has {count}" for rank, count in list(counts.items()) if count != usual)
    return [*notes, f"Ranks recorded different numbers of steps: most have {usual}, {odd}."]


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
    warm_up: tuple[int, ...]
    """Steps that means and verdicts leave out."""
    attribution: Attribution
    seconds: Mapping[TimeKind, Float64s]
    """Of the attribution, with slower compute apart from expected compute."""


def analyze_trace(
    trace: Trace, generator: np.random.Generator, progress: Callable[[str], None] | None = None
) -> TraceReport:
    """All measures and verdicts of a trace as it was read; ``progress`` is called with the name of each stage of the work."""
    report_progress = progress or (lambda _: None)
    report_progress("matching collectives")
    notes = [*trace.notes, *check_trace(trace)]
    note_count = len(trace.notes)
    trace = number_micro_batches(number_only_step(trim_steps(assign_stages(trace))))
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
    warm_up = find_warm_up(breakdown)
    if warm_up:
        notes.append(_describe_warm_up(warm_up))
    steady = _Steady(warm_up)
    collectives = measure_collectives(matches)
    steady_collectives = steady.select(collectives)
    steady_steps = steady.select(steps)
    step_count = steady_steps["step"].n_unique()
    slack = tuple(measure_slack(steady_collectives, step_count, generator))
    passes = steady.select(find_passes(trace.spans))
    bubble = measure_bubble(passes)
    imbalance = measure_imbalance(steady.select(breakdown), passes, {facts.rank: facts.stage for facts in trace.ranks})
    report_progress("finding the critical path")
    median_step = find_median_step(steady_steps)
    path_steps = sorted(
        {*steps["step"].unique().sort().head(MAX_PATHS), *([] if median_step is None else [median_step])}
    )
    paths = find_critical_paths(trace.spans, steps, parts, matches, path_steps)
    report_progress("answering what-if questions")
    stragglers, what_if_notes = _analyze_stragglers(trace)
    changes: list[ChangeAnswer] = []
    savings: list[Saving] = []
    attribution = attribute_steps(trace.spans, steady_steps, parts, passes, trace.core_waits)
    groups = _find_peers(trace, attribution)
    work = measure_work(trace.spans, attribution, groups)
    finder = CauseFinder(attribution, work, groups, generator)
    if stragglers is None:
        late_ranks = [
            rank_slack.rank
            for rank_slack in slack[:MAX_STRAGGLERS]
            if (rank_slack.low_ns or 0.0) > (alignment.error_ns or 0.0)
        ]
        run = ChangedRun(add_counterparts(trace.spans, parts, matches), steady_steps, generator)
        changes = answer_standard_questions(run, [] if bubble is not None else late_ranks)
        uneven = finder.find_uneven_work()
        causes = [*finder.find_of_ranks(), *finder.find_shared(), *([] if uneven is None else [uneven])]
        savings = rank_causes(causes, run.graphs, attribution)
        notes += describe_missing(attribution, finder)
    verdict_slack = slack
    if bubble is not None:
        within = within_stages(steady_collectives, matches, trace.ranks)
        verdict_slack = tuple(measure_slack(within, step_count, generator))
    measures = TraceMeasures(
        trace.spans,
        steady_steps,
        trace.ranks,
        steady.select(breakdown),
        steady_collectives,
        matches.messages,
        verdict_slack,
        passes,
        bubble,
        stragglers,
        alignment.error_ns,
        attribution,
        work,
        groups,
        savings,
        changes,
        generator,
        int(trace.spans["start_ns"].to_numpy().min()) if trace.spans.height else 0,
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
        warm_up=warm_up,
        attribution=attribution,
        seconds=finder.seconds,
    )


@dataclass(frozen=True, slots=True)
class _Steady:
    """Leaves out the warm-up."""

    warm_up: tuple[int, ...]

    def select(self, table: pl.DataFrame) -> pl.DataFrame:
        """Rows of other steps."""
        return table.filter(~pl.col("step").is_in(list(self.warm_up))) if self.warm_up else table


def _describe_warm_up(steps: tuple[int, ...]) -> str:
    if len(steps) == 1:
        return f"Step {steps[0]} is left out of means and verdicts: all ranks warm up in it."
    return f"Steps {steps[0]}–{steps[-1]} are left out of means and verdicts: all ranks warm up in them."


def _find_peers(trace: Trace, attribution: Attribution) -> list[Int64s]:
    """Rows of the ranks of each stage; of all ranks without stages."""
    stages = {facts.rank: facts.stage for facts in trace.ranks}
    rows: dict[int | None, list[int]] = {}
    for row, rank in enumerate(attribution.ranks):
        rows.setdefault(stages.get(rank), []).append(row)
    return [np.array(members, np.int64) for members in rows.values()]


def describe_missing(attribution: Attribution, finder: CauseFinder) -> list[str]:
    """What the trace lacks for some of the verdicts."""
    notes = []
    without_host = [rank for rank in attribution.ranks if rank not in attribution.has_host]
    if without_host and attribution.ranks:
        subject = (
            "No rank records"
            if len(without_host) == len(attribution.ranks)
            else f"Rank {list_ranks(without_host)} does not record"
        )
        notes.append(f"{subject} the host: why a device is idle is unknown there.")
    if len(attribution.ranks) == 1:
        notes.append("Only one rank is here: what it does beyond its peers is unknown.")
    if len(attribution.steps) == 1:
        notes.append("Only one step is here: whether a cause acts in every step, and whether it is chance, is unknown.")
    elif len(attribution.steps) < MIN_STEPS:
        notes.append(f"Only {len(attribution.steps)} steps are here: too few for intervals.")
    slower = finder.seconds[TimeKind.SLOWER_COMPUTE]
    if not finder.has_work and slower.size and float(np.nan_to_num(slower).mean(axis=1).max()) > finder.min_s:
        notes.append(
            "Shapes were not recorded: whether a rank is slower or has more work is unknown (record_shapes=True)."
        )
    return notes


def _analyze_stragglers(trace: Trace) -> tuple[StragglerAnswer | None, list[str]]:
    if not is_operator_trace(trace):
        return None, []
    try:
        return analyze_stragglers(build_operator_graph(trace)), []
    except GraphError as error:
        return None, [f"What-if questions cannot be answered: {error}."]
