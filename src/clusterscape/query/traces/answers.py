"""The shapes of answers about traces and their execution flow (nodes and blocks are identified by their indices); the API's
schema and the client's types are generated from these.

Times within a trace are nanoseconds since its first start (``origin_ms``, Unix ms, if it has wall-clock times); those of the
report are seconds. Missing is null. Spans, steps, operators, links and curves are Arrow tables.
"""

from dataclasses import dataclass
from typing import Literal

from clusterscape.analyze.trace.diff import DiffKind
from clusterscape.analyze.trace.flow_graph import EdgeClass
from clusterscape.model.identity_fields import UnitRef, WorkloadRef, access_checked
from clusterscape.model.spans import FlowMark
from clusterscape.model.trace_report import (
    GroupExposure,
    RankBreakdown,
    RankSlack,
    TraceAlignment,
    TraceAttribution,
    TraceBubble,
    TraceCollectives,
    TraceGroup,
    TraceImbalance,
    TracePath,
    TraceStep,
    Verdict,
    WhatIf,
)
from clusterscape.model.traces import TraceState


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A trace in a list. ``progress``: 0–1 while it is being read; ``headline``: the first verdict, or null."""

    trace_id: str
    name: str
    workload_id: WorkloadRef | None
    format: str | None
    state: TraceState
    progress: float | None
    ranks: int
    steps: int
    spans: int
    imported_at: int
    notes: list[str]
    problem: str | None
    headline: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceList:
    """Traces, newest first."""

    traces: list[TraceRow]


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRank:
    """One rank. ``unit``: its GPU, if the trace belongs to a workload whose GPUs are known."""

    rank: int
    stage: int | None
    device: str | None
    backend: str | None
    source: str
    is_complete: bool
    unit: UnitRef | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStage:
    """A pipeline stage; ``stage`` is null for all ranks of a run without stages."""

    stage: int | None
    ranks: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReportAnswer:
    """All measures and verdicts. ``flops_source``: recorded by the profiler, or estimated from the shapes of matrix products and
    convolutions; null: there are none.
    """

    steps: list[TraceStep]
    alignment: TraceAlignment
    breakdown: list[RankBreakdown]
    collectives: TraceCollectives
    exposed_communication: list[GroupExposure]
    slack: list[RankSlack]
    imbalance: TraceImbalance
    bubble: TraceBubble | None
    critical_path: TracePath | None
    what_if: list[WhatIf]
    verdicts: list[Verdict]
    flops_source: Literal["recorded", "estimated"] | None = None
    attribution: TraceAttribution | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAnswer:
    """A trace with its report. The report is null until it has been read."""

    row: TraceRow
    origin_ms: float | None
    extent_ns: float
    ranks: list[TraceRank]
    stages: list[TraceStage]
    process_groups: list[TraceGroup]
    report: TraceReportAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveMember:
    """A rank in a collective: when it arrived, how long it waited for the last rank, how long the transfer took."""

    span: int
    rank: int
    start_ns: float
    arrive_ns: float
    end_ns: float
    wait_ns: float
    transfer_ns: float
    is_last: bool


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedSpan:
    """A related span: the launch, the other end of a message, the same operator on another rank, the previous or next span."""

    span: int
    rank: int
    lane: str | None
    span_class: str
    name: str
    start_ns: float
    end_ns: float


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class SpanAnswer:
    """One span in full. ``median_ns``: of all spans of its name; ``peers``: the same instance on other ranks."""

    span: int
    rank: int
    stage: int | None
    lane: str | None
    is_device: bool
    span_class: str
    name: str
    namespace: str | None
    phase: str | None
    step: int | None
    micro_batch: int | None
    start_ns: float
    arrive_ns: float
    end_ns: float
    wait_ns: float | None
    critical_ns: float
    slack_ns: float | None
    is_outlier: bool
    median_ns: float
    process_group: str | None
    collective: str | None
    bytes: int | None
    bandwidth_bytes_per_s: float | None
    flops: float | None
    members: list[CollectiveMember]
    message: RelatedSpan | None
    launch: RelatedSpan | None
    launched: list[RelatedSpan]
    peers: list[RelatedSpan]
    before: RelatedSpan | None
    after: RelatedSpan | None


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceChange:
    """Seconds per step of one item in both runs; ``low_s``/``high_s``: the 95 % interval of the difference (bootstrap over
    steps), null with too few steps. ``is_significant``: the interval excludes 0, and the difference is large enough.
    """

    kind: DiffKind
    name: str
    rank: int | None
    before_s: float | None
    after_s: float | None
    difference_s: float
    low_s: float | None
    high_s: float | None
    is_significant: bool
    sentence: str


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDiffAnswer:
    """Two runs compared: all changes, largest first, and the important ones as sentences."""

    before: TraceRow
    after: TraceRow
    sentences: list[str]
    changes: list[TraceChange]
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowBlock:
    """Operators of one stage between two messages; ``after``: blocks that it waits for, all with smaller indices."""

    stage: int | None
    operators: int
    after: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowMarks:
    """How many operators of a node belong to a part of the parallel strategy."""

    mark: FlowMark
    count: int


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTensor:
    """A parameter, input or output of a module: its shape over all ranks, into how many parts each dimension is split (null:
    unknown), and over which mesh.
    """

    name: str
    shape: list[int]
    splits: list[int] | None
    placement: str | None


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowModule:
    """The module of a node, or the module around it, if the run was captured; ``path`` as in the model, empty for the model."""

    path: str
    class_name: str
    parameters: list[FlowTensor]
    inputs: list[FlowTensor]
    outputs: list[FlowTensor]


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNode:
    """An operator, a closed namespace, or operators that only order others; ``count`` of them stacked. ``opens``: the value to
    add to ``open`` to expand it. ``matches``: operators with the searched text. ``span``: the longest; times are null if the
    trace has no spans of it.
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
    """An open namespace."""

    namespace: int
    path: str
    operators: int


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowAnswer:
    """The execution flow; nodes in the order of execution. ``is_recorded``: from an operator graph, else from spans of one rank
    per stage in the typical step; ``is_captured``: with the modules of the run. ``opened``: open namespaces, in the form of
    the request. ``at``: the node of the requested span, or null.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowActivity:
    """What of a flow runs in a window: ``running``: how many operators of each node do, on any rank. ``at``: the node
    of the requested span, or null. ``is_by_module``: known only by module, since the graph and the timeline number their
    operators differently.
    """

    running: list[int]
    at: int | None
    is_by_module: bool
