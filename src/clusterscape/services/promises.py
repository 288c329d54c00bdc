"""Records promised starts: plans each new state of the queue, and stores the ledgers (`query/scheduling/promises.py`).

Each slip is attributed to causes: the changes between two moments are applied one kind at a time, and the queue is planned again
after each, so that the parts sum to the whole slip.
"""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clusterscape.model import WorkloadId, WorkloadState
from clusterscape.query.scheduling.live_queue import Holding, LiveQueue, QueueJob, read_live_queue
from clusterscape.query.scheduling.promises import PromiseLedger, Promises, Slip, SlipCause
from clusterscape.query.scheduling.queue_plan import build_layout, plan_queue
from clusterscape.services.context import ServiceContext
from clusterscape.warm_up import Area

log = logging.getLogger(__name__)

KIND = "promises"
MAX_CLOSED = 500
MAX_SLIPS = 60
MAX_NAMES = 4
UPDATE_EVERY_S = 15.0
"""Minimum time between two updates."""


class PromiseKeeper:
    """Updates the ledgers when the queue changes, and stores them so that they survive a restart. One per site.

    ``run`` in a background thread; other methods in any. Two documents hold the open ledgers and the latest closed ones.
    """

    def __init__(self, context: ServiceContext, promises: Promises) -> None:
        """``promises``: the ledgers that queries read; updated here."""
        self._context = context
        self._reads = context.reads
        self._promises = promises
        self._book = PromiseBook()
        self._written: dict[str, Mapping[str, PromiseLedger]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._inventory_version: int | None = None
        self._loop = self._reads.loops.loop(
            "promises", log, fails="promised starts could not be updated", works="promised starts are updated again"
        )
        self.reload()

    def update(self) -> None:
        """Updates the ledgers from the current queue, and stores what changed."""
        with self._lock:
            self._inventory_version = self._reads.changes.versions.inventory
            queue = read_live_queue(self._reads)
            waiting = {job.workload for job in queue.waiting}
            no_longer_waiting = [name for name in self._book.open if name not in waiting]
            closed = self._book.update(queue, self._starts(no_longer_waiting))
            self._promises.open = dict(self._book.open)
            if closed:
                latest = [*self._promises.closed.values(), *closed][-MAX_CLOSED:]
                self._promises.closed = {ledger.workload: ledger for ledger in latest}
            self._write("open", self._promises.open)
            self._write("closed", self._promises.closed)

    def reload(self) -> None:
        """Reads the stored ledgers, which another process may have written."""
        with self._lock:
            self._promises.open, self._promises.closed = self._read("open"), self._read("closed")
            self._written = {"open": self._promises.open, "closed": self._promises.closed}
            self._book = PromiseBook(open=dict(self._promises.open))

    def _starts(self, workloads: list[str]) -> dict[str, int]:
        """Start times of workloads that no longer wait; cancelled ones have none."""
        starts = {}
        for name in workloads:
            workload = self._reads.records.workload(WorkloadId(name))
            if workload is None or workload.state is WorkloadState.WAITING:
                continue
            if workload.started_at is not None:
                starts[name] = workload.started_at // 1000
        return starts

    def run(self) -> None:
        """Updates whenever the inventory changes, at most every UPDATE_EVERY_S, until ``stop``."""
        while not self._stopped.wait(UPDATE_EVERY_S):
            if not self._reads.warm_up.is_ready(Area.QUEUE):
                continue
            if self._reads.changes.versions.inventory == self._inventory_version and not self._loop.is_failing:
                continue
            with self._loop:
                self.update()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()

    def _read(self, key: str) -> dict[str, PromiseLedger]:
        document = self._reads.records.document(KIND, key)
        rows: Any = document.body.get("ledgers", []) if document else []
        return {ledger.workload: ledger for ledger in map(_from_row, rows)}

    def _write(self, key: str, ledgers: Mapping[str, PromiseLedger]) -> None:
        """Stores ledgers that changed since the last successful write, so that a failed write is repeated."""
        if ledgers == self._written[key]:
            return
        body = {"ledgers": [_to_row(ledger) for ledger in ledgers.values()]}
        self._context.write_document(KIND, key, body, at_ms=self._reads.clock())
        self._written[key] = ledgers


def _to_row(ledger: PromiseLedger) -> list[object]:
    slips = [[slip.at_s, slip.cause.value, slip.change_s, list(slip.by)] for slip in ledger.slips]
    return [
        ledger.workload,
        ledger.first_at_s,
        ledger.first_s,
        ledger.last_s,
        ledger.is_schedulers,
        slips,
        ledger.started_s,
        ledger.left_s,
    ]


def _from_row(row: Sequence[Any]) -> PromiseLedger:
    name, first_at, first, last, is_schedulers, slips, started, left = row
    read = tuple(Slip(at, SlipCause(cause), change, tuple(by)) for at, cause, change, by in slips)
    return PromiseLedger(name, first_at, first, last, is_schedulers, read, started, left)


@dataclass(slots=True)
class PromiseBook:
    """The ledgers of all waiting workloads. ``update`` takes each new state of the queue, and returns complete ledgers."""

    open: dict[str, PromiseLedger] = field(default_factory=dict)
    _before: LiveQueue | None = None
    _planned: dict[str, int] = field(default_factory=dict)

    @property
    def starts_s(self) -> Mapping[str, int]:
        """The latest plan: start by workload."""
        return self._planned

    def update(self, queue: LiveQueue, started_s: Mapping[str, int]) -> list[PromiseLedger]:
        """Updates the ledgers. ``started_s``: start times of workloads that no longer wait; returns the closed ledgers."""
        moves: Mapping[str, list[Slip]] = {}
        if self._before is None:
            self._planned = plan_queue(queue)[0]
        else:
            moves, self._planned = find_moves(self._before, self._planned, queue)
        self._before = queue
        waiting = {job.workload: job for job in queue.waiting}
        left = [name for name in self.open if name not in waiting]
        closed = [_close(self.open.pop(name), started_s.get(name), queue.now_s) for name in left]
        for name, job in waiting.items():
            promise = self._promise(job)
            if promise is None:
                continue
            ledger = self.open.get(name)
            if ledger is None:
                self.open[name] = PromiseLedger(name, queue.now_s, promise, promise, job.expected_s is not None)
            elif promise != ledger.last_s:
                parts = moves.get(name, ())
                self.open[name] = _move(ledger, promise, parts, queue.now_s, is_schedulers=job.expected_s is not None)
        return closed

    def _promise(self, job: QueueJob) -> int | None:
        return job.expected_s if job.expected_s is not None else self._planned.get(job.workload)


def _move(
    ledger: PromiseLedger, promise: int, parts: Iterable[Slip], now_s: int, *, is_schedulers: bool
) -> PromiseLedger:
    """``parts`` explain slips of our plan; other slips, of the scheduler's estimate or after a gap, go to the largest part."""
    change, causes = promise - ledger.last_s, list(parts)
    if is_schedulers or sum(part.change_s for part in causes) != change:
        same_direction = [part for part in causes if part.change_s * change > 0]
        unexplained = Slip(now_s, SlipCause.SCHEDULER if is_schedulers else SlipCause.UNSEEN, change)
        main = max(same_direction, key=lambda part: abs(part.change_s), default=unexplained)
        causes = [replace(main, change_s=change)]
    slips = _condense([*ledger.slips, *causes])
    return replace(ledger, last_s=promise, slips=slips, is_schedulers=is_schedulers)


def _close(ledger: PromiseLedger, started_s: int | None, now_s: int) -> PromiseLedger:
    if started_s is None:
        return replace(ledger, left_s=now_s)
    slips = ledger.slips
    if started_s != ledger.last_s:
        slips = _condense([*slips, Slip(started_s, SlipCause.OWN_START, started_s - ledger.last_s)])
    return replace(ledger, started_s=started_s, slips=slips)


def _condense(slips: list[Slip]) -> tuple[Slip, ...]:
    """Merges consecutive slips of the same cause and names; if there are too many, merges the oldest two."""
    condensed: list[Slip] = []
    for slip in slips:
        last = condensed[-1] if condensed else None
        if last is not None and (last.cause, last.by) == (slip.cause, slip.by):
            condensed[-1] = replace(slip, change_s=last.change_s + slip.change_s)
        else:
            condensed.append(slip)
    condensed = [slip for slip in condensed if slip.change_s]
    while len(condensed) > MAX_SLIPS:
        first, second, *rest = condensed
        larger = max(first, second, key=lambda slip: abs(slip.change_s))
        condensed = [replace(larger, change_s=first.change_s + second.change_s), *rest]
    return tuple(condensed)


def find_moves(
    before: LiveQueue, planned: Mapping[str, int], after: LiveQueue
) -> tuple[dict[str, list[Slip]], dict[str, int]]:
    """The slips of each planned start between two moments, and the new starts. The slips sum to the change of each workload."""
    moves: dict[str, list[Slip]] = {}
    starts = dict(planned)
    attribution = _Attribution(before, after)
    for cause, step, names in _steps(before, planned, after):
        new = _plan_part(step, starts, attribution.find_partitions(names) if cause is not SlipCause.OVERDUE else None)
        for name, start in new.items():
            old = starts.get(name)
            if old is not None and start != old:
                moves.setdefault(name, []).append(
                    Slip(after.now_s, cause, start - old, attribution.pick(cause, name, names))
                )
        starts = starts | new if cause is not SlipCause.REORDERED else new
    waiting = {job.workload for job in after.waiting}
    return moves, {name: start for name, start in starts.items() if name in waiting}


def _plan_part(step: LiveQueue, starts: Mapping[str, int], changed: set[str] | None) -> dict[str, int]:
    """Plans the pools of the changed partitions (None: all); starts in other pools are kept."""
    layout = build_layout(step)
    if changed is None:
        return plan_queue(step, layout)[0]
    pools = {layout.pool_of.get(name) for name in changed}
    jobs = step.planned()
    replanned = {job.workload for job in jobs if layout.pool_of.get(job.partition) in pools}
    part = replace(step, waiting=tuple(job for job in jobs if job.workload in replanned))
    kept = {job.workload for job in jobs if job.workload not in replanned}
    return {name: start for name, start in starts.items() if name in kept} | plan_queue(part, layout)[0]


class _Attribution:
    """Selects the possible causes of a slip: changes in the workload's partitions, and of arrivals only those ahead of it."""

    def __init__(self, before: LiveQueue, after: LiveQueue) -> None:
        self._jobs = {job.workload: job for queue in (before, after) for job in queue.waiting}
        self._partitions: dict[str, set[str]] = {}
        for queue in (before, after):
            for node in queue.nodes.values():
                self._partitions.setdefault(node.name, set()).update(node.partitions)
            for holding in queue.held:
                partitions = self._partitions.setdefault(holding.workload, set())
                partitions |= self._partitions.get(holding.node, set())
            for job in queue.waiting:
                self._partitions.setdefault(job.workload, set()).add(job.partition)

    def find_partitions(self, changed: tuple[str, ...]) -> set[str] | None:
        """The partitions of what changed; None if unknown."""
        partitions: set[str] = set()
        for name in changed:
            partitions |= self._partitions.get(name, set())
        return partitions or None

    def pick(self, cause: SlipCause, name: str, changed: tuple[str, ...]) -> tuple[str, ...]:
        partitions, job = self._partitions.get(name, set()), self._jobs[name]
        causes = []
        for changed_name in changed:
            other = self._jobs.get(changed_name)
            is_behind = cause is SlipCause.ARRIVED and other is not None and other.order > job.order
            if changed_name != name and not is_behind and partitions & self._partitions.get(changed_name, set()):
                causes.append(changed_name)
                if len(causes) == MAX_NAMES:
                    break
        return tuple(causes)


def _steps(
    before: LiveQueue, planned: Mapping[str, int], after: LiveQueue
) -> Iterable[tuple[SlipCause, LiveQueue, tuple[str, ...]]]:
    """Intermediate states from ``before`` to ``after``, each with one more kind of change; the last one is ``after``."""
    step = replace(before, now_s=after.now_s)
    if any(start < after.now_s for start in planned.values()) or any(
        holding.end_s < after.now_s for holding in before.held
    ):
        yield SlipCause.OVERDUE, step, ()
    old_ends = {(holding.workload, holding.node): holding for holding in before.held}
    new_ends = {(holding.workload, holding.node): holding for holding in after.held}
    in_both = {key: new_ends[key] for key in old_ends if key in new_ends}
    changed = _names(key[0] for key, holding in in_both.items() if holding != old_ends[key])
    if changed:
        step = replace(step, held=tuple(in_both.get(key, holding) for key, holding in old_ends.items()))
        yield SlipCause.LIMIT_CHANGED, step, changed
    if before.nodes != after.nodes:
        names = _names(
            name for name in {**before.nodes, **after.nodes} if before.nodes.get(name) != after.nodes.get(name)
        )
        held = tuple(holding for holding in step.held if holding.node in after.nodes)
        step = replace(step, nodes=after.nodes, held=held)
        yield SlipCause.NODES_CHANGED, step, names
    yield from _queue_steps(step, after, new_ends)


def _queue_steps(
    step: LiveQueue, after: LiveQueue, new_ends: Mapping[tuple[str, str], Holding]
) -> Iterable[tuple[SlipCause, LiveQueue, tuple[str, ...]]]:
    """Changes of workloads: they ended, were cancelled, started, were submitted, or changed."""
    running = {name for name, _ in new_ends}
    ended = _names(holding.workload for holding in step.held if holding.workload not in running)
    if ended:
        step = replace(step, held=tuple(holding for holding in step.held if holding.workload in running))
        yield SlipCause.ENDED, step, ended
    waits = {job.workload: job for job in after.waiting}
    left = _names(job.workload for job in step.waiting if job.workload not in waits and job.workload not in running)
    if left:
        step = step.with_jobs(job for job in step.waiting if job.workload in waits or job.workload in running)
        yield SlipCause.LEFT, step, left
    if step.held != after.held or any(job.workload not in waits for job in step.waiting):
        moved = {holding.workload for holding in set(step.held) ^ set(after.held)}
        started = _names([*sorted(moved), *(job.workload for job in step.waiting if job.workload not in waits)])
        step = replace(step, held=after.held).with_jobs(job for job in step.waiting if job.workload in waits)
        yield SlipCause.STARTED, step, started
    queued = {job.workload for job in step.waiting}
    arrived = _names(name for name in waits if name not in queued)
    if arrived:
        new = [waits[name] for name in waits if name not in queued]
        step = step.with_jobs([*step.waiting, *new])
        yield SlipCause.ARRIVED, step, arrived
    if step != after:
        old = {job.workload: job for job in step.waiting}
        names = _names(name for name, job in waits.items() if old.get(name) != job)
        yield SlipCause.REORDERED, after, names if step.max_times_s == after.max_times_s else ()


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
