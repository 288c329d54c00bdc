"""Converts a trace's documents to answers, and describes one span with its related spans: members of its collective, its
launch, the same operator on other ranks, its neighbors.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from clusterscape.analyze.trace.changes import ChangeAnswer
from clusterscape.analyze.trace.diff import TraceDiff
from clusterscape.model.trace_report import TraceCollectives, TraceReportDocument, WhatIf
from clusterscape.model.traces import TraceAbout
from clusterscape.query.traces.answers import (
    CollectiveMember,
    RelatedSpan,
    SpanAnswer,
    TraceAnswer,
    TraceChange,
    TraceDiffAnswer,
    TraceRank,
    TraceReportAnswer,
    TraceRow,
    TraceStage,
)


def describe_row(about: TraceAbout) -> TraceRow:
    """The list row of a trace."""
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
    ranks_by_stage: dict[int | None, list[int]] = {}
    for rank in sorted(stages):
        ranks_by_stage.setdefault(stages[rank], []).append(rank)
    ordered = sorted(ranks_by_stage, key=lambda stage: -1 if stage is None else stage)
    return [TraceStage(stage=stage, ranks=ranks_by_stage[stage]) for stage in ordered]


def describe_report(about: TraceAbout, report: TraceReportDocument, units: Mapping[int, str]) -> TraceAnswer:
    """The answer about a trace that is ready."""
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
            attribution=report.attribution,
        ),
    )


def name_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """Renames the step columns of ``PackedTrace`` to those of the answer."""
    names = {"step_ns": "duration_ns", "waiting_ns": "exposed_wait_ns", "transferring_ns": "exposed_transfer_ns"}
    return steps.rename(names).sort("step", "rank")


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
    """The comparison of two runs."""
    return TraceDiffAnswer(
        before=describe_row(before),
        after=describe_row(after),
        sentences=list(diff.sentences),
        changes=[
            TraceChange(
                kind=change.kind,
                name=change.name,
                rank=change.rank,
                before_s=change.before_s,
                after_s=change.after_s,
                difference_s=change.difference_s,
                low_s=change.low_s,
                high_s=change.high_s,
                is_significant=change.is_significant,
                sentence=change.sentence,
            )
            for change in diff.changes
        ],
        notes=list(diff.notes),
    )


MAX_PEERS = 512
MAX_LAUNCHED = 16


def describe_span(spans: pl.DataFrame, span: int, origin_ns: int) -> SpanAnswer:
    """One span in full. ``spans`` has the columns of ``analyze/trace/relations.py``; ``span`` is a row of it."""
    row = spans.row(span, named=True)
    numbered = spans.lazy().with_row_index("span")
    same_rank = numbered.filter(pl.col("rank") == row["rank"])
    correlated = same_rank.filter(_equals("correlation", row) & (pl.col("span") != span)).collect()
    launches = correlated.filter(~pl.col("is_device")) if row["is_device"] else correlated.clear()
    launched = correlated.filter(pl.col("is_device")).head(MAX_LAUNCHED) if not row["is_device"] else correlated.clear()
    lane = same_rank.filter(_equals("lane", row) & _equals("span_class", row))
    before = lane.filter(pl.col("end_ns") <= row["start_ns"]).sort("end_ns").last().collect()
    after = lane.filter(pl.col("start_ns") >= row["end_ns"]).sort("start_ns").first().collect()
    peers = numbered.filter((pl.col("instance") == row["instance"]) & (pl.col("rank") != row["rank"]))
    same_name = spans.filter((pl.col("name") == row["name"]) & (pl.col("span_class") == row["span_class"]))
    durations = (same_name["end_ns"] - same_name["drawn_ns"]).to_numpy()
    transfer_ns = row["end_ns"] - row["drawn_ns"] - (row["wait_ns"] or 0)
    has_rate = row["collective"] is not None and row["bytes"] is not None and transfer_ns > 0
    return SpanAnswer(
        span=span,
        **{
            name: row[name]
            for name in (
                "rank", "stage", "lane", "is_device", "span_class", "name", "namespace", "phase", "step", "micro_batch",
                "wait_ns", "critical_ns", "slack_ns", "is_outlier", "process_group", "collective", "bytes", "flops",
            )
        },
        start_ns=row["start_ns"] - origin_ns,
        arrive_ns=row["drawn_ns"] - origin_ns,
        end_ns=row["end_ns"] - origin_ns,
        median_ns=float(pl.Series(durations).median() or 0.0),  # type: ignore[arg-type]
        bandwidth_bytes_per_s=row["bytes"] / transfer_ns * 1e9 if has_rate else None,
        members=_members(spans, row, origin_ns),
        message=_first(numbered.filter(pl.col("span") == pl.lit(row["partner"], pl.UInt32)).collect(), origin_ns),
        launch=_first(launches, origin_ns),
        launched=_related(launched, origin_ns),
        peers=_related(peers.sort("rank").head(MAX_PEERS).collect(), origin_ns),
        before=_first(before, origin_ns),
        after=_first(after, origin_ns),
    )  # fmt: skip


def _equals(name: str, row: dict[str, Any]) -> pl.Expr:
    """Equality that is never true for null."""
    return pl.lit(False) if row[name] is None else pl.col(name) == row[name]


def _members(spans: pl.DataFrame, row: dict[str, Any], origin_ns: int) -> list[CollectiveMember]:
    """All ranks of the collective, in order of arrival."""
    if row["matched"] is None:
        return []
    members = spans.with_row_index("span").filter(pl.col("matched") == row["matched"]).sort("drawn_ns", "rank")
    last = int(members["drawn_ns"][-1])
    return [
        CollectiveMember(
            span=member["span"],
            rank=member["rank"],
            start_ns=member["start_ns"] - origin_ns,
            arrive_ns=member["drawn_ns"] - origin_ns,
            end_ns=member["end_ns"] - origin_ns,
            wait_ns=last - member["drawn_ns"],
            transfer_ns=max(0, member["end_ns"] - last),
            is_last=member["drawn_ns"] == last,
        )
        for member in members.iter_rows(named=True)
    ]


def _related(table: pl.DataFrame, origin_ns: int) -> list[RelatedSpan]:
    return [
        RelatedSpan(
            span=span["span"],
            rank=span["rank"],
            lane=span["lane"],
            span_class=span["span_class"],
            name=span["name"],
            start_ns=span["start_ns"] - origin_ns,
            end_ns=span["end_ns"] - origin_ns,
        )
        for span in table.iter_rows(named=True)
    ]


def _first(table: pl.DataFrame, origin_ns: int) -> RelatedSpan | None:
    spans = _related(table.head(1), origin_ns)
    return spans[0] if spans else None
