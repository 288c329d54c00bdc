"""The shapes of the execution flow's answer. Places in ``nodes`` and ``blocks`` are their numbers."""

from dataclasses import dataclass
from typing import Literal

from clusterscape.analyze.trace.flow_graph import EdgeClass
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.operators import FlowMark
from clusterscape.query.traces.answers import TraceStage


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowBlock:
    """Operators of one stage between two messages; ``after``: blocks it has to wait for, all of lower number."""

    stage: int | None
    operators: int
    after: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowMarks:
    """How many operators of a node are part of the parallel strategy."""

    mark: FlowMark
    count: int


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTensor:
    """A parameter of a module, or what goes in or comes out: its shape over all ranks, into how many parts each dimension is
    split (null: not known), and over what.
    """

    name: str
    shape: list[int]
    splits: list[int] | None
    placement: str | None


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowModule:
    """The module that a node is, or lies in, where the run was captured; ``path`` as the model names it, empty: itself."""

    path: str
    class_name: str
    parameters: list[FlowTensor]
    inputs: list[FlowTensor]
    outputs: list[FlowTensor]


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNode:
    """An operator, a closed namespace, or operators that only order others; ``count`` of them stacked. ``opens``: what to add to
    ``open`` to see inside. ``matches``: operators with the searched text. ``span``: the longest; times are null where the trace
    has no spans of it.
    """

    label: str
    name: str | None
    kind: Literal["operator", "namespace", "ordering"]
    namespace: str
    parent: int | None
    opens: str | None
    block: int
    count: int
    operators: int
    matches: int
    types: dict[str, int]
    marks: list[FlowMarks]
    shards: list[list[int]] | None
    shape: str | None
    data_type: str | None
    message: str | None
    module: FlowModule | None
    span: int | None
    start_ns: float | None
    end_ns: float | None
    duration_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEdge:
    """Edges of one class from one node to a later one. ``shard``: into how many parts each dimension of the tensor is split."""

    source: int
    target: int
    edge_class: EdgeClass
    count: int
    shard: list[int] | None
    is_long: bool


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNamespace:
    """A namespace that is open."""

    namespace: int
    path: str
    operators: int


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowAnswer:
    """The execution flow; nodes in the order of execution. ``is_recorded``: from an operator graph, else from spans of one rank
    per stage in the typical step; ``is_captured``: with the modules of the run. ``opened``: what is open, as it can be asked
    for. ``at``: the node of the span that was asked for, null where there is none.
    """

    is_recorded: bool
    is_captured: bool
    at: int | None
    operators: int
    stages: list[TraceStage]
    blocks: list[FlowBlock]
    nodes: list[FlowNode]
    edges: list[FlowEdge]
    namespaces: list[FlowNamespace]
    opened: list[str]
