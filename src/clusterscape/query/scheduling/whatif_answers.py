"""The shapes of what-if requests and answers. Times are Unix ms, spans seconds, missing is null."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from clusterscape.model.identity_fields import FreeText, PublicText, ScopedText, UserName, WorkloadRef
from clusterscape.query.bounds import Count, ItemId, Name
from clusterscape.query.scheduling.queue_answers import PlacementEvidence

MAX_FUTURES = 100
MAX_NODES = 20_000
MAX_ADDED_NODES = 2_000
"""In all partitions together: each node takes memory in every simulated future."""
MAX_PARTITIONS = 1_000
MAX_WORKLOADS = 20_000

AddedNodes = Annotated[int, Field(ge=0, le=MAX_ADDED_NODES)]
Priority = Annotated[int, Field(ge=-(2**53), le=2**53)]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWhatIf:
    """A change of the queue; null and empty: unchanged. A policy replaces the scheduler's priorities.

    ``added``: nodes by partition, of its most common kind. ``limits``: the most GPUs that a workload may request, by partition.
    ``first``: workloads that are moved to the front. ``priorities``: new priorities by workload.
    """

    policy: Name | None = None
    backfill: Name | None = None
    placement: Name | None = None
    drained: Annotated[list[Name], Field(max_length=MAX_NODES)] = field(default_factory=list)
    added: Annotated[dict[Name, AddedNodes], Field(max_length=MAX_PARTITIONS)] = field(default_factory=dict)
    limits: Annotated[dict[Name, Count], Field(max_length=MAX_PARTITIONS)] = field(default_factory=dict)
    first: Annotated[list[ItemId], Field(max_length=MAX_WORKLOADS)] = field(default_factory=list)
    priorities: Annotated[dict[ItemId, Priority], Field(max_length=MAX_WORKLOADS)] = field(default_factory=dict)
    futures: Annotated[int, Field(ge=2, le=MAX_FUTURES)] = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange:
    """A measure without and with the change: means over the same futures, their paired difference and its 95 % interval.

    ``verdict``: better, worse, unclear (the interval contains 0) or same.
    """

    name: PublicText
    title: PublicText
    unit: PublicText
    baseline: float
    changed: float
    difference: float
    low: float
    high: float
    verdict: PublicText


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomChange:
    """How many of the waiting workloads of one request have room now, and would have if past starts had used another placement.

    The starts since ``since`` are placed again, at the same times and for as long; workloads with another request are ignored.
    """

    partition: PublicText
    gpus: int
    nodes: int
    waiting: int
    now: int
    changed: int
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartChange:
    """The median start of a waiting workload over the futures; ``change_s`` with the middle 80 % of the differences."""

    workload: WorkloadRef
    user: UserName | None
    partition: PublicText
    gpus: int
    baseline_at: int | None
    changed_at: int | None
    change_s: float | None
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfWarning:
    """A side effect. ``kind``: starvation, fragmentation, never or refused."""

    kind: PublicText
    title: PublicText
    text: FreeText
    workloads: list[WorkloadRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfNode:
    """A node with GPUs. ``is_open``: in service now; ``will_be_open``: in service with the change."""

    node: PublicText
    partition: PublicText
    gpus: int
    is_added: bool
    is_open: bool
    will_be_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfHolder:
    """A current workload. ``is_waiting``: it is in the queue and does not run yet."""

    workload: WorkloadRef
    user: UserName | None
    gpus: int | None
    is_waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSpans:
    """Columns, sorted by ``from_at``: a holder has GPUs of a node for a time. ``node``, ``holder``: indices in the course."""

    node: list[int]
    holder: list[int]
    gpus: list[int]
    from_at: list[int]
    to_at: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfCourse:
    """Which workload holds which GPUs from now until all waiting workloads have started, if every run takes its median time and
    no others are submitted. ``left_out``: number of further nodes that are not listed."""

    from_at: int
    until_at: int
    nodes: list[WhatIfNode]
    left_out: int
    holders: list[WhatIfHolder]
    baseline: HeldSpans
    changed: HeldSpans


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer:
    """The effect of a change on the queue. ``placement``: the scheduler's own, which is simulated without the change.

    ``room``: by request, the largest difference first; empty unless the change names a placement.
    """

    at: int
    is_unchanged: bool
    changes: list[ScopedText]
    futures: int
    simulated: int
    placement: PlacementEvidence
    measures: list[MeasureChange]
    room: list[RoomChange]
    workloads: list[StartChange]
    warnings: list[WhatIfWarning]
    course: WhatIfCourse
    policies: list[PublicText]
    backfills: list[PublicText]
    placements: list[PublicText]
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfProgress:
    """The state of a what-if. ``progress``: 0–1; ``problem``: why it failed; ``answer``: once it is done."""

    run: PublicText
    state: Literal["running", "done", "failed", "stopped"]
    progress: float
    problem: ScopedText | None
    answer: WhatIfAnswer | None
