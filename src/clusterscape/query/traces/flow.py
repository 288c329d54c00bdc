"""The execution flow of a trace: its operator graph, or what its spans tell of one, as nodes and edges of an expansion."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from clusterscape.analyze.trace.flow import Flow, FlowPart, choose_opened, draw_flow
from clusterscape.analyze.trace.flow_graph import ORDERING, FlowGraph
from clusterscape.analyze.trace.flow_modules import NamedModules, add_shards, find_layers, paths_of
from clusterscape.analyze.trace.flow_spans import spans_to_operators
from clusterscape.errors import QueryError
from clusterscape.model.operators import FlowMark
from clusterscape.model.spans import Activation
from clusterscape.model.trace_report import TraceReportDocument
from clusterscape.query.traces.answers import TraceStage
from clusterscape.query.traces.describing import describe_stages
from clusterscape.query.traces.flow_answers import (
    FlowAnswer,
    FlowBlock,
    FlowEdge,
    FlowMarks,
    FlowModule,
    FlowNamespace,
    FlowNode,
    FlowTensor,
)
from clusterscape.query.traces.flow_places import FlowPlace
from clusterscape.query.traces.opened import OpenTrace

UNSTACKED = "*"
"""``*12``: parts of namespace 12 one by one; ``*-1``: those of the top."""
MOST_PARAMETERS = 12


@dataclass(frozen=True, slots=True)
class Operators:
    """An operator graph and whether it was recorded, or found in spans; ``modules``: what was captured of the run's model."""

    graph: FlowGraph
    is_recorded: bool
    stages: list[TraceStage]
    modules: NamedModules | None = None


def load_operators(opened: OpenTrace) -> Operators:
    """What can be drawn of a trace. Raises ``QueryError`` where there is nothing."""
    stages = describe_stages(opened.about.stages)
    recorded = opened.operators
    if recorded is not None:
        known = sorted({stage for stage in recorded["stage"].to_list() if stage is not None})
        if known != [each.stage for each in stages]:  # the graph is of another number of stages than the spans
            stages = [TraceStage(stage=stage, ranks=[]) for stage in known]
        return Operators(FlowGraph(recorded), True, stages)
    found = spans_to_operators(
        opened.spans,
        opened.about.stages,
        step=_typical_step(opened.steps),
        origin_ns=opened.drawn.origin_ns,
        group_kinds=_group_kinds(opened.report),
    )
    if not found.height:
        raise QueryError("the trace has no operators to draw", hint="Record what the devices do, or import its graph.")
    if not opened.modules:
        return Operators(FlowGraph(found), False, stages)
    modules = NamedModules(opened.modules)
    spaces = {path for space in found["namespace"].unique() for path in paths_of(space)}
    layers = find_layers(sorted(spaces), [each.stage for each in opened.modules], modules)
    return Operators(FlowGraph(add_shards(found, modules), layers), False, stages, modules)


def draw(operators: Operators, wanted: Sequence[str] | None, text: str = "", at: FlowPlace | None = None) -> FlowAnswer:
    """The flow with some namespaces open; None: as a first picture, in which ``at`` can be seen. Nodes tell how many of their
    operators have the text.
    """
    graph = operators.graph
    if wanted is None:
        # What does not fit is left closed from the end: the place that is asked for comes first.
        first = [] if at is None else _around(graph, at)
        flow = draw_flow(graph, list(dict.fromkeys([*first, *choose_opened(graph)])))
    else:
        numbers = [each.removeprefix(UNSTACKED) for each in wanted]
        if not all(each.removeprefix("-").isdigit() for each in numbers):
            raise QueryError("namespaces are opened by their numbers", hint="Write open=0,3,*3.")
        stacked = {int(number) for number, each in zip(numbers, wanted, strict=True) if each.startswith(UNSTACKED)}
        opened = [int(number) for number, each in zip(numbers, wanted, strict=True) if not each.startswith(UNSTACKED)]
        flow = draw_flow(graph, opened, stacked)
    table = graph.operators
    columns = table.to_dict(as_series=False)
    found = _find_rows(table, text)
    return FlowAnswer(
        is_recorded=operators.is_recorded,
        is_captured=operators.modules is not None,
        at=None
        if at is None
        else next(place for place, part in enumerate(flow.parts) if at.operator in part.operators),
        operators=table.height,
        stages=operators.stages,
        blocks=[
            FlowBlock(stage=block.stage, operators=len(block.operators), after=list(block.after))
            for block in graph.blocks
        ],
        nodes=[_node(operators, part, columns, found) for part in flow.parts],
        edges=[
            FlowEdge(
                source=link.source,
                target=link.target,
                edge_class=link.edge_class,
                count=link.count,
                shard=None if link.shard is None else list(link.shard),
                is_long=link.is_long,
            )
            for link in flow.links
        ],
        namespaces=_namespaces(graph, flow),
        opened=[str(each) for each in flow.opened] + [f"{UNSTACKED}{each}" for each in flow.unstacked],
    )


def _find_rows(table: pl.DataFrame, text: str) -> frozenset[int]:
    """Rows whose name, type or namespace has the text."""
    wanted = text.strip().lower()
    if not wanted:
        return frozenset()
    has = pl.lit(False)
    for column in ("name", "type", "namespace"):
        has = has | pl.col(column).str.to_lowercase().str.contains(wanted, literal=True)
    return frozenset(table.with_row_index("row").filter(has)["row"].to_list())


def _around(graph: FlowGraph, at: FlowPlace) -> list[int]:
    """Namespaces to open so that a place is seen, outer before inner."""
    number = {path: place for place, path in enumerate(graph.namespaces)}
    return [number[path] for path in paths_of(graph.home[at.operator]) if path != at.closed]


def _node(operators: Operators, part: FlowPart, columns: Mapping[str, list[Any]], found: frozenset[int]) -> FlowNode:
    graph = operators.graph
    first = part.operators[0]
    is_group = part.namespace is not None
    path = graph.namespaces[part.namespace] if part.namespace is not None else None
    marks = Counter(mark for row in part.operators if (mark := columns["mark"][row]) is not None)
    times = [row for row in part.operators if columns["duration_ns"][row] is not None]
    kinds = Counter(columns["type"][row] for row in part.operators)
    orders = not is_group and all(kind in ORDERING for kind in kinds)
    top = -1 if part.parent is None else part.parent
    return FlowNode(
        label=_label(graph, part, path) if path is not None else columns["type"][first],
        name=None if is_group or len(part.operators) > 1 else columns["name"][first],
        kind="namespace" if is_group else "ordering" if orders else "operator",
        namespace=path if path is not None else columns["namespace"][first],
        parent=part.parent,
        opens=f"{UNSTACKED}{top}" if part.count > 1 else str(part.namespace) if is_group else None,
        block=part.block,
        count=part.count,
        operators=len(part.operators),
        matches=sum(row in found for row in part.operators),
        types=dict(kinds.most_common(6)),
        marks=[FlowMarks(mark=FlowMark(mark), count=count) for mark, count in marks.most_common()],
        shards=None if is_group else columns["shards"][first],
        shape=None if is_group else columns["shape"][first],
        data_type=None if is_group else columns["data_type"][first],
        message=None if is_group else columns["message"][first],
        module=_describe_module(operators.modules, columns["stage"][first], path or columns["namespace"][first]),
        span=None if not times else columns["span"][max(times, key=lambda row: columns["duration_ns"][row])],
        start_ns=min((columns["start_ns"][row] for row in times), default=None),
        end_ns=max((columns["end_ns"][row] for row in times), default=None),
        duration_ns=sum(columns["duration_ns"][row] for row in times) if times else None,
    )


def _label(graph: FlowGraph, part: FlowPart, path: str) -> str:
    """A namespace's own name; of several stacked that differ in a number, from the first to the last: ``layers.0–23``."""
    name = path.rpartition("/")[2]
    if part.count == 1:
        return name
    depth = path.count("/")
    last = graph.home[part.operators[-1]].split("/")[depth : depth + 1]
    ends = [re.fullmatch(r"(.*?)(\d+)", each) for each in (name, *last)]
    if len(ends) == 2 and ends[0] and ends[1] and ends[0][1] == ends[1][1] and ends[0][2] != ends[1][2]:
        return f"{name}–{ends[1][2]}"
    return name


def _describe_module(modules: NamedModules | None, stage: int | None, namespace: str) -> FlowModule | None:
    """The innermost module around."""
    if modules is None:
        return None
    inside = [module for _, module in modules.around(stage, namespace)]
    if not inside:
        return None
    module = inside[-1]
    return FlowModule(
        path=module.path,
        class_name=module.class_name,
        parameters=[
            FlowTensor(
                name=each.name,
                shape=list(each.shape),
                splits=list(each.splits) or None,
                placement=", ".join(f"{kind} over {mesh}" for mesh, kind in each.placements) or None,
            )
            for each in module.parameters[:MOST_PARAMETERS]
        ],
        inputs=[_describe_activation("in", each) for each in module.inputs],
        outputs=[_describe_activation("out", each) for each in module.outputs],
    )


def _describe_activation(name: str, each: Activation) -> FlowTensor:
    return FlowTensor(
        name=name,
        shape=list(each.shape),
        splits=list(each.splits) or None,
        placement="partial sums" if each.is_partial else None,
    )


def _namespaces(graph: FlowGraph, flow: Flow) -> list[FlowNamespace]:
    """Those that are open, with which they can be closed."""
    number: dict[str, int] = {path: place for place, path in enumerate(graph.namespaces)}
    sizes = Counter(graph.home)
    wanted: Collection[int] = set(flow.opened)
    return [
        FlowNamespace(
            namespace=place,
            path=path,
            operators=sum(count for home, count in sizes.items() if home == path or home.startswith(path + "/")),
        )
        for path, place in number.items()
        if place in wanted
    ]


def _typical_step(steps: pl.DataFrame) -> int | None:
    """Of median length."""
    if not steps.height:
        return None
    lengths = steps.group_by("step").agg(pl.col("step_ns").mean()).sort("step_ns", "step")
    return int(lengths["step"][(lengths.height - 1) // 2])


def _group_kinds(report: TraceReportDocument) -> dict[str, str | None]:
    return {group.name: group.kind for group in report.process_groups}
