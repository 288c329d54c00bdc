"""The shapes of answers: what a view gets to see. The API's schema and the client's types are generated from these.

Times are Unix ms, ratios 0–1, missing is null. Bulk answers (snapshot, tick, series) are Arrow tables, described in
``query/picture.py`` and ``query/series.py``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from clusterscape.model import AllocationSource, MetricKind, MetricUnit, NodeState, WorkloadKind, WorkloadState
from clusterscape.model.exporter_names import NameQuestion
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
from clusterscape.model.rules import Severity
from clusterscape.query.reasons import WaitKind
from clusterscape.supervision import LoopState


class UnitState(StrEnum):
    """What a square shows before any metric: held, free, out of service, silent, or asked for."""

    ALLOCATED = "allocated"
    FREE = "free"
    UNAVAILABLE = "unavailable"  # its node is down, drained or draining, and nobody holds it
    STALE = "stale"  # its exporter is silent, so nothing is known of it now
    REQUESTED = "requested"


class UnitHealth(StrEnum):
    """Whether a unit works and tells how it is, whoever holds it."""

    OK = "ok"
    SILENT = "silent"  # its exporter does not answer
    FAULTY = "faulty"  # it breaks a rule on GPUs that is more than a note: an error, or it is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCounts:
    """Units by state; ``total`` leaves requested ones out. Held or not, ``silent`` are those of
    silent exporters and ``faulty`` those that break a rule on GPUs.
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
    """What could start at once on one machine type of a partition; defined in ``query/placement.py``."""

    machine_type: PublicText | None
    free: int
    gpus_per_node: int  # of its largest node
    one_node_gpus: int  # the largest job on one node
    whole_nodes: int  # nodes wholly free, of the largest size
    whole_node_gpus: int  # the largest job that takes whole nodes
    smallest_request: (
        int | None
    )  # GPUs on one node that the least demanding waiting workload needs; null where none waits
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
    largest_free_block: int  # most free GPUs on one node: the largest one-node job that can start now
    largest_startable: list[Startable]  # by machine type
    stranded: int  # free GPUs that no waiting workload of this partition can use
    shared_nodes: int  # that are in other partitions, too: their GPUs count in each of them
    shared_with: list[PublicText]  # those partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationAnswer:
    """Nodes set aside, now (``is_active``) or later, for jobs that name the reservation. ``gpus``: of all its nodes."""

    name: FreeText
    starts_at: int
    ends_at: int
    is_active: bool
    is_maintenance: bool
    nodes: list[PublicText]
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSummary:
    """The cluster in one line, now or (``is_past``) at a past minute, of which the states of sources are not known.

    ``nodes_unavailable`` is null from before states of nodes were noted.
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
    awaited: list[
        PublicText
    ]  # kinds of sources that have not answered since the start: what they would tell is not known yet
    open_questions: int | None  # exporters whose node is not certain, and nodes without an exporter
    paused: ScopedText | None  # why ingest is paused, in words
    reservations: list[ReservationAnswer]  # that have not ended, the next first; none of the past
    hides_names: Annotated[bool, Reveals.REDACTION_FLAG]  # pseudonyms stand for other people and their projects


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAnswer:
    """A workload with what follows from its times."""

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
    pending_reason_text: FreeText | None  # the reason in words
    waits_for: WaitKind | None  # only what is held back by somebody is "held"
    exit_code: int | None
    exit_signal: int | None
    derived_exit_code: int | None  # the worst of its steps
    derived_exit_signal: int | None
    restarts: int
    tags: Annotated[dict[str, str], Reveals.TAGS]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadList:
    """A page of workloads and how many match in all."""

    total: int
    limit: int
    offset: int
    workloads: list[WorkloadAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationAnswer:
    """Who held which unit when, and how we know."""

    workload: WorkloadRef
    unit: UnitRef
    from_at: int
    to_at: int | None
    source: AllocationSource
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionAnswer:
    """An execution that is over, while the workload went on: requeued, preempted or resized."""

    started_at: int
    ended_at: int
    state: WorkloadState
    scheduler_state: PublicText | None  # the scheduler's word where it says more: REQUEUED, RESIZING
    gpus: int
    run_s: float  # without suspended time
    suspended_s: int
    gpu_hours: float
    is_estimated: bool  # its end is when it was seen to be over; the accounting has not told it


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
    """A rule that the node itself, or one of its GPUs (``unit``), broke; ``until`` is null while it does."""

    rule: PublicText
    rule_name: PublicText
    severity: Severity
    unit: UnitRef | None
    since: int
    until: int | None
    readings: PublicText  # in words


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTurnAnswer:
    """The node went out of service, came back, or its reason changed."""

    from_at: int
    state: NodeState
    reason: FreeText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDetail:
    """A node, the workloads on it, and what was wrong with it in the last 30 days, what goes on first, then the latest.

    ``turns``: when it went out of service and came back, the latest first.
    """

    node: NodeAnswer
    workloads: list[WorkloadAnswer]
    faults: list[FaultAnswer]
    turns: list[NodeTurnAnswer]


class HitKind(StrEnum):
    """What a search result is."""

    WORKLOAD = "workload"
    USER = "user"
    PROJECT = "project"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One search result: what to open, and one line that tells it from the others."""

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
    """A metric of the catalogue."""

    name: PublicText
    label: PublicText
    unit: MetricUnit
    kind: MetricKind
    help: PublicText
    is_summary: bool
    aliases: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer:
    """One source that fails, or stands for all well ones of its kind."""

    source: ScopedText
    node: PublicText | None
    is_ok: bool
    at: int
    message: ScopedText | None
    hint: ScopedText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroup:
    """The sources of one kind: how many, how many fail, and the failing ones (the first 50).

    ``limited``: how many answer more than ``limits.sources`` accepts; ``notes`` are the first 50 of them.
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
    """Rows that shared one fate: not stored, or (``is_stored``) stored though odd; ``meaning`` is the reason in words."""

    kind: PublicText
    reason: PublicText
    count: int
    is_stored: bool
    meaning: PublicText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAnswer:
    """What the metric store holds. Where it is a server: how many samples wait until it takes them again, how many it or the
    spool dropped since the start, and in one line why it takes none now.
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
    """Where the data comes from, how the sources are, what was dropped, what is kept."""

    groups: list[SourceGroup]
    awaited: list[PublicText]
    """Kinds of sources that have neither answered nor failed since the start."""
    samples_total: int
    dropped: list[DropAnswer]
    paused: ScopedText | None
    store: StoreAnswer
    questions: list[NameQuestion]
    """Exporters that could not be tied to one node with certainty; at most 100."""
    nodes_without_exporter: list[PublicText]
    """Nodes with GPUs of which nothing is measured; empty where no exporter is configured at all."""
    background: list[LoopState]
    """Background loops of the process that answers; ``problem`` is null for viewers from whom names are hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """A view that somebody saved, for everybody. ``document`` is the page's own, with at least ``version`` and ``title``."""

    name: PublicText
    title: ScopedText
    written_at: int
    document: Annotated[dict[str, object], Reveals.SCOPED_TEXT]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedViews:
    """All saved views by name; ``start_view`` is the name of one, or ``builtin:…`` for one of the page's own, or null."""

    views: list[SavedView]
    start_view: PublicText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The cluster at even steps of its history, as columns of one length; counts are those of the picture at ``time_ms``."""

    start: int
    end: int
    step_ms: int
    oldest_at: int | None  # the first time known of any workload or sample: there is no picture before it
    total_gpus: int  # units known now
    time_ms: list[int]
    allocated_gpus: list[int]
    waiting_gpus: list[int]
    gpu_util_ratio: list[float | None]  # mean over the step, of the units allocated at its begin that have samples


@dataclass(frozen=True, slots=True, kw_only=True)
class WasteAnswer:
    """GPU-hours of [start, end) that were held, measured, and held idle; defined in ``query/waste.py``."""

    start: int
    end: int
    idle_below_ratio: float
    held_gpu_hours: float
    measured_gpu_hours: float
    wasted_gpu_hours: float | None  # null where nothing was measured
