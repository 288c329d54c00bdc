"""Records of a cluster's nodes, partitions and units, of exporters without a certain node, and of the scheduler's
reservations and preemption rules. Which workload holds a unit is an ``Allocation``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.model.identity_fields import FreeText, PublicText
from clusterscape.model.ids import GpuUuid, NodeId, UnitId, UnixMs, WorkloadId


class NodeState(StrEnum):
    """A node's scheduling state, reduced to the cases that readers must distinguish."""

    IDLE = "idle"
    MIXED = "mixed"
    ALLOCATED = "allocated"
    DRAINING = "draining"  # accepts no new work, still runs some
    DRAINED = "drained"
    DOWN = "down"
    UNKNOWN = "unknown"

    @property
    def is_available(self) -> bool:
        """Whether the scheduler may start new work here."""
        return self in (NodeState.IDLE, NodeState.MIXED, NodeState.ALLOCATED)


class UnitKind(StrEnum):
    """What a unit represents."""

    GPU = "gpu"
    MIG = "mig"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStateChange:
    """A node entered ``state`` at ``from_at``."""

    node: NodeId
    from_at: UnixMs
    state: NodeState
    reason: FreeText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A host. ``partitions`` may hold several names; ``machine_type`` is e.g. ``A100-80G``."""

    id: NodeId
    partitions: tuple[PublicText, ...] = ()
    machine_type: PublicText | None = None
    state: NodeState = NodeState.UNKNOWN
    reason: FreeText | None = None  # why drained or down, in the operator's words
    gpu_count: int = 0
    cpu_count: int | None = None
    memory_bytes: int | None = None
    features: tuple[PublicText, ...] = ()
    rack: PublicText | None = None
    driver_version: PublicText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A named set of nodes with a queue."""

    name: str
    nodes: tuple[NodeId, ...] = ()
    is_up: bool = True
    is_default: bool = False
    max_time_s: int | None = None  # None: no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One square: a GPU, a MIG instance, or one GPU that a waiting workload requests.

    A GPU has ``node`` and ``index``; a MIG instance also ``parent`` and ``mig_profile``; a requested unit only ``workload``.
    """

    id: UnitId
    kind: UnitKind = UnitKind.GPU
    node: NodeId | None = None
    index: int | None = None
    uuid: GpuUuid | None = None
    machine_type: str | None = None
    memory_bytes: int | None = None
    power_limit_watts: float | None = None
    pci_bus_id: str | None = None
    parent: UnitId | None = None
    mig_profile: str | None = None
    workload: WorkloadId | None = None


EXPORTER_TIES = "exporter-ties"
"""Document kind: the node of each exporter, by the collector's shard."""

EXPORTER_QUESTIONS = "exporter-questions"
"""Document kind: exporters that could not be matched to a node, and nodes without exporters, by the collector's shard."""

HOST_NAMES = "node-host-names"
"""Document kind: other host names of nodes in the scheduler, by the source's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameQuestion:
    """An exporter that cannot be matched to one node with certainty, and the setting that confirms the proposed node."""

    exporter: PublicText  # host:port, or the name if it is scraped through Prometheus
    host_name: PublicText | None  # the host name that it reports
    gpus: int
    problem: PublicText
    proposed: NodeId | None
    setting: PublicText  # lines to paste into the settings file
    is_counted: bool  # whether its GPUs are included in the cluster's totals now


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Nodes reserved during [starts_at, ends_at) for the jobs that name the reservation.

    ``cpus`` and ``gpus`` are totals over its nodes, None if the scheduler does not report them; if they are less than the
    nodes have, only a part of the nodes is reserved. ``is_flexible``: its jobs may start before it or end after it.
    """

    name: str
    starts_at: UnixMs
    ends_at: UnixMs
    nodes: tuple[NodeId, ...]
    is_maintenance: bool = False
    is_flexible: bool = False
    partition: str | None = None
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    cpus: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRules:
    """Which running jobs a waiting job may preempt, as in Slurm's ``PreemptType``.

    By partition: jobs of a partition with a higher tier preempt those of a lower one. By QOS: each lists those that it preempts.
    Jobs whose partition or QOS has ``PreemptMode=OFF`` are never preempted. ``exempt_s``: ``PreemptExemptTime``, the run time
    during which a job cannot be preempted.
    """

    by_partition: bool = False
    by_qos: bool = False
    tiers: Mapping[str, int] = field(default_factory=dict)
    protected_partitions: frozenset[str] = frozenset()
    displaces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protected_qos: frozenset[str] = frozenset()
    exempt_s: int = 0

    def may_preempt(
        self, *, partition: str | None, qos: str | None, victim_partition: str | None, victim_qos: str | None
    ) -> bool:
        """Whether a job of this partition and QOS may preempt a running job with the victim's partition and QOS."""
        if self.by_partition:
            if victim_partition in self.protected_partitions:
                return False
            return self.tiers.get(partition or "", 1) > self.tiers.get(victim_partition or "", 1)
        if self.by_qos and victim_qos is not None and victim_qos not in self.protected_qos:
            return victim_qos in self.displaces.get(qos or "", ())
        return False


NO_PREEMPTION = PreemptionRules()
