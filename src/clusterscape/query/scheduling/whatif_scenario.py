"""The live queue as a simulation that begins now, as it is or changed. Pure: a queue and run times in, a scenario out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.samples import Int64s
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, QueueNode
from clusterscape.query.scheduling.queue_plan import OVERDUE_S, lay_out, planned_jobs
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf
from clusterscape.simulate.batch.contract import Backfill, BackfillKind
from clusterscape.simulate.batch.policies import find_policy
from clusterscape.simulate.cluster.contract import BACKFILLS, Cluster, ClusterJobs, ClusterScenario, Partition
from clusterscape.simulate.cluster.standing import Standing
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placements import find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU

LIVE_BACKFILLS = tuple(kind for kind in BACKFILLS if kind != "easy++")
"""EASY++ predicts from runs that ended before, and a simulation that begins now has seen none end."""

USUAL_POLICY, USUAL_BACKFILL, USUAL_PLACEMENT = "fcfs", "easy", "most-allocated"
"""What stands for the scheduler as it is: priorities, then first come first served; EASY; the fullest node that fits."""


@dataclass(frozen=True, slots=True)
class Future:
    """One draw: what is left of running workloads and whole runs of waiting ones (seconds, by name), and who comes.

    ``users`` by workload, for orders that heed what users have; who comes later is somebody else.
    """

    runs: Mapping[str, float]
    arrivals: tuple[tuple[QueueJob, int], ...] = ()  # with their run times; queued_s is when they come
    users: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario with the names of its rows: waiting workloads by row, the rest run or come later."""

    scenario: ClusterScenario
    standing: Standing
    rows: Mapping[str, int]
    holders: tuple[str | None, ...]  # by row: whose GPUs they are in a picture
    refused: tuple[str, ...]


def change_queue(queue: LiveQueue, what: QueueWhatIf) -> LiveQueue:
    """The cluster and its queue with the changes; raises QueryError where they name what is not there."""
    nodes = dict(queue.nodes)
    for name in what.drained:
        if name not in nodes:
            raise QueryError(f"there is no node {name!r} with GPUs to drain", hint="GET /api/v1/nodes lists them.")
        nodes[name] = replace(nodes[name], is_open=False)
    for partition, count in what.added.items():
        nodes.update((node.name, node) for node in _more_nodes(queue, partition, count))
    for partition in what.limits:
        if partition not in queue.max_times_s:
            raise QueryError(
                f"there is no open partition {partition!r}", hint=f"There are {', '.join(queue.max_times_s)}."
            )
    known = {job.workload for job in queue.waiting}
    for name in [*what.first, *what.priorities]:
        if name not in known:
            raise QueryError(f"{name} does not wait", hint="GET /api/v1/scheduling/queue lists who does.")
    top = max((job.priority for job in queue.waiting), default=0) + 1
    jobs = []
    for job in queue.waiting:
        priority = 0 if what.policy else job.priority
        priority = what.priorities.get(job.workload, priority)
        jobs.append(replace(job, priority=top if job.workload in what.first else priority))
    return replace(queue, nodes=nodes).with_jobs(jobs)


def _more_nodes(queue: LiveQueue, partition: str, count: int) -> Iterable[QueueNode]:
    here = [node for node in queue.nodes.values() if partition in node.partitions]
    if not here:
        raise QueryError(f"partition {partition!r} has no nodes to add others like them")
    kinds = [(node.gpus, node.machine_type, node.partitions) for node in here]
    gpus, machine_type, partitions = max(set(kinds), key=kinds.count)
    return [QueueNode(f"new-{partition}-{at + 1}", gpus, machine_type, partitions, True) for at in range(count)]


def prepare(queue: LiveQueue, what: QueueWhatIf, future: Future, *, seed: int = 0) -> Prepared:
    """A scenario for one future, without jobs that are not planned, that a limit refuses or that no node could ever run."""
    layout = lay_out(queue)
    # To the engine no model at all means any.
    jobs = [job for job in planned_jobs(queue, layout) if layout.mask(job)]
    refused = tuple(job.workload for job in jobs if job.total_gpus > what.limits.get(job.partition, job.total_gpus))
    waiting = [job for job in jobs if job.workload not in refused]
    coming = [
        (job if what.policy is None else replace(job, priority=0), run)
        for job, run in future.arrivals
        if layout.mask(job) and job.total_gpus <= what.limits.get(job.partition, job.total_gpus)
    ]
    table = _Table(future.users)
    for job in waiting:
        limit = job.limit_s
        run = future.runs.get(job.workload, limit)
        table.add(job, layout.pool_of[job.partition], layout.mask(job), run, limit)
    for each in queue.held:
        left = max(each.end_s - queue.now_s, OVERDUE_S)
        held = QueueJob(each.workload, "", None, 1, each.gpus, left, 0, queue.now_s, True)
        pool = int(layout.nodes.pool[layout.places[each.node]])
        table.add(held, pool, 0, min(future.runs.get(each.workload, left), left), left)
    for job, run in coming:
        table.add(job, layout.pool_of[job.partition], layout.mask(job), run, job.limit_s)
    columns, order = table.columns()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    count = len(waiting)
    running = place[count : count + len(queue.held)]
    where = np.array([layout.places[each.node] for each in queue.held], np.int64)
    names: list[str | None] = [*(job.workload for job in waiting), *(each.workload for each in queue.held)]
    names += [None] * len(coming)
    return Prepared(
        ClusterScenario(
            _cluster(queue, layout.nodes.model, layout.nodes.pool, len(layout.models)),
            columns,
            find_policy(what.policy or USUAL_POLICY),
            find_backfill(what.backfill or USUAL_BACKFILL),
            find_placement(what.placement or USUAL_PLACEMENT),
            faults=tuple(
                NodeFault(node=node.name, kind=FaultKind.DRAIN, from_s=queue.now_s)
                for node in queue.nodes.values()
                if not node.is_open
            ),
            seed=seed,
        ),
        Standing(queue.now_s, running, where),
        {job.workload: int(place[at]) for at, job in enumerate(waiting)},
        tuple(names[at] for at in order.tolist()),
        refused,
    )


def check_choices(what: QueueWhatIf) -> None:
    """Raises QueryError where there is no such policy, backfilling or placement."""
    find_policy(what.policy or USUAL_POLICY)
    find_backfill(what.backfill or USUAL_BACKFILL)
    find_placement(what.placement or USUAL_PLACEMENT)


def find_backfill(name: str) -> Backfill:
    """The way of that name; raises QueryError where there is none for nodes."""
    if name not in LIVE_BACKFILLS:
        raise QueryError(
            f"there is no backfilling {name!r} for the live queue", hint=f"There are {', '.join(LIVE_BACKFILLS)}."
        )
    return Backfill(cast("BackfillKind", name))


def _cluster(queue: LiveQueue, model: Int64s, pool: Int64s, models: int) -> Cluster:
    nodes = tuple(queue.nodes.values())
    none = np.zeros(len(nodes), np.int64)
    return Cluster(
        tuple(node.name for node in nodes),
        np.array([node.gpus for node in nodes], np.int64),
        none,
        none,
        model,
        tuple(f"model {at}" for at in range(max(models, 1))),
        pool,
        none,
        tuple(Partition(f"pool {at}") for at in range(int(pool.max()) + 1)),
    )


class _Table:
    """Rows for the engine, gathered one by one."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._rows: list[Sequence[float]] = []
        self._users = users
        self._codes = {name: code for code, name in enumerate(sorted(set(users.values())), 1)}

    def add(self, job: QueueJob, pool: int, mask: int, run_s: float, limit_s: int) -> None:
        run = min(max(round(run_s), 1), max(limit_s, 1))
        user = self._codes.get(self._users.get(job.workload, ""), 0)
        self._rows.append((job.queued_s, run, max(limit_s, 1), job.nodes, job.gpus, mask, pool, job.priority, user))

    def columns(self) -> tuple[ClusterJobs, Int64s]:
        """In submit order, and that order."""
        table: Int64s = np.array(self._rows, np.int64).reshape(-1, 9)
        order = np.argsort(table[:, 0], kind="stable")
        submit, run, limit, nodes, gpus, mask, pool, priority, user = table[order].T.copy()
        count = len(order)
        none = np.zeros(count, np.int64)
        return (
            ClusterJobs(
                row=order.astype(np.int64),
                submit_s=submit,
                run_s=run,
                estimate_s=limit,
                nodes=nodes,
                gpus=gpus,
                units=none + UNITS_PER_GPU,
                cpu_milli=none,
                memory_mib=none,
                models=mask,
                partition=pool,
                user=user,
                priority=priority,
                number=np.arange(count),
            ),
            order.astype(np.int64),
        )
