"""The shapes of answers about jobs. Times are Unix ms, ratios 0–1, missing is null."""

from dataclasses import dataclass

from clusterscape.analyze.jobcard.advice import AdviceKind, SavedUnit
from clusterscape.analyze.jobcard.card import ShareProblem
from clusterscape.analyze.jobcard.notes import NoteLevel
from clusterscape.model import MetricSubject, MetricUnit, WorkloadState
from clusterscape.model.identity_fields import (
    FreeText,
    OwnerText,
    ProjectName,
    PublicText,
    ScopedText,
    UnitRef,
    UserName,
    WorkloadRef,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShare:
    """What was used of what was allocated. ``percent`` is rounded as the meters of jobstats; ``problem``: why it is null."""

    used: float | None
    total: float | None
    ratio: float | None
    percent: int | None
    problem: ShareProblem | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCardGpu:
    """One GPU or MIG instance: mean utilization while the job held it, and the most memory it used."""

    unit: UnitRef
    index: PublicText
    util_ratio: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCardNode:
    """One node of the job; null: no sample says."""

    node: PublicText
    cores: int | None
    cpu_s: float | None
    cpu_ratio: float | None
    memory_used_bytes: float | None
    memory_limit_bytes: float | None
    gpus: list[JobCardGpu]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCurve:
    """One quantity over the job's life, at even steps. ``subject``: of the job alone, or of its whole nodes.

    ``most``: what it may be at most, such as the allocated cores.
    """

    name: PublicText
    label: PublicText
    unit: MetricUnit
    subject: MetricSubject
    start: int
    step_ms: int
    values: list[float | None]
    most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCardNote:
    """One sentence on what the numbers say."""

    code: PublicText
    level: NoteLevel
    text: PublicText


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCardAdvice:
    """What would have been enough, with a margin, from this and similar past jobs.

    ``asked`` and ``enough``: bytes per node, cores, seconds, GPUs, or a share of a GPU. ``saved`` is in ``saved_unit``.
    ``sooner_s``: how much sooner the planner would have started the job; null if that was not planned. ``basis``: number of jobs.
    """

    kind: AdviceKind
    text: PublicText
    option: PublicText
    asked: float
    enough: float
    saved: float | None
    saved_unit: SavedUnit | None
    sooner_s: int | None
    basis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PastJob:
    """One past job of the same user with the same name, numbers aside."""

    workload: WorkloadRef
    state: WorkloadState
    ended_at: int
    run_s: float
    gpus: int
    gpu_util_ratio: float | None
    memory_peak_bytes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastJobs:
    """Past jobs of the same user with the same name, numbers aside: how many, how they went, and the latest ones."""

    count: int
    completed: int
    median_run_s: float
    longest_run_s: float
    latest: list[PastJob]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCard:
    """The card of a job: what it asked for, what it used, and what that says. Of a requeued job: its latest execution.

    ``executions``: how often it ran. ``wasted_gpu_hours``: of GPUs that were idle on average; null if nothing was measured.
    """

    cluster: PublicText
    workload: WorkloadRef
    name: OwnerText | None
    user: UserName | None
    project: ProjectName | None
    state: WorkloadState
    is_running: bool
    qos: FreeText | None
    partition: PublicText | None
    node_count: int
    cpus: int | None
    memory_requested_bytes: int | None
    gpus: int
    started_at: int
    ended_at: int | None
    run_s: float
    time_limit_s: int | None
    time_ratio: float | None
    executions: int
    exit_code: int | None
    exit_signal: int | None
    cpu: JobShare
    cpu_memory: JobShare
    gpu: JobShare | None
    gpu_memory: JobShare | None
    nodes: list[JobCardNode]
    gpu_hours: float
    wasted_gpu_hours: float | None
    curves: list[JobCurve]
    notes: list[JobCardNote]
    advice: list[JobCardAdvice]
    similar: PastJobs | None
    hint: ScopedText | None
    """Where there are no samples: why, and what to do."""
