"""A trace's report as a document, which is stored and which ``trace report --json`` writes (in seconds, unless the name has
another unit), and everything else that is stored of an analyzed trace. Does no I/O.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from clusterscape.analyze.trace.attribution import KINDS
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.report import TraceReport
from clusterscape.model.spans import RankFacts, StageModules
from clusterscape.model.trace_report import (
    CollectiveInstance,
    GroupExposure,
    LastArriver,
    PathPart,
    RankBreakdown,
    RankClock,
    RankSlack,
    ReportedCollectives,
    ReportedRank,
    TraceAlignment,
    TraceAttribution,
    TraceBubble,
    TraceGroup,
    TraceImbalance,
    TracePath,
    TraceReportDocument,
    TraceStep,
    Verdict,
    VerdictSpan,
    WhatIf,
)

BREAKDOWN = ("step", "compute", "exposed", "waiting", "transferring", "idle", "communication")


def write_report(report: TraceReport) -> TraceReportDocument:
    """Convert the report to the document that is stored."""
    spans = report.trace.spans
    origin_ns = int(spans["start_ns"].to_numpy().min()) if spans.height else 0
    return TraceReportDocument(
        format=report.trace.format,
        ranks=[
            ReportedRank(
                rank=facts.rank,
                source=facts.source,
                stage=facts.stage,
                device=facts.device,
                backend=facts.backend,
                world_size=facts.world_size,
                is_complete=facts.is_complete,
            )
            for facts in report.trace.ranks
        ],
        steps=_steps(report.steps, origin_ns),
        process_groups=_process_groups(report),
        spans=spans.height,
        alignment=TraceAlignment(
            error_s=_seconds(report.alignment.error_ns),
            clocks=[
                RankClock(rank=clock.rank, offset_s=clock.offset_ns / 1e9, drift_ppm=clock.drift_ppm)
                for clock in report.alignment.clocks.values()
            ],
        ),
        breakdown=_breakdown(report.breakdown.filter(~pl.col("step").is_in(list(report.warm_up)))),
        collectives=_collectives(report),
        exposed_communication=[
            GroupExposure(
                process_group=row["process_group"],
                ranks=row["ranks"],
                exposed_s=row["exposed_ns"] / 1e9,
                waiting_s=row["waiting_ns"] / 1e9,
            )
            for row in report.exposed_by_group.iter_rows(named=True)
        ],
        slack=[
            RankSlack(
                rank=slack.rank,
                last_times=slack.last_times,
                slack_s=slack.slack_ns / 1e9,
                low_s=_seconds(slack.low_ns),
                high_s=_seconds(slack.high_ns),
            )
            for slack in report.slack
        ],
        imbalance=TraceImbalance(
            ranks_ratio=report.imbalance.ranks,
            stages_ratio=report.imbalance.stages,
            micro_batches_ratio=report.imbalance.micro_batches,
        ),
        bubble=_bubble(report),
        critical_path=_path(report),
        what_if=_what_if(report),
        verdicts=[
            Verdict(
                kind=verdict.kind.value,
                rank=verdict.rank,
                stage=verdict.stage,
                seconds_per_step=verdict.seconds_per_step,
                is_hidden=verdict.is_hidden,
                sentence=verdict.sentence,
                evidence=dict(verdict.evidence),
                spans=_spans(spans, verdict.spans, origin_ns),
                ranks=list(verdict.ranks),
                low_s=verdict.low_s,
                high_s=verdict.high_s,
                rhythm=verdict.rhythm,
                occurrences=verdict.occurrences,
                advice=verdict.advice,
            )
            for verdict in report.verdicts
        ],
        flops_source=_flops_source(report),
        notes=list(report.notes),
        warm_up_steps=list(report.warm_up),
        attribution=_attribution(report),
    )


def _attribution(report: TraceReport) -> TraceAttribution:
    """Kinds that occur, in the order of ``KINDS``."""
    table = report.attribution
    kinds = [kind for kind in KINDS if np.nan_to_num(report.seconds[kind]).any()]
    return TraceAttribution(
        kinds=kinds,
        ranks=list(table.ranks),
        steps=list(table.steps),
        seconds=[
            [[None if np.isnan(value) else float(value) for value in row] for row in report.seconds[kind]]
            for kind in kinds
        ],
    )


def _seconds(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / 1e9


def _flops_source(report: TraceReport) -> Literal["recorded", "estimated"] | None:
    """``estimated`` if at least one rank's FLOPs are; else ``recorded`` by the profiler; None without FLOPs."""
    sources = {facts.flops_source for facts in report.trace.ranks} - {None}
    return "estimated" if "estimated" in sources else "recorded" if sources else None


def _steps(steps: pl.DataFrame, origin_ns: int) -> list[TraceStep]:
    length = ((pl.col("end_ns") - pl.col("start_ns")).mean() / 1e9).alias("length_s")
    extent = [
        (pl.col("start_ns").min() - origin_ns).cast(pl.Float64),
        (pl.col("end_ns").max() - origin_ns).cast(pl.Float64),
    ]
    table = steps.group_by("step").agg(length, pl.len().alias("ranks"), *extent).sort("step")
    return [TraceStep(**row) for row in table.iter_rows(named=True)]


def _process_groups(report: TraceReport) -> list[TraceGroup]:
    """The process groups that the ranks describe, without duplicates."""
    groups = {(group.name, group.ranks): group for facts in report.trace.ranks for group in facts.process_groups}
    return [
        TraceGroup(name=group.name, kind=group.kind, ranks=list(group.ranks)) for _, group in sorted(groups.items())
    ]


def _spans(spans: pl.DataFrame, rows: tuple[int, ...], origin_ns: int) -> list[VerdictSpan]:
    """Spans that a verdict points to; times in nanoseconds since the first start of the trace."""
    table = spans.with_row_index("span")[list(rows)].select(
        "span",
        "rank",
        pl.col("name").cast(pl.String),
        "step",
        (pl.col("start_ns") - origin_ns).cast(pl.Float64),
        (pl.col("end_ns") - origin_ns).cast(pl.Float64),
    )
    return [VerdictSpan(**row) for row in table.iter_rows(named=True)]


def _breakdown(table: pl.DataFrame) -> list[RankBreakdown]:
    if not table.height:
        return []
    means = table.group_by("rank").agg((pl.col(f"{name}_ns").mean() / 1e9).alias(f"{name}_s") for name in BREAKDOWN)
    return [RankBreakdown(**row) for row in means.sort("rank").iter_rows(named=True)]


def _collectives(report: TraceReport) -> ReportedCollectives:
    table = report.collectives
    last = table.drop_nulls("last_rank").group_by("last_rank").len().sort("len", "last_rank", descending=[True, False])
    columns = ("wait_ns", "gap_ns", "transfer_ns")
    rows = table.with_columns((pl.col(name) / 1e9).alias(name.replace("_ns", "_s")) for name in columns).select(
        "step", "process_group", "collective", "ranks", "bytes", "last_rank", "wait_s", "gap_s", "transfer_s"
    )
    return ReportedCollectives(
        matched=table.height,
        unmatched_spans=report.matches.unmatched,
        messages=report.matches.messages.height,
        last_arrivers=[LastArriver(rank=rank, times=times) for rank, times in last.iter_rows()],
        instances=[CollectiveInstance(**row) for row in rows.iter_rows(named=True)],
    )


def _bubble(report: TraceReport) -> TraceBubble | None:
    bubble = report.bubble
    if bubble is None:
        return None
    return TraceBubble(
        stages=bubble.stages,
        micro_batches=bubble.micro_batches,
        model_chunks=bubble.chunks,
        measured_ratio=bubble.measured,
        ideal_ratio=bubble.ideal,
        imbalance_ratio=bubble.imbalance,
        jitter_ratio=bubble.jitter,
        pipeline_s=bubble.step_s,
        balanced_s=bubble.balanced_s,
        resimulated_s=bubble.resimulated_s,
        stage_compute_s=list(bubble.stage_compute_s),
        stage_bubble_ratio=list(bubble.stage_bubble),
    )


def _path(report: TraceReport) -> TracePath | None:
    path = report.critical_path
    if path is None:
        return None
    parts = [PathPart(rank=rank, kind=kind, length_s=length) for (rank, kind), length in path.seconds_by().items()]
    return TracePath(step=path.step, length_s=path.length_ns / 1e9, segments=len(path.segments), parts=parts)


def _what_if(report: TraceReport) -> list[WhatIf]:
    """The answered what-if questions, largest speed-up first, with the error of the simulation."""
    if report.stragglers is not None:
        answer, now = report.stragglers, report.stragglers.without_delay_s
        simulated = [
            ("all operators of a type equally fast", answer.ideal_s),
            ("the slowest worker as fast as the others", answer.without_worker_s),
            ("the last stage as fast as the others", answer.without_last_stage_s),
        ]
        error_s = abs(answer.measured_s - now)
        return [_make_what_if(words, now, then, error_s, None, None) for words, then in simulated]
    changes = sorted(report.changes, key=lambda change: -(change.speed_up or 0.0))
    return [
        _make_what_if(change.question, change.now_s, change.then_s, change.error_s, change.low, change.high)
        for change in changes
    ]


def _make_what_if(
    question: str, now_s: float, then_s: float, error_s: float, low: float | None, high: float | None
) -> WhatIf:
    return WhatIf(
        question=question,
        now_s=now_s,
        then_s=then_s,
        speed_up=now_s / then_s if then_s > 0 else None,
        speed_up_low=low,
        speed_up_high=high,
        error_s=error_s,
    )


FIRST_UNIX_NS = 10**18
"""September 2001. A smaller time is not a Unix time but counts from another start, such as the boot."""


@dataclass(frozen=True, slots=True)
class PackedTrace:
    """What is stored of a trace: ``spans`` with their relations, ``steps`` per rank with their parts, the report, captured
    modules, start and duration.
    """

    spans: pl.DataFrame
    steps: pl.DataFrame
    document: TraceReportDocument
    modules: tuple[StageModules, ...]
    origin_ns: int
    extent_ns: float

    @property
    def origin_ms(self) -> float | None:
        """Unix ms of the first start; None if the recorder's clock is not Unix time."""
        return self.origin_ns / 1e6 if self.origin_ns >= FIRST_UNIX_NS else None


def pack_trace(report: TraceReport) -> PackedTrace:
    """Convert an analysis to what is stored."""
    spans = relate_spans(report)
    low = spans["start_ns"].to_numpy().min() if spans.height else 0
    high = spans["end_ns"].to_numpy().max() if spans.height else 0
    steps = report.steps.join(report.breakdown, on=["rank", "step"], how="left", maintain_order="left")
    columns = ("step_ns", "compute_ns", "waiting_ns", "transferring_ns", "idle_ns", "communication_ns")
    steps = steps.select(
        "rank",
        "step",
        (pl.col("start_ns") - int(low)).cast(pl.Float64),
        *(pl.col(name).cast(pl.Float64) for name in columns),
    )
    modules = find_stage_modules(report.trace.ranks)
    return PackedTrace(spans, steps, write_report(report), modules, int(low), float(high - low))


def find_stage_modules(ranks: tuple[RankFacts, ...]) -> tuple[StageModules, ...]:
    """The modules of the first captured rank of every stage: other ranks hold the same modules, or other shards of them."""
    by_stage: dict[int | None, StageModules] = {}
    for facts in sorted(ranks, key=lambda rank_facts: rank_facts.rank):
        if facts.modules:
            by_stage.setdefault(facts.stage, StageModules(stage=facts.stage, rank=facts.rank, modules=facts.modules))
    return tuple(by_stage.values())
