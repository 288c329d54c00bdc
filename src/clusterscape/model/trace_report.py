"""A trace's report as it is stored and as ``trace report --json`` writes it: measures and verdicts. Seconds, unless named.

Analysis fills it, readers and answers of the API share its parts. Missing is null.
"""

import json
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from clusterscape.model.identity_fields import access_checked


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceGroup:
    """Ranks that communicate; ``kind``: dp, tp, pp, ep, cp where it is known."""

    name: str
    kind: str | None
    ranks: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """A step: mean length over its ranks, and where it begins and ends in the trace."""

    step: int
    length_s: float
    ranks: int
    start_ns: float
    end_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankClock:
    """What was taken off a rank's clock."""

    rank: int
    offset_s: float
    drift_ppm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAlignment:
    """One clock for all ranks, and what error remains; null: not known."""

    error_s: float | None
    clocks: list[RankClock]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBreakdown:
    """Mean seconds of a step: compute + exposed + idle = step; exposed = waiting + transferring."""

    rank: int
    step_s: float
    compute_s: float
    exposed_s: float
    waiting_s: float
    transferring_s: float
    idle_s: float
    communication_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LastArriver:
    """How often a rank came last."""

    rank: int
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCollectives:
    """How many collectives and messages were matched across ranks, and who came last."""

    matched: int
    messages: int
    unmatched_spans: int
    last_arrivers: list[LastArriver]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSlack:
    """Seconds per step that others waited for a rank, with the 95 % interval; null with too few steps."""

    rank: int
    last_times: int
    slack_s: float
    low_s: float | None
    high_s: float | None


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupExposure:
    """Communication of a process group that nothing hides: mean seconds of a rank and step."""

    process_group: str
    ranks: int
    exposed_s: float
    waiting_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceImbalance:
    """max/mean − 1 of compute over ranks, stages and micro-batches."""

    ranks_ratio: float | None
    stages_ratio: float | None
    micro_batches_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceBubble:
    """A pipeline's bubble: measured = ideal + imbalance + jitter."""

    stages: int
    micro_batches: int
    model_chunks: int
    measured_ratio: float
    ideal_ratio: float
    imbalance_ratio: float
    jitter_ratio: float
    pipeline_s: float
    balanced_s: float
    resimulated_s: float
    stage_compute_s: list[float]
    stage_bubble_ratio: list[float]


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class PathPart:
    """Seconds of the critical path that a rank spent with one kind of thing: compute, transfer, communication, host."""

    rank: int
    kind: str
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePath:
    """The critical path of the step of median length."""

    step: int
    length_s: float
    segments: int
    parts: list[PathPart]


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A question with the step it would give. ``error_s``: how far the simulation of the unchanged step is from the measured one;
    ``speed_up_low``/``speed_up_high``: the 95 % interval over steps, null with too few.
    """

    question: str
    now_s: float
    then_s: float
    speed_up: float | None
    speed_up_low: float | None
    speed_up_high: float | None
    error_s: float


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSpan:
    """A span to look at for a verdict."""

    span: int
    rank: int
    name: str
    step: int | None
    start_ns: float
    end_ns: float


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One root cause. ``seconds_per_step``: what fixing it gives back at most; ``evidence``: numbers, seconds unless named."""

    kind: str  # a VerdictKind
    rank: int | None
    stage: int | None
    seconds_per_step: float
    is_hidden: bool
    sentence: str
    evidence: dict[str, float | str]
    spans: list[VerdictSpan]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRank:
    """One rank, as its file describes it."""

    rank: int
    source: str
    stage: int | None
    device: str | None
    backend: str | None
    world_size: int | None = None
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveInstance:
    """One collective that was matched across ranks."""

    step: int | None
    process_group: str | None
    collective: str | None
    ranks: int
    bytes: int | None
    last_rank: int | None
    wait_s: float | None
    gap_s: float | None
    transfer_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCollectives(TraceCollectives):
    """All collectives of a trace, one by one, too."""

    instances: list[CollectiveInstance] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReportDocument:
    """The whole report. ``spans``: how many there are; ``flops_source``: by the profiler, or estimated from shapes."""

    format: str
    ranks: list[ReportedRank]
    steps: list[TraceStep]
    process_groups: list[TraceGroup]
    spans: int
    alignment: TraceAlignment
    breakdown: list[RankBreakdown]
    collectives: ReportedCollectives
    exposed_communication: list[GroupExposure]
    slack: list[RankSlack]
    imbalance: TraceImbalance
    bubble: TraceBubble | None
    critical_path: TracePath | None
    what_if: list[WhatIf]
    verdicts: list[Verdict]
    flops_source: Literal["recorded", "estimated"] | None = None
    notes: list[str] = field(default_factory=list)


def encode_report(report: TraceReportDocument) -> bytes:
    """As JSON."""
    # Not by msgspec, which writes null for NaN: a number that could not be computed must stay one when it is read.
    return json.dumps(msgspec.to_builtins(report), separators=(",", ":")).encode("utf-8")


def decode_report(data: bytes) -> TraceReportDocument:
    """What ``encode_report`` wrote, also that of earlier versions."""
    return msgspec.convert(json.loads(data), TraceReportDocument, strict=False)
