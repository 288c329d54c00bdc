"""The shapes of questions and answers about another queue. Times are Unix ms, spans seconds, missing is null."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from clusterscape.model.identity_fields import FreeText, PublicText, ScopedText, UserName, WorkloadRef
from clusterscape.query.bounds import Count, ItemId, Name

MOST_FUTURES = 100
MOST_NODES = 20_000
MOST_ADDED_NODES = 2_000
"""In all partitions together: each takes memory in every future that is simulated."""
MOST_PARTITIONS = 1_000
MOST_WORKLOADS = 20_000

AddedNodes = Annotated[int, Field(ge=0, le=MOST_ADDED_NODES)]
Priority = Annotated[int, Field(ge=-(2**53), le=2**53)]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWhatIf:
    """What is changed; null and empty: as it is. A policy orders the queue in place of the scheduler's priorities.

    ``added``: nodes by partition, like those it has most of. ``limits``: the most GPUs one workload may ask for, by partition.
    ``first``: workloads put first. ``priorities``: others, by workload.
    """

    policy: Name | None = None
    backfill: Name | None = None
    placement: Name | None = None
    drained: Annotated[list[Name], Field(max_length=MOST_NODES)] = field(default_factory=list)
    added: Annotated[dict[Name, AddedNodes], Field(max_length=MOST_PARTITIONS)] = field(default_factory=dict)
    limits: Annotated[dict[Name, Count], Field(max_length=MOST_PARTITIONS)] = field(default_factory=dict)
    first: Annotated[list[ItemId], Field(max_length=MOST_WORKLOADS)] = field(default_factory=list)
    priorities: Annotated[dict[ItemId, Priority], Field(max_length=MOST_WORKLOADS)] = field(default_factory=dict)
    futures: Annotated[int, Field(ge=2, le=MOST_FUTURES)] = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange:
    """A measure as it is and as it would be: means over the same futures, their paired difference and its 95 % interval.

    ``verdict``: better, worse, unclear (the interval holds 0) or same.
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
class StartChange:
    """When a waiting workload starts, in the middle of the futures; ``change_s`` with the middle 80 % of the differences."""

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
    """A node with GPUs. ``is_open`` as it is, ``will_be_open`` with the change; an added one is there only then."""

    node: PublicText
    partition: PublicText
    gpus: int
    is_added: bool
    is_open: bool
    will_be_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfHolder:
    """A workload of now. ``is_waiting``: it is in the queue, and not running yet."""

    workload: WorkloadRef
    user: UserName | None
    gpus: int | None
    is_waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSpans:
    """Columns, by ``from_at``: which holder has so many GPUs of which node from when to when. Places in the course's lists."""

    node: list[int]
    holder: list[int]
    gpus: list[int]
    from_at: list[int]
    to_at: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfCourse:
    """Who holds what from now until the queue of now has started, in the future in which every run takes its middle time and
    nobody else comes. ``left_out``: nodes beyond those that are told."""

    from_at: int
    until_at: int
    nodes: list[WhatIfNode]
    left_out: int
    holders: list[WhatIfHolder]
    baseline: HeldSpans
    changed: HeldSpans


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer:
    """What would be otherwise."""

    at: int
    is_unchanged: bool
    changes: list[ScopedText]
    futures: int
    simulated: int
    measures: list[MeasureChange]
    workloads: list[StartChange]
    warnings: list[WhatIfWarning]
    course: WhatIfCourse
    policies: list[PublicText]
    backfills: list[PublicText]
    placements: list[PublicText]
    assumptions: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfProgress:
    """How far a what-if is. ``progress``: 0 to 1; ``problem``: why it failed; ``answer``: once it is done."""

    run: PublicText
    state: Literal["running", "done", "failed", "stopped"]
    progress: float
    problem: ScopedText | None
    answer: WhatIfAnswer | None
