"""The shapes of questions and answers about another queue. Times are Unix ms, spans seconds, missing is null."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWhatIf:
    """What is changed; null and empty: as it is. A policy orders the queue in place of the scheduler's priorities.

    ``added``: nodes by partition, like those it has most of. ``limits``: the most GPUs one workload may ask for, by partition.
    ``first``: workloads put first. ``priorities``: others, by workload. ``picture_in_s``: when the picture is of, from now.
    """

    policy: str | None = None
    backfill: str | None = None
    placement: str | None = None
    drained: list[str] = field(default_factory=list)
    added: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    priorities: dict[str, int] = field(default_factory=dict)
    futures: int = 24
    picture_in_s: int = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange:
    """A measure as it is and as it would be: means over the same futures, their paired difference and its 95 % interval.

    ``verdict``: better, worse, unclear (the interval holds 0) or same.
    """

    name: str
    title: str
    unit: str
    baseline: float
    changed: float
    difference: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartChange:
    """When a waiting workload starts, in the middle of the futures; ``change_s`` with the middle 80 % of the differences."""

    workload: str
    user: str | None
    partition: str
    gpus: int
    baseline_at: int | None
    changed_at: int | None
    change_s: float | None
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfWarning:
    """A side effect. ``kind``: starvation, fragmentation, never or refused."""

    kind: str
    title: str
    text: str
    workloads: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePicture:
    """A node at the picture's time: who holds each GPU, null where nobody does; is and would be."""

    node: str
    partition: str
    baseline: list[str | None]
    changed: list[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer:
    """What would be otherwise. The picture is of the future in which every run takes its middle time and nobody comes."""

    at: int
    is_unchanged: bool
    changes: list[str]
    futures: int
    simulated: int
    measures: list[MeasureChange]
    workloads: list[StartChange]
    warnings: list[WhatIfWarning]
    picture_at: int
    nodes: list[NodePicture]
    policies: list[str]
    backfills: list[str]
    placements: list[str]
    assumptions: list[str]
