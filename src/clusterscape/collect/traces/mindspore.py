"""MindSpore cluster timelines (operators per device, with namespaces) and operator graphs with their sharding."""

import re
from dataclasses import dataclass

import msgspec
import polars as pl

from clusterscape.collect.traces.files import Content
from clusterscape.errors import SourceError
from clusterscape.model.spans import RankFacts, SpanClass, Trace, make_spans

COLLECTIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AlltoAll": "all_to_all",
    "Broadcast": "broadcast",
    "Send": "send",
    "Receive": "recv",
}
WAITS = ("StreamRecv", "StreamSend")  # one stream of a device waiting for another: no work


class Interval(msgspec.Struct, gc=False):
    """Microseconds."""

    st: float
    ed: float
    dur: float


class Stage(msgspec.Struct):
    """The devices of a pipeline stage."""

    devices: list[str] = []


class Timeline(msgspec.Struct):
    """device → operator → interval."""

    maps: dict[str, dict[str, Interval]]
    stage_data: dict[str, Stage] = {}


class Scopes(msgspec.Struct):
    """operator → namespace."""

    scope_map: dict[str, str] = {}


def parse_timeline(content: Content, source: str, scopes: dict[str, str]) -> Trace:
    """The trace of one step of all devices. Stages may run on clocks of their own."""
    try:
        timeline = msgspec.json.decode(content.data, type=Timeline)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{source} is no readable timeline: {error}", hint="Was the file copied whole?") from error
    stages = {device: _number(stage) for stage, members in timeline.stage_data.items() for device in members.devices}
    rows = [
        (_number(device), stages.get(device), name, round(own.st * 1000), round(own.dur * 1000))
        for device, operators in timeline.maps.items()
        for name, own in operators.items()
    ]
    table = pl.DataFrame(
        rows, schema=["rank", "stage", "name", "start_ns", "length_ns"], orient="row", infer_schema_length=None
    )
    kinds = table["name"].str.replace(r"-op\d+$", "")
    spaces = table["name"].replace_strict(scopes, default=None, return_dtype=pl.String).str.strip_prefix("/")
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
            "namespace": spaces,
            "start_ns": table["start_ns"],
            "end_ns": table["start_ns"] + table["length_ns"],
            "step": 1,
            "phase": _phases(table["stage"], collectives, spaces),
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


def _phases(stages: pl.Series, collectives: pl.Series, spaces: pl.Series) -> pl.Series:
    """By namespace; but what the first stage receives, and the last one sends, is always backward, and the other way round."""
    first, last = stages == stages.min(), stages == stages.max()
    sends, receives = collectives == "send", collectives == "recv"
    is_backward = spaces.str.starts_with("Gradients") | spaces.str.contains("/grad")
    return pl.select(
        pl.when((first & receives) | (last & sends))
        .then(pl.lit("backward"))
        .when((first & sends) | (last & receives))
        .then(pl.lit("forward"))
        .when(is_backward)
        .then(pl.lit("backward"))
        .when(spaces.is_not_null())
        .then(pl.lit("forward"))
    ).to_series()


def parse_scopes(content: Content) -> dict[str, str]:
    """operator → namespace."""
    return msgspec.json.decode(content.data, type=Scopes).scope_map


def _number(name: str) -> int:
    found = re.search(r"\d+", name)
    return int(found[0]) if found else 0


@dataclass(frozen=True, slots=True)
class OperatorGraph:
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


def parse_graphs(content: Content) -> list[OperatorGraph]:
    """The operator graph of each stage, with its sharding and its sends and receives."""
    document = msgspec.json.decode(content.data, type=GraphDocument)
    return [
        OperatorGraph(int(stage), tuple(int(each) for each in graph.rank_ids), _operators(graph))
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
            "sr_tag": _whole(node.attr.get("sr_tag")),
            "peer_rank": _whole(node.attr.get("dest_rank") or node.attr.get("src_rank")),
        }
        for node in graph.op_nodes
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _shard(value: str | list[msgspec.Raw]) -> str | None:
    text = value if isinstance(value, str) else ",".join(bytes(each).decode() for each in value)
    return text if text.strip("[]") else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None
