"""The execution flow of a published MindSpore graph (two stages, 5,298 operators) and of recorded traces."""

from collections import Counter
from pathlib import Path

import pytest
from servers.reference import reference_data

from clusterscape.analyze.trace.flow_graph import FlowGraph
from clusterscape.collect.traces import read_traces
from clusterscape.errors import QueryError
from clusterscape.model.traces import OPERATORS_FILE
from clusterscape.query.traces.answers import TraceStage
from clusterscape.query.traces.flow import TraceOperators, build_flow
from clusterscape.runtime.trace_importing import import_files


@pytest.fixture(scope="module")
def operators() -> TraceOperators:
    trace = read_traces([reference_data("traces", "mindspore", "graphs")])
    assert trace.operators is not None
    stages = [
        TraceStage(stage=stage, ranks=[rank.rank for rank in trace.ranks if rank.stage == stage]) for stage in (0, 1)
    ]
    return TraceOperators(FlowGraph(trace.operators), True, stages)


def test_all_operators_of_both_stages_are_drawn_when_the_graph_is_read(operators: TraceOperators) -> None:
    counts = Counter(operators.graph.stage)
    assert (counts[0], counts[1]) == (2339, 2959)
    assert [stage.ranks for stage in operators.stages] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    answer = build_flow(operators, None)
    assert sum(node.operators for node in answer.nodes) == 5298
    assert len(answer.nodes) <= 200
    assert any(node.count >= 5 for node in answer.nodes)


def test_stages_are_joined_by_their_messages_when_drawn(operators: TraceOperators) -> None:
    answer = build_flow(operators, None)
    joined = [edge for edge in answer.edges if edge.edge_class == "send_receive"]
    stage = [answer.blocks[node.block].stage for node in answer.nodes]
    assert Counter((stage[edge.source], stage[edge.target]) for edge in joined) == {(0, 1): 2, (1, 0): 2}
    assert all(edge.source < edge.target for edge in answer.edges)


def test_the_parallel_strategy_is_drawn_when_the_graph_has_it(operators: TraceOperators) -> None:
    answer = build_flow(operators, [str(place) for place in range(len(operators.graph.namespaces))])
    assert len(answer.nodes) <= 2000
    shards = Counter(tuple(edge.shard) for edge in answer.edges if edge.shard is not None)
    assert shards[4, 1, 1, 1] > 50
    marks: Counter[str] = Counter()
    for node in answer.nodes:
        marks.update({mark.mark: mark.count for mark in node.marks})
    assert (marks["gradient_aggregation"], marks["redistribution"], marks["pp"]) == (72 + 89, 4, 8)
    assert {"load", "update_state", "depend", "activation_gradient"} <= {edge.edge_class for edge in answer.edges}


def test_closed_namespaces_show_matches_inside_when_searched(operators: TraceOperators) -> None:
    answer = build_flow(operators, [], "syncbatchnormgrad")
    assert sum(node.matches for node in answer.nodes) == sum(
        "syncbatchnormgrad" in f"{name} {space}".lower()
        for name, space in operators.graph.operators.select("name", "namespace").iter_rows()
    )


def test_numbers_are_asked_for_when_a_path_is_opened(operators: TraceOperators) -> None:
    with pytest.raises(QueryError, match="namespace numbers"):
        build_flow(operators, ["Default/network"])


def test_the_graph_is_kept_when_it_is_imported_alone_or_with_spans(tmp_path: Path) -> None:
    alone = import_files([reference_data("traces", "mindspore", "graphs")], tmp_path, lambda _: None)
    assert (alone.spans, alone.ranks, OPERATORS_FILE in alone.files) == (0, 8, True)
    both = import_files(
        [reference_data("traces", "mindspore", part) for part in ("graphs", "marey_graph")], tmp_path, lambda _: None
    )
    assert (both.spans, OPERATORS_FILE in both.files) == (13_381, True)
