"""Spans of all ranks and steps as operators of the flow: in windows, for chosen operators, and by module for recorded graphs."""

import numpy as np
import polars as pl
import pytest
from unit.analyze.trace.made_traces import ORIGIN_NS, Row, analyze, kernel, step_of

from clusterscape.analyze.trace.flow_links import (
    FlowLinks,
    find_operator,
    find_running,
    find_spans,
    join_spans,
    link_operators,
)
from clusterscape.analyze.trace.flow_spans import spans_to_operators
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.model.spans import make_operators

STEP_NS = 10_000
RANKS, STEPS = 3, 2


def make_spans_of_run() -> pl.DataFrame:
    """Every rank runs gemm, gemm and relu in each step, later on higher ranks; rank 2 runs the second gemm twice as long."""
    rows: list[Row] = []
    for rank in range(RANKS):
        for step in range(STEPS):
            at = STEP_NS * step + 100 * rank
            long = 1_000 if rank == 2 else 0
            rows += [
                step_of(rank, step, at, at + STEP_NS - 500),
                kernel(rank, at + 1_000, at + 2_000, "gemm", namespace="net/a", step=step),
                kernel(rank, at + 2_000, at + 3_000 + long, "gemm", namespace="net/a", step=step),
                kernel(rank, at + 4_500, at + 5_000, "relu", namespace="net/b", step=step),
            ]
    return relate_spans(analyze(rows, dict.fromkeys(range(RANKS))))


@pytest.fixture(scope="module")
def spans() -> pl.DataFrame:
    return make_spans_of_run()


@pytest.fixture(scope="module")
def operators(spans: pl.DataFrame) -> pl.DataFrame:
    return spans_to_operators(spans, dict.fromkeys(range(RANKS)), step=0, origin_ns=ORIGIN_NS)


@pytest.fixture(scope="module")
def links(spans: pl.DataFrame, operators: pl.DataFrame) -> FlowLinks:
    return link_operators(spans, operators, dict.fromkeys(range(RANKS)))


def test_an_operator_has_its_spans_of_all_ranks_and_steps_when_names_repeat(
    spans: pl.DataFrame, operators: pl.DataFrame, links: FlowLinks
) -> None:
    assert not links.is_by_module
    second = operators.with_row_index("row").filter(pl.col("name") == "gemm")["row"][1]
    chosen = spans[find_spans(links, [second])]
    assert chosen.select("rank", "step").unique().height == chosen.height == RANKS * STEPS
    lengths = dict(chosen.filter(pl.col("step") == 0).select("rank", pl.col("end_ns") - pl.col("start_ns")).iter_rows())
    assert lengths == {0: 1_000, 1: 1_000, 2: 2_000}


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize(
    ("start_ns", "end_ns", "expected"),
    [
        (1_100, 1_900, [True, False, False]),
        (1_900, 2_150, [True, True, False]),  # ranks 1 and 2 still run the first
        (3_300, 3_900, [False, True, False]),  # only the long one of rank 2
        (4_250, 4_400, [False, False, False]),
        (4_600, 4_700, [False, False, True]),
        (5_300, 5_400, [False, False, False]),
    ],
)
def test_operators_run_in_a_window_when_any_rank_runs_them(
    spans: pl.DataFrame, links: FlowLinks, step: int, start_ns: int, end_ns: int, expected: list[bool]
) -> None:
    shift = ORIGIN_NS + STEP_NS * step
    running = find_running(links, spans, shift + start_ns, shift + end_ns)
    assert running.tolist() == expected


def test_a_span_is_its_operator_when_it_is_of_another_step(
    spans: pl.DataFrame, operators: pl.DataFrame, links: FlowLinks
) -> None:
    table = spans.with_row_index("row").filter((pl.col("rank") == 1) & (pl.col("step") == 1))
    rows = table.filter(pl.col("name") == "gemm").sort("start_ns")["row"]
    gemms = operators.with_row_index("row").filter(pl.col("name") == "gemm")["row"].to_list()
    assert [find_operator(links, int(row)) for row in rows] == gemms
    (step,) = table.filter(pl.col("span_class") == "step")["row"]
    assert find_operator(links, int(step)) is None


def test_spans_belong_to_modules_when_the_graph_was_recorded_with_other_names() -> None:
    rows = [
        kernel(0, 100, 200, "Conv2D-op7", namespace="Default/net/conv1-Conv2d"),
        kernel(0, 300, 400, "Conv2D-op9", namespace="Default/net/Gradients/conv1-Conv2d/gradConv2D"),
        kernel(0, 500, 600, "MatMul-op1", namespace="Default/net/fc-Dense"),
        kernel(0, 700, 800, "Cast-op1"),
    ]
    spans = relate_spans(analyze(rows, {0: 0}))
    operators = make_operators(
        {
            "stage": [0, 0, 0, 1],
            "name": ["Conv2D-op1", "Bias-op2", "Conv2DGrad-op3", "Conv2D-op4"],
            "type": ["Conv2D", "Bias", "Conv2DGrad", "Conv2D"],
            "namespace": [
                "Default/net/conv1-Conv2d",
                "Default/net/conv1-Conv2d",
                "Gradients/Default/net/conv1-Conv2d/gradConv2D",
                "Default/net/conv1-Conv2d",
            ],
            "inputs": [[], [], [], []],
        },
        4,
    )
    links = link_operators(spans, operators, {0: 0})
    assert links.is_by_module
    at = {name: row for row, name in enumerate(spans["name"].cast(pl.String))}
    assert find_spans(links, [0]).tolist() == [at["Conv2D-op7"]]
    assert find_spans(links, [2]).tolist() == [at["Conv2D-op9"]]
    assert find_spans(links, [3]).tolist() == [], "another stage"
    assert find_running(links, spans, ORIGIN_NS + 100, ORIGIN_NS + 200).tolist() == [True, True, False, False]
    assert find_running(links, spans, ORIGIN_NS + 500, ORIGIN_NS + 900).tolist() == [False] * 4
    assert find_operator(links, at["Cast-op1"]) is None


def test_times_are_joined_when_gaps_are_smaller_than_a_pixel(spans: pl.DataFrame, links: FlowLinks) -> None:
    chosen = spans[find_spans(links, [0, 1])].filter((pl.col("rank") == 0) & (pl.col("step") == 0))
    joined = join_spans(chosen, 1.0)
    assert joined.select("rank", "step", "count").rows() == [(0, 0, 2)]
    assert (joined["end_ns"] - joined["start_ns"]).to_list() == [2_000]
    both = join_spans(spans[find_spans(links, [0, 2])].filter((pl.col("rank") == 0) & (pl.col("step") == 0)), 100.0)
    assert both["count"].to_list() == [1, 1]
    assert join_spans(spans.head(0), 1.0).height == 0


def test_every_span_keeps_its_time_when_it_is_joined_to_others() -> None:
    generator = np.random.default_rng(5)
    starts = np.sort(generator.integers(0, 100_000, 200))
    rows = [
        kernel(0, int(start), int(start) + int(generator.integers(0, 900)), f"k{at % 7}")
        for at, start in enumerate(starts)
    ]
    spans = relate_spans(analyze(rows, {0: None}))
    for gap in (0.0, 50.0, 5_000.0):
        joined = join_spans(spans, gap)
        assert joined["count"].sum() == spans.height
        for start, end in spans.select("start_ns", "end_ns").iter_rows():
            assert joined.filter((pl.col("start_ns") <= start) & (pl.col("end_ns") >= end)).height == 1
        gaps = joined["start_ns"].to_numpy()[1:] - joined["end_ns"].to_numpy()[:-1]
        assert (gaps > gap).all()
