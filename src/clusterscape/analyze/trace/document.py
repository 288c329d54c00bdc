"""A trace's report as plain data: what ``trace report --json`` writes and the page will ask for. Seconds, unless named."""

from typing import Any

import polars as pl

from clusterscape.analyze.trace.report import TraceReport

BREAKDOWN = ("step", "compute", "exposed", "waiting", "transferring", "idle", "communication")


def write_report(report: TraceReport) -> dict[str, Any]:
    """The report, ready for JSON."""
    spans = report.trace.spans
    origin_ns = int(spans["start_ns"].to_numpy().min()) if spans.height else 0
    return {
        "format": report.trace.format,
        "ranks": [_rank(report, facts.rank) for facts in report.trace.ranks],
        "steps": _steps(report.steps, origin_ns),
        "process_groups": _process_groups(report),
        "spans": report.trace.spans.height,
        "alignment": {
            "error_s": None if report.alignment.error_ns is None else report.alignment.error_ns / 1e9,
            "clocks": [
                {"rank": clock.rank, "offset_s": clock.offset_ns / 1e9, "drift_ppm": clock.drift_ppm}
                for clock in report.alignment.clocks.values()
            ],
        },
        "breakdown": _breakdown(report.breakdown),
        "collectives": _collectives(report),
        "exposed_communication": [
            {
                "process_group": row["process_group"],
                "ranks": row["ranks"],
                "exposed_s": row["exposed_ns"] / 1e9,
                "waiting_s": row["waiting_ns"] / 1e9,
            }
            for row in report.exposed_by_group.iter_rows(named=True)
        ],
        "slack": [
            {
                "rank": slack.rank,
                "last_times": slack.last_times,
                "slack_s": slack.slack_ns / 1e9,
                "low_s": None if slack.low_ns is None else slack.low_ns / 1e9,
                "high_s": None if slack.high_ns is None else slack.high_ns / 1e9,
            }
            for slack in report.slack
        ],
        "imbalance": {
            "ranks_ratio": report.imbalance.ranks,
            "stages_ratio": report.imbalance.stages,
            "micro_batches_ratio": report.imbalance.micro_batches,
        },
        "bubble": _bubble(report),
        "critical_path": _path(report),
        "what_if": _what_if(report),
        "verdicts": [
            {
                "kind": verdict.kind.value,
                "rank": verdict.rank,
                "stage": verdict.stage,
                "seconds_per_step": verdict.seconds_per_step,
                "is_hidden": verdict.is_hidden,
                "sentence": verdict.sentence,
                "evidence": dict(verdict.evidence),
                "spans": _spans(spans, verdict.spans, origin_ns),
            }
            for verdict in report.verdicts
        ],
        "flops_source": _flops_source(report),
        "notes": list(report.notes),
    }


def _rank(report: TraceReport, rank: int) -> dict[str, Any]:
    facts = next(each for each in report.trace.ranks if each.rank == rank)
    return {
        "rank": rank,
        "source": facts.source,
        "stage": facts.stage,
        "device": facts.device,
        "backend": facts.backend,
        "world_size": facts.world_size,
        "is_complete": facts.is_complete,
    }


def _flops_source(report: TraceReport) -> str | None:
    """Recorded by the profiler, or estimated for at least one rank; null where there are none."""
    found = {facts.flops_source for facts in report.trace.ranks} - {None}
    return "estimated" if "estimated" in found else "recorded" if found else None


def _steps(steps: pl.DataFrame, origin_ns: int) -> list[dict[str, Any]]:
    length = ((pl.col("end_ns") - pl.col("start_ns")).mean() / 1e9).alias("length_s")
    extent = [
        (pl.col("start_ns").min() - origin_ns).cast(pl.Float64),
        (pl.col("end_ns").max() - origin_ns).cast(pl.Float64),
    ]
    return steps.group_by("step").agg(length, pl.len().alias("ranks"), *extent).sort("step").to_dicts()


def _process_groups(report: TraceReport) -> list[dict[str, Any]]:
    """As the ranks describe them; each once."""
    found = {(group.name, group.ranks): group for facts in report.trace.ranks for group in facts.process_groups}
    return [{"name": each.name, "kind": each.kind, "ranks": list(each.ranks)} for _, each in sorted(found.items())]


def _spans(spans: pl.DataFrame, rows: tuple[int, ...], origin_ns: int) -> list[dict[str, Any]]:
    """Spans that a verdict points to; times are nanoseconds since the trace's first start."""
    chosen = spans.with_row_index("span")[list(rows)]
    return chosen.select(
        "span",
        "rank",
        pl.col("name").cast(pl.String),
        "step",
        (pl.col("start_ns") - origin_ns).cast(pl.Float64),
        (pl.col("end_ns") - origin_ns).cast(pl.Float64),
    ).to_dicts()


def _breakdown(table: pl.DataFrame) -> list[dict[str, Any]]:
    means = table.group_by("rank").agg((pl.col(f"{name}_ns").mean() / 1e9).alias(f"{name}_s") for name in BREAKDOWN)
    return means.sort("rank").to_dicts() if table.height else []


def _collectives(report: TraceReport) -> dict[str, Any]:
    table = report.collectives
    last = table.drop_nulls("last_rank").group_by("last_rank").len().sort("len", "last_rank", descending=[True, False])
    columns = ("wait_ns", "gap_ns", "transfer_ns")
    rows = table.with_columns((pl.col(name) / 1e9).alias(name.replace("_ns", "_s")) for name in columns)
    return {
        "matched": table.height,
        "unmatched_spans": report.matches.unmatched,
        "messages": report.matches.messages.height,
        "last_arrivers": [{"rank": rank, "times": times} for rank, times in last.iter_rows()],
        "instances": rows.select(
            "step", "process_group", "collective", "ranks", "bytes", "last_rank", "wait_s", "gap_s", "transfer_s"
        ).to_dicts(),
    }


def _bubble(report: TraceReport) -> dict[str, Any] | None:
    bubble = report.bubble
    if bubble is None:
        return None
    return {
        "stages": bubble.stages,
        "micro_batches": bubble.micro_batches,
        "model_chunks": bubble.chunks,
        "measured_ratio": bubble.measured,
        "ideal_ratio": bubble.ideal,
        "imbalance_ratio": bubble.imbalance,
        "jitter_ratio": bubble.jitter,
        "pipeline_s": bubble.step_s,
        "balanced_s": bubble.balanced_s,
        "resimulated_s": bubble.resimulated_s,
        "stage_compute_s": list(bubble.stage_compute_s),
        "stage_bubble_ratio": list(bubble.stage_bubble),
    }


def _path(report: TraceReport) -> dict[str, Any] | None:
    path = report.critical_path
    if path is None:
        return None
    parts = [{"rank": rank, "kind": kind, "length_s": length} for (rank, kind), length in path.seconds_by().items()]
    return {"step": path.step, "length_s": path.length_ns / 1e9, "segments": len(path.segments), "parts": parts}


def _what_if(report: TraceReport) -> list[dict[str, Any]]:
    """Each question with the step it would give, largest speed-up first, and how far the simulation is from what was measured."""
    if report.stragglers is not None:
        answer, now = report.stragglers, report.stragglers.without_delay_s
        simulated = [
            ("every operator of a type alike", answer.ideal_s),
            ("the slowest worker as the others", answer.without_worker_s),
            ("the last stage as the others", answer.without_last_stage_s),
        ]
        error_s = abs(answer.measured_s - now)
        return [_question(words, now, then, error_s, None, None) for words, then in simulated]
    found = sorted(report.changes, key=lambda each: -(each.speed_up or 0.0))
    return [_question(each.question, each.now_s, each.then_s, each.error_s, each.low, each.high) for each in found]


def _question(
    question: str, now_s: float, then_s: float, error_s: float, low: float | None, high: float | None
) -> dict[str, Any]:
    return {
        "question": question,
        "now_s": now_s,
        "then_s": then_s,
        "speed_up": now_s / then_s if then_s > 0 else None,
        "speed_up_low": low,
        "speed_up_high": high,
        "error_s": error_s,
    }
