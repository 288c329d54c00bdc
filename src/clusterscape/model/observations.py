"""What collectors yield. Each observation says its source and its time, and is taken in by ``ingest`` alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.model.ids import NodeId, UnixMs, WorkloadId
from clusterscape.model.inventory import Node, Partition, Unit
from clusterscape.model.samples import RawScrape
from clusterscape.model.scheduler_rules import PreemptionRules, Reservation
from clusterscape.model.workloads import Allocation, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """How a source is doing. ``message`` says what is wrong and ``hint`` what to do; ``hint`` is None while it is well."""

    source: str  # "dcgm http://gpu-017:9400/metrics", "slurm", …
    kind: str  # the collector's name
    is_ok: bool
    at: UnixMs
    node: NodeId | None = None
    message: str | None = None
    hint: str | None = None
    duration_s: float | None = None
    # Of exporters, for ingest, which finds their nodes; not stored.
    address: str | None = None  # host:port
    is_named: bool = False  # the settings name its node

    @property
    def is_limited(self) -> bool:
        """Whether it answers, but more than is accepted: then there is a hint, which names the limit."""
        return self.is_ok and self.hint is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeObserved:
    """Some exporters' answers of one round, with the status of every target that answered or failed in it."""

    at: UnixMs
    scrapes: Sequence[RawScrape]
    statuses: Sequence[SourceStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryObserved:
    """Nodes, partitions and units. ``is_complete``: what is not named no longer exists.

    ``host_names``: other names and addresses of nodes, by which exporters are tied to them.
    """

    source: str
    at: UnixMs
    nodes: Sequence[Node]
    partitions: Sequence[Partition] = ()
    units: Sequence[Unit] = ()
    is_complete: bool = True
    dropped: Mapping[str, int] = field(default_factory=dict)  # entries not understood, by reason
    host_names: Mapping[NodeId, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueObserved:
    """Active workloads and who holds what now. ``is_complete``: active workloads not named have ended.

    May also hold recently ended workloads, as squeue shows them for some minutes. ``aliases``: other names under which
    exporters know workloads or parts of them, such as pods.
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
    """Ended workloads from the accounting; allocations only where the source still knows them."""

    source: str
    at: UnixMs
    workloads: Sequence[Workload]
    allocations: Sequence[Allocation] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


PRIORITY_PARTS = "priority-parts"
"""The kind of document under which a source's last word on priorities is kept, by the source's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritiesObserved:
    """What the priorities of waiting workloads are made of: points by part, by the scheduler's own number of the job."""

    source: str
    at: UnixMs
    parts: Mapping[str, Mapping[str, int]]


SCHEDULER_RULES = "scheduler-rules"
"""The kind of document under which a source's reservations and preemption rules are kept, by the source's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRulesObserved:
    """Reservations that have not ended, and who may preempt whom; None: this source cannot say."""

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
