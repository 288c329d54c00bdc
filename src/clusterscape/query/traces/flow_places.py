"""Where in an execution flow a span of the trace is: its operator, or the namespace it lies in."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from clusterscape.analyze.trace.flow_graph import FlowGraph
from clusterscape.analyze.trace.flow_modules import paths_of
from clusterscape.model.spans import SpanClass

SAME = ("micro_batch", "phase", "span_class", "namespace", "name")
"""What one operator has in common on all ranks of a stage and in all steps."""


@dataclass(frozen=True, slots=True)
class FlowPlace:
    """``operator``: a row of the operator graph; ``closed``: the namespace that stands for the span where the graph has no
    operator of its own for it, None where it has.
    """

    operator: int
    closed: str | None = None


def find_place(graph: FlowGraph, spans: pl.DataFrame, span: int, stage: int | None) -> FlowPlace | None:
    """The same operator of the stage's rank and step that are drawn; of what is not drawn by itself what it launched, else the
    deepest namespace around it that is there. None where nothing is.
    """
    row = spans.row(span, named=True)
    launched = _launched(spans, row)
    for one in (span, *launched):
        found = _find_same(graph, spans, one, stage)
        if found is not None:
            return FlowPlace(found)
    space = str(row["namespace"] or "").strip("/")
    if row["span_class"] == SpanClass.ANNOTATION.value:
        space = f"{space}/{row['name']}".strip("/")
    for path in reversed(list(paths_of(space))):
        for number, (own, home) in enumerate(zip(graph.stage, graph.home, strict=True)):
            if (own == stage or stage is None) and (home == path or home.startswith(path + "/")):
                return FlowPlace(number, path)
    return None


def _launched(spans: pl.DataFrame, row: dict[str, Any]) -> list[int]:
    """What a launch, or a host operator by the launches in it, had the device do."""
    if row["is_device"] or row["span_class"] not in (SpanClass.HOST.value, SpanClass.LAUNCH.value):
        return []
    mine = spans.lazy().with_row_index("span").filter(pl.col("rank") == row["rank"])
    inside = mine.filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value)
        & (pl.col("lane") == row["lane"])
        & pl.col("start_ns").is_between(row["start_ns"], row["end_ns"])
        & pl.col("correlation").is_not_null()
    ).select("correlation")
    on_device = mine.filter(pl.col("is_device")).join(inside, on="correlation", how="semi")
    return on_device.sort("start_ns").head(1).select("span").collect()["span"].to_list()


def _find_same(graph: FlowGraph, spans: pl.DataFrame, span: int, stage: int | None) -> int | None:
    """The n-th of those alike in the step that is drawn, where the span is the n-th in its own."""
    drawn = graph.operators.with_row_index("row").filter(pl.col("span").is_not_null())
    if stage is not None:
        drawn = drawn.filter(pl.col("stage") == stage)
    row = spans.row(span, named=True)
    alike = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(row[name])) for name in SAME)
    found = drawn.select("row", "span").join(
        spans.lazy().with_row_index("id").filter(alike).select(pl.col("id").cast(pl.Int64), "start_ns").collect(),
        left_on="span",
        right_on="id",
    )
    if not found.height:
        return None
    before = spans.filter(
        alike
        & (pl.col("rank") == row["rank"])
        & pl.col("step").eq_missing(pl.lit(row["step"], pl.Int32))
        & (pl.col("start_ns") < row["start_ns"])
    ).height
    return int(found.sort("start_ns")["row"][min(before, found.height - 1)])
