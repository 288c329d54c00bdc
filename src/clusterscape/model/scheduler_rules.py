"""What a scheduler enforces beyond its queue: reservations of nodes, and who may preempt whom. Records only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterscape.model.ids import NodeId, UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Nodes set aside during [starts_at, ends_at) for the jobs that name the reservation.

    ``cpus`` and ``gpus`` are totals over its nodes, None where the scheduler does not say; less than the nodes have means
    that only a part of them is reserved. ``is_flexible``: its jobs may start before it, or run on after it.
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
    """Which running jobs a waiting job may displace, as Slurm's ``PreemptType`` has it.

    By partition: jobs of a partition with a higher tier displace those of a lower one. By QOS: each names those it displaces.
    Jobs whose partition or QOS has the mode OFF are never displaced. ``exempt_s``: a job is safe for so long after its start.
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
        """Whether a job of this partition and QOS displaces a running job of that partition and QOS."""
        if self.by_partition:
            if victim_partition in self.protected_partitions:
                return False
            return self.tiers.get(partition or "", 1) > self.tiers.get(victim_partition or "", 1)
        if self.by_qos and victim_qos is not None and victim_qos not in self.protected_qos:
            return victim_qos in self.displaces.get(qos or "", ())
        return False


NO_PREEMPTION = PreemptionRules()
