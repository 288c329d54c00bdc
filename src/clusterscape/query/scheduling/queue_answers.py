"""The shapes of answers about the live queue. Times are Unix ms, spans seconds, missing is null."""

from dataclasses import dataclass

from clusterscape.model.identity_fields import FreeText, OwnerText, ProjectName, PublicText, UserName, WorkloadRef
from clusterscape.query.answers import ReservationAnswer
from clusterscape.query.reasons import WaitKind
from clusterscape.query.scheduling.promises import SlipCause


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyStart:
    """When a workload likely starts: with probability ``level`` between the two ends."""

    likely_at: int
    from_at: int
    to_at: int
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A waiting workload. ``position`` counts those of its partition that wait for room only; null: something else holds it.

    ``planned_at``: at the latest by limits if nobody else comes; ``scheduler_at``: the scheduler's own estimate.
    ``slipped_s`` > 0: later than first promised.
    """

    workload: WorkloadRef
    name: OwnerText | None
    user: UserName | None
    project: ProjectName | None
    partition: PublicText
    machine_type: PublicText | None
    gpus: int
    nodes: int
    limit_s: int
    qos: FreeText | None
    priority: int | None
    submitted_at: int | None
    waited_s: float | None
    position: int | None
    ahead: int
    ahead_gpus: int
    reason: FreeText | None
    reason_text: FreeText | None
    waits_for: WaitKind
    planned_at: int | None
    scheduler_at: int | None
    promised_at: int | None
    slipped_s: int | None
    likely: LikelyStart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionQueue:
    """One partition's queue in numbers; ``drained_at``: when the last of those that wait for room is planned to start.

    ``held``: held back by their owner or an operator. ``blocked``: wait for something else than room: a dependency, a limit, …
    """

    name: PublicText
    is_up: bool
    waiting: int
    held: int
    blocked: int
    gpus_asked: int
    gpus_free: int
    drained_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAnswer:
    """All that wait, in queue order. ``drained_at``: likely start of the last one, or planned where nothing is forecast.

    ``awaited``: kinds of sources that have not answered since the start; while there are any, others may wait, too.
    Likely starts are the forecasts of `GET /scheduling/waiting`; ``calibrated_on``: waits their intervals were calibrated with.
    """

    at: int
    workloads: list[QueueRow]
    partitions: list[PartitionQueue]
    gpus_asked: int
    longest_wait_s: float | None
    drained_at: int | None
    reservations: list[ReservationAnswer]
    awaited: list[PublicText]
    is_learned: bool
    calibrated_on: int
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityPart:
    """Points of a priority that come from one thing: age, fair share, size, partition, quality of service, …"""

    name: PublicText
    title: PublicText
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AheadRow:
    """A workload that goes first, and why in words. ``parts``: what its priority is made of, where the scheduler tells."""

    workload: WorkloadRef
    user: UserName | None
    gpus: int
    priority: int | None
    why: FreeText
    planned_at: int | None
    parts: list[PriorityPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What must come free: ``missing_gpus`` more on ``missing_nodes`` nodes; 0: there is room, and others are to have it."""

    nodes: int
    gpus_per_node: int
    machine_type: PublicText | None
    ready_nodes: int
    missing_nodes: int
    missing_gpus: int
    text: PublicText


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderRow:
    """A running workload on the nodes that are planned for this one. ``likely_end_at``: predicted, never after the limit."""

    workload: WorkloadRef
    name: OwnerText | None
    user: UserName | None
    nodes: list[PublicText]
    gpus: int
    started_at: int | None
    ends_by: int
    likely_end_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlipRow:
    """One move of the promise, in words."""

    at: int
    cause: SlipCause
    change_s: int
    words: PublicText
    by: list[WorkloadRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseStory:
    """The slips sum to ``last_at`` (or the start) − ``first_at``."""

    first_told_at: int
    first_at: int
    last_at: int
    started_at: int | None
    is_schedulers: bool
    slipped_s: int
    slips: list[SlipRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheaperChange:
    """What else to ask for, and when it would start then by the same plan. ``cost``: share of the request given up."""

    kind: PublicText  # split, shorter, partition, fewer
    words: PublicText
    cost: float
    start_at: int
    gain_s: int
    partition: PublicText
    nodes: int
    gpus_per_node: int
    limit_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingStory:
    """Why one workload waits, or (``row`` is null) waited. ``changes``: what would start it sooner, the cheapest first.

    ``parts``: what its priority is made of, the most points first; empty where the scheduler does not tell.
    """

    at: int
    workload: WorkloadRef
    row: QueueRow | None
    parts: list[PriorityPart]
    ahead: list[AheadRow]
    needed: Needed | None
    holders: list[HolderRow]
    planned_nodes: list[PublicText]
    promise: PromiseStory | None
    changes: list[CheaperChange]
    text: list[FreeText]
    assumptions: list[PublicText]
