"""One partition of the demo's scheduler: allocated and free GPUs and when more will be free, and one scheduling turn:
first come, first served with EASY backfill (Lifka 1995).

The first job that does not fit gets a reservation at its latest start, which follows from the limits of running jobs. A later job
starts now if it ends before that time, or uses only GPUs that are left over at that time (the extra-nodes rule).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from clusterscape.demo.scheduler.events import Grant, SimNode, SubmittedJob
from clusterscape.model.arrays import Int64s
from clusterscape.simulate.placing import UNITS_PER_GPU, NodeLoads, Placement, PodRequest, choose_nodes

NEVER_S = 2**62
"""Later than all times: not before nodes return to service."""


class Pool:
    """Free GPUs by node, updated on every change so that queries are cheap.

    ``free[n]``: GPUs of node n that are free now (0 if the node is out of service). ``ready_s[n, g]``: the
    earliest time at which node n has g GPUs free if nothing new starts and running jobs use up their limits.
    """

    def __init__(self, nodes: Sequence[SimNode]) -> None:
        self.names = [node.name for node in nodes]
        self.index = {name: place for place, name in enumerate(self.names)}
        capacity = [node.gpus for node in nodes]
        self.capacity: Int64s = np.array(capacity, np.int64)
        self._largest = max(capacity)
        self._masks = [(1 << gpus) - 1 for gpus in capacity]  # bit i set: GPU i is free
        self._holds: list[dict[int, tuple[int, int]]] = [{} for _ in nodes]  # job id -> (mask, planned end)
        self._closed = [0] * len(nodes)
        self._places: dict[int, list[int]] = {}
        self.free: Int64s = np.array(capacity, np.int64)
        self.ready_s: Int64s = np.full((len(nodes), self._largest + 1), NEVER_S, np.int64)
        self._at_least = [0] * (self._largest + 2)  # [g]: nodes with g or more free
        for node, gpus in enumerate(capacity):
            self.ready_s[node, : gpus + 1] = 0
            for level in range(1, gpus + 1):
                self._at_least[level] += 1
        self._ever_at_least = tuple(self._at_least)

    def can_ever_hold(self, job: SubmittedJob) -> bool:
        """Whether the job fits on the empty partition with every node in service."""
        return job.gpus_per_node <= self._largest and self._ever_at_least[job.gpus_per_node] >= job.nodes

    def fits(self, job: SubmittedJob) -> bool:
        """Whether enough GPUs are free to start the job now."""
        return job.gpus_per_node <= self._largest and self._at_least[job.gpus_per_node] >= job.nodes

    def latest_start_s(self, job: SubmittedJob) -> int:
        """Latest start of the job according to the time limits of running jobs; NEVER_S if too few nodes are in service."""
        column = self.ready_s[:, job.gpus_per_node]
        return int(np.partition(column, job.nodes - 1)[job.nodes - 1])

    def take(self, job: SubmittedJob, nodes: Iterable[int], until_s: int) -> tuple[Grant, ...]:
        """Allocate GPUs on ``nodes`` to the job, the lowest free indices of each; ``until_s`` is its planned end."""
        places = sorted(nodes)
        self._places[job.id] = places
        grants = []
        for node in places:
            indices = _lowest_bits(self._masks[node], job.gpus_per_node)
            mask = sum(1 << index for index in indices)
            self._masks[node] &= ~mask
            self._holds[node][job.id] = (mask, until_s)
            self._refresh(node)
            grants.append(Grant(self.names[node], indices))
        return tuple(grants)

    def release(self, job_id: int) -> None:
        """Free all GPUs of the job."""
        for node in self._places.pop(job_id):
            mask, _ = self._holds[node].pop(job_id)
            self._masks[node] |= mask
            self._refresh(node)

    def close(self, node: int) -> None:
        """Take a node out of service; the caller handles its jobs. Closed twice, it must be opened twice."""
        self._closed[node] += 1
        self._refresh(node)

    def open(self, node: int) -> bool:
        """Return a node to service; False if another fault still keeps it out."""
        self._closed[node] -= 1
        self._refresh(node)
        return self._closed[node] == 0

    def jobs_on(self, node: int) -> list[int]:
        """Ids of the jobs that hold GPUs of the node."""
        return list(self._holds[node])

    def _refresh(self, node: int) -> None:
        is_open = self._closed[node] == 0
        unheld = self._masks[node].bit_count()
        self._count_free(node, unheld if is_open else 0)
        row = [NEVER_S] * (self._largest + 1)
        if is_open:
            row[: unheld + 1] = [0] * (unheld + 1)
            for mask, until_s in sorted(self._holds[node].values(), key=_planned_end):
                more = unheld + mask.bit_count()
                row[unheld + 1 : more + 1] = [until_s] * (more - unheld)
                unheld = more
        self.ready_s[node] = row

    def _count_free(self, node: int, now: int) -> None:
        before = int(self.free[node])
        self.free[node] = now
        for level in range(before + 1, now + 1):
            self._at_least[level] += 1
        for level in range(now + 1, before + 1):
            self._at_least[level] -= 1


def _planned_end(hold: tuple[int, int]) -> int:
    return hold[1]


def _lowest_bits(mask: int, count: int) -> tuple[int, ...]:
    indices = []
    for _ in range(count):
        lowest = mask & -mask
        indices.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(indices)


@dataclass(frozen=True, slots=True)
class PromisedStart:
    """``job`` is planned for ``start_s``, and nothing started by ``backfill`` delays it."""

    job: SubmittedJob
    start_s: int


class SchedulingTurn:
    """One pass over the queue: each job is tried once, in order, if its user is below the limit.

    ``started`` and ``over_limit`` are the result.
    """

    def __init__(
        self,
        now_s: int,
        queue: Sequence[SubmittedJob],
        pool: Pool,
        placement: Placement,
        held_by_user: dict[str, int],
        max_gpus_per_user: int | None,
    ) -> None:
        self.now_s = now_s
        self.started: list[tuple[SubmittedJob, tuple[Grant, ...]]] = []
        self.over_limit: set[int] = set()
        self._queue = queue
        self._pool = pool
        self._placement = placement
        self._held_by_user = held_by_user
        self._max_gpus_per_user = max_gpus_per_user
        # Free GPUs only decrease during a turn: a shape without extra GPUs stays without.
        self._without_extra: set[tuple[int, int]] = set()
        self.fits = pool.fits

    def schedule(self, depth: int | None = None) -> SubmittedJob | None:
        """Start jobs in order, then backfill behind the first that does not fit; returns that job, for which GPUs are reserved.

        ``depth``: how many jobs behind it are tried (Slurm's ``bf_max_job_test``); None tries all, 0 none.
        """
        waiting = self.waiting()
        head = next((job for job in waiting if not self.start(job)), None)
        if head is None:
            return None
        promise: PromisedStart | None = None
        for job in islice(waiting, depth):
            if self.fits(job):
                # Computed only when needed: in most turns no further job fits.
                promise = promise or self.reserve(head)
                self.backfill(job, promise)
        return head

    def waiting(self) -> Iterator[SubmittedJob]:
        """The waiting jobs in order. The user limit is checked when a job is reached, not before."""
        limit = self._max_gpus_per_user
        if limit is None:
            yield from self._queue
            return
        held = self._held_by_user
        for job in self._queue:
            if held.get(job.user, 0) + job.nodes * job.gpus_per_node > limit:
                self.over_limit.add(job.id)
            else:
                yield job

    def start(self, job: SubmittedJob) -> bool:
        """Start the job now if it fits."""
        if not self._pool.fits(job):
            return False
        nodes = self._choose(self._pool.free, job)
        if nodes is None:
            return False
        self._take(job, nodes)
        return True

    def reserve(self, job: SubmittedJob) -> PromisedStart:
        """The job's latest start, reserved for it."""
        return PromisedStart(job, max(self.now_s, self._pool.latest_start_s(job)))

    def backfill(self, job: SubmittedJob, promise: PromisedStart) -> bool:
        """Start the job now if it fits and ends before the promised start, or uses only GPUs that are left over at that time."""
        if self.now_s + job.limit_s <= promise.start_s or promise.start_s >= NEVER_S:
            return self.start(job)
        shape = (job.nodes, job.gpus_per_node)
        if shape in self._without_extra:
            return False
        nodes = self._choose_extra(job, promise)
        if nodes is None:
            self._without_extra.add(shape)
            return False
        self._take(job, nodes)
        return True

    def _choose_extra(self, job: SubmittedJob, promise: PromisedStart) -> Int64s | None:
        """Nodes for a job that runs past the promised start without delaying the promised job.

        Nodes that will not be ready for the promised job, or that have GPUs for both, can be used freely. Of the
        others, as many can be used as will be ready beyond those that the promised job needs.
        """
        head = promise.job
        ready = self._pool.ready_s[:, head.gpus_per_node] <= promise.start_s
        both = head.gpus_per_node + job.gpus_per_node
        harmful = ready
        if both < self._pool.ready_s.shape[1]:
            harmful = ready & (self._pool.ready_s[:, both] > promise.start_s)
        surplus = int(ready.sum()) - head.nodes
        free = self._pool.free
        nodes = self._choose(free, job)
        if nodes is not None and int(harmful[nodes].sum()) > surplus:
            nodes = self._choose(np.where(harmful, 0, free), job)
        return nodes

    def _choose(self, free: Int64s, job: SubmittedJob) -> Int64s | None:
        state = NodeLoads(free * UNITS_PER_GPU, self._pool.capacity)
        candidates = np.flatnonzero(free >= job.gpus_per_node)
        return choose_nodes(self._placement, state, candidates, job.nodes, PodRequest(job.gpus_per_node))

    def _take(self, job: SubmittedJob, nodes: Int64s) -> None:
        grants = self._pool.take(job, nodes.tolist(), self.now_s + job.limit_s)
        self._held_by_user[job.user] = self._held_by_user.get(job.user, 0) + job.gpus
        self.started.append((job, grants))
