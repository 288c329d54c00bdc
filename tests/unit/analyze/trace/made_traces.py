"""Synthetic traces: random ones with planted outliers, pipelines with known lengths, ranks with known lateness."""

import numpy as np
import polars as pl

from clusterscape.analyze.trace.drawn import DrawnTrace
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.model.spans import RankFacts, Trace, make_spans

ORIGIN_NS = 1_790_000_000_000_000_000
Row = dict[str, object]


def make_trace(rows: list[Row], stages: dict[int, int | None]) -> Trace:
    """A trace of these rows; times are relative to the origin."""
    columns: dict[str, object] = {
        name: [row.get(name) for row in rows] for name in {key for row in rows for key in row}
    }
    spans = make_spans(columns, len(rows)).with_columns(pl.col("start_ns", "end_ns", "ready_ns") + ORIGIN_NS)
    facts = tuple(RankFacts(rank=rank, source=f"rank{rank}", stage=stage) for rank, stage in stages.items())
    return Trace(format="made", spans=spans, ranks=facts, is_aligned=True)


def analyze(rows: list[Row], stages: dict[int, int | None]) -> TraceReport:
    """The report of a trace of these rows."""
    return analyze_trace(make_trace(rows, stages), np.random.default_rng(0))


def draw(report: TraceReport) -> tuple[pl.DataFrame, DrawnTrace]:
    """Related spans of a report, and its drawable trace."""
    related = relate_spans(report)
    return related, DrawnTrace(related, {facts.rank: facts.stage for facts in report.trace.ranks})


def kernel(rank: int, start_ns: int, end_ns: int, name: str = "gemm", **more: object) -> Row:
    """A kernel on the rank's stream."""
    row: Row = {
        "rank": rank, "lane": "stream 7", "is_device": True, "span_class": "compute", "name": name,
        "start_ns": start_ns, "end_ns": end_ns, "step": 0,
    }  # fmt: skip
    return row | more


def step_of(rank: int, step: int, start_ns: int, end_ns: int) -> Row:
    """A step of one rank."""
    return {
        "rank": rank, "lane": "thread 1", "is_device": False, "span_class": "step", "name": f"step {step}",
        "start_ns": start_ns, "end_ns": end_ns, "step": step,
    }  # fmt: skip


def collective(rank: int, start_ns: int, end_ns: int, step: int = 0, **more: object) -> Row:
    """An all-reduce of the rank."""
    row: Row = {
        "rank": rank, "lane": "stream 9", "is_device": True, "span_class": "communication", "name": "nccl:all_reduce",
        "collective": "all_reduce", "process_group": "dp", "bytes": 1 << 20, "start_ns": start_ns, "end_ns": end_ns, "step": step,
    }  # fmt: skip
    return row | more


def random_rows(seed: int, ranks: int = 4, count: int = 300) -> list[Row]:
    """Consecutive kernels, copies and collectives with gaps; one kernel in 50 takes 3 to 10 times as long."""
    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    for rank in range(ranks):
        now = int(generator.integers(0, 5_000))
        for place in range(count):
            kind = ("compute", "compute", "compute", "memory", "communication")[int(generator.integers(0, 5))]
            length = int(generator.integers(800, 1_200))
            if generator.random() < 0.02:
                length *= int(generator.integers(3, 10))
            rows.append(
                kernel(
                    rank,
                    now,
                    now + length,
                    name=f"{kind} {place % 3}",
                    span_class=kind,
                    micro_batch=place // 100,
                    phase="forward" if place % 100 < 50 else "backward",
                    step=0,
                    collective="broadcast" if kind == "communication" else None,
                    namespace=f"model/layer {place // 20}",
                )
            )
            now += length + int(generator.exponential(400.0))
        rows.append(step_of(rank, 0, 0, now))
    return rows


def pipeline_rows(lengths: np.ndarray, *, transfer_ns: int = 0) -> list[Row]:
    """GPipe: ``lengths`` of shape (step, stage, phase, micro-batch), nanoseconds; one rank a stage, sends without waiting."""
    steps, stages, _, count = lengths.shape
    rows: list[Row] = []
    begin = 0
    for step in range(steps):
        done = np.zeros((stages, 2, count), np.int64)
        free = np.full(stages, begin, np.int64)
        for phase in range(2):
            order = range(stages) if phase == 0 else range(stages - 1, -1, -1)
            for stage in order:
                for micro_batch in range(count):
                    before = stage - 1 if phase == 0 else stage + 1
                    ready = done[before, phase, micro_batch] + transfer_ns if 0 <= before < stages else begin
                    start = max(int(free[stage]), int(ready))
                    end = start + int(lengths[step, stage, phase, micro_batch])
                    done[stage, phase, micro_batch] = free[stage] = end
                    rows.append(
                        kernel(
                            stage,
                            start,
                            end,
                            name="pass",
                            step=step,
                            stage=stage,
                            micro_batch=micro_batch,
                            phase=("forward", "backward")[phase],
                        )
                    )
        rows += [step_of(stage, step, begin, int(free.max())) for stage in range(stages)]
        begin = int(free.max()) + 1_000
    return rows
