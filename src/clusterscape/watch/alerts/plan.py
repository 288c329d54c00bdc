"""Which waiting turns become which messages, and when. Pure: turns and the time in, a plan out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import Group, Policy
from clusterscape.watch.alerts.turns import AlertTurn


@dataclass(frozen=True, slots=True)
class Waiting:
    """A spooled turn that is in no message yet."""

    seq: int
    posted_at: UnixMs
    turn: AlertTurn


@dataclass(slots=True)
class Plan:
    """``shortened`` are turns some of whose units flapped; ``next_at`` is when something else becomes due."""

    messages: list[tuple[Group, list[int]]] = field(default_factory=list)
    flapped: list[int] = field(default_factory=list)
    untold: list[int] = field(default_factory=list)
    shortened: dict[int, AlertTurn] = field(default_factory=dict)
    next_at: UnixMs | None = None


def plan_messages(waiting: Sequence[Waiting], last_told: Mapping[Group, UnixMs], policy: Policy, now: UnixMs) -> Plan:
    """Messages due by ``now``, in the order of their first turn. ``last_told``: when a group last became a message."""
    plan = Plan()
    kept = drop_flaps(waiting, policy, plan)
    groups: dict[Group, list[Waiting]] = {}
    for each in kept:
        groups.setdefault(policy.group_of(each.turn), []).append(each)
    for group, members in groups.items():
        ready = _ready(members, policy, now)
        due_at = _due_at(ready, last_told.get(group), policy, policy.interval_of(group))
        if due_at is not None and due_at <= now:
            plan.messages.append((group, [each.seq for each in ready]))
            due_at = None
        _note(plan, due_at)
        if len(ready) < len(members):
            _note(plan, _released_at(members[len(ready)], policy))
    plan.messages.sort(key=lambda message: message[1][0])
    return plan


def _note(plan: Plan, moment: UnixMs | None) -> None:
    plan.next_at = min((at for at in (plan.next_at, moment) if at is not None), default=None)


def drop_flaps(waiting: Iterable[Waiting], policy: Policy, plan: Plan) -> list[Waiting]:
    """Without what started and stopped within the hold, and without stops where they are not told."""
    kept: list[Waiting | None] = []
    starts: dict[tuple[str, str], list[int]] = {}
    for each in waiting:
        turn: AlertTurn | None = each.turn
        if each.turn.is_start:
            starts.setdefault(each.turn.subject, []).append(len(kept))
        else:
            turn = _cancel(each.turn, starts.get(each.turn.subject, ()), kept, policy, plan)
            if turn is None:
                plan.flapped.append(each.seq)
            elif not policy.is_stop_told:
                plan.untold.append(each.seq)
                turn = None
            elif turn is not each.turn:
                plan.shortened[each.seq] = turn
        kept.append(None if turn is None else Waiting(each.seq, each.posted_at, turn))
    return [each for each in kept if each is not None]


def _cancel(
    stop: AlertTurn, candidates: Sequence[int], kept: list[Waiting | None], policy: Policy, plan: Plan
) -> AlertTurn | None:
    """What is left of ``stop`` after the held starts that it ends; these lose the same units."""
    left: AlertTurn | None = stop
    for place in candidates:
        start = kept[place]
        if left is None or start is None or stop.at - start.turn.at >= policy.hold_ms:
            continue
        both = start.turn.parts & left.parts
        if not both:
            continue
        rest = start.turn.without(both)
        kept[place] = None if rest is None else Waiting(start.seq, start.posted_at, rest)
        if rest is None:
            plan.flapped.append(start.seq)
            plan.shortened.pop(start.seq, None)
        else:
            plan.shortened[start.seq] = rest
        left = left.without(both)
    return left


def _ready(members: Sequence[Waiting], policy: Policy, now: UnixMs) -> Sequence[Waiting]:
    """The turns before the first that is still held: nothing overtakes it within its group."""
    for place, each in enumerate(members):
        if _released_at(each, policy) > now:
            return members[:place]
    return members


def _released_at(each: Waiting, policy: Policy) -> UnixMs:
    """A start is held; a time in the future (of another machine's clock) does not hold it longer."""
    return UnixMs(min(each.turn.at, each.posted_at) + policy.hold_ms) if each.turn.is_start else each.posted_at


def _due_at(ready: Sequence[Waiting], told_at: UnixMs | None, policy: Policy, interval_ms: int) -> UnixMs | None:
    if not ready:
        return None
    first = ready[0]
    due_at = max(first.posted_at, _released_at(first, policy)) + policy.group_wait_ms
    return UnixMs(due_at if told_at is None else max(due_at, told_at + interval_ms))
