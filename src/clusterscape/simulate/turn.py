"""One look of the scheduler at one partition: what a policy sees, and the only way it starts jobs."""

from collections.abc import Iterator, Sequence

import numpy as np

from clusterscape.simulate.contract import Reservation
from clusterscape.simulate.events import Grant
from clusterscape.simulate.jobs import Job
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement, choose_nodes
from clusterscape.simulate.pool import NEVER_S, Ints, Pool


class PartitionTurn:
    """See Turn. ``started`` and ``over_limit`` are what the engine reads when the policy is done."""

    def __init__(
        self,
        now_s: int,
        queue: Sequence[Job],
        pool: Pool,
        placement: Placement,
        held_by_user: dict[str, int],
        max_gpus_per_user: int | None,
    ) -> None:
        self.now_s = now_s
        self.started: list[tuple[Job, tuple[Grant, ...]]] = []
        self.over_limit: set[int] = set()
        self._queue = queue
        self._pool = pool
        self._placement = placement
        self._held_by_user = held_by_user
        self._max_gpus_per_user = max_gpus_per_user
        # What is free only shrinks during a turn: a shape that found no extra GPUs once will find none later.
        self._without_extra: set[tuple[int, int]] = set()
        self.fits = pool.fits

    def waiting(self) -> Iterator[Job]:
        """See Turn."""
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

    def start(self, job: Job) -> bool:
        """See Turn."""
        if not self._pool.fits(job):
            return False
        nodes = self._choose(self._pool.free, job)
        if nodes is None:
            return False
        self._take(job, nodes)
        return True

    def reserve(self, job: Job) -> Reservation:
        """See Turn."""
        return Reservation(job, max(self.now_s, self._pool.earliest_s(job)))

    def backfill(self, job: Job, reservation: Reservation) -> bool:
        """See Turn."""
        if self.now_s + job.limit_s <= reservation.start_s or reservation.start_s >= NEVER_S:
            return self.start(job)
        shape = (job.nodes, job.gpus_per_node)
        if shape in self._without_extra:
            return False
        nodes = self._choose_extra(job, reservation)
        if nodes is None:
            self._without_extra.add(shape)
            return False
        self._take(job, nodes)
        return True

    def _choose_extra(self, job: Job, reservation: Reservation) -> Ints | None:
        """Nodes for a job that runs past the reserved start, such that the reserved job still has its own at that time.

        On nodes that will not be among those ready for the reserved job, or that have GPUs for both, it does no harm. Of the
        others it may take as many as will be ready beyond those needed.
        """
        head = reservation.job
        ready = self._pool.ready_s[:, head.gpus_per_node] <= reservation.start_s
        both = head.gpus_per_node + job.gpus_per_node
        harmful = ready
        if both < self._pool.ready_s.shape[1]:
            harmful = ready & (self._pool.ready_s[:, both] > reservation.start_s)
        surplus = int(ready.sum()) - head.nodes
        free = self._pool.free
        nodes = self._choose(free, job)
        if nodes is not None and int(harmful[nodes].sum()) > surplus:
            nodes = self._choose(np.where(harmful, 0, free), job)
        return nodes

    def _choose(self, free: Ints, job: Job) -> Ints | None:
        state = NodeState(free * UNITS_PER_GPU, self._pool.capacity)
        candidates = np.flatnonzero(free >= job.gpus_per_node)
        return choose_nodes(self._placement, state, candidates, job.nodes, Ask(job.gpus_per_node))

    def _take(self, job: Job, nodes: Ints) -> None:
        grants = self._pool.take(job, nodes.tolist(), self.now_s + job.limit_s)
        self._held_by_user[job.user] = self._held_by_user.get(job.user, 0) + job.gpus
        self.started.append((job, grants))
