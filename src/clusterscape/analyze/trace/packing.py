"""What is kept of an analyzed trace: the tables and the document, and the facts that lists show. Does no I/O."""

from dataclasses import dataclass

import polars as pl

from clusterscape.analyze.trace.document import write_report
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.report import TraceReport
from clusterscape.model.spans import RankFacts, StageModules
from clusterscape.model.trace_report import TraceReportDocument

FIRST_UNIX_NS = 10**18
"""Clocks that show less than September 2001 count from the start of something else."""


@dataclass(frozen=True, slots=True)
class PackedTrace:
    """``spans`` with their relations, ``steps`` per rank with their parts, the report, modules where they were captured, when it
    began and how long it lasted.
    """

    spans: pl.DataFrame
    steps: pl.DataFrame
    document: TraceReportDocument
    modules: tuple[StageModules, ...]
    origin_ns: int
    extent_ns: float

    @property
    def origin_ms(self) -> float | None:
        """Unix ms of the first start; None where the recorder's clock is not the world's."""
        return self.origin_ns / 1e6 if self.origin_ns >= FIRST_UNIX_NS else None


def pack_trace(report: TraceReport) -> PackedTrace:
    """Everything that is kept."""
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
    """Of every stage those of its first rank that was captured: the others hold the same modules, or other parts of them."""
    found: dict[int | None, StageModules] = {}
    for facts in sorted(ranks, key=lambda each: each.rank):
        if facts.modules:
            found.setdefault(facts.stage, StageModules(stage=facts.stage, rank=facts.rank, modules=facts.modules))
    return tuple(found.values())
