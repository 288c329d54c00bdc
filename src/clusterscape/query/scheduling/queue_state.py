"""The live queue as columns: nodes, who holds them until when by limit, who waits in which order. Pure; from model records.

Partitions that share nodes share one pool, and with it one queue; a node's model is its machine type and its partitions, so
that each job still gets only nodes of its own partition. Only GPUs are looked at: CPUs, memory and quotas are not.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterscape.model import Allocation, Node, NodeState, Partition, Unit, UnitKind, Workload, WorkloadState
from clusterscape.model.samples import Int64s
from clusterscape.simulate.plan import Plan, PlanHeld, PlanJobs, PlanNodes, plan_starts

DEFAULT_LIMIT_S = 7 * 86_400
"""What is assumed of a workload without a time limit in a partition without one."""

OVERDUE_S = 60
"""A workload past its limit is about to be ended: its GPUs are taken to be free in a minute."""

_PLANNED_REASONS = frozenset({"Resources", "Priority", "None", "NodeDown", "Prolog", "Cleaning", "NotEnoughResources"})
_PLANNED_PREFIXES = ("ReqNodeNotAvail", "Insufficient ")  # the latter kube-scheduler's: "Insufficient nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class QueueNode:
    """A node that has GPUs."""

    name: str
    gpus: int
    machine_type: str | None
    partitions: tuple[str, ...]
    is_open: bool


@dataclass(frozen=True, slots=True)
class Holding:
    """GPUs of one node that a workload holds; ``end_s`` by its limit."""

    workload: str
    node: str
    gpus: int
    end_s: int


@dataclass(frozen=True, slots=True)
class QueueJob:
    """A waiting workload. ``models`` and ``pool`` as in `Layout`; ``is_planned``: only room is missing, nothing else."""

    workload: str
    partition: str
    machine_type: str | None
    nodes: int
    gpus: int  # on each node
    limit_s: int
    priority: int
    queued_s: int
    is_planned: bool
    expected_s: int | None = None

    @property
    def total_gpus(self) -> int:
        """Over all nodes."""
        return self.nodes * self.gpus

    @property
    def order(self) -> tuple[int, int, str]:
        """Who goes first: priority, then time in the queue, then the name."""
        return (-self.priority, self.queued_s, self.workload)


@dataclass(frozen=True, slots=True)
class LiveQueue:
    """One moment. ``waiting`` is in queue order over all partitions; keys of the mappings are names."""

    now_s: int
    nodes: Mapping[str, QueueNode]
    held: tuple[Holding, ...]
    waiting: tuple[QueueJob, ...]
    max_times_s: Mapping[str, int | None]  # by partition, only those that are up

    def with_jobs(self, jobs: Iterable[QueueJob]) -> "LiveQueue":
        """The same cluster with other jobs waiting."""
        return replace(self, waiting=tuple(sorted(jobs, key=lambda job: job.order)))

    def planned(self) -> tuple[QueueJob, ...]:
        """Those that wait for room only."""
        return tuple(job for job in self.waiting if job.is_planned)


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes by number: pools of partitions that share nodes, and models within."""

    names: tuple[str, ...]
    nodes: PlanNodes
    pool_of: Mapping[str, int]  # by partition
    models: tuple[tuple[str | None, tuple[str, ...]], ...]
    places: Mapping[str, int]

    def mask(self, partition: str, machine_type: str | None) -> int:
        """The models on which a job of this partition may run: those of the type it names, or all where none has it."""
        here = [place for place, (_, partitions) in enumerate(self.models) if partition in partitions]
        typed = [place for place in here if self.models[place][0] == machine_type]
        return sum(1 << place for place in (typed or here))


def lay_out(queue: LiveQueue) -> Layout:
    """Nodes with GPUs as columns; those that are closed have none to give."""
    nodes = tuple(queue.nodes.values())
    models = tuple(sorted({(node.machine_type, node.partitions) for node in nodes}, key=str))[:62]
    codes = {model: place for place, model in enumerate(models)}
    pool_of = _join_partitions(nodes)
    columns = PlanNodes(
        np.array([node.gpus if node.is_open else 0 for node in nodes], np.int64),
        np.array([pool_of.get(node.partitions[0], 0) if node.partitions else 0 for node in nodes], np.int64),
        np.array([codes.get((node.machine_type, node.partitions), 0) for node in nodes], np.int64),
    )
    names = tuple(node.name for node in nodes)
    return Layout(names, columns, pool_of, models, {name: place for place, name in enumerate(names)})


def _join_partitions(nodes: Sequence[QueueNode]) -> dict[str, int]:
    """A number for each partition, the same for those that share nodes."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for node in nodes:
        for name in node.partitions:
            root[find(name)] = find(node.partitions[0])
    numbers = {name: place for place, name in enumerate(sorted({find(name) for name in root}))}
    return {name: numbers[find(name)] for name in root}


def plan_queue(queue: LiveQueue, layout: Layout | None = None) -> tuple[dict[str, int], Plan]:
    """The start of every planned job in Unix seconds, by workload; jobs without room in any plan are not in it."""
    layout = layout or lay_out(queue)
    jobs = [job for job in queue.planned() if job.partition in layout.pool_of]
    plan = plan_starts(queue.now_s, layout.nodes, held_columns(queue, layout), job_columns(jobs, layout, queue.now_s))
    starts = plan.start_s.tolist()
    return {job.workload: start for job, start in zip(jobs, starts, strict=True) if start >= 0}, plan


def held_columns(queue: LiveQueue, layout: Layout) -> PlanHeld:
    """Of open nodes."""
    held = [each for each in queue.held if queue.nodes[each.node].is_open]
    return PlanHeld(
        _column(layout.places[each.node] for each in held),
        _column(each.gpus for each in held),
        _column(max(each.end_s, queue.now_s + OVERDUE_S) for each in held),
    )


def job_columns(jobs: Sequence[QueueJob], layout: Layout, now_s: int) -> PlanJobs:
    """As the planner takes them."""
    masks: dict[tuple[str, str | None], int] = {}
    for job in jobs:
        key = (job.partition, job.machine_type)
        if key not in masks:
            masks[key] = layout.mask(*key)
    return PlanJobs(
        _column(layout.pool_of[job.partition] for job in jobs),
        _column(masks[job.partition, job.machine_type] for job in jobs),
        _column(job.nodes for job in jobs),
        _column(job.gpus for job in jobs),
        _column(job.limit_s for job in jobs),
        _column(now_s for _ in jobs),
    )


def _column(values: Iterable[int]) -> Int64s:
    return np.fromiter(values, np.int64)


def read_queue(
    *,
    now_s: int,
    nodes: Iterable[Node],
    partitions: Iterable[Partition],
    units: Iterable[Unit],
    workloads: Iterable[Workload],
    allocations: Iterable[Allocation],
) -> LiveQueue:
    """The queue from what the stores hold. GPUs that are cut into MIG instances are left out; a shared GPU is held once."""
    units, workloads, partitions = list(units), list(workloads), list(partitions)
    cut = {unit.parent for unit in units if unit.parent is not None}
    gpus: dict[str, str] = {
        unit.id: unit.node for unit in units if unit.kind is UnitKind.GPU and unit.node and unit.id not in cut
    }
    sizes = Counter(gpus.values())
    members: dict[str, list[str]] = {}
    for partition in partitions:
        for name in partition.nodes:
            members.setdefault(name, []).append(partition.name)
    found: dict[str, QueueNode] = {
        node.id: QueueNode(
            node.id,
            sizes[node.id],
            node.machine_type,
            tuple(sorted(members.get(node.id, node.partitions))),
            node.state.is_available or node.state is NodeState.UNKNOWN,
        )
        for node in nodes
        if sizes[node.id] > 0
    }
    limits = {partition.name: partition.max_time_s for partition in partitions if partition.is_up}
    ends: dict[str, int] = {
        each.id: (each.started_at or now_s * 1000) // 1000 + _limit(each, limits)
        for each in workloads
        if each.state is not WorkloadState.WAITING
    }
    jobs = [_read_job(each, found, limits, now_s) for each in workloads if _waits(each)]
    return LiveQueue(
        now_s,
        found,
        _read_held(allocations, gpus, ends, found),
        tuple(sorted(jobs, key=lambda job: job.order)),
        limits,
    )


def _waits(workload: Workload) -> bool:
    return workload.state is WorkloadState.WAITING and workload.gpus_requested > 0 and workload.partition is not None


def _limit(workload: Workload, limits: Mapping[str, int | None]) -> int:
    return workload.time_limit_s or limits.get(workload.partition or "") or DEFAULT_LIMIT_S


def _read_held(
    allocations: Iterable[Allocation],
    gpus: Mapping[str, str],
    ends: Mapping[str, int],
    nodes: Mapping[str, QueueNode],
) -> tuple[Holding, ...]:
    holder: dict[str, str] = {}
    for each in allocations:
        if each.unit not in gpus or each.workload not in ends:
            continue
        known = holder.get(each.unit)
        if known is None or (ends[each.workload], each.workload) > (ends[known], known):
            holder[each.unit] = each.workload
    counts = Counter((workload, gpus[unit]) for unit, workload in holder.items())
    return tuple(
        Holding(workload, node, count, ends[workload])
        for (workload, node), count in sorted(counts.items())
        if node in nodes
    )


def _read_job(
    workload: Workload, nodes: Mapping[str, QueueNode], limits: Mapping[str, int | None], now_s: int
) -> QueueJob:
    partition = workload.partition or ""
    wanted = (workload.resource_type or "").rpartition("-")[0] or None
    largest = max((node.gpus for node in nodes.values() if partition in node.partitions), default=1)
    count = workload.nodes_requested or math.ceil(workload.gpus_requested / largest)
    queued_at = workload.eligible_at or workload.submitted_at
    reason = (workload.pending_reason or "None").split(",")[0].strip("() ")
    expected = workload.expected_start_at
    return QueueJob(
        workload=workload.id,
        partition=partition,
        machine_type=wanted,
        nodes=max(count, 1),
        gpus=math.ceil(workload.gpus_requested / max(count, 1)),
        limit_s=_limit(workload, limits),
        priority=workload.priority or 0,
        queued_s=now_s if queued_at is None else queued_at // 1000,
        is_planned=(reason in _PLANNED_REASONS or reason.startswith(_PLANNED_PREFIXES)) and partition in limits,
        expected_s=None if expected is None else expected // 1000,
    )
