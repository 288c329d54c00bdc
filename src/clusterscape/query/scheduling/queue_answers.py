"""The shapes of answers about the live queue. Times are Unix ms, spans seconds, missing is null."""

from dataclasses import dataclass
from typing import Literal

from clusterscape.model.identity_fields import FreeText, OwnerText, ProjectName, PublicText, UserName, WorkloadRef
from clusterscape.query.answers import ReservationAnswer
from clusterscape.query.reasons import WaitKind
from clusterscape.query.scheduling.promises import SlipCause


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyStart:
    """The likely start of a workload, and the interval that contains it with probability ``level``."""

    likely_at: int
    from_at: int
    to_at: int
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A waiting workload. ``position``: among those of its partition that wait only for GPUs; null: it waits for something else.

    ``planned_at``: latest start by time limits, without later arrivals; ``scheduler_at``: the scheduler's own estimate.
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
    """One partition's queue in numbers; ``drained_at``: the last planned start of its workloads.

    ``held``: held by their owner or an operator. ``blocked``: wait for something other than GPUs: a dependency, a limit, …
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
class PlacementEvidence:
    """The placement that the scheduler seems to use, and how certain that is.

    ``starts``: recent starts at which several nodes had room; ``fitting``: those that chose as this placement would;
    ``by_chance``: how many would if nodes were chosen at random. ``assumed``: they do not decide.
    """

    placement: PublicText
    title: PublicText
    certainty: Literal["sure", "likely", "assumed"]
    starts: int
    fitting: int
    by_chance: float
    since: int | None
    text: PublicText


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAnswer:
    """All waiting workloads, in queue order. ``drained_at``: likely start of the last one, or planned without a forecast.

    ``awaited``: kinds of sources that have not responded since the start; until they do, workloads may be missing.
    Likely starts are the forecasts of `GET /scheduling/waiting`; ``calibrated_on``: number of waits used to calibrate them.
    """

    at: int
    placement: PlacementEvidence
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
    """The points of one priority factor: age, fair share, size, partition, QOS, …"""

    name: PublicText
    title: PublicText
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AheadRow:
    """A workload that is ahead, and why. ``parts``: the factors of its priority, if the scheduler reports them."""

    workload: WorkloadRef
    user: UserName | None
    gpus: int
    priority: int | None
    why: FreeText
    planned_at: int | None
    parts: list[PriorityPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """GPUs that must become free: ``missing_gpus`` on ``missing_nodes`` nodes; 0: enough are free, but others go first."""

    nodes: int
    gpus_per_node: int
    machine_type: PublicText | None
    ready_nodes: int
    missing_nodes: int
    missing_gpus: int
    text: PublicText


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderRow:
    """A running workload on the planned nodes. ``likely_end_at``: predicted, never after the time limit."""

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
    """One change of the promised start; ``words``: its cause as text."""

    at: int
    cause: SlipCause
    change_s: int
    words: PublicText
    by: list[WorkloadRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseStory:
    """The promised starts of a workload. The slips sum to ``last_at`` (or the start) − ``first_at``."""

    first_told_at: int
    first_at: int
    last_at: int
    started_at: int | None
    is_schedulers: bool
    slipped_s: int
    slips: list[SlipRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheaperChange:
    """A changed request, its start, and how much sooner that is than the same start of the unchanged request.

    Likely or latest start: see ``baseline`` of the story. ``cost``: the share of the request that is given up.
    """

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
    """Why a workload waits, or (``row`` is null) waited. ``changes``: what would start it sooner, cheapest first.

    ``parts``: the factors of its priority, most points first; empty if the scheduler does not report them. ``order``: why those
    ahead are ahead, counted. ``baseline``: the start that ``changes`` are compared with; the latest only without a forecast.
    """

    at: int
    workload: WorkloadRef
    row: QueueRow | None
    parts: list[PriorityPart]
    order: PublicText
    ahead: list[AheadRow]
    needed: Needed | None
    holders: list[HolderRow]
    planned_nodes: list[PublicText]
    promise: PromiseStory | None
    baseline: Literal["likely", "latest"]
    changes: list[CheaperChange]
    text: list[FreeText]
    assumptions: list[PublicText]
