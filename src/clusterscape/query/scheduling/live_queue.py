"""The live queue: nodes, their holders and time limits, waiting jobs in order, reservations and preemption rules.

Every answer about waiting is based on it: plan, promise, forecast, what-if, and what could start on free GPUs. Partitions that
share nodes, or that one job lists together, form one pool with one queue; each job still gets only nodes of its own partitions.
Only GPUs are counted, not CPUs, memory and quotas. `queue_plan.py` plans the queue.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from clusterscape.model import (
    Allocation,
    Node,
    NodeState,
    Partition,
    PreemptionRules,
    Reservation,
    Unit,
    UnitKind,
    Workload,
    WorkloadState,
)
from clusterscape.model.observations import SCHEDULER_RULES
from clusterscape.query.cache import SameObjects
from clusterscape.query.context import QueryContext
from clusterscape.query.reasons import demands_gpus_now, waits_for_gpus
from clusterscape.store.records.contract import RecordReader

DEFAULT_LIMIT_S = 7 * 86_400
"""The assumed time limit of a workload without one, in a partition without one."""

READ_EVERY_S = 15
"""The queue is read again when the inventory changes, and after this time, because it contains the current time."""


@dataclass(frozen=True, slots=True)
class QueueNode:
    """A node that has GPUs."""

    name: str
    gpus: int
    machine_type: str | None
    partitions: tuple[str, ...]
    is_open: bool
    cpus: int | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """GPUs of one node that a workload holds until ``end_s``, its limit. ``partition`` and ``qos`` decide who may preempt it."""

    workload: str
    node: str
    gpus: int
    end_s: int
    start_s: int = 0
    partition: str | None = None
    qos: str | None = None


@dataclass(frozen=True, slots=True)
class QueueJob:
    """A waiting workload. ``is_planned``: it waits only for GPUs. ``others``: further partitions that it may start in.

    ``is_demand``: it would start now if it had room; not while it waits for its reservation or a node that is down.
    """

    workload: str
    partition: str
    machine_type: str | None
    nodes: int
    gpus: int  # on each node
    limit_s: int
    priority: int
    queued_s: int
    is_planned: bool
    is_demand: bool = True
    expected_s: int | None = None
    others: tuple[str, ...] = ()
    qos: str | None = None
    reservation: str | None = None
    avoids: frozenset[str] = frozenset()  # nodes that it cannot use

    @property
    def partitions(self) -> tuple[str, ...]:
        """All partitions it may start in."""
        return (self.partition, *self.others)

    @property
    def total_gpus(self) -> int:
        """GPUs on all its nodes."""
        return self.nodes * self.gpus

    @property
    def order(self) -> tuple[int, int, str]:
        """The sort key of the queue: priority, then time in the queue, then id."""
        return (-self.priority, self.queued_s, self.workload)


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """The queue at one moment. ``waiting`` is in queue order over all partitions; keys of the mappings are names."""

    now_s: int
    nodes: Mapping[str, QueueNode]
    held: tuple[Holding, ...]
    waiting: tuple[QueueJob, ...]
    max_times_s: Mapping[str, int | None]  # by partition, only those that are up
    reservations: tuple[Reservation, ...] = ()
    preemption: PreemptionRules | None = None  # None: unknown

    def with_jobs(self, jobs: Iterable[QueueJob]) -> "LiveQueue":
        """The same cluster with other waiting jobs."""
        return replace(self, waiting=tuple(sorted(jobs, key=lambda job: job.order)))

    def planned(self) -> tuple[QueueJob, ...]:
        """Jobs that wait only for GPUs."""
        return tuple(job for job in self.waiting if job.is_planned)

    def open_nodes(self, partition: str) -> list[QueueNode]:
        """Nodes of a partition that are in service."""
        return [node for node in self.nodes.values() if node.is_open and partition in node.partitions]

    def usable_nodes(self, job: QueueJob) -> list[QueueNode]:
        """Nodes in service that a job could run on."""
        partitions = set(job.partitions)
        nodes = [node for node in self.nodes.values() if not partitions.isdisjoint(node.partitions)]
        types = accepted_types(job, {node.machine_type for node in nodes})
        return [node for node in nodes if node.is_open and node.machine_type in types and node.name not in job.avoids]

    def free_by_node(self) -> dict[str, int]:
        """Free GPUs of nodes in service."""
        free = {name: node.gpus if node.is_open else 0 for name, node in self.nodes.items()}
        for held in self.held:
            if self.nodes[held.node].is_open:
                free[held.node] -= held.gpus
        return free


def accepted_types(job: QueueJob, machine_types: Iterable[str | None]) -> set[str | None]:
    """The machine types that a job may run on: the requested one, or all of its partitions if none of them matches."""
    types = set(machine_types)
    return {job.machine_type} if job.machine_type is not None and job.machine_type in types else types


def read_live_queue(context: QueryContext) -> LiveQueue:
    """The current queue, cached for READ_EVERY_S while the inventory does not change."""
    version = (context.changes.versions.inventory, context.clock() // (READ_EVERY_S * 1000))
    return context.cache.get("live-queue", version, lambda: _read_stores(context))


def _read_stores(context: QueryContext) -> LiveQueue:
    records = context.records
    reservations, preemption = read_scheduler_rules(records)
    return read_queue(
        now_s=context.clock() // 1000,
        table=find_node_table(context),
        workloads=records.active_workloads(),
        allocations=records.open_allocations(),
        reservations=reservations,
        preemption=preemption,
    )


def read_scheduler_rules(records: RecordReader) -> tuple[list[Reservation], PreemptionRules | None]:
    """The last reported reservations and preemption rules; None for the rules if no source reported them."""
    reservations: list[Reservation] = []
    preemption: PreemptionRules | None = None
    for document in records.documents(SCHEDULER_RULES):
        reservations += msgspec.convert(document.body["reservations"], list[Reservation])
        if document.body["preemption"] is not None:
            preemption = msgspec.convert(document.body["preemption"], PreemptionRules)
    return reservations, preemption


@dataclass(frozen=True, slots=True)
class NodeTable:
    """What changes rarely: nodes with GPUs by name, the node of each whole GPU, maximum times by partition.

    Only partitions that are up have a maximum time (None: no limit). GPUs that are split into MIG instances are excluded.
    """

    nodes: Mapping[str, QueueNode]
    node_of_gpu: Mapping[str, str]
    max_times_s: Mapping[str, int | None]


def find_node_table(context: QueryContext) -> NodeTable:
    """The current table, built again only when the records change, because that takes longer than reading the queue."""
    records = context.records
    nodes, partitions, units = records.nodes(), records.partitions(), records.units()
    version = SameObjects(nodes, partitions, units)
    return context.cache.get("node-table", version, lambda: read_node_table(nodes, partitions, units))


def read_node_table(nodes: Sequence[Node], partitions: Sequence[Partition], units: Sequence[Unit]) -> NodeTable:
    """A node of unknown state counts as in service."""
    split = {unit.parent for unit in units if unit.parent is not None}
    node_of_gpu: dict[str, str] = {
        unit.id: unit.node for unit in units if unit.kind is UnitKind.GPU and unit.node and unit.id not in split
    }
    sizes = Counter(node_of_gpu.values())
    # A node whose units are not reported yet has the GPU count of its record.
    listed = {unit.node for unit in units}
    sizes.update({str(node.id): node.gpu_count for node in nodes if node.id not in listed})
    members: dict[str, list[str]] = {}
    for partition in partitions:
        for name in partition.nodes:
            members.setdefault(name, []).append(partition.name)
    queue_nodes: dict[str, QueueNode] = {
        node.id: QueueNode(
            node.id,
            sizes[node.id],
            node.machine_type,
            tuple(sorted(members.get(node.id, node.partitions))),
            node.state.is_available or node.state is NodeState.UNKNOWN,
            node.cpu_count,
        )
        for node in nodes
        if sizes[node.id] > 0
    }
    limits = {partition.name: partition.max_time_s for partition in partitions if partition.is_up}
    return NodeTable(queue_nodes, node_of_gpu, limits)


def read_queue(
    *,
    now_s: int,
    table: NodeTable,
    workloads: Sequence[Workload],
    allocations: Sequence[Allocation],
    reservations: Iterable[Reservation] = (),
    preemption: PreemptionRules | None = None,
) -> LiveQueue:
    """The queue from records. A shared GPU counts once."""
    return LiveQueue(
        now_s,
        table.nodes,
        _read_held(workloads, allocations, table, now_s),
        read_jobs(workloads, table, now_s),
        table.max_times_s,
        tuple(reservation for reservation in reservations if reservation.ends_at > now_s * 1000),
        preemption,
    )


def read_jobs(workloads: Iterable[Workload], table: NodeTable, now_s: int) -> tuple[QueueJob, ...]:
    """The workloads that wait for GPUs, in queue order."""
    largest: dict[tuple[str, str | None], int] = {}
    for node in table.nodes.values():
        for partition in node.partitions:
            for key in ((partition, node.machine_type), (partition, None)):
                largest[key] = max(largest.get(key, 1), node.gpus)
    jobs = (_read_job(workload, largest, table.max_times_s, now_s) for workload in workloads if _waits(workload))
    return tuple(sorted(jobs, key=lambda job: job.order))


def _waits(workload: Workload) -> bool:
    return workload.state is WorkloadState.WAITING and workload.gpus_requested > 0 and workload.partition is not None


def _read_job(
    workload: Workload,
    largest: Mapping[tuple[str, str | None], int],
    limits: Mapping[str, int | None],
    now_s: int,
) -> QueueJob:
    """``largest``: most GPUs of a node by partition and machine type, with None for all types of the partition."""
    partition = workload.partition or ""
    machine_type = (workload.resource_type or "").rpartition("-")[0] or None
    size = largest.get((partition, machine_type)) or largest.get((partition, None), 1)
    count = workload.nodes_requested or math.ceil(workload.gpus_requested / size)
    queued_at = workload.eligible_at or workload.submitted_at
    expected = workload.expected_start_at
    partitions = workload.tags.get("partitions", "").split(",")
    return QueueJob(
        workload=workload.id,
        partition=partition,
        machine_type=machine_type,
        nodes=max(count, 1),
        gpus=math.ceil(workload.gpus_requested / max(count, 1)),
        limit_s=_limit(workload, limits),
        priority=workload.priority or 0,
        queued_s=now_s if queued_at is None else queued_at // 1000,
        is_planned=waits_for_gpus(workload.pending_reason) and partition in limits,
        is_demand=demands_gpus_now(workload.pending_reason) and partition in limits,
        expected_s=None if expected is None else expected // 1000,
        others=tuple(name for name in partitions if name and name != partition and name in limits),
        qos=workload.qos,
        reservation=workload.tags.get("reservation"),
    )


def _limit(workload: Workload, limits: Mapping[str, int | None]) -> int:
    return workload.time_limit_s or limits.get(workload.partition or "") or DEFAULT_LIMIT_S


def _read_held(
    workloads: Sequence[Workload], allocations: Sequence[Allocation], table: NodeTable, now_s: int
) -> tuple[Holding, ...]:
    """Holdings by unit, or by node if units are unknown (``find_unplaced``). On a shared GPU the last holder to end counts."""
    active: dict[str, Workload] = {
        workload.id: workload for workload in workloads if workload.state is not WorkloadState.WAITING
    }
    starts = {
        name: now_s if workload.started_at is None else workload.started_at // 1000 for name, workload in active.items()
    }
    ends = {name: starts[name] + _limit(workload, table.max_times_s) for name, workload in active.items()}
    holder: dict[str, str] = {}
    for allocation in allocations:
        if allocation.unit not in table.node_of_gpu or allocation.workload not in active:
            continue
        rival = holder.get(allocation.unit)
        if rival is None or (ends[allocation.workload], allocation.workload) > (ends[rival], rival):
            holder[allocation.unit] = allocation.workload
    counts = Counter((workload, table.node_of_gpu[unit]) for unit, workload in holder.items())
    counts.update(find_unplaced(workloads, allocations))
    return tuple(
        Holding(name, node, count, ends[name], starts[name], active[name].partition, active[name].qos)
        for (name, node), count in sorted(counts.items())
        if node in table.nodes
    )


def find_unplaced(workloads: Iterable[Workload], allocations: Iterable[Allocation]) -> dict[tuple[str, str], int]:
    """GPUs by workload and node, of running workloads whose units are unknown, spread evenly over their nodes."""
    placed = {allocation.workload for allocation in allocations}
    return {
        (workload.id, node): math.ceil(workload.gpus_requested / len(workload.nodes))
        for workload in workloads
        if workload.state is not WorkloadState.WAITING and workload.id not in placed and workload.gpus_requested
        for node in workload.nodes
    }
