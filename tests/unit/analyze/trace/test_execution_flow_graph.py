"""The execution flow of synthetic graphs: all operators are drawn, no edge points back, repeats are stacked."""

import numpy as np
import pytest

from clusterscape.analyze.trace.flow import Flow, choose_opened, draw_flow
from clusterscape.analyze.trace.flow_graph import FlowGraph
from clusterscape.analyze.trace.flow_spans import shorten_kernel
from clusterscape.collect.traces.files import Content
from clusterscape.collect.traces.mindspore import parse_operators
from clusterscape.errors import SourceError
from clusterscape.model.spans import make_operators


def random_graph(seed: int, size: int = 300) -> FlowGraph:
    """Two stages, namespaces of up to three parts, messages in both directions without a cycle."""
    generator = np.random.default_rng(seed)
    stage = np.sort(generator.integers(0, 2, size))
    types = generator.choice(["MatMul", "Add", "Depend", "Load", "UpdateState"], size)
    spaces = [
        "/".join(f"n{number}" for number in generator.integers(0, 3, generator.integers(0, 4))) for _ in range(size)
    ]
    inputs = [
        sorted({int(source) for source in generator.integers(0, row, 2) if stage[source] == stage[row]}) if row else []
        for row in range(size)
    ]
    message: list[str | None] = [None] * size
    keys: list[str | None] = [None] * size
    first, second = (np.flatnonzero(stage == index) for index in (0, 1))
    for number in range(4):
        send, receive = int(first[10 + 20 * number]), int(second[5 + 20 * number])
        message[send], message[receive], keys[send], keys[receive] = "send", "recv", f"f{number}", f"f{number}"
    return FlowGraph(
        make_operators(
            {
                "stage": stage.tolist(),
                "name": [f"op{row}" for row in range(size)],
                "type": types.tolist(),
                "namespace": spaces,
                "inputs": inputs,
                "message": message,
                "message_key": keys,
            },
            size,
        )
    )


def check_flow(graph: FlowGraph, flow: Flow) -> None:
    rows = sorted(row for part in flow.parts for row in part.operators)
    assert rows == list(range(graph.operators.height))
    assert all(link.source < link.target for link in flow.links)
    assert all({graph.block[row] for row in part.operators} == {part.block} for part in flow.parts)


@pytest.mark.parametrize("seed", range(12))
def test_every_operator_is_drawn_once_and_no_edge_points_back_when_namespaces_open(seed: int) -> None:
    graph = random_graph(seed)
    generator = np.random.default_rng(seed)
    every = np.arange(len(graph.namespaces))
    for opened in ([], every.tolist(), generator.choice(every, every.size // 2, replace=False).tolist(), None):
        check_flow(graph, draw_flow(graph, opened))


def test_blocks_wait_for_their_messages_when_stages_send() -> None:
    graph = random_graph(1)
    assert all(before < place for place, block in enumerate(graph.blocks) for before in block.after)
    joined = [edge for edge in graph.edges if edge.edge_class == "send_receive"]
    assert len(joined) == 4
    assert all(
        graph.blocks[graph.block[edge.source]].stage != graph.blocks[graph.block[edge.target]].stage for edge in joined
    )


def test_messages_that_wait_for_each_other_are_still_drawn_when_tags_are_wrong() -> None:
    columns = {
        "stage": [0, 0, 1, 1],
        "name": ["a", "b", "c", "d"],
        "type": ["Receive", "Send", "Receive", "Send"],
        "namespace": ["", "", "", ""],
        "inputs": [[], [0], [], [2]],
        "message": ["recv", "send", "recv", "send"],
        "message_key": ["x", "y", "y", "x"],
    }
    graph = FlowGraph(make_operators(columns, 4))
    check_flow(graph, draw_flow(graph))
    assert sum(edge.edge_class == "send_receive" for edge in graph.edges) == 1


def test_operators_that_wait_for_each_other_are_drawn_when_a_graph_is_not_in_order() -> None:
    columns = {"name": ["a", "b"], "type": ["Add", "Mul"], "namespace": ["", ""], "inputs": [[1], [0]]}
    graph = FlowGraph(make_operators(columns, 2))
    check_flow(graph, draw_flow(graph))


def layers(count: int) -> FlowGraph:
    size = count * 3
    return FlowGraph(
        make_operators(
            {
                "name": [f"op{row}" for row in range(size)],
                "type": ["MatMul", "Add", "ReLU"] * count,
                "namespace": [f"model/layer{row // 3}" for row in range(size)],
                "inputs": [[row - 1] if row else [] for row in range(size)],
            },
            size,
        )
    )


def test_layers_stack_when_five_are_alike_and_open_one_by_one() -> None:
    graph = layers(6)
    model = [graph.namespaces.index("model")]
    assert [part.count for part in draw_flow(graph, model).parts] == [6]
    assert [part.count for part in draw_flow(graph, model, model).parts] == [1] * 6
    assert [part.count for part in draw_flow(layers(4), model).parts] == [1] * 4
    assert choose_opened(graph) == model


def test_flow_stays_within_the_limit_when_too_many_namespaces_are_opened() -> None:
    graph = random_graph(3)
    flow = draw_flow(graph, list(range(len(graph.namespaces))), most=100)
    assert len(flow.parts) <= 100
    check_flow(graph, flow)


def test_flow_is_empty_when_there_are_no_operators() -> None:
    flow = draw_flow(FlowGraph(make_operators({}, 0)))
    assert (flow.parts, flow.links) == ((), ())


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, 4>(int)", "vectorized_layer_norm_kernel"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("nvjet_sm90_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "nvjet_sm90_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN"),
    ],
)  # fmt: skip
def test_kernels_are_named_shortly_when_drawn(name: str, short: str) -> None:
    assert shorten_kernel(name) == short


@pytest.mark.parametrize(
    "text",
    [
        '{"graphs": {"0": {"op_nodes": [',
        '{"graphs": {"0": {"op_nodes": [{"node_id": "1", "name": "a", "parallel_shard": "[["}]}}}',
    ],
)
def test_truncation_is_reported_when_a_graph_is_cut_short(text: str) -> None:
    with pytest.raises(SourceError, match="cannot read the operator graph"):
        parse_operators(Content(text.encode()), "graph.json")
