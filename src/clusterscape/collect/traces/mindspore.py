"""Parses MindSpore cluster timelines (operators per device, with namespaces), and operator graphs with sharding, stages and the
messages between stages, as one table of operators.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
import polars as pl

from clusterscape.collect.traces.files import Content
from clusterscape.collect.traces.kineto import MAX_US
from clusterscape.errors import SourceError
from clusterscape.model.spans import FlowMark, RankFacts, SpanClass, Trace, empty_spans, make_operators, make_spans

COLLECTIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AlltoAll": "all_to_all",
    "Broadcast": "broadcast",
    "Send": "send",
    "Receive": "recv",
}
Microseconds = Annotated[float, msgspec.Meta(ge=-MAX_US, le=MAX_US)]
WAITS = ("StreamRecv", "StreamSend")  # one stream of a device waits for another: not work


class OperatorInterval(msgspec.Struct, gc=False):
    """Start, end and duration in microseconds."""

    st: Microseconds
    ed: Microseconds
    dur: Microseconds


class Stage(msgspec.Struct):
    """The devices of a pipeline stage."""

    devices: list[str] = []


class MindsporeTimeline(msgspec.Struct):
    """device → operator → interval."""

    maps: dict[str, dict[str, OperatorInterval]]
    stage_data: dict[str, Stage] = {}


class ScopeMap(msgspec.Struct):
    """operator → namespace."""

    scope_map: dict[str, str] = {}


def parse_timeline(content: Content, source: str, scopes: dict[str, str]) -> Trace:
    """Parse the timeline of one step on all devices. Stages may have their own clocks."""
    try:
        timeline = msgspec.json.decode(content.data, type=MindsporeTimeline)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read the timeline {source}: {error}", hint="Is the copy complete?") from error
    stages = {device: _number(stage) for stage, members in timeline.stage_data.items() for device in members.devices}
    rows = [
        (_number(device), stages.get(device), name, round(interval.st * 1000), round(interval.dur * 1000))
        for device, operators in timeline.maps.items()
        for name, interval in operators.items()
    ]
    table = pl.DataFrame(
        rows, schema=["rank", "stage", "name", "start_ns", "length_ns"], orient="row", infer_schema_length=None
    )
    kinds = table["name"].str.replace(r"-op\d+$", "")
    namespaces = table["name"].replace_strict(scopes, default=None, return_dtype=pl.String).str.strip_prefix("/")
    collectives = kinds.replace_strict(COLLECTIVES, default=None)
    spans = make_spans(
        {
            "rank": table["rank"],
            "lane": pl.select(
                pl.when(collectives.is_not_null()).then(pl.lit("communication")).otherwise(pl.lit("compute"))
            ).to_series(),
            "is_device": True,
            "span_class": pl.select(
                pl.when(collectives.is_not_null())
                .then(pl.lit(SpanClass.COMMUNICATION.value))
                .when(kinds.is_in(WAITS))
                .then(pl.lit(SpanClass.LAUNCH.value))
                .otherwise(pl.lit(SpanClass.COMPUTE.value))
            ).to_series(),
            "name": table["name"],
            "namespace": namespaces,
            "start_ns": table["start_ns"],
            "end_ns": table["start_ns"] + table["length_ns"],
            "step": 1,
            "phase": _phases(table["stage"], collectives, namespaces),
            "stage": table["stage"],
            "process_group": pl.select(
                pl.when(collectives.is_in(["send", "recv"]))
                .then(pl.lit("pp"))
                .otherwise(pl.format("stage {}", table["stage"]))
            ).to_series(),
            "collective": collectives,
        },
        table.height,
    )
    facts = tuple(
        RankFacts(rank=_number(device), source=source, stage=stages.get(device), backend="hccl")
        for device in sorted(timeline.maps, key=_number)
    )
    return Trace(format="MindSpore", spans=spans, ranks=facts)


def _phases(stages: pl.Series, collectives: pl.Series, namespaces: pl.Series) -> pl.Series:
    """By namespace; but a receive of the first stage or a send of the last is always backward, and vice versa."""
    ends = (stages.min(), stages.max())
    is_first, is_last = (pl.Series(np.zeros(len(stages), np.bool_)) if end is None else stages == end for end in ends)
    is_send, is_receive = collectives == "send", collectives == "recv"
    is_backward = namespaces.str.contains("(^|/)(Gradients(/|$)|grad)")
    return pl.select(
        pl.when((is_first & is_receive) | (is_last & is_send))
        .then(pl.lit("backward"))
        .when((is_first & is_send) | (is_last & is_receive))
        .then(pl.lit("forward"))
        .when(is_backward)
        .then(pl.lit("backward"))
        .when(namespaces.is_not_null())
        .then(pl.lit("forward"))
    ).to_series()


def parse_scopes(content: Content) -> dict[str, str]:
    """Parse the map operator → namespace."""
    try:
        return msgspec.json.decode(content.data, type=ScopeMap).scope_map
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}  # the timeline is read without namespaces


def _number(name: str) -> int:
    match = re.search(r"\d{1,9}", name)
    return int(match[0]) if match else 0


@dataclass(frozen=True, slots=True)
class StageGraph:
    """Operators of one stage: node_id, name, scope, type, instance_type, inputs, shard, sr_tag, peer_rank; and its ranks."""

    stage: int
    ranks: tuple[int, ...]
    operators: pl.DataFrame


class GraphNode(msgspec.Struct):
    """One operator. ``parallel_shard``: splits of each input's dimensions, as text or lists."""

    node_id: str
    name: str
    scope: str = ""
    type: str = ""
    instance_type: str = ""
    attr: dict[str, str] = {}
    input: list[str] = []
    parallel_shard: str | list[msgspec.Raw] = ""
    parallel_group: list[str] = []
    output_shape: msgspec.Raw = msgspec.Raw(b"[]")
    output_data_type: str = ""


class GraphStage(msgspec.Struct):
    """One stage's graph."""

    rank_ids: list[str] = []
    op_nodes: list[GraphNode] = []


class GraphDocument(msgspec.Struct):
    """Stage → graph."""

    graphs: dict[str, GraphStage]


def parse_graphs(content: Content) -> list[StageGraph]:
    """Parse the operator graph of each stage, with its sharding, sends and receives."""
    document = msgspec.json.decode(content.data, type=GraphDocument)
    return [
        StageGraph(int(stage), tuple(int(rank) for rank in graph.rank_ids), _operators(graph))
        for stage, graph in sorted(document.graphs.items())
    ]


def _operators(graph: GraphStage) -> pl.DataFrame:
    rows = [
        {
            "node_id": node.node_id,
            "name": node.name,
            "scope": node.scope,
            "type": node.type,
            "instance_type": node.instance_type or None,
            "inputs": node.input,
            "shard": _shard(node.parallel_shard),
            "sr_tag": _to_int(node.attr.get("sr_tag")),
            "peer_rank": _to_int(node.attr.get("dest_rank") or node.attr.get("src_rank")),
        }
        for node in graph.op_nodes
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _shard(value: str | list[msgspec.Raw]) -> str | None:
    text = value if isinstance(value, str) else ",".join(bytes(part).decode() for part in value)
    return text if text.strip("[]") else None


def _to_int(text: str | None) -> int | None:
    is_number = text is not None and text.isascii() and text.removeprefix("-").isdigit() and len(text) < 19
    return int(text) if is_number and text is not None else None


MAX_PARTS = 2**31 - 1

STATED = {
    "Redistribution": FlowMark.REDISTRIBUTION,
    "GradientAggregation": FlowMark.GRADIENT_AGGREGATION,
}
MESSAGES = {"Send": "send", "Receive": "recv"}
BY_TYPE = {
    "AlltoAll": FlowMark.EXPERT,
    "AllGather": FlowMark.TENSOR,
    "ReduceScatter": FlowMark.TENSOR,
    "AllReduce": FlowMark.TENSOR,
    "SyncBatchNorm": FlowMark.DATA,
    "SyncBatchNormGrad": FlowMark.DATA,
}


def parse_operators(content: Content, source: str) -> tuple[pl.DataFrame, tuple[RankFacts, ...]]:
    """Parse the operators of all stages, stage by stage in file order, which is a valid execution order; and their ranks."""
    try:
        return _parse(msgspec.json.decode(content.data, type=GraphDocument), source)
    except (msgspec.DecodeError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise SourceError(f"cannot read the operator graph {source}: {error}", hint="Is the copy complete?") from error


def _parse(document: GraphDocument, source: str) -> tuple[pl.DataFrame, tuple[RankFacts, ...]]:
    rows: dict[tuple[int, str], int] = {}
    nodes: list[tuple[int, GraphNode]] = []
    ranks: list[RankFacts] = []
    for name, graph in sorted(document.graphs.items(), key=lambda item: _to_number(item[0])):
        stage = _to_number(name)
        ranks += [
            RankFacts(rank=_to_number(rank), source=source, stage=stage, backend="hccl") for rank in graph.rank_ids
        ]
        for node in graph.op_nodes:
            rows[stage, node.node_id] = len(nodes)
            nodes.append((stage, node))
    inputs = [[rows[stage, input_id] for input_id in node.input if (stage, input_id) in rows] for stage, node in nodes]
    return _table(nodes, inputs), tuple(ranks)


def _to_number(text: str) -> int:
    """A stage or rank. Raises ValueError if it is not one."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"{text[:40]!r} is not the number of a stage or rank")
    return int(text)


def parse_graph_trace(content: Content, source: str) -> Trace:
    """A trace without spans: only the dependencies of operators."""
    operators, ranks = parse_operators(content, source)
    note = "The trace has only an operator graph: there are no times."
    return Trace(format="MindSpore graph", spans=empty_spans(), ranks=ranks, operators=operators, notes=(note,))


def _table(nodes: Sequence[tuple[int, GraphNode]], inputs: list[list[int]]) -> pl.DataFrame:
    return make_operators(
        {
            "stage": [stage for stage, _ in nodes],
            "name": [node.name.rpartition("/")[2] for _, node in nodes],
            "type": [node.type for _, node in nodes],
            "namespace": [node.scope.strip("/") for _, node in nodes],
            "inputs": inputs,
            "shards": [_shards(node) for _, node in nodes],
            "mark": [_mark(node) for _, node in nodes],
            "shape": [_format_shape(node.output_shape) for _, node in nodes],
            "data_type": [_data_type(node.output_data_type) for _, node in nodes],
            "message": [MESSAGES.get(node.type) for _, node in nodes],
            "message_key": [_message_key(node) for _, node in nodes],
        },
        len(nodes),
    )


def _mark(node: GraphNode) -> str | None:
    if node.type in MESSAGES:
        return FlowMark.PIPELINE.value
    # A group alone is not enough: convolutions have a group of channels.
    mark = STATED.get(node.instance_type) or (BY_TYPE.get(node.type) if node.parallel_group else None)
    return mark.value if mark else None


def _message_key(node: GraphNode) -> str | None:
    """Matches a send with its receive: the group identifies both ends and the direction, the tag the micro-batch."""
    if node.type not in MESSAGES or "sr_tag" not in node.attr:
        return None
    return f"{node.attr.get('group', '')}#{node.attr['sr_tag']}"


def _shards(node: GraphNode) -> list[list[int]] | None:
    """Parse ``[[4, 1], [1]]``, written as text or as a list."""
    value = node.parallel_shard
    parts = (
        json.loads(value or "[]") if isinstance(value, str) else [json.loads(bytes(part_json)) for part_json in value]
    )
    rows = [[min(int(count), MAX_PARTS) for count in part] for part in parts if isinstance(part, list)]
    return rows or None


def _data_type(text: str) -> str | None:
    """``DT_TUPLE['DT_TENSOR[DT_FLOAT32]', …]`` → ``float32``."""
    kinds = [kind.lower() for kind in re.findall(r"DT_([A-Z0-9]+)", text) if kind not in ("TUPLE", "TENSOR")]
    return ", ".join(dict.fromkeys(kinds)) or None


def _format_shape(shape: msgspec.Raw) -> str | None:
    """Format a shape as ``4 × 256 × 14 × 14``; several outputs are joined by commas."""
    value = json.loads(bytes(shape) or b"[]")
    if isinstance(value, str):
        value = json.loads(value or "[]")
    if not isinstance(value, list):
        return None
    shapes = value if value and isinstance(value[0], list) else [value]
    texts = [" × ".join(str(size) for size in sizes) for sizes in shapes if sizes and isinstance(sizes, list)]
    return ", ".join(texts) or None
