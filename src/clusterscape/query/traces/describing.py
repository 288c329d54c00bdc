"""A trace's documents in the shapes of answers."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from clusterscape.analyze.trace.changes import ChangeAnswer
from clusterscape.analyze.trace.diff import TraceDiff
from clusterscape.model.traces import TraceAbout
from clusterscape.query.traces.answers import (
    TraceAnswer,
    TraceChange,
    TraceDiffAnswer,
    TraceGroup,
    TraceRank,
    TraceReportAnswer,
    TraceRow,
    TraceStage,
    WhatIf,
)

T = TypeVar("T")


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


def describe_report(about: TraceAbout, document: Mapping[str, Any], units: Mapping[int, str]) -> TraceAnswer:
    """The whole answer about a trace that has been read. What the document has beyond the answer's shape is left out."""
    return TraceAnswer(
        row=describe_row(about),
        origin_ms=about.origin_ms,
        extent_ns=about.extent_ns,
        ranks=[
            TraceRank(
                rank=each["rank"],
                stage=each["stage"],
                device=each["device"],
                backend=each["backend"],
                source=each["source"],
                is_complete=each["is_complete"],
                unit=units.get(each["rank"]),
            )
            for each in document["ranks"]
        ],
        stages=describe_stages(about.stages),
        process_groups=_convert(document["process_groups"], list[TraceGroup]),
        report=_convert(document, TraceReportAnswer),
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


def _convert(value: object, kind: type[T]) -> T:
    return msgspec.convert(value, type=kind, strict=False)
