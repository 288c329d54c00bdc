"""The demo's scheduler: a heap of future events, one step per instant. Pure: no clock, no I/O, no randomness.

All events of one second are applied first (ends, failures, repairs, arrivals), then each affected partition is scheduled
once. The same input gives the same events; `run` repeats `step`. Uncompiled on purpose: see
docs/design/scheduling.md.
"""

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from clusterscape.demo.scheduler.events import (
    Event,
    JobEnded,
    JobEnding,
    JobStarted,
    JobWaited,
    NodeClosed,
    NodeOpened,
    Reason,
    SimNode,
    SubmittedJob,
)
from clusterscape.demo.scheduler.partition import Pool, SchedulingTurn
from clusterscape.simulate.faults import FaultKind, NodeFault
from clusterscape.simulate.placing import Placement

BEFORE_ALL_S = -(2**62)
"""The time of a simulation before its first event."""


class _Kind(IntEnum):
    """Kinds of planned events, in the order in which those of the same second are processed."""

    END = 0
    CLOSE = 1
    OPEN = 2
    WITHDRAW = 3
    ARRIVE = 4


class _Queue:
    """One partition: its pool, its waiting jobs in order, and the last reported reasons."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.waiting: list[SubmittedJob] = []
        self._ranks: list[tuple[int, int, int]] = []  # of the waiting jobs, in the same order
        self.held_by_user: dict[str, int] = {}
        self.reasons: dict[int, Reason] = {}
        self.arrived: list[SubmittedJob] = []
        self.head: SubmittedJob | None = None
        self.over_limit: set[int] = set()

    def add(self, job: SubmittedJob) -> None:
        rank = _rank(job)
        place = bisect_left(self._ranks, rank)
        self._ranks.insert(place, rank)
        self.waiting.insert(place, job)
        self.arrived.append(job)

    def find(self, job: SubmittedJob) -> int | None:
        place = bisect_left(self._ranks, _rank(job))
        return place if place < len(self.waiting) and self.waiting[place].id == job.id else None

    def remove(self, job: SubmittedJob) -> bool:
        place = self.find(job)
        if place is None:
            return False
        del self.waiting[place], self._ranks[place]
        self.reasons.pop(job.id, None)
        return True


class Simulation:
    """A cluster and a placement; jobs and faults may be added at any time that is not in the past.

    ``depth``: see ``SchedulingTurn.schedule``. ``max_gpus_per_user``: the most GPUs that a user may hold at a time, by partition.
    """

    def __init__(
        self,
        nodes: Sequence[SimNode],
        placement: Placement,
        *,
        depth: int | None = None,
        max_gpus_per_user: Mapping[str, int] | None = None,
    ) -> None:
        self.now_s = BEFORE_ALL_S
        self._depth = depth
        self._placement = placement
        self._limits = dict(max_gpus_per_user or {})
        by_partition: dict[str, list[SimNode]] = {}
        for node in nodes:
            by_partition.setdefault(node.partition, []).append(node)
        self._queues = {name: _Queue(Pool(members)) for name, members in by_partition.items()}
        self._partition_of = {node.name: node.partition for node in nodes}
        self._running: dict[int, SubmittedJob] = {}
        self._attempts: dict[int, int] = {}
        self._heap: list[tuple[int, int, int, SubmittedJob | NodeFault, int]] = []
        self._sequence = 0

    def add_jobs(self, jobs: Iterable[SubmittedJob]) -> None:
        """Plan the arrival of jobs. Raises ValueError for a job that does not fit into its empty partition."""
        for job in jobs:
            queue = self._queues.get(job.partition)
            if queue is None or not queue.pool.can_ever_hold(job):
                raise ValueError(f"job {job.id} can never run in partition {job.partition!r}")
            self._plan(job.queued_s, _Kind.ARRIVE, job)
            if job.withdraw_s is not None:
                self._plan(job.withdraw_s, _Kind.WITHDRAW, job)

    def add_faults(self, faults: Iterable[NodeFault]) -> None:
        """Plan outages of nodes."""
        for fault in faults:
            self._plan(fault.from_s, _Kind.CLOSE, fault)
            if fault.to_s is not None:
                self._plan(fault.to_s, _Kind.OPEN, fault)

    def waiting(self, partition: str) -> Sequence[SubmittedJob]:
        """The queue of a partition, in order of priority."""
        return self._queues[partition].waiting

    def run(self, until_s: int | None = None) -> list[Event]:
        """All events before ``until_s`` (default: to the end)."""
        events: list[Event] = []
        while self._heap and (until_s is None or self._heap[0][0] < until_s):
            events += self.step()
        return events

    def step(self) -> list[Event]:
        """All events of the next second with planned events."""
        now_s = self._heap[0][0]
        self.now_s = now_s
        events: list[Event] = []
        touched: dict[str, None] = {}
        while self._heap and self._heap[0][0] == now_s:
            _, kind, _, subject, attempt = heapq.heappop(self._heap)
            partition = self._apply(_Kind(kind), subject, attempt, events)
            if partition is not None:
                touched[partition] = None
        for partition in touched:
            self._schedule(partition, events)
        return events

    def _plan(self, time_s: int, kind: _Kind, subject: SubmittedJob | NodeFault, attempt: int = 0) -> None:
        if time_s < self.now_s:
            raise ValueError(f"{subject} lies before {self.now_s}, which is past")
        self._sequence += 1
        heapq.heappush(self._heap, (time_s, int(kind), self._sequence, subject, attempt))

    def _apply(self, kind: _Kind, subject: SubmittedJob | NodeFault, attempt: int, events: list[Event]) -> str | None:
        """Apply one planned event; returns the partition to schedule because of it."""
        if isinstance(subject, NodeFault):
            return self._close(subject, events) if kind is _Kind.CLOSE else self._open(subject, events)
        queue = self._queues[subject.partition]
        if kind is _Kind.ARRIVE:
            queue.add(subject)
        elif kind is _Kind.WITHDRAW:
            if not queue.remove(subject):
                return None
            events.append(JobEnded(self.now_s, subject, JobEnding.WITHDRAWN))
        else:
            if subject.id not in self._running or self._attempts[subject.id] != attempt:
                return None  # already ended by a node's failure
            self._end(subject, JobEnding.TIMEOUT if subject.run_s > subject.limit_s else JobEnding.FINISHED, events)
        return subject.partition

    def _end(self, job: SubmittedJob, ending: JobEnding, events: list[Event]) -> None:
        queue = self._queues[job.partition]
        queue.pool.release(job.id)
        queue.held_by_user[job.user] -= job.gpus
        del self._running[job.id]
        events.append(JobEnded(self.now_s, job, ending))

    def _close(self, fault: NodeFault, events: list[Event]) -> str:
        partition = self._partition_of[fault.node]
        queue = self._queues[partition]
        node = queue.pool.index[fault.node]
        queue.pool.close(node)
        events.append(NodeClosed(self.now_s, fault.node, fault.kind))
        if fault.kind is FaultKind.FAIL:
            for job_id in queue.pool.jobs_on(node):
                job = self._running[job_id]
                self._end(job, JobEnding.REQUEUED if job.is_requeued else JobEnding.NODE_FAILED, events)
                if job.is_requeued:
                    queue.add(job)
        return partition

    def _open(self, fault: NodeFault, events: list[Event]) -> str:
        partition = self._partition_of[fault.node]
        pool = self._queues[partition].pool
        if pool.open(pool.index[fault.node]):
            events.append(NodeOpened(self.now_s, fault.node))
        return partition

    def _schedule(self, partition: str, events: list[Event]) -> None:
        queue = self._queues[partition]
        if not queue.waiting:
            queue.head, queue.over_limit = None, set()
            queue.arrived.clear()
            return
        turn = SchedulingTurn(
            self.now_s,
            tuple(queue.waiting),
            queue.pool,
            self._placement,
            queue.held_by_user,
            self._limits.get(partition),
        )
        head = turn.schedule(self._depth)
        for job, grants in turn.started:
            queue.remove(job)
            attempt = self._attempts[job.id] = self._attempts.get(job.id, 0) + 1
            self._running[job.id] = job
            self._plan(self.now_s + min(job.run_s, job.limit_s), _Kind.END, job, attempt)
            events.append(JobStarted(self.now_s, job, grants))
        self._report_reasons(queue, head, turn.over_limit, events)

    def _report_reasons(
        self, queue: _Queue, head: SubmittedJob | None, over_limit: set[int], events: list[Event]
    ) -> None:
        """Report why jobs wait, if that changed: on arrival, at the head of the queue, and at the user limit."""
        changed = queue.over_limit ^ over_limit
        doubtful = [job for job in (queue.head, head) if job is not None] + queue.arrived
        if changed:
            doubtful += [job for job in queue.waiting if job.id in changed]
        for job in doubtful:
            if queue.find(job) is None:
                continue
            reason = Reason.PRIORITY
            if head is not None and job.id == head.id:
                reason = Reason.RESOURCES
            elif job.id in over_limit:
                reason = Reason.USER_LIMIT
            if queue.reasons.get(job.id) is not reason:
                queue.reasons[job.id] = reason
                events.append(JobWaited(self.now_s, job, reason))
        queue.head, queue.over_limit = head, over_limit
        queue.arrived.clear()


def _rank(job: SubmittedJob) -> tuple[int, int, int]:
    return (-job.priority, job.queued_s, job.id)
