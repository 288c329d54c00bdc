"""The execution flow of a captured run: modules by their namespaces, layers stacked, tensors split, communication classified."""

from itertools import pairwise

import polars as pl
import pytest

from clusterscape.analyze.trace.flow import choose_opened, draw_flow
from clusterscape.analyze.trace.flow_graph import FlowGraph
from clusterscape.analyze.trace.flow_spans import NamedModules, add_shards, find_layers, mark_communication, paths_of
from clusterscape.model.spans import Activation, FlowMark, ModuleFacts, StageModules, make_operators

WHOLE, SPLIT = Activation(shape=(16, 64), splits=(1, 1)), Activation(shape=(16, 256), splits=(1, 2))
BLOCKS = 3


def modules() -> NamedModules:
    """Blocks of two linear layers, the tensor between them split in two."""
    facts = [ModuleFacts(path="", class_name="Stage"), ModuleFacts(path="blocks", class_name="ModuleList")]
    for number in range(BLOCKS):
        path = f"blocks.{number}"
        facts.append(ModuleFacts(path=path, class_name="Block", inputs=(WHOLE,), outputs=(WHOLE,)))
        facts.append(ModuleFacts(path=f"{path}.up", class_name="Linear", inputs=(WHOLE,), outputs=(SPLIT,)))
        facts.append(ModuleFacts(path=f"{path}.down", class_name="Linear", inputs=(SPLIT,), outputs=(WHOLE,)))
    return NamedModules([StageModules(stage=0, rank=0, modules=tuple(facts))])


def operators() -> pl.DataFrame:
    """A receive, then every block's up, relu, down with its all-reduce, and the sum."""
    rows: list[tuple[str, str, str | None]] = [("recv", "recv forward mb0", "recv")]
    for number in range(BLOCKS):
        block = f"forward mb0/Stage/blocks.{number}"
        rows += [
            ("addmm", f"{block}/up", None),
            ("relu", block, None),
            ("addmm", f"{block}/down", None),
            ("all_reduce", f"{block}/down", None),
            ("add", block, None),
        ]
    count = len(rows)
    return make_operators(
        {
            "stage": [0] * count,
            "name": [name for name, _, _ in rows],
            "type": [name for name, _, _ in rows],
            "namespace": [space for _, space, _ in rows],
            "inputs": [[]] + [[row] for row in range(count - 1)],
            "message": [message for _, _, message in rows],
            "span": list(range(count)),
        },
        count,
    )


def graph() -> FlowGraph:
    table, named_modules = operators(), modules()
    spaces = sorted({path for space in table["namespace"].unique() for path in paths_of(space)})
    return FlowGraph(add_shards(table, named_modules), find_layers(spaces, [0], named_modules))


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        ("forward mb0/Stage/blocks.1/down", "blocks.1.down"),
        ("forward mb0/Stage", ""),
        ("blocks.1", "blocks.1"),
        ("forward mb0", None),
        ("forward mb0/Stage/blocks.1/my own mark", None),
    ],
)
def test_namespace_maps_to_a_module_when_it_ends_with_the_modules_path(namespace: str, path: str | None) -> None:
    module = modules().find(0, namespace)
    assert (None if module is None else module.path) == path
    assert modules().find(1, namespace) is None


def test_edges_show_tensor_splits_when_they_enter_and_leave_modules() -> None:
    table = add_shards(operators(), modules())
    first = table["shards"].to_list()[:7]
    # recv as its receiver, up and relu as the output of up, down as its input, none within a module, the sum, the next block.
    assert first == [[[1, 1]], [[1, 1]], [[1, 2]], [[1, 2]], None, [[1, 1]], [[1, 1]]]
    assert table["shape"].to_list()[1] == "16 × 256"


def test_layers_are_stacked_and_closed_at_first_when_they_are_modules_of_one_class() -> None:
    flow_graph = graph()
    layers = {f"forward mb0/Stage/blocks.{number}" for number in range(BLOCKS)}
    assert flow_graph.layers == layers
    flow = draw_flow(flow_graph)
    assert [part.count for part in flow.parts] == [1, BLOCKS]
    stage = flow_graph.namespaces.index("forward mb0/Stage")
    assert [part.count for part in draw_flow(flow_graph, choose_opened(flow_graph), [stage]).parts] == [1] * (
        1 + BLOCKS
    )
    opened = [*choose_opened(flow_graph), flow_graph.namespaces.index("forward mb0/Stage/blocks.0")]
    assert [part.count for part in draw_flow(flow_graph, opened).parts] == [1, 1, 1, 1, 1, BLOCKS - 1]


def test_no_layers_are_stacked_when_modules_only_look_alike() -> None:
    names = ("query", "key", "value")
    facts = [ModuleFacts(path=name, class_name="Linear") for name in names]
    named_modules = NamedModules(
        [StageModules(stage=None, rank=0, modules=(ModuleFacts(path="", class_name="M"), *facts))]
    )
    assert find_layers([f"M/{name}" for name in names], [None], named_modules) == frozenset()


@pytest.mark.parametrize(
    ("collective", "kind", "phase", "mark"),
    [
        ("all_reduce", "tp", "forward", FlowMark.TENSOR),
        ("all_reduce", "tp", "backward", FlowMark.TENSOR),
        ("all_gather", "tp", "forward", FlowMark.REDISTRIBUTION),
        ("all_to_all", "cp", "forward", FlowMark.REDISTRIBUTION),
        ("all_reduce", "dp", "backward", FlowMark.GRADIENT_AGGREGATION),
        ("reduce_scatter", None, "backward", FlowMark.GRADIENT_AGGREGATION),
        ("all_gather", "dp", "backward", FlowMark.DATA),  # FSDP fetches parameters again
        ("all_to_all", "ep", "forward", FlowMark.EXPERT),
        ("all_to_all", None, "forward", FlowMark.EXPERT),
        ("send", None, "forward", FlowMark.PIPELINE),
        ("send", "cp", "forward", FlowMark.COMMUNICATION),
        ("broadcast", None, None, FlowMark.COMMUNICATION),
    ],
)
def test_communication_is_classified_when_its_group_and_kind_are_known(
    collective: str, kind: str | None, phase: str | None, mark: FlowMark
) -> None:
    assert mark_communication(collective, kind, phase) is mark


def test_no_edge_points_back_when_a_captured_flow_is_opened_in_any_way() -> None:
    flow_graph = graph()
    for opened in ([], list(range(len(flow_graph.namespaces))), None):
        flow = draw_flow(flow_graph, opened)
        assert sorted(row for part in flow.parts for row in part.operators) == list(range(flow_graph.operators.height))
        assert all(link.source < link.target for link in flow.links)
        assert all(first.block <= second.block for first, second in pairwise(flow.parts))
