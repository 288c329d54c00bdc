"""The live queue: nodes, who holds them until when by limit, who waits in which order, what is reserved, who preempts whom.

Pure; from model records. Every answer about waiting (plan, promise, forecast, what-if) starts from here. Partitions that share
nodes, or that one job names together, share one pool and with it one queue; a node's model is its machine type and its
partitions, so that each job still gets only nodes of its own partitions. Only GPUs are counted, not CPUs, memory and quotas.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clusterscape.model import (
    NO_PREEMPTION,
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
from clusterscape.model.samples import Int64s
from clusterscape.simulate.plan import Plan, PlanJobs, PlanNodes, PlanTaken, plan_starts

DEFAULT_LIMIT_S = 7 * 86_400
"""What is assumed of a workload without a time limit in a partition without one."""

FOREVER_S = 10 * 365 * 86_400
MOST_VIEWS = 50_000
"""Nodes × classes of jobs that a plan follows."""

OVERDUE_S = 60
"""A workload past its limit is about to be ended: its GPUs are taken to be free in a minute."""

_PLANNED_REASONS = frozenset(
    {"", "Resources", "Priority", "None", "NodeDown", "Prolog", "Cleaning", "NotEnoughResources", "Reservation"}
)
_PLANNED_PREFIXES = ("ReqNodeNotAvail", "Insufficient ")  # the latter kube-scheduler's: "Insufficient nvidia.com/gpu"


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
    """GPUs of one node that a workload holds; ``end_s`` by its limit. ``partition`` and ``qos`` say who may preempt it."""

    workload: str
    node: str
    gpus: int
    end_s: int
    start_s: int = 0
    partition: str | None = None
    qos: str | None = None


@dataclass(frozen=True, slots=True)
class QueueJob:
    """A waiting workload. ``is_planned``: only room is missing, nothing else. ``others``: further partitions it may start in."""

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
    reservations: tuple[Reservation, ...] = ()
    preemption: PreemptionRules | None = None  # None: the scheduler does not say

    def with_jobs(self, jobs: Iterable[QueueJob]) -> "LiveQueue":
        """The same cluster with other jobs waiting."""
        return replace(self, waiting=tuple(sorted(jobs, key=lambda job: job.order)))

    def planned(self) -> tuple[QueueJob, ...]:
        """Those that wait for room only."""
        return tuple(job for job in self.waiting if job.is_planned)


@dataclass(frozen=True, slots=True)
class JobKind:
    """What tells jobs apart that may use different GPUs: whom they may preempt, the reservation they use, nodes they avoid."""

    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    avoids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class JobClasses:
    """Jobs that see the same GPUs as free. One class where nothing is reserved for jobs and nobody may preempt."""

    keys: tuple[JobKind, ...]
    rules: PreemptionRules

    @property
    def loses(self) -> NDArray[np.bool_]:
        """``loses[d, c]``: GPUs given to class c are gone for class d, which may not preempt it."""
        return np.array(
            [[not self.may_preempt(own, other.partition, other.qos) for other in self.keys] for own in self.keys],
            np.bool_,
        )

    @property
    def exempt_s(self) -> int:
        """How long a running job is safe from preemption."""
        return self.rules.exempt_s

    def may_preempt(self, key: JobKind, partition: str | None, qos: str | None) -> bool:
        """Whether jobs of this class displace a running job of that partition and QOS."""
        return self.rules.may_preempt(partition=key.partition, qos=key.qos, victim_partition=partition, victim_qos=qos)

    def number(self, job: QueueJob) -> int:
        """The class of a job; 0, which preempts nobody, where there were too many."""
        key = _kind_of(job, self.rules)
        return self.keys.index(key) if key in self.keys else 0


def find_classes(queue: LiveQueue, jobs: Iterable[QueueJob]) -> JobClasses:
    """The classes of these jobs, the most frequent first; at most so many that a plan stays small."""
    rules = queue.preemption or NO_PREEMPTION
    kinds = Counter(_kind_of(job, rules) for job in jobs)
    most = max(1, MOST_VIEWS // max(1, len(queue.nodes)))
    others = [kind for kind, _ in kinds.most_common() if kind != JobKind()]
    return JobClasses((JobKind(), *others[: most - 1]), rules)


def _kind_of(job: QueueJob, rules: PreemptionRules) -> JobKind:
    return JobKind(
        job.partition if rules.by_partition else None, job.qos if rules.by_qos else None, job.reservation, job.avoids
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes by number: pools of partitions that share nodes, and models within."""

    names: tuple[str, ...]
    nodes: PlanNodes
    pool_of: Mapping[str, int]  # by partition
    models: tuple[tuple[str | None, tuple[str, ...]], ...]
    places: Mapping[str, int]

    def mask(self, job: QueueJob) -> int:
        """The models on which a job may run: those of its partitions and of the type it names, or all where none has it."""
        wanted = set(job.partitions)
        here = [place for place, (_, partitions) in enumerate(self.models) if wanted & set(partitions)]
        typed = [place for place in here if self.models[place][0] == job.machine_type]
        return sum(1 << place for place in (typed or here))


def lay_out(queue: LiveQueue) -> Layout:
    """Nodes with GPUs as columns; those that are closed have none to give."""
    nodes = tuple(queue.nodes.values())
    models = tuple(sorted({(node.machine_type, node.partitions) for node in nodes}, key=str))[:62]
    codes = {model: place for place, model in enumerate(models)}
    pool_of = _join_partitions([*(node.partitions for node in nodes), *(job.partitions for job in queue.waiting)])
    columns = PlanNodes(
        np.array([node.gpus if node.is_open else 0 for node in nodes], np.int64),
        np.array([pool_of.get(node.partitions[0], 0) if node.partitions else 0 for node in nodes], np.int64),
        np.array([codes.get((node.machine_type, node.partitions), 0) for node in nodes], np.int64),
    )
    names = tuple(node.name for node in nodes)
    return Layout(names, columns, pool_of, models, {name: place for place, name in enumerate(names)})


def _join_partitions(groups: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """A number for each partition, the same for those that stand in one group."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for names in groups:
        for name in names:
            root[find(name)] = find(names[0])
    numbers = {name: place for place, name in enumerate(sorted({find(name) for name in root}))}
    return {name: numbers[find(name)] for name in root}


def plan_queue(queue: LiveQueue, layout: Layout | None = None) -> tuple[dict[str, int], Plan]:
    """The start of every planned job in Unix seconds, by workload; jobs without room in any plan are not in it."""
    layout = layout or lay_out(queue)
    jobs = planned_jobs(queue, layout)
    classes = find_classes(queue, jobs)
    plan = plan_starts(
        queue.now_s,
        layout.nodes,
        taken_columns(queue, layout, classes).columns,
        job_columns(jobs, layout, queue.now_s, classes),
        classes.loses,
    )
    starts = plan.start_s.tolist()
    return {job.workload: start for job, start in zip(jobs, starts, strict=True) if start >= 0}, plan


def planned_jobs(queue: LiveQueue, layout: Layout) -> list[QueueJob]:
    """Those that a plan has rows for, in queue order."""
    return [job for job in queue.planned() if job.partition in layout.pool_of]


def usable_nodes(queue: LiveQueue, job: QueueJob) -> list[QueueNode]:
    """Open nodes of its partitions that it does not avoid: those of the type it names, or all where none has it."""
    wanted = set(job.partitions)
    here = [
        node
        for node in queue.nodes.values()
        if node.is_open and wanted & set(node.partitions) and node.name not in job.avoids
    ]
    return [node for node in here if node.machine_type == job.machine_type] or here


def free_by_node(queue: LiveQueue) -> dict[str, int]:
    """GPUs that nobody holds, of nodes in service."""
    free = {name: node.gpus if node.is_open else 0 for name, node in queue.nodes.items()}
    for held in queue.held:
        if queue.nodes[held.node].is_open:
            free[held.node] -= held.gpus
    return free


def job_columns(jobs: Sequence[QueueJob], layout: Layout, now_s: int, classes: JobClasses) -> PlanJobs:
    """As the planner takes them."""
    masks: dict[tuple[tuple[str, ...], str | None], int] = {}
    for job in jobs:
        key = (job.partitions, job.machine_type)
        if key not in masks:
            masks[key] = layout.mask(job)
    return PlanJobs(
        _column(layout.pool_of[job.partition] for job in jobs),
        _column(masks[job.partitions, job.machine_type] for job in jobs),
        _column(job.nodes for job in jobs),
        _column(job.gpus for job in jobs),
        _column(job.limit_s for job in jobs),
        _column(now_s for _ in jobs),
        _column(classes.number(job) for job in jobs),
    )


@dataclass(frozen=True, slots=True)
class TakenGpus:
    """What each class of jobs cannot have, and whose it is: a place in ``LiveQueue.held``, −1 where nobody's."""

    columns: PlanTaken
    holding: Int64s


def taken_columns(queue: LiveQueue, layout: Layout, classes: JobClasses) -> TakenGpus:
    """GPUs of open nodes that are held, but for those a class may preempt, that are reserved, or on nodes that a class avoids."""
    rows: list[tuple[int, int, int, int, int, int]] = []
    for number, kind in enumerate(classes.keys):
        for at, held in enumerate(queue.held):
            end = max(held.end_s, queue.now_s + OVERDUE_S)
            if classes.may_preempt(kind, held.partition, held.qos):
                end = min(end, held.start_s + classes.exempt_s)
            if queue.nodes[held.node].is_open and end > queue.now_s:
                rows.append((number, layout.places[held.node], held.gpus, queue.now_s, end, at))
        rows.extend((number, *row, -1) for row in _reserved_rows(queue, layout, kind.reservation))
        rows.extend(
            (number, layout.places[name], queue.nodes[name].gpus, queue.now_s, queue.now_s + FOREVER_S, -1)
            for name in kind.avoids
            if name in layout.places
        )
    table: Int64s = np.array(rows, np.int64).reshape(-1, 6)
    *columns, holding = (np.ascontiguousarray(column) for column in table.T)
    return TakenGpus(PlanTaken(*columns), holding)


def _reserved_rows(queue: LiveQueue, layout: Layout, used: str | None) -> Iterator[tuple[int, int, int, int]]:
    """(node, GPUs, begin, end) that a job which uses the reservation ``used`` (None: no reservation) cannot have."""
    own = next((each for each in queue.reservations if each.name == used), None)
    for each in queue.reservations:
        gpus = _reserved_gpus(queue, each)
        for name in each.nodes:
            if each is not own and name in layout.places and queue.nodes[name].is_open:
                yield (
                    layout.places[name],
                    min(gpus, queue.nodes[name].gpus),
                    each.starts_at // 1000,
                    each.ends_at // 1000,
                )
    if used is None:
        return
    forever = queue.now_s + FOREVER_S
    own_nodes: frozenset[str] = frozenset(() if own is None else own.nodes)
    for host, place in layout.places.items():
        node = queue.nodes[host]
        if own is None or host not in own_nodes:
            yield place, node.gpus, queue.now_s, forever
        elif not own.is_flexible:
            yield place, node.gpus, queue.now_s, own.starts_at // 1000
            yield place, node.gpus, own.ends_at // 1000, forever


def _reserved_gpus(queue: LiveQueue, reservation: Reservation) -> int:
    """GPUs on each of its nodes; where only a part of the CPUs is reserved, the GPUs are taken to stay free."""
    here = [queue.nodes[name] for name in reservation.nodes if name in queue.nodes]
    if reservation.gpus is not None and here:
        return math.ceil(reservation.gpus / len(here))
    cpus = [node.cpus for node in here if node.cpus is not None]
    is_part = reservation.cpus is not None and len(cpus) == len(here) and reservation.cpus < sum(cpus) // 2
    return 0 if is_part else max((node.gpus for node in here), default=0)


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
    reservations: Iterable[Reservation] = (),
    preemption: PreemptionRules | None = None,
) -> LiveQueue:
    """The queue from what the stores hold. GPUs that are cut into MIG instances are left out; a shared GPU is held once."""
    units, workloads, partitions = list(units), list(workloads), list(partitions)
    cut = {unit.parent for unit in units if unit.parent is not None}
    gpus: dict[str, str] = {
        unit.id: unit.node for unit in units if unit.kind is UnitKind.GPU and unit.node and unit.id not in cut
    }
    nodes = list(nodes)
    # Where no unit of a node is known yet, its own count stands.
    listed = {unit.node for unit in units}
    sizes = Counter(gpus.values())
    sizes.update({str(node.id): node.gpu_count for node in nodes if node.id not in listed})
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
            node.cpu_count,
        )
        for node in nodes
        if sizes[node.id] > 0
    }
    limits = {partition.name: partition.max_time_s for partition in partitions if partition.is_up}
    active = [each for each in workloads if each.state is not WorkloadState.WAITING]
    running: dict[str, _Running] = {each.id: _read_running(each, limits, now_s) for each in active}
    jobs = [_read_job(each, found, limits, now_s) for each in workloads if _waits(each)]
    return LiveQueue(
        now_s,
        found,
        _read_held(allocations, gpus, running, found, active),
        tuple(sorted(jobs, key=lambda job: job.order)),
        limits,
        tuple(each for each in reservations if each.ends_at > now_s * 1000),
        preemption,
    )


@dataclass(frozen=True, slots=True)
class _Running:
    start_s: int
    end_s: int
    partition: str | None
    qos: str | None


def _read_running(workload: Workload, limits: Mapping[str, int | None], now_s: int) -> _Running:
    start_s = now_s if workload.started_at is None else workload.started_at // 1000
    return _Running(start_s, start_s + _limit(workload, limits), workload.partition, workload.qos)


def _waits(workload: Workload) -> bool:
    return workload.state is WorkloadState.WAITING and workload.gpus_requested > 0 and workload.partition is not None


def _limit(workload: Workload, limits: Mapping[str, int | None]) -> int:
    return workload.time_limit_s or limits.get(workload.partition or "") or DEFAULT_LIMIT_S


def _read_held(
    allocations: Iterable[Allocation],
    gpus: Mapping[str, str],
    running: Mapping[str, _Running],
    nodes: Mapping[str, QueueNode],
    active: Iterable[Workload],
) -> tuple[Holding, ...]:
    """By unit where that is known; else a workload holds its GPUs evenly on its nodes."""
    holder: dict[str, str] = {}
    placed = set()
    for each in allocations:
        placed.add(each.workload)
        if each.unit not in gpus or each.workload not in running:
            continue
        rival = holder.get(each.unit)
        if rival is None or (running[each.workload].end_s, each.workload) > (running[rival].end_s, rival):
            holder[each.unit] = each.workload
    counts = Counter((workload, gpus[unit]) for unit, workload in holder.items())
    for other in active:
        if other.id not in placed and other.gpus_requested and other.nodes:
            share = math.ceil(other.gpus_requested / len(other.nodes))
            counts.update({(str(other.id), node): share for node in other.nodes})
    holdings = []
    for (workload, node), count in sorted(counts.items()):
        if node in nodes:
            run = running[workload]
            holdings.append(Holding(workload, node, count, run.end_s, run.start_s, run.partition, run.qos))
    return tuple(holdings)


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
    named = workload.tags.get("partitions", "").split(",")
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
        others=tuple(name for name in named if name and name != partition and name in limits),
        qos=workload.qos,
        reservation=workload.tags.get("reservation"),
    )
