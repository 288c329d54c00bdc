"""The shapes of answers. The API's schema and the client's types are generated from these.

Times are Unix ms, ratios 0–1, missing is null. Bulk answers (snapshot, tick, series) are Arrow tables, described in
``query/picture.py`` and ``query/series.py``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from clusterscape.model import (
    AllocationSource,
    MetricKind,
    MetricSubject,
    MetricUnit,
    NodeState,
    WorkloadKind,
    WorkloadState,
)
from clusterscape.model.identity_fields import (
    ExperimentName,
    FreeText,
    OwnerText,
    ProjectName,
    PublicText,
    Reveals,
    ScopedText,
    UnitRef,
    UserName,
    WorkloadRef,
)
from clusterscape.model.inventory import NameQuestion
from clusterscape.model.rules import Severity
from clusterscape.query.reasons import WaitKind
from clusterscape.supervision import LoopState


class UnitState(StrEnum):
    """Whether a unit is allocated, free, out of service, stale, or only requested."""

    ALLOCATED = "allocated"
    FREE = "free"
    UNAVAILABLE = "unavailable"  # its node is down, drained or draining, and nobody holds it
    STALE = "stale"  # its exporter does not respond, so its current state is unknown
    REQUESTED = "requested"


class UnitHealth(StrEnum):
    """Whether a unit works and its exporter responds, regardless of who holds it."""

    OK = "ok"
    SILENT = "silent"  # its exporter does not respond
    FAULTY = "faulty"  # it violates a rule on GPUs with a severity above info: it has errors, or is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCounts:
    """Units by state; ``total`` excludes requested ones. ``silent`` (the exporter does not respond) and ``faulty`` (violates a
    rule on GPUs) count units in any state.
    """

    total: int
    allocated: int
    free: int
    unavailable: int
    stale: int
    silent: int
    faulty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Startable:
    """What could start now on one machine type of a partition; defined in ``query/summary.py``."""

    machine_type: PublicText | None
    free: int
    gpus_per_node: int  # of its largest node
    one_node_gpus: int  # the largest job on one node
    whole_nodes: int  # completely free nodes of the largest size
    whole_node_gpus: int  # the largest job that takes whole nodes
    smallest_request: int | None  # the fewest GPUs on one node that a waiting workload needs; null if none waits
    stranded: int  # free GPUs on nodes with fewer free ones than smallest_request


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """One partition in numbers. A node in several partitions is counted in each."""

    name: PublicText
    is_up: bool
    machine_types: list[PublicText]
    nodes: int
    units: UnitCounts
    running: int
    waiting: int
    waiting_gpus: int
    gpu_util_ratio: float | None  # mean over allocated units that have a sample
    largest_free_block: int  # most free GPUs on one node: the largest single-node job that can start now
    largest_startable: list[Startable]  # by machine type
    stranded: int  # free GPUs that no waiting workload of this partition can use
    shared_nodes: int  # nodes that are also in other partitions: their GPUs count in each of them
    shared_with: list[PublicText]  # those partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationAnswer:
    """A reservation of nodes, active now (``is_active``) or later. ``gpus``: GPUs of all its nodes."""

    name: FreeText
    starts_at: int
    ends_at: int
    is_active: bool
    is_maintenance: bool
    nodes: list[PublicText]
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSummary:
    """The cluster in numbers, now or (``is_past``) at a past minute, for which the states of sources are unknown.

    ``nodes_unavailable`` is null for times before node states were recorded.
    """

    cluster: PublicText
    is_demo: bool
    at: int
    is_past: bool
    inventory_version: int  # changes with nodes, workloads and allocations
    tick_version: int  # changes with every scrape
    newest_sample_at: int | None
    nodes: int
    nodes_unavailable: int | None
    units: UnitCounts
    running: int
    waiting: int
    waiting_gpus: int
    gpu_util_ratio: float | None
    power_watts: float | None  # sum over units that have a sample
    stranded: int  # free GPUs that no waiting workload of any partition of their node can use
    partitions: list[PartitionSummary]
    failing_sources: int | None
    awaited: list[PublicText]  # kinds of sources that have not responded since the start: their data is still missing
    open_questions: int | None  # exporters whose node is uncertain, and nodes without an exporter
    paused: ScopedText | None  # why ingest is paused, as a sentence
    reservations: list[ReservationAnswer]  # that have not ended, by start; empty for a past minute
    hides_names: Annotated[bool, Reveals.REDACTION_FLAG]  # names of other users and projects are pseudonyms


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAnswer:
    """A workload with its waiting time, run time and GPU-hours."""

    workload: WorkloadRef
    name: OwnerText | None
    kind: WorkloadKind
    state: WorkloadState
    user: UserName | None
    project: ProjectName | None
    experiment: ExperimentName | None
    partition: PublicText | None
    resource_type: PublicText | None
    qos: FreeText | None
    priority: int | None
    gpus_requested: int
    gpus_allocated: int | None  # as the scheduler's accounting counts them
    nodes_requested: int | None
    nodes: list[PublicText]
    time_limit_s: int | None
    submitted_at: int | None
    eligible_at: int | None
    started_at: int | None
    ended_at: int | None
    expected_start_at: int | None
    wait_s: float | None  # submit to start, or until now
    run_s: float | None  # start to end, or until now, without suspended time; of the newest execution
    suspended_s: int  # of the newest execution
    gpu_hours: float | None  # of all executions, as the scheduler's accounting counts them
    earlier_gpu_hours: float  # of executions before the newest: requeued, preempted, resized
    pending_reason: FreeText | None
    pending_reason_text: FreeText | None  # the reason as a sentence
    waits_for: WaitKind | None
    exit_code: int | None
    exit_signal: int | None
    derived_exit_code: int | None  # the worst of its steps
    derived_exit_signal: int | None
    restarts: int
    tags: Annotated[dict[str, str], Reveals.TAGS]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadList:
    """A page of workloads and how many match in total."""

    total: int
    limit: int
    offset: int
    workloads: list[WorkloadAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationAnswer:
    """A workload held a unit for a time; ``source`` and ``confidence`` say how we know."""

    workload: WorkloadRef
    unit: UnitRef
    from_at: int
    to_at: int | None
    source: AllocationSource
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionAnswer:
    """An earlier execution of a workload that was requeued, preempted or resized."""

    started_at: int
    ended_at: int
    state: WorkloadState
    scheduler_state: PublicText | None  # the scheduler's state where it is more specific: REQUEUED, RESIZING
    gpus: int
    run_s: float  # without suspended time
    suspended_s: int
    gpu_hours: float
    is_estimated: bool  # the end was observed by polling, not reported by the accounting


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDetail:
    """A workload, its earlier executions by start, and the units it held."""

    workload: WorkloadAnswer
    executions: list[ExecutionAnswer]
    allocations: list[AllocationAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    """A node in numbers."""

    node: PublicText
    partitions: list[PublicText]
    machine_type: PublicText | None
    state: NodeState
    reason: FreeText | None
    rack: PublicText | None
    gpu_count: int
    gpus_allocated: int
    cpu_count: int | None
    memory_bytes: int | None
    features: list[PublicText]
    driver_version: PublicText | None
    is_stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAnswer:
    """A rule that the node itself, or one of its GPUs (``unit``), violated; ``until`` is null while it lasts."""

    rule: PublicText
    rule_name: PublicText
    severity: Severity
    unit: UnitRef | None
    since: int
    until: int | None
    readings: PublicText  # the values, formatted


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTurnAnswer:
    """A change of the node's state: it went out of service, came back, or its reason changed."""

    from_at: int
    state: NodeState
    reason: FreeText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDetail:
    """A node, its workloads, and its faults in the last 30 days, ongoing ones first, then the latest.

    ``turns``: when it went out of service and came back, latest first.
    """

    node: NodeAnswer
    workloads: list[WorkloadAnswer]
    faults: list[FaultAnswer]
    turns: list[NodeTurnAnswer]


class HitKind(StrEnum):
    """The kind of a search result."""

    WORKLOAD = "workload"
    USER = "user"
    PROJECT = "project"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One search result: its key, its label, and a line of details."""

    kind: HitKind
    key: ScopedText
    label: ScopedText
    detail: ScopedText


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """Search results, best first."""

    query: ScopedText
    hits: list[SearchHit]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricAnswer:
    """A metric of the catalogue. ``subject``: what it is measured of, a GPU, the part of a job on a node, or a whole node."""

    name: PublicText
    label: PublicText
    unit: MetricUnit
    kind: MetricKind
    subject: MetricSubject
    help: PublicText
    is_summary: bool
    aliases: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer:
    """One source that fails, or exceeds a limit."""

    source: ScopedText
    node: PublicText | None
    is_ok: bool
    at: int
    message: ScopedText | None
    hint: ScopedText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroup:
    """The sources of one kind: how many, how many fail, and the failing ones (the first 50).

    ``limited``: how many return more than ``limits.sources`` accepts; ``notes`` are the first 50 of them.
    """

    kind: PublicText
    total: int
    failing: int
    limited: int
    last_at: int | None
    failures: list[SourceAnswer]
    notes: list[SourceAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropAnswer:
    """Rows that were dropped, or (``is_stored``) stored although odd, for one reason; ``meaning`` explains the reason."""

    kind: PublicText
    reason: PublicText
    count: int
    is_stored: bool
    meaning: PublicText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAnswer:
    """What the metric store holds. If it is a server: samples in the spool until it accepts them again, samples lost since the
    start, and why it accepts none now.
    """

    engine: PublicText
    samples: int | None
    bytes_on_disk: int | None
    oldest_at: int | None
    newest_at: int | None
    waiting_samples: int
    lost_samples: int
    trouble: ScopedText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Data sources and their health, dropped rows, and what the store holds."""

    groups: list[SourceGroup]
    awaited: list[PublicText]
    """Kinds of sources that have neither responded nor failed since the start."""
    samples_total: int
    dropped: list[DropAnswer]
    paused: ScopedText | None
    store: StoreAnswer
    questions: list[NameQuestion]
    """Exporters that could not be matched to one node with certainty; at most 100."""
    nodes_without_exporter: list[PublicText]
    """Nodes with GPUs but no exporter; empty if no exporter is configured."""
    background: list[LoopState]
    """Background loops of the process that responds; ``problem`` is null for viewers with redacted names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """A saved view, shared by all users. The page defines ``document``; it has at least ``version`` and ``title``."""

    name: PublicText
    title: ScopedText
    written_at: int
    document: Annotated[dict[str, object], Reveals.SCOPED_TEXT]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedViews:
    """All saved views by name; ``start_view`` is the name of one, or ``builtin:…`` for a built-in view, or null."""

    views: list[SavedView]
    start_view: PublicText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTrend:
    """Waiting workloads of one resource type, and the GPUs they request, at the times of a timeline."""

    resource_type: PublicText | None
    workloads: list[int]
    gpus: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The cluster at even steps of its history, as columns of one length; counts are those of the picture at ``time_ms``."""

    start: int
    end: int
    step_ms: int
    oldest_at: int | None  # the earliest time of any workload or sample: there is no picture before it
    total_gpus: int  # units known now
    time_ms: list[int]
    allocated_gpus: list[int]
    waiting_gpus: list[int]
    gpu_util_ratio: list[float | None]  # mean over the step, of the units allocated at its start that have samples
    waiting: list[WaitingTrend]  # by resource type, the type with the most GPU-hours of waiting first


@dataclass(frozen=True, slots=True, kw_only=True)
class WasteAnswer:
    """GPU-hours of [start, end) that were allocated, measured, and idle; defined in ``query/waste.py``."""

    start: int
    end: int
    idle_below_ratio: float
    held_gpu_hours: float
    measured_gpu_hours: float
    wasted_gpu_hours: float | None  # null if nothing was measured
