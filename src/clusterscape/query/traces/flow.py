"""The execution flow of a trace as nodes and edges of an explorable graph, from its operator graph or from its spans; and the
node of a span in it.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from clusterscape.analyze.trace.flow import Flow, FlowPart, choose_opened, draw_flow
from clusterscape.analyze.trace.flow_graph import ORDERING, FlowGraph
from clusterscape.analyze.trace.flow_links import (
    SAME,
    FlowLinks,
    find_operator,
    find_running,
    find_spans,
    link_operators,
)
from clusterscape.analyze.trace.flow_spans import NamedModules, add_shards, find_layers, paths_of, spans_to_operators
from clusterscape.errors import QueryError
from clusterscape.model.arrays import Int64s
from clusterscape.model.spans import Activation, FlowMark, SpanClass
from clusterscape.model.trace_report import TraceReportDocument
from clusterscape.query.bounds import parse_count
from clusterscape.query.traces.answers import (
    FlowActivity,
    FlowAnswer,
    FlowBlock,
    FlowEdge,
    FlowMarks,
    FlowModule,
    FlowNamespace,
    FlowNode,
    FlowTensor,
    TraceStage,
)
from clusterscape.query.traces.describing import describe_stages
from clusterscape.query.traces.opened import OpenTrace


@dataclass(frozen=True, slots=True)
class FlowPlace:
    """Where a span is in the flow. ``operator``: a row of the operator graph; ``closed``: the namespace that contains the span if
    the graph has no operator for it, else None.
    """

    operator: int
    closed: str | None = None


def find_place(graph: FlowGraph, spans: pl.DataFrame, span: int, stage: int | None) -> FlowPlace | None:
    """The same operator in the rank and step that are drawn; for a span that is not drawn what it launched, else the deepest
    namespace around it. None if there is none.
    """
    row = spans.row(span, named=True)
    launched = _launched(spans, row)
    for candidate in (span, *launched):
        operator = _find_same(graph, spans, candidate, stage)
        if operator is not None:
            return FlowPlace(operator)
    space = str(row["namespace"] or "").strip("/")
    if row["span_class"] == SpanClass.ANNOTATION.value:
        space = f"{space}/{row['name']}".strip("/")
    for path in reversed(list(paths_of(space))):
        for operator, (operator_stage, home) in enumerate(zip(graph.stage, graph.home, strict=True)):
            if (operator_stage == stage or stage is None) and (home == path or home.startswith(path + "/")):
                return FlowPlace(operator, path)
    return None


def _launched(spans: pl.DataFrame, row: dict[str, Any]) -> list[int]:
    """The first device span that a launch, or the launches within a host operator, started."""
    if row["is_device"] or row["span_class"] not in (SpanClass.HOST.value, SpanClass.LAUNCH.value):
        return []
    same_rank = spans.lazy().with_row_index("span").filter(pl.col("rank") == row["rank"])
    launches = same_rank.filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value)
        & (pl.col("lane") == row["lane"])
        & pl.col("start_ns").is_between(row["start_ns"], row["end_ns"])
        & pl.col("correlation").is_not_null()
    ).select("correlation")
    on_device = same_rank.filter(pl.col("is_device")).join(launches, on="correlation", how="semi")
    return on_device.sort("start_ns").head(1).select("span").collect()["span"].to_list()


def _find_same(graph: FlowGraph, spans: pl.DataFrame, span: int, stage: int | None) -> int | None:
    """If the span is the n-th of its operator in its step, the n-th of the same operator in the step that is drawn."""
    drawn = graph.operators.with_row_index("row").filter(pl.col("span").is_not_null())
    if stage is not None:
        drawn = drawn.filter(pl.col("stage") == stage)
    row = spans.row(span, named=True)
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(row[name])) for name in SAME)
    same = drawn.select("row", "span").join(
        spans.lazy().with_row_index("id").filter(is_same).select(pl.col("id").cast(pl.Int64), "start_ns").collect(),
        left_on="span",
        right_on="id",
    )
    if not same.height:
        return None
    before = spans.filter(
        is_same
        & (pl.col("rank") == row["rank"])
        & pl.col("step").eq_missing(pl.lit(row["step"], pl.Int32))
        & (pl.col("start_ns") < row["start_ns"])
    ).height
    return int(same.sort("start_ns")["row"][min(before, same.height - 1)])


UNSTACKED = "*"
"""``*12``: the parts of namespace 12 are not stacked; ``*-1``: those of the top level."""
MAX_PARAMETERS = 12
MAX_FLOWS = 8


@dataclass(frozen=True)
class TraceOperators:
    """An operator graph, and whether it was recorded or derived from spans; ``modules``: the captured modules of the model."""

    graph: FlowGraph
    is_recorded: bool
    stages: list[TraceStage]
    modules: NamedModules | None = None
    opened: OpenTrace | None = None
    flows: dict[tuple[str, ...] | None, Flow] = field(default_factory=dict)
    """The latest flows that were drawn, by what is open."""

    @cached_property
    def links(self) -> FlowLinks:
        """Which spans of the trace are which operators."""
        if self.opened is None:
            raise QueryError("the trace has no spans", hint="Import its timeline, too.")
        return link_operators(self.opened.spans, self.graph.operators, self.opened.about.stages)

    def draw(self, wanted: Sequence[str] | None, at: FlowPlace | None = None) -> Flow:
        """The flow with some namespaces open; None: the default, in which ``at`` is visible."""
        if at is not None and wanted is None:
            # Namespaces that do not fit stay closed, starting at the end, so the requested place comes first.
            opened = [*_around(self.graph, at), *choose_opened(self.graph)]
            return draw_flow(self.graph, list(dict.fromkeys(opened)))
        key = None if wanted is None else tuple(wanted)
        flow = self.flows.get(key)
        if flow is None:
            flow = draw_flow(self.graph, *_read_opened(wanted)) if wanted is not None else draw_flow(self.graph)
            if len(self.flows) >= MAX_FLOWS:
                self.flows.clear()
            self.flows[key] = flow
        return flow


def load_operators(opened: OpenTrace) -> TraceOperators:
    """The operators of a trace. Raises ``QueryError`` if there are none."""
    stages = describe_stages(opened.about.stages)
    recorded = opened.operators
    if recorded is not None:
        recorded_stages = sorted({stage for stage in recorded["stage"].to_list() if stage is not None})
        if recorded_stages != [stage.stage for stage in stages]:  # the graph has other stages than the spans
            stages = [TraceStage(stage=stage, ranks=[]) for stage in recorded_stages]
        return TraceOperators(FlowGraph(recorded), True, stages, opened=opened)
    table = spans_to_operators(
        opened.spans,
        opened.about.stages,
        step=_typical_step(opened.steps),
        origin_ns=opened.drawn.origin_ns,
        group_kinds=_group_kinds(opened.report),
    )
    if not table.height:
        raise QueryError("the trace has no operators", hint="Record device activities, or import an operator graph.")
    if not opened.modules:
        return TraceOperators(FlowGraph(table), False, stages, opened=opened)
    modules = NamedModules(opened.modules)
    spaces = {path for space in table["namespace"].unique() for path in paths_of(space)}
    layers = find_layers(sorted(spaces), [modules_of_stage.stage for modules_of_stage in opened.modules], modules)
    return TraceOperators(FlowGraph(add_shards(table, modules), layers), False, stages, modules, opened)


def build_flow(
    operators: TraceOperators, wanted: Sequence[str] | None, text: str = "", at: FlowPlace | None = None
) -> FlowAnswer:
    """The flow with some namespaces open; None: the default, in which ``at`` is visible. Nodes count their operators that match
    the text.
    """
    graph = operators.graph
    flow = operators.draw(wanted, at)
    table = graph.operators
    columns = table.to_dict(as_series=False)
    matching_rows = _find_rows(table, text)
    return FlowAnswer(
        is_recorded=operators.is_recorded,
        is_captured=operators.modules is not None,
        at=None if at is None else _node_of(flow, at.operator),
        operators=table.height,
        stages=operators.stages,
        blocks=[
            FlowBlock(stage=block.stage, operators=len(block.operators), after=list(block.after))
            for block in graph.blocks
        ],
        nodes=[_node(operators, part, columns, matching_rows) for part in flow.parts],
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
        opened=[str(number) for number in flow.opened] + [f"{UNSTACKED}{number}" for number in flow.unstacked],
    )


def place_span(operators: TraceOperators, span: int) -> FlowPlace | None:
    """Where a span is in the flow; None if it is nowhere."""
    trace = operators.opened
    if trace is None or not 0 <= span < trace.spans.height:
        return None
    place = find_place(operators.graph, trace.spans, span, trace.about.stages.get(trace.spans["rank"][span]))
    if place is not None:
        return place
    operator = find_operator(operators.links, span)
    return None if operator is None else FlowPlace(operator)


def _node_of(flow: Flow, operator: int) -> int | None:
    return next((index for index, part in enumerate(flow.parts) if operator in part.operators), None)


def find_flow_activity(
    operators: TraceOperators, wanted: Sequence[str] | None, start_ns: int, end_ns: int, span: int | None
) -> FlowActivity:
    """Which nodes of a flow run in a window, and the node of a span."""
    if operators.opened is None or not operators.opened.spans.height:
        raise QueryError("the trace has no spans", hint="Import its timeline, too.")
    flow = operators.draw(wanted)
    is_running = find_running(operators.links, operators.opened.spans, start_ns, end_ns)
    place = None if span is None else place_span(operators, span)
    return FlowActivity(
        running=[int(np.count_nonzero(is_running[list(part.operators)])) for part in flow.parts],
        at=None if place is None else _node_of(flow, place.operator),
        is_by_module=operators.links.is_by_module,
    )


def find_node_spans(operators: TraceOperators, wanted: Sequence[str] | None, nodes: Sequence[int]) -> Int64s:
    """The spans of some nodes of a flow, on all ranks and in all steps."""
    flow = operators.draw(wanted)
    unknown = [node for node in nodes if not 0 <= node < len(flow.parts)]
    if unknown:
        raise QueryError(f"the flow has no node {unknown[0]}", hint=f"It has {len(flow.parts)} nodes, numbered from 0.")
    return find_spans(operators.links, [row for node in nodes for row in flow.parts[node].operators])


def _read_opened(wanted: Sequence[str]) -> tuple[list[int], set[int]]:
    """Numbers of the open namespaces, and of those whose parts are not stacked."""
    numbers = [value.removeprefix(UNSTACKED) for value in wanted]
    if any(parse_count(number.removeprefix("-")) is None for number in numbers):
        raise QueryError("open must be a list of namespace numbers", hint="For example open=0,3,*3.")
    is_unstacked = [value.startswith(UNSTACKED) for value in wanted]
    unstacked = {int(number) for number, is_mark in zip(numbers, is_unstacked, strict=True) if is_mark}
    opened = [int(number) for number, is_mark in zip(numbers, is_unstacked, strict=True) if not is_mark]
    return opened, unstacked


def _find_rows(table: pl.DataFrame, text: str) -> frozenset[int]:
    """Rows whose name, type or namespace contains the text."""
    needle = text.strip().lower()
    if not needle:
        return frozenset()
    has = pl.lit(False)
    for column in ("name", "type", "namespace"):
        has = has | pl.col(column).str.to_lowercase().str.contains(needle, literal=True)
    return frozenset(table.with_row_index("row").filter(has)["row"].to_list())


def _around(graph: FlowGraph, at: FlowPlace) -> list[int]:
    """Namespaces to open so that a place is visible, outer before inner."""
    number = {path: index for index, path in enumerate(graph.namespaces)}
    return [number[path] for path in paths_of(graph.home[at.operator]) if path != at.closed]


def _node(
    operators: TraceOperators, part: FlowPart, columns: Mapping[str, list[Any]], matching_rows: frozenset[int]
) -> FlowNode:
    graph = operators.graph
    first = part.operators[0]
    is_group = part.namespace is not None
    path = graph.namespaces[part.namespace] if part.namespace is not None else None
    marks = Counter(mark for row in part.operators if (mark := columns["mark"][row]) is not None)
    times = [row for row in part.operators if columns["duration_ns"][row] is not None]
    kinds = Counter(columns["type"][row] for row in part.operators)
    is_ordering = not is_group and all(kind in ORDERING for kind in kinds)
    top = -1 if part.parent is None else part.parent
    return FlowNode(
        label=_label(graph, part, path) if path is not None else columns["type"][first],
        name=None if is_group or len(part.operators) > 1 else columns["name"][first],
        kind="namespace" if is_group else "ordering" if is_ordering else "operator",
        namespace=path if path is not None else columns["namespace"][first],
        parent=part.parent,
        opens=f"{UNSTACKED}{top}" if part.count > 1 else str(part.namespace) if is_group else None,
        block=part.block,
        count=part.count,
        operators=len(part.operators),
        matches=sum(row in matching_rows for row in part.operators),
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
    """The last part of a namespace; stacked ones that differ in a number as a range: ``layers.0–23``."""
    name = path.rpartition("/")[2]
    if part.count == 1:
        return name
    depth = path.count("/")
    last = graph.home[part.operators[-1]].split("/")[depth : depth + 1]
    ends = [re.fullmatch(r"(.*?)(\d+)", part_name) for part_name in (name, *last)]
    if len(ends) == 2 and ends[0] and ends[1] and ends[0][1] == ends[1][1] and ends[0][2] != ends[1][2]:
        return f"{name}–{ends[1][2]}"
    return name


def _describe_module(modules: NamedModules | None, stage: int | None, namespace: str) -> FlowModule | None:
    """The innermost module around a namespace."""
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
                name=tensor.name,
                shape=list(tensor.shape),
                splits=list(tensor.splits) or None,
                placement=", ".join(f"{kind} over {mesh}" for mesh, kind in tensor.placements) or None,
            )
            for tensor in module.parameters[:MAX_PARAMETERS]
        ],
        inputs=[_describe_activation("in", tensor) for tensor in module.inputs],
        outputs=[_describe_activation("out", tensor) for tensor in module.outputs],
    )


def _describe_activation(name: str, activation: Activation) -> FlowTensor:
    return FlowTensor(
        name=name,
        shape=list(activation.shape),
        splits=list(activation.splits) or None,
        placement="partial sums" if activation.is_partial else None,
    )


def _namespaces(graph: FlowGraph, flow: Flow) -> list[FlowNamespace]:
    """The open namespaces, which can be closed."""
    number: dict[str, int] = {path: index for index, path in enumerate(graph.namespaces)}
    sizes = Counter(graph.home)
    opened: Collection[int] = set(flow.opened)
    return [
        FlowNamespace(
            namespace=index,
            path=path,
            operators=sum(count for home, count in sizes.items() if home == path or home.startswith(path + "/")),
        )
        for path, index in number.items()
        if index in opened
    ]


def _typical_step(steps: pl.DataFrame) -> int | None:
    """The step of median length, of those in which something runs."""
    active = steps.filter(pl.col("compute_ns") + pl.col("communication_ns") > 0)
    steps = active if active.height else steps
    if not steps.height:
        return None
    lengths = steps.group_by("step").agg(pl.col("step_ns").mean()).sort("step_ns", "step")
    return int(lengths["step"][(lengths.height - 1) // 2])


def _group_kinds(report: TraceReportDocument) -> dict[str, str | None]:
    return {group.name: group.kind for group in report.process_groups}
