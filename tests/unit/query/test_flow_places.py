"""From a span of a trace to its node in the execution flow: the same operator of the drawn rank and step, or its namespace."""

import polars as pl
import pytest
from unit.analyze.trace.made_traces import Row, analyze, kernel, step_of

from clusterscape.analyze.trace.flow_graph import FlowGraph
from clusterscape.analyze.trace.flow_spans import spans_to_operators
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.query.traces.flow import FlowPlace, find_place

STEP_NS = 10_000


def host(rank: int, start_ns: int, end_ns: int, name: str, **more: object) -> Row:
    row: Row = {
        "rank": rank, "lane": "thread 1", "is_device": False, "span_class": "host", "name": name,
        "start_ns": start_ns, "end_ns": end_ns,
    }  # fmt: skip
    return row | more


def make() -> pl.DataFrame:
    """Two ranks and steps: a host operator launches the first of two equal kernels of a layer, a third lies in another one."""
    rows: list[Row] = []
    for rank in range(2):
        for step in range(2):
            at = STEP_NS * step + 10 * rank
            layer = {"namespace": "model/layer0", "step": step}
            rows += [
                step_of(rank, step, at, at + STEP_NS - 100),
                host(rank, at + 100, at + 400, "aten::mm", **layer),
                host(rank, at + 150, at + 200, "cudaLaunchKernel", span_class="launch", correlation=step + 1, **layer),
                host(rank, at + 90, at + 900, "layer0", span_class="annotation", namespace="model", step=step),
                kernel(rank, at + 1000, at + 2000, "gemm", correlation=step + 1) | layer,
                kernel(rank, at + 2000, at + 3000, "gemm") | layer,
                kernel(rank, at + 3000, at + 4000, "relu", namespace="model/layer1", step=step) | {"step": step},
            ]
    return relate_spans(analyze(rows, {0: None, 1: None}))


@pytest.fixture(scope="module")
def spans() -> pl.DataFrame:
    return make()


@pytest.fixture(scope="module")
def graph(spans: pl.DataFrame) -> FlowGraph:
    return FlowGraph(spans_to_operators(spans, {0: None, 1: None}, step=0, origin_ns=0))


def find(spans: pl.DataFrame, graph: FlowGraph, name: str, rank: int, step: int, which: int = 0) -> FlowPlace | None:
    rows = spans.with_row_index("row").filter(
        (pl.col("name") == name) & (pl.col("rank") == rank) & (pl.col("step") == step)
    )
    return find_place(graph, spans, int(rows.sort("start_ns")["row"][which]), None)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("which", [0, 1])
def test_the_same_operator_is_found_when_the_span_is_of_another_rank_or_step(
    spans: pl.DataFrame, graph: FlowGraph, rank: int, step: int, which: int
) -> None:
    assert find(spans, graph, "gemm", rank, step, which) == FlowPlace(which)


@pytest.mark.parametrize("name", ["aten::mm", "cudaLaunchKernel"])
def test_what_was_launched_is_found_when_the_span_is_of_the_host(
    spans: pl.DataFrame, graph: FlowGraph, name: str
) -> None:
    assert find(spans, graph, name, 1, 1) == FlowPlace(0)


def test_the_namespace_is_found_when_an_annotation_is_one(spans: pl.DataFrame, graph: FlowGraph) -> None:
    assert find(spans, graph, "layer0", 1, 1) == FlowPlace(0, "model/layer0")


def test_nothing_is_found_when_nothing_of_it_is_drawn(spans: pl.DataFrame, graph: FlowGraph) -> None:
    assert find(spans, graph, "step 1", 0, 1) is None
