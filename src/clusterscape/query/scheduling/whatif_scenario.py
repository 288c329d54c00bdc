"""Builds a simulation of the live queue that starts now, unchanged or changed. Pure: queue and run times in, scenario out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Int64s
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob, QueueNode
from clusterscape.query.scheduling.queue_plan import OVERDUE_S, build_layout, planned_jobs
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf
from clusterscape.simulate.batch.contract import Backfill, BackfillKind
from clusterscape.simulate.batch.policies import find_policy
from clusterscape.simulate.cluster.contract import BACKFILLS, Cluster, ClusterJobs, ClusterScenario, NodePool
from clusterscape.simulate.cluster.engine import RunningJobs
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placements import find_placement
from clusterscape.simulate.placing import UNITS_PER_GPU

LIVE_BACKFILLS = tuple(kind for kind in BACKFILLS if kind != "easy++")
"""EASY++ predicts from ended runs, and a simulation that starts now has none."""

DEFAULT_POLICY, DEFAULT_BACKFILL = "fcfs", "easy"
"""The model of the current scheduler: priorities, then first come first served; EASY. Its placement is inferred."""


@dataclass(frozen=True, slots=True)
class Future:
    """One sampled future: remaining times of running workloads, run times of waiting ones (seconds, by id), and arrivals.

    ``users`` by workload, for policies that consider users; later arrivals belong to another user.
    """

    runs: Mapping[str, float]
    arrivals: tuple[tuple[QueueJob, int], ...] = ()  # with their run times; queued_s is their submit time
    users: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedScenario:
    """A scenario and the workloads of its rows. ``rows``: the row of each waiting workload; other rows run or arrive later."""

    scenario: ClusterScenario
    standing: RunningJobs
    rows: Mapping[str, int]
    holders: tuple[str | None, ...]  # by row: the workload, for the picture; None for arrivals
    refused: tuple[str, ...]


def change_queue(queue: LiveQueue, change: QueueWhatIf) -> LiveQueue:
    """The cluster and its queue with the change; raises QueryError if it names something that does not exist."""
    nodes = dict(queue.nodes)
    for name in change.drained:
        if name not in nodes:
            raise QueryError(f"no node {name!r} with GPUs", hint="GET /api/v1/nodes lists them.")
        nodes[name] = replace(nodes[name], is_open=False)
    for partition, count in change.added.items():
        nodes.update((node.name, node) for node in _build_added_nodes(queue, partition, count))
    for partition in change.limits:
        if partition not in queue.max_times_s:
            raise QueryError(
                f"no partition {partition!r} that is up", hint=f"Partitions: {', '.join(queue.max_times_s)}."
            )
    waiting = {job.workload for job in queue.waiting}
    for name in [*change.first, *change.priorities]:
        if name not in waiting:
            raise QueryError(f"{name} is not waiting", hint="GET /api/v1/scheduling/queue lists the waiting workloads.")
    top_priority = max((job.priority for job in queue.waiting), default=0) + 1
    jobs = []
    for job in queue.waiting:
        priority = 0 if change.policy else job.priority
        priority = change.priorities.get(job.workload, priority)
        jobs.append(replace(job, priority=top_priority if job.workload in change.first else priority))
    return replace(queue, nodes=nodes).with_jobs(jobs)


def _build_added_nodes(queue: LiveQueue, partition: str, count: int) -> Iterable[QueueNode]:
    nodes = [node for node in queue.nodes.values() if partition in node.partitions]
    if not nodes:
        raise QueryError(f"cannot add nodes to partition {partition!r}: it has no node to copy")
    kinds = [(node.gpus, node.machine_type, node.partitions) for node in nodes]
    gpus, machine_type, partitions = max(set(kinds), key=kinds.count)
    return [QueueNode(f"new-{partition}-{index + 1}", gpus, machine_type, partitions, True) for index in range(count)]


def prepare_scenario(
    queue: LiveQueue, change: QueueWhatIf, future: Future, *, own_placement: str, seed: int = 0
) -> PreparedScenario:
    """A scenario for one future. Excludes jobs that are not planned, exceed a limit, or fit on no node.

    ``own_placement``: the scheduler's, unless the change names another.
    """
    layout = build_layout(queue)
    # The engine reads an empty mask as any model.
    jobs = [job for job in planned_jobs(queue, layout) if layout.mask(job)]
    refused = tuple(job.workload for job in jobs if job.total_gpus > change.limits.get(job.partition, job.total_gpus))
    waiting = [job for job in jobs if job.workload not in refused]
    arrivals = [
        (job if change.policy is None else replace(job, priority=0), run)
        for job, run in future.arrivals
        if layout.mask(job) and job.total_gpus <= change.limits.get(job.partition, job.total_gpus)
    ]
    table = _Table(future.users)
    for job in waiting:
        limit = job.limit_s
        run = future.runs.get(job.workload, limit)
        table.add(job, layout.pool_of[job.partition], layout.mask(job), run, limit)
    for holding in queue.held:
        left = max(holding.end_s - queue.now_s, OVERDUE_S)
        running_job = QueueJob(holding.workload, "", None, 1, holding.gpus, left, 0, queue.now_s, True)
        pool = int(layout.nodes.pool[layout.places[holding.node]])
        table.add(running_job, pool, 0, min(future.runs.get(holding.workload, left), left), left)
    for job, run in arrivals:
        table.add(job, layout.pool_of[job.partition], layout.mask(job), run, job.limit_s)
    columns, order = table.columns()
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    count = len(waiting)
    running_rows = row_of[count : count + len(queue.held)]
    running_nodes = np.array([layout.places[holding.node] for holding in queue.held], np.int64)
    names: list[str | None] = [*(job.workload for job in waiting), *(holding.workload for holding in queue.held)]
    names += [None] * len(arrivals)
    return PreparedScenario(
        ClusterScenario(
            _cluster(queue, layout.nodes.model, layout.nodes.pool, len(layout.models)),
            columns,
            find_policy(change.policy or DEFAULT_POLICY),
            find_backfill(change.backfill or DEFAULT_BACKFILL),
            find_placement(change.placement or own_placement),
            faults=tuple(
                NodeFault(node=node.name, kind=FaultKind.DRAIN, from_s=queue.now_s)
                for node in queue.nodes.values()
                if not node.is_open
            ),
            seed=seed,
        ),
        RunningJobs(queue.now_s, running_rows, running_nodes),
        {job.workload: int(row_of[index]) for index, job in enumerate(waiting)},
        tuple(names[index] for index in order.tolist()),
        refused,
    )


def check_choices(change: QueueWhatIf) -> None:
    """Raise QueryError if the policy, backfill strategy or placement does not exist."""
    find_policy(change.policy or DEFAULT_POLICY)
    find_backfill(change.backfill or DEFAULT_BACKFILL)
    if change.placement is not None:
        find_placement(change.placement)


def find_backfill(name: str) -> Backfill:
    """The backfill strategy of that name; raises QueryError if the live queue does not support it."""
    if name not in LIVE_BACKFILLS:
        raise QueryError(
            f"unknown backfill strategy {name!r} for the live queue",
            hint=f"Choose one of: {', '.join(LIVE_BACKFILLS)}.",
        )
    return Backfill(cast("BackfillKind", name))


def _cluster(queue: LiveQueue, model: Int64s, pool: Int64s, models: int) -> Cluster:
    nodes = tuple(queue.nodes.values())
    zeros = np.zeros(len(nodes), np.int64)
    return Cluster(
        tuple(node.name for node in nodes),
        np.array([node.gpus for node in nodes], np.int64),
        zeros,
        zeros,
        model,
        tuple(f"model {index}" for index in range(max(models, 1))),
        pool,
        zeros,
        tuple(NodePool(f"pool {index}") for index in range(int(pool.max()) + 1)),
    )


class _Table:
    """Collects job rows for the engine."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._rows: list[Sequence[float]] = []
        self._users = users
        self._codes = {name: code for code, name in enumerate(sorted(set(users.values())), 1)}

    def add(self, job: QueueJob, pool: int, mask: int, run_s: float, limit_s: int) -> None:
        run = min(max(round(run_s), 1), max(limit_s, 1))
        user = self._codes.get(self._users.get(job.workload, ""), 0)
        self._rows.append((job.queued_s, run, max(limit_s, 1), job.nodes, job.gpus, mask, pool, job.priority, user))

    def columns(self) -> tuple[ClusterJobs, Int64s]:
        """The jobs in submit order, and the permutation."""
        table: Int64s = np.array(self._rows, np.int64).reshape(-1, 9)
        order = np.argsort(table[:, 0], kind="stable")
        submit, run, limit, nodes, gpus, mask, pool, priority, user = table[order].T.copy()
        count = len(order)
        zeros = np.zeros(count, np.int64)
        return (
            ClusterJobs(
                row=order.astype(np.int64),
                submit_s=submit,
                run_s=run,
                estimate_s=limit,
                nodes=nodes,
                gpus=gpus,
                units=zeros + UNITS_PER_GPU,
                cpu_milli=zeros,
                memory_mib=zeros,
                models=mask,
                partition=pool,
                user=user,
                priority=priority,
                number=np.arange(count),
            ),
            order.astype(np.int64),
        )
