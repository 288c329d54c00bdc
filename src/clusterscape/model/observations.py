"""Observations: what collectors yield. Each names its source and time; only ``ingest`` consumes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.model.ids import NodeId, UnixMs, WorkloadId
from clusterscape.model.inventory import Node, Partition, PreemptionRules, Reservation, Unit
from clusterscape.model.job_usage import JobUsage
from clusterscape.model.samples import RawScrape
from clusterscape.model.workloads import Allocation, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """How a source is doing. ``message`` says what is wrong and ``hint`` what to do; ``hint`` is None while it is healthy."""

    source: str  # "dcgm http://gpu-017:9400/metrics", "slurm", …
    kind: str  # the collector's name
    is_ok: bool
    at: UnixMs
    node: NodeId | None = None
    message: str | None = None
    hint: str | None = None
    duration_s: float | None = None
    # Only for exporters: ingest matches them to nodes. Not stored.
    address: str | None = None  # host:port
    is_named: bool = False  # the settings name its node

    @property
    def is_limited(self) -> bool:
        """Whether it responds with more data than a limit accepts; the hint names the limit."""
        return self.is_ok and self.hint is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeObserved:
    """Responses of some exporters in one scrape round, with the status of every target that responded or failed."""

    at: UnixMs
    scrapes: Sequence[RawScrape]
    statuses: Sequence[SourceStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryObserved:
    """Nodes, partitions and units. ``is_complete``: nodes and units that are not listed no longer exist.

    ``host_names``: other names and addresses of nodes, by which exporters are matched to them.
    """

    source: str
    at: UnixMs
    nodes: Sequence[Node]
    partitions: Sequence[Partition] = ()
    units: Sequence[Unit] = ()
    is_complete: bool = True
    dropped: Mapping[str, int] = field(default_factory=dict)  # entries that could not be parsed, by reason
    host_names: Mapping[NodeId, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueObserved:
    """Active workloads and their current allocations. ``is_complete``: active workloads that are not listed have ended.

    May also contain recently ended workloads, which squeue shows for some minutes. ``aliases``: other names that exporters
    use for workloads or parts of them, such as pods.
    """

    source: str
    at: UnixMs
    workloads: Sequence[Workload]
    allocations: Sequence[Allocation]
    is_complete: bool = True
    dropped: Mapping[str, int] = field(default_factory=dict)
    aliases: Mapping[WorkloadId, WorkloadId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryObserved:
    """Ended workloads from the accounting; allocations only if the source still has them.

    ``usages``: what they used, if the accounting has summaries of it.
    """

    source: str
    at: UnixMs
    workloads: Sequence[Workload]
    allocations: Sequence[Allocation] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    usages: Mapping[WorkloadId, JobUsage] = field(default_factory=dict)


PRIORITY_PARTS = "priority-parts"
"""Document kind: the latest priorities of a source, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritiesObserved:
    """The factors of waiting workloads' priorities (``sprio``): points by factor, by the scheduler's job id."""

    source: str
    at: UnixMs
    parts: Mapping[str, Mapping[str, int]]


SCHEDULER_RULES = "scheduler-rules"
"""Document kind: reservations and preemption rules of a source, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRulesObserved:
    """Reservations that have not ended, and preemption rules (None: this source does not report them)."""

    source: str
    at: UnixMs
    reservations: Sequence[Reservation]
    preemption: PreemptionRules | None


Observation = (
    ScrapeObserved
    | InventoryObserved
    | QueueObserved
    | HistoryObserved
    | PrioritiesObserved
    | SchedulerRulesObserved
    | SourceStatus
)
