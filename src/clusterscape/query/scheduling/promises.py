"""What a waiting workload was promised, and why the promise moved. Pure: moments of the queue in, ledgers out.

A promise is the start in a plan by limits, or the scheduler's own. Each move is put down to causes: the changes between two
moments are applied kind by kind, planning again after each, so that the parts sum to the whole move. Hence the slips of a
workload sum exactly to its start − its first promise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from clusterscape.query.scheduling.live_queue import Holding, LiveQueue, QueueJob
from clusterscape.query.scheduling.queue_plan import lay_out, plan_queue

MOST_SLIPS = 60
MOST_NAMES = 4


class SlipCause(StrEnum):
    """Why a promised start moved."""

    OVERDUE = "overdue"  # the planned start passed and it did not start
    LIMIT_CHANGED = "limit_changed"  # a running workload's time limit
    NODES_CHANGED = "nodes_changed"  # nodes were lost or came back
    ENDED = "ended"  # a running workload ended
    LEFT = "left"  # a waiting workload was cancelled
    STARTED = "started"  # another workload started, perhaps on its space (backfill)
    ARRIVED = "arrived"  # a workload was submitted that goes before it
    REORDERED = "reordered"  # priorities or requests changed
    SCHEDULER = "scheduler"  # the scheduler's own plan, for no reason that we see
    UNSEEN = "unseen"  # it was held, or nobody watched, for a while
    OWN_START = "own_start"  # it started before or after the last promise


@dataclass(frozen=True, slots=True)
class Slip:
    """``change_s`` > 0: later. ``by``: workloads or nodes that did it, some of them."""

    at_s: int
    cause: SlipCause
    change_s: int
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The promises of one workload. ``started_s`` is None while it waits, and where it left without starting."""

    workload: str
    first_at_s: int
    first_s: int
    last_s: int
    is_schedulers: bool
    slips: tuple[Slip, ...] = ()
    started_s: int | None = None
    left_s: int | None = None

    @property
    def slipped_s(self) -> int:
        """The sum of all slips: last promise, or start, − first promise."""
        return sum(slip.change_s for slip in self.slips)


@dataclass(slots=True)
class PromiseBook:
    """The ledgers of all waiting workloads. ``look`` at each new moment; who started or left is handed out, complete."""

    open: dict[str, Ledger] = field(default_factory=dict)
    _before: LiveQueue | None = None
    _planned: dict[str, int] = field(default_factory=dict)

    @property
    def starts_s(self) -> Mapping[str, int]:
        """The plan of the last look, by workload."""
        return self._planned

    def look(self, queue: LiveQueue, started_s: Mapping[str, int]) -> list[Ledger]:
        """Take in a moment. ``started_s``: when those began that wait no more; returns the ledgers that are closed."""
        moves: Mapping[str, list[Slip]] = {}
        if self._before is None:
            self._planned = plan_queue(queue)[0]
        else:
            moves, self._planned = find_moves(self._before, self._planned, queue)
        self._before = queue
        waiting = {job.workload: job for job in queue.waiting}
        gone = [name for name in self.open if name not in waiting]
        closed = [_close(self.open.pop(name), started_s.get(name), queue.now_s) for name in gone]
        for name, job in waiting.items():
            promise = self._promise(job)
            if promise is None:
                continue
            ledger = self.open.get(name)
            if ledger is None:
                self.open[name] = Ledger(name, queue.now_s, promise, promise, job.expected_s is not None)
            elif promise != ledger.last_s:
                parts = moves.get(name, ())
                self.open[name] = _move(ledger, promise, parts, queue.now_s, is_schedulers=job.expected_s is not None)
        return closed

    def _promise(self, job: QueueJob) -> int | None:
        return job.expected_s if job.expected_s is not None else self._planned.get(job.workload)


def _move(ledger: Ledger, promise: int, parts: Iterable[Slip], now_s: int, *, is_schedulers: bool) -> Ledger:
    """Parts explain the move of our own plan; a scheduler's move, or what a pause hid, goes to the largest of them."""
    change, found = promise - ledger.last_s, list(parts)
    if is_schedulers or sum(part.change_s for part in found) != change:
        along = [part for part in found if part.change_s * change > 0]
        other = Slip(now_s, SlipCause.SCHEDULER if is_schedulers else SlipCause.UNSEEN, change)
        main = max(along, key=lambda part: abs(part.change_s), default=other)
        found = [replace(main, change_s=change)]
    slips = _condense([*ledger.slips, *found])
    return replace(ledger, last_s=promise, slips=slips, is_schedulers=is_schedulers)


def _close(ledger: Ledger, started_s: int | None, now_s: int) -> Ledger:
    if started_s is None:
        return replace(ledger, left_s=now_s)
    slips = ledger.slips
    if started_s != ledger.last_s:
        slips = _condense([*slips, Slip(started_s, SlipCause.OWN_START, started_s - ledger.last_s)])
    return replace(ledger, started_s=started_s, slips=slips)


def _condense(slips: list[Slip]) -> tuple[Slip, ...]:
    """The same cause by the same names in a row is one slip; of too many, the oldest two are made one."""
    found: list[Slip] = []
    for slip in slips:
        last = found[-1] if found else None
        if last is not None and (last.cause, last.by) == (slip.cause, slip.by):
            found[-1] = replace(slip, change_s=last.change_s + slip.change_s)
        else:
            found.append(slip)
    found = [slip for slip in found if slip.change_s]
    while len(found) > MOST_SLIPS:
        first, second, *rest = found
        larger = max(first, second, key=lambda slip: abs(slip.change_s))
        found = [replace(larger, change_s=first.change_s + second.change_s), *rest]
    return tuple(found)


def find_moves(
    before: LiveQueue, planned: Mapping[str, int], after: LiveQueue
) -> tuple[dict[str, list[Slip]], dict[str, int]]:
    """Why each planned start moved between two moments, and the starts after. Parts sum to the move of each workload."""
    moves: dict[str, list[Slip]] = {}
    starts = dict(planned)
    blame = _Blame(before, after)
    for cause, step, names in _steps(before, planned, after):
        new = _plan_part(step, starts, blame.find_partitions(names) if cause is not SlipCause.OVERDUE else None)
        for name, start in new.items():
            old = starts.get(name)
            if old is not None and start != old:
                moves.setdefault(name, []).append(Slip(after.now_s, cause, start - old, blame.pick(cause, name, names)))
        starts = starts | new if cause is not SlipCause.REORDERED else new
    waiting = {job.workload for job in after.waiting}
    return moves, {name: start for name, start in starts.items() if name in waiting}


def _plan_part(step: LiveQueue, known: Mapping[str, int], changed: set[str] | None) -> dict[str, int]:
    """Plan the pools of the partitions where something changed (None: all); the others are as they were."""
    layout = lay_out(step)
    if changed is None:
        return plan_queue(step, layout)[0]
    pools = {layout.pool_of.get(name) for name in changed}
    jobs = step.planned()
    again = {job.workload for job in jobs if layout.pool_of.get(job.partition) in pools}
    part = replace(step, waiting=tuple(job for job in jobs if job.workload in again))
    kept = {job.workload for job in jobs if job.workload not in again}
    return {name: start for name, start in known.items() if name in kept} | plan_queue(part, layout)[0]


class _Blame:
    """Who of those that changed can have moved a workload: those of its partitions, and of arrivals those that go first."""

    def __init__(self, before: LiveQueue, after: LiveQueue) -> None:
        self._jobs = {job.workload: job for queue in (before, after) for job in queue.waiting}
        self._partitions: dict[str, set[str]] = {}
        for queue in (before, after):
            for node in queue.nodes.values():
                self._partitions.setdefault(node.name, set()).update(node.partitions)
            for each in queue.held:
                held = self._partitions.setdefault(each.workload, set())
                held |= self._partitions.get(each.node, set())
            for job in queue.waiting:
                self._partitions.setdefault(job.workload, set()).add(job.partition)

    def find_partitions(self, changed: tuple[str, ...]) -> set[str] | None:
        """Where something changed; None where that cannot be said."""
        found: set[str] = set()
        for name in changed:
            found |= self._partitions.get(name, set())
        return found or None

    def pick(self, cause: SlipCause, name: str, changed: tuple[str, ...]) -> tuple[str, ...]:
        mine, job = self._partitions.get(name, set()), self._jobs[name]
        found = []
        for each in changed:
            other = self._jobs.get(each)
            is_behind = cause is SlipCause.ARRIVED and other is not None and other.order > job.order
            if each != name and not is_behind and mine & self._partitions.get(each, set()):
                found.append(each)
                if len(found) == MOST_NAMES:
                    break
        return tuple(found)


def _steps(
    before: LiveQueue, planned: Mapping[str, int], after: LiveQueue
) -> Iterable[tuple[SlipCause, LiveQueue, tuple[str, ...]]]:
    """Moments from ``before`` to ``after``, each with one kind of change more; the last one is ``after``."""
    step = replace(before, now_s=after.now_s)
    if any(start < after.now_s for start in planned.values()) or any(each.end_s < after.now_s for each in before.held):
        yield SlipCause.OVERDUE, step, ()
    old_ends = {(each.workload, each.node): each for each in before.held}
    new_ends = {(each.workload, each.node): each for each in after.held}
    kept = {key: new_ends[key] for key in old_ends if key in new_ends}
    changed = _names(key[0] for key, each in kept.items() if each != old_ends[key])
    if changed:
        step = replace(step, held=tuple(kept.get(key, each) for key, each in old_ends.items()))
        yield SlipCause.LIMIT_CHANGED, step, changed
    if before.nodes != after.nodes:
        names = _names(
            name for name in {**before.nodes, **after.nodes} if before.nodes.get(name) != after.nodes.get(name)
        )
        held = tuple(each for each in step.held if each.node in after.nodes)
        step = replace(step, nodes=after.nodes, held=held)
        yield SlipCause.NODES_CHANGED, step, names
    yield from _queue_steps(step, after, new_ends)


def _queue_steps(
    step: LiveQueue, after: LiveQueue, new_ends: Mapping[tuple[str, str], Holding]
) -> Iterable[tuple[SlipCause, LiveQueue, tuple[str, ...]]]:
    """What workloads did: they ended, left, started, arrived, or are others now."""
    running = {name for name, _ in new_ends}
    ended = _names(each.workload for each in step.held if each.workload not in running)
    if ended:
        step = replace(step, held=tuple(each for each in step.held if each.workload in running))
        yield SlipCause.ENDED, step, ended
    waits = {job.workload: job for job in after.waiting}
    left = _names(job.workload for job in step.waiting if job.workload not in waits and job.workload not in running)
    if left:
        step = step.with_jobs(job for job in step.waiting if job.workload in waits or job.workload in running)
        yield SlipCause.LEFT, step, left
    if step.held != after.held or any(job.workload not in waits for job in step.waiting):
        moved = {each.workload for each in set(step.held) ^ set(after.held)}
        started = _names([*sorted(moved), *(job.workload for job in step.waiting if job.workload not in waits)])
        step = replace(step, held=after.held).with_jobs(job for job in step.waiting if job.workload in waits)
        yield SlipCause.STARTED, step, started
    known = {job.workload for job in step.waiting}
    arrived = _names(name for name in waits if name not in known)
    if arrived:
        new = [waits[name] for name in waits if name not in known]
        step = step.with_jobs([*step.waiting, *new])
        yield SlipCause.ARRIVED, step, arrived
    if step != after:
        old = {job.workload: job for job in step.waiting}
        names = _names(name for name, job in waits.items() if old.get(name) != job)
        yield SlipCause.REORDERED, after, names if step.max_times_s == after.max_times_s else ()


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
