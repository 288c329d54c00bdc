"""A trace's report as it is stored and as ``trace report --json`` writes it: measures, and verdicts on why a step is slow.
``analyze/trace`` computes it. Seconds, unless named otherwise.

API responses contain parts of it. Missing is null.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import msgspec

from clusterscape.model.identity_fields import access_checked


class VerdictKind(StrEnum):
    """Root causes."""

    SLOW_WORKER = "slow_worker"
    STAGE_IMBALANCE = "stage_imbalance"
    SEQUENCE_LENGTH_VARIANCE = "sequence_length_variance"
    INPUT_STALL = "input_stall"
    SLOW_LINK = "slow_link"
    LAUNCH_BOUND = "launch_bound"
    SMALL_COLLECTIVES = "small_collectives"
    EXPOSED_COMMUNICATION = "exposed_communication"
    GARBAGE_COLLECTION = "garbage_collection"
    UNEVEN_WORK = "uneven_work"
    CHECKPOINT = "checkpoint"
    SCALAR_READS = "scalar_reads"
    COPY_TO_HOST = "copy_to_host"
    SYNCHRONIZATION = "synchronization"
    ALLOCATION = "allocation"
    START_UP = "start_up"
    RUNTIME_CALL = "runtime_call"
    HOST_CODE = "host_code"
    HOST_PAUSE = "host_pause"
    IDLE_DEVICE = "idle_device"
    CORE_CONTENTION = "core_contention"


class TimeKind(StrEnum):
    """What a rank spends a step with. Every moment of a step belongs to one kind, so they add up to its length."""

    COMPUTE = "compute"
    """As long as the work predicts; all of it if the amount of work is unknown."""
    SLOWER_COMPUTE = "slower_compute"
    """Beyond what the work and the other ranks predict."""
    TRANSFERRING = "transferring"
    WAITING = "waiting"
    """For other ranks."""
    DATA_LOADING = "data_loading"
    GARBAGE_COLLECTION = "garbage_collection"
    CHECKPOINT = "checkpoint"
    SCALAR_READ = "scalar_read"
    COPY_TO_HOST = "copy_to_host"
    SYNCHRONIZATION = "synchronization"
    ALLOCATION = "allocation"
    START_UP = "start_up"
    """Of the device's context and libraries."""
    RUNTIME_CALL = "runtime_call"
    """One long call of the device's runtime."""
    LAUNCHING = "launching"
    """The host prepares and launches work; the device waits for it."""
    HOST_CODE = "host_code"
    """Python code that the profiler recorded."""
    CORE_WAIT = "core_wait"
    """The host is ready to run, and no core is free, as the kernel's scheduler counts; in which part of the step is unknown."""
    PAUSE = "pause"
    """The host records its work, and there is none."""
    IDLE = "idle"
    """The host's work is not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAttribution:
    """Seconds of every rank and step by ``TimeKind``: ``seconds[kind][rank][step]``, in the order of ``kinds``, ``ranks`` and
    ``steps``; null where a rank did not record the step. Over kinds they add up to the length of the rank's step.
    """

    kinds: list[TimeKind]
    ranks: list[int]
    steps: list[int]
    seconds: list[list[list[float | None]]]


RhythmKind = Literal["persistent", "intermittent", "periodic", "since"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRhythm:
    """In which steps a cause acts. ``step_share``: their share of all steps; ``period``: steps between two
    occurrences (periodic); ``since_step``: the first step of those in which it acts until the end (since).

    ``chance``: probability that one rank gets at least as much if ranks are exchanged at random within each step; null if it
    concerns all ranks, or cannot be tested.
    """

    kind: RhythmKind
    steps: list[int]
    step_share: float
    seconds_per_affected_step: float
    period: int | None = None
    since_step: int | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseOccurrences:
    """Where a cause acts, as columns of equal length: rank, step, seconds, and the longest time of it in this step
    (nanoseconds since the trace's first start).
    """

    ranks: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    start_ns: list[float] = field(default_factory=list)
    end_ns: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceVerdict:
    """One root cause. ``seconds_per_step``: what a step without it would be shorter, re-simulated, with the 95 % interval over
    steps (``low_s``, ``high_s``); ``is_hidden``: the saving only shows after larger causes are fixed. ``ranks``: where it acts,
    empty if on all; ``rank``: the only one. ``evidence`` holds the numbers (seconds, unless named otherwise); ``spans``: rows
    to inspect.
    """

    kind: VerdictKind
    rank: int | None = None
    stage: int | None = None
    seconds_per_step: float
    sentence: str
    is_hidden: bool = False
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    spans: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    low_s: float | None = None
    high_s: float | None = None
    rhythm: VerdictRhythm | None = None
    occurrences: CauseOccurrences | None = None
    advice: str = ""


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceGroup:
    """Ranks that communicate; ``kind``: dp, tp, pp, ep, cp if known."""

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
    """The correction of a rank's clock."""

    rank: int
    offset_s: float
    drift_ppm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAlignment:
    """Clock corrections of all ranks and the remaining error; null: unknown."""

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
    """How often a rank arrived last at a collective."""

    rank: int
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCollectives:
    """How many collectives and messages were matched across ranks, and which ranks arrived last."""

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
    """Exposed communication of a process group (not overlapped by compute): mean seconds per rank and step."""

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
    """Seconds of the critical path on a rank, by kind: compute, transfer, communication, host."""

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
    """A what-if and the predicted step. ``error_s``: difference between the simulated and the measured unchanged step;
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
    """A span that supports a verdict."""

    span: int
    rank: int
    name: str
    step: int | None
    start_ns: float
    end_ns: float


@access_checked("trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One root cause. ``seconds_per_step``: what a step without it would be shorter, with its 95 % interval over steps;
    ``ranks``: where it acts, empty if on all; ``evidence``: numbers, seconds unless named. Null: an older report, or unknown.
    """

    kind: str  # a VerdictKind
    rank: int | None
    stage: int | None
    seconds_per_step: float
    is_hidden: bool
    sentence: str
    evidence: dict[str, float | str]
    spans: list[VerdictSpan]
    ranks: list[int] = field(default_factory=list)
    low_s: float | None = None
    high_s: float | None = None
    rhythm: VerdictRhythm | None = None
    occurrences: CauseOccurrences | None = None
    advice: str = ""


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
    """Collectives of a trace, including every single instance."""

    instances: list[CollectiveInstance] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReportDocument:
    """The whole report. ``spans``: their number; ``flops_source``: recorded by the profiler, or estimated from shapes;
    ``warm_up_steps``: left out of means and verdicts.
    """

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
    attribution: TraceAttribution | None = None
    warm_up_steps: list[int] = field(default_factory=list)


def encode_report(report: TraceReportDocument) -> bytes:
    """Encode as JSON."""
    # Not msgspec.json, which writes null for NaN: fields of type float must stay floats when read.
    return json.dumps(msgspec.to_builtins(report), separators=(",", ":")).encode("utf-8")


def decode_report(data: bytes) -> TraceReportDocument:
    """Parse the output of ``encode_report``, including that of earlier versions."""
    return msgspec.convert(json.loads(data), TraceReportDocument, strict=False)
