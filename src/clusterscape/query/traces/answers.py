"""The shapes of answers about traces; the API's schema and the client's types are generated from these.

Times within a trace are nanoseconds since its first start (``origin_ms``, Unix ms, where its clock is the world's); the report's
are seconds. Missing is null. Spans, steps, operators, links and curves are Arrow tables.
"""

from dataclasses import dataclass
from typing import Literal

from clusterscape.analyze.trace.diff import DiffKind
from clusterscape.model.identity_fields import UnitRef, WorkloadRef, access_checked
from clusterscape.model.trace_report import (
    GroupExposure,
    RankBreakdown,
    RankSlack,
    TraceAlignment,
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
    """A trace in a list. ``progress``: 0–1 while it is being read; ``headline``: the first verdict, null where none is."""

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
    """One rank. ``unit``: the GPU it ran on, where the trace belongs to a workload that held one for it."""

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
    """All measures and verdicts. ``flops_source``: by the profiler, or from shapes of matrix products and convolutions; null:
    there are none.
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
    """A rank in a collective: when it came, how long it waited for the last, how long the transfer took."""

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
    """Another span: the launch, the other end of a message, the same operator on another rank, one before or after."""

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
    """Everything about one span. ``median_ns``: of its name on all ranks; ``peers``: the same instance on other ranks."""

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
    """What one thing took per step in both runs; ``low_s``/``high_s``: the 95 % interval of the difference (bootstrap over
    steps), null with too few steps. ``is_significant``: the interval leaves out 0 and the difference is worth naming.
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
    """Two runs of the same thing: changes, largest first, and in words what matters."""

    before: TraceRow
    after: TraceRow
    sentences: list[str]
    changes: list[TraceChange]
    notes: list[str]
