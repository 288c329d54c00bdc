"""MindSpore's operator graphs as one table of operators: stages, sharding, messages between stages."""

import json
import re
from collections.abc import Sequence

import msgspec
import polars as pl

from clusterscape.collect.traces.files import Content
from clusterscape.collect.traces.mindspore import GraphDocument, GraphNode
from clusterscape.errors import SourceError
from clusterscape.model.operators import FlowMark, make_operators
from clusterscape.model.spans import RankFacts, Trace, empty_spans

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
    """All stages' operators, stage by stage in the file's order, which is one of execution; and the ranks that run them."""
    try:
        return _parse(msgspec.json.decode(content.data, type=GraphDocument), source)
    except (msgspec.DecodeError, ValueError) as error:
        raise SourceError(f"{source} is no readable operator graph: {error}", hint="Was it copied whole?") from error


def _parse(document: GraphDocument, source: str) -> tuple[pl.DataFrame, tuple[RankFacts, ...]]:
    rows: dict[tuple[int, str], int] = {}
    nodes: list[tuple[int, GraphNode]] = []
    ranks: list[RankFacts] = []
    for name, graph in sorted(document.graphs.items(), key=lambda item: int(item[0])):
        stage = int(name)
        ranks += [RankFacts(rank=int(rank), source=source, stage=stage, backend="hccl") for rank in graph.rank_ids]
        for node in graph.op_nodes:
            rows[stage, node.node_id] = len(nodes)
            nodes.append((stage, node))
    inputs = [[rows[stage, one] for one in node.input if (stage, one) in rows] for stage, node in nodes]
    return _table(nodes, inputs), tuple(ranks)


def graph_alone(content: Content, source: str) -> Trace:
    """A trace without spans: only what depends on what."""
    operators, ranks = parse_operators(content, source)
    note = "Only the operator graph was given: there are no times."
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
            "shape": [_text(node.output_shape) for _, node in nodes],
            "data_type": [_data_type(node.output_data_type) for _, node in nodes],
            "message": [MESSAGES.get(node.type) for _, node in nodes],
            "message_key": [_message_key(node) for _, node in nodes],
        },
        len(nodes),
    )


def _mark(node: GraphNode) -> str | None:
    if node.type in MESSAGES:
        return FlowMark.PIPELINE.value
    # A group alone says nothing: convolutions have one of channels.
    mark = STATED.get(node.instance_type) or (BY_TYPE.get(node.type) if node.parallel_group else None)
    return mark.value if mark else None


def _message_key(node: GraphNode) -> str | None:
    """The group names both ends and the direction; the tag the micro-batch."""
    if node.type not in MESSAGES or "sr_tag" not in node.attr:
        return None
    return f"{node.attr.get('group', '')}#{node.attr['sr_tag']}"


def _shards(node: GraphNode) -> list[list[int]] | None:
    """``[[4, 1], [1]]``, given as text or as a list."""
    value = node.parallel_shard
    parts = json.loads(value or "[]") if isinstance(value, str) else [json.loads(bytes(each)) for each in value]
    rows = [[int(one) for one in part] for part in parts if isinstance(part, list)]
    return rows or None


def _data_type(text: str) -> str | None:
    """``DT_TUPLE['DT_TENSOR[DT_FLOAT32]', …]`` → ``float32``."""
    kinds = [kind.lower() for kind in re.findall(r"DT_([A-Z0-9]+)", text) if kind not in ("TUPLE", "TENSOR")]
    return ", ".join(dict.fromkeys(kinds)) or None


def _text(shape: msgspec.Raw) -> str | None:
    """``4 × 256 × 14 × 14``; of several outputs one after another."""
    value = json.loads(bytes(shape) or b"[]")
    if isinstance(value, str):
        value = json.loads(value or "[]")
    shapes = value if value and isinstance(value[0], list) else [value]
    texts = [" × ".join(str(one) for one in each) for each in shapes if each]
    return ", ".join(texts) or None
