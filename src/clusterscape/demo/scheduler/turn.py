"""One look of the demo's scheduler at one partition: first come, first served with EASY backfill (Lifka 1995).

The first job that does not fit gets a reservation at the earliest start that the limits of running jobs promise. A later job
starts now if it ends before that time, or uses only GPUs that are left over at that time (the extra-nodes rule).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from clusterscape.demo.scheduler.events import Grant, Job
from clusterscape.demo.scheduler.pool import NEVER_S, Ints, Pool
from clusterscape.simulate.placing import UNITS_PER_GPU, Ask, NodeState, Placement, choose_nodes


@dataclass(frozen=True, slots=True)
class PromisedStart:
    """``job`` is planned for ``start_s``, and nothing started by ``backfill`` delays it."""

    job: Job
    start_s: int


class Turn:
    """A job is offered once, in order, and only while its user is under the limit.

    ``started`` and ``over_limit`` are what the engine reads when the turn is over.
    """

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

    def schedule(self, depth: int | None = None) -> Job | None:
        """Start jobs in order, then backfill behind the first that does not fit; that one is returned, GPUs are kept for it.

        ``depth``: how many jobs behind it are tried (Slurm's ``bf_max_job_test``); None tries all, 0 none.
        """
        waiting = self.waiting()
        head = next((job for job in waiting if not self.start(job)), None)
        if head is None:
            return None
        promise: PromisedStart | None = None
        for job in islice(waiting, depth):
            if self.fits(job):
                # Found only when needed: most turns have nothing that fits.
                promise = promise or self.reserve(head)
                self.backfill(job, promise)
        return head

    def waiting(self) -> Iterator[Job]:
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

    def start(self, job: Job) -> bool:
        """Start the job now if it fits."""
        if not self._pool.fits(job):
            return False
        nodes = self._choose(self._pool.free, job)
        if nodes is None:
            return False
        self._take(job, nodes)
        return True

    def reserve(self, job: Job) -> PromisedStart:
        """The earliest start that the limits of running jobs promise to this job."""
        return PromisedStart(job, max(self.now_s, self._pool.earliest_s(job)))

    def backfill(self, job: Job, promise: PromisedStart) -> bool:
        """Start the job now if it fits and ends before the promised start, or uses only what is left over at that time."""
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

    def _choose_extra(self, job: Job, promise: PromisedStart) -> Ints | None:
        """Nodes for a job that runs past the promised start, such that the promised job still has its own at that time.

        On nodes that will not be among those ready for the promised job, or that have GPUs for both, it does no harm. Of the
        others it may take as many as will be ready beyond those needed.
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

    def _choose(self, free: Ints, job: Job) -> Ints | None:
        state = NodeState(free * UNITS_PER_GPU, self._pool.capacity)
        candidates = np.flatnonzero(free >= job.gpus_per_node)
        return choose_nodes(self._placement, state, candidates, job.nodes, Ask(job.gpus_per_node))

    def _take(self, job: Job, nodes: Ints) -> None:
        grants = self._pool.take(job, nodes.tolist(), self.now_s + job.limit_s)
        self._held_by_user[job.user] = self._held_by_user.get(job.user, 0) + job.gpus
        self.started.append((job, grants))
