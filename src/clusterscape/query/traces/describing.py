"""A trace's documents in the shapes of answers."""

from collections.abc import Mapping

from clusterscape.analyze.trace.changes import ChangeAnswer
from clusterscape.analyze.trace.diff import TraceDiff
from clusterscape.model.trace_report import TraceCollectives, TraceReportDocument, WhatIf
from clusterscape.model.traces import TraceAbout
from clusterscape.query.traces.answers import (
    TraceAnswer,
    TraceChange,
    TraceDiffAnswer,
    TraceRank,
    TraceReportAnswer,
    TraceRow,
    TraceStage,
)


def describe_row(about: TraceAbout) -> TraceRow:
    """What lists show."""
    return TraceRow(
        trace_id=about.trace_id,
        name=about.name,
        workload_id=about.workload_id,
        format=about.format,
        state=about.state,
        progress=about.progress,
        ranks=about.ranks,
        steps=about.steps,
        spans=about.spans,
        imported_at=about.imported_at,
        notes=list(about.notes),
        problem=about.problem,
        headline=about.headline,
    )


def describe_stages(stages: Mapping[int, int | None]) -> list[TraceStage]:
    """Stages in order, each with its ranks."""
    found: dict[int | None, list[int]] = {}
    for rank in sorted(stages):
        found.setdefault(stages[rank], []).append(rank)
    ordered = sorted(found, key=lambda stage: -1 if stage is None else stage)
    return [TraceStage(stage=stage, ranks=found[stage]) for stage in ordered]


def describe_report(about: TraceAbout, report: TraceReportDocument, units: Mapping[int, str]) -> TraceAnswer:
    """The whole answer about a trace that has been read."""
    return TraceAnswer(
        row=describe_row(about),
        origin_ms=about.origin_ms,
        extent_ns=about.extent_ns,
        ranks=[
            TraceRank(
                rank=rank.rank,
                stage=rank.stage,
                device=rank.device,
                backend=rank.backend,
                source=rank.source,
                is_complete=rank.is_complete,
                unit=units.get(rank.rank),
            )
            for rank in report.ranks
        ],
        stages=describe_stages(about.stages),
        process_groups=report.process_groups,
        report=TraceReportAnswer(
            steps=report.steps,
            alignment=report.alignment,
            breakdown=report.breakdown,
            # Without the instances, which may be many.
            collectives=TraceCollectives(
                matched=report.collectives.matched,
                messages=report.collectives.messages,
                unmatched_spans=report.collectives.unmatched_spans,
                last_arrivers=report.collectives.last_arrivers,
            ),
            exposed_communication=report.exposed_communication,
            slack=report.slack,
            imbalance=report.imbalance,
            bubble=report.bubble,
            critical_path=report.critical_path,
            what_if=report.what_if,
            verdicts=report.verdicts,
            flops_source=report.flops_source,
        ),
    )


def describe_change(answer: ChangeAnswer) -> WhatIf:
    """The answer to a what-if question."""
    return WhatIf(
        question=answer.question,
        now_s=answer.now_s,
        then_s=answer.then_s,
        speed_up=answer.speed_up,
        speed_up_low=answer.low,
        speed_up_high=answer.high,
        error_s=answer.error_s,
    )


def describe_diff(before: TraceAbout, after: TraceAbout, diff: TraceDiff) -> TraceDiffAnswer:
    """Two runs compared."""
    return TraceDiffAnswer(
        before=describe_row(before),
        after=describe_row(after),
        sentences=list(diff.sentences),
        changes=[
            TraceChange(
                kind=each.kind,
                name=each.name,
                rank=each.rank,
                before_s=each.before_s,
                after_s=each.after_s,
                difference_s=each.difference_s,
                low_s=each.low_s,
                high_s=each.high_s,
                is_significant=each.is_significant,
                sentence=each.sentence,
            )
            for each in diff.changes
        ],
        notes=list(diff.notes),
    )
