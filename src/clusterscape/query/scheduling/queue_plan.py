"""Plans the live queue by time limits: builds the columns for `simulate/plan.py`, and returns the start of every planned job.

Pure. A node's model is its machine type and its partitions. Jobs that may use different GPUs (by preemption, reservation or
avoided nodes) are planned as classes, each with its own view of the free GPUs.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clusterscape.model import NO_PREEMPTION, PreemptionRules, Reservation
from clusterscape.model.arrays import Int64s
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, accepted_types
from clusterscape.simulate.plan import Plan, PlanJobs, PlanNodes, PlanOccupied, plan_starts

FOREVER_S = 10 * 365 * 86_400
MAX_VIEWS = 50_000
"""Upper bound of nodes × job classes in a plan."""

OVERDUE_S = 60
"""A workload past its limit is about to be ended: its GPUs are assumed to be free in a minute."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """What determines the GPUs that a job may use: whom it may preempt, its reservation, and the nodes it avoids."""

    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    avoids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class JobClasses:
    """Classes of jobs with the same view of free GPUs. Without reservations and preemption there is one."""

    keys: tuple[JobKind, ...]
    rules: PreemptionRules

    @property
    def loses(self) -> NDArray[np.bool_]:
        """``loses[d, c]``: GPUs allocated to class c are not available to class d, which may not preempt it."""
        return np.array(
            [[not self.may_preempt(key, other.partition, other.qos) for other in self.keys] for key in self.keys],
            np.bool_,
        )

    @property
    def exempt_s(self) -> int:
        """How long a running job is exempt from preemption."""
        return self.rules.exempt_s

    def may_preempt(self, key: JobKind, partition: str | None, qos: str | None) -> bool:
        """Whether jobs of this class may preempt a running job of that partition and QOS."""
        return self.rules.may_preempt(partition=key.partition, qos=key.qos, victim_partition=partition, victim_qos=qos)

    def number(self, job: QueueJob) -> int:
        """The class of a job; 0, which preempts no job, if there are too many classes."""
        key = _kind_of(job, self.rules)
        return self.keys.index(key) if key in self.keys else 0


def find_classes(queue: LiveQueue, jobs: Iterable[QueueJob]) -> JobClasses:
    """The classes of these jobs, most frequent first, limited by MAX_VIEWS."""
    rules = queue.preemption or NO_PREEMPTION
    kinds = Counter(_kind_of(job, rules) for job in jobs)
    limit = max(1, MAX_VIEWS // max(1, len(queue.nodes)))
    others = [kind for kind, _ in kinds.most_common() if kind != JobKind()]
    return JobClasses((JobKind(), *others[: limit - 1]), rules)


def _kind_of(job: QueueJob, rules: PreemptionRules) -> JobKind:
    return JobKind(
        job.partition if rules.by_partition else None, job.qos if rules.by_qos else None, job.reservation, job.avoids
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes by index: pools of partitions that share nodes, and node models."""

    names: tuple[str, ...]
    nodes: PlanNodes
    pool_of: Mapping[str, int]  # by partition
    models: tuple[tuple[str | None, tuple[str, ...]], ...]
    places: Mapping[str, int]
    _masks: dict[tuple[tuple[str, ...], str | None], int] = field(default_factory=dict)

    def mask(self, job: QueueJob) -> int:
        """A bit mask of the models on which a job may run; 0 if its partitions have no nodes."""
        key = (job.partitions, job.machine_type)
        if key not in self._masks:
            self._masks[key] = self._find_mask(job)
        return self._masks[key]

    def _find_mask(self, job: QueueJob) -> int:
        partitions = set(job.partitions)
        models = {index: model for index, model in enumerate(self.models) if not partitions.isdisjoint(model[1])}
        types = accepted_types(job, {machine_type for machine_type, _ in models.values()})
        return sum(1 << index for index, (machine_type, _) in models.items() if machine_type in types)


def build_layout(queue: LiveQueue) -> Layout:
    """Nodes with GPUs as columns; nodes out of service have 0 GPUs."""
    nodes = tuple(queue.nodes.values())
    models = tuple(sorted({(node.machine_type, node.partitions) for node in nodes}, key=str))[:62]
    codes = {model: index for index, model in enumerate(models)}
    pool_of = _join_partitions([*(node.partitions for node in nodes), *(job.partitions for job in queue.waiting)])
    columns = PlanNodes(
        np.array([node.gpus if node.is_open else 0 for node in nodes], np.int64),
        np.array([pool_of.get(node.partitions[0], 0) if node.partitions else 0 for node in nodes], np.int64),
        np.array([codes.get((node.machine_type, node.partitions), 0) for node in nodes], np.int64),
    )
    names = tuple(node.name for node in nodes)
    return Layout(names, columns, pool_of, models, {name: index for index, name in enumerate(names)})


def _join_partitions(groups: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """A number for each partition, the same for partitions in a common group (union-find)."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for names in groups:
        for name in names:
            root[find(name)] = find(names[0])
    numbers = {name: index for index, name in enumerate(sorted({find(name) for name in root}))}
    return {name: numbers[find(name)] for name in root}


def plan_queue(queue: LiveQueue, layout: Layout | None = None) -> tuple[dict[str, int], Plan]:
    """The start of every planned job in Unix seconds, by workload; jobs that never fit are left out."""
    layout = layout or build_layout(queue)
    jobs = planned_jobs(queue, layout)
    classes = find_classes(queue, jobs)
    plan = plan_starts(
        queue.now_s,
        layout.nodes,
        occupied_columns(queue, layout, classes).columns,
        job_columns(jobs, layout, queue.now_s, classes),
        classes.loses,
    )
    starts = plan.start_s.tolist()
    return {job.workload: start for job, start in zip(jobs, starts, strict=True) if start >= 0}, plan


def planned_jobs(queue: LiveQueue, layout: Layout) -> list[QueueJob]:
    """Jobs that can be planned, in queue order."""
    return [job for job in queue.planned() if job.partition in layout.pool_of]


def job_columns(jobs: Sequence[QueueJob], layout: Layout, now_s: int, classes: JobClasses) -> PlanJobs:
    """Jobs as the columns of the planner."""
    most = len(layout.nodes) + 1  # a request for more nodes than there are never starts, whatever its number
    return PlanJobs(
        _column(layout.pool_of[job.partition] for job in jobs),
        _column(layout.mask(job) for job in jobs),
        _column(min(job.nodes, most) for job in jobs),
        _column(job.gpus for job in jobs),
        _column(job.limit_s for job in jobs),
        _column(now_s for _ in jobs),
        _column(classes.number(job) for job in jobs),
    )


@dataclass(frozen=True, slots=True)
class OccupiedGpus:
    """GPUs that each class of jobs cannot use, and their holder: an index in ``LiveQueue.held``, or −1."""

    columns: PlanOccupied
    holding: Int64s


def occupied_columns(queue: LiveQueue, layout: Layout, classes: JobClasses) -> OccupiedGpus:
    """GPUs of nodes in service that a class cannot use: held without preemption, reserved, or on nodes that it avoids."""
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
    return OccupiedGpus(PlanOccupied(*columns), holding)


def _reserved_rows(queue: LiveQueue, layout: Layout, used: str | None) -> Iterator[tuple[int, int, int, int]]:
    """(node, GPUs, begin, end) that a job with the reservation ``used`` (None: no reservation) cannot use."""
    own_reservation = next((reservation for reservation in queue.reservations if reservation.name == used), None)
    for reservation in queue.reservations:
        gpus = _reserved_gpus(queue, reservation)
        for name in reservation.nodes:
            if reservation is not own_reservation and name in layout.places and queue.nodes[name].is_open:
                yield (
                    layout.places[name],
                    min(gpus, queue.nodes[name].gpus),
                    reservation.starts_at // 1000,
                    reservation.ends_at // 1000,
                )
    if used is None:
        return
    forever = queue.now_s + FOREVER_S
    own_nodes: frozenset[str] = frozenset(() if own_reservation is None else own_reservation.nodes)
    for host, index in layout.places.items():
        node = queue.nodes[host]
        if own_reservation is None or host not in own_nodes:
            yield index, node.gpus, queue.now_s, forever
        elif not own_reservation.is_flexible:
            yield index, node.gpus, queue.now_s, own_reservation.starts_at // 1000
            yield index, node.gpus, own_reservation.ends_at // 1000, forever


def _reserved_gpus(queue: LiveQueue, reservation: Reservation) -> int:
    """GPUs on each of its nodes; 0 if less than half of the CPUs are reserved: then the GPUs are assumed to stay free."""
    nodes = [queue.nodes[name] for name in reservation.nodes if name in queue.nodes]
    if reservation.gpus is not None and nodes:
        return math.ceil(reservation.gpus / len(nodes))
    cpus = [node.cpus for node in nodes if node.cpus is not None]
    is_partial = reservation.cpus is not None and len(cpus) == len(nodes) and reservation.cpus < sum(cpus) // 2
    return 0 if is_partial else max((node.gpus for node in nodes), default=0)


def _column(values: Iterable[int]) -> Int64s:
    return np.fromiter(values, np.int64)
