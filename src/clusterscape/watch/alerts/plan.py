"""Groups waiting turns into messages, and decides when they are sent. Pure: turns and the time in, a plan out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import Group, SendingPolicy
from clusterscape.watch.alerts.turns import AlertTurn


@dataclass(frozen=True, slots=True)
class SpooledTurn:
    """A turn in the spool that is not part of a message yet."""

    seq: int
    posted_at: UnixMs
    turn: AlertTurn


@dataclass(slots=True)
class DeliveryPlan:
    """What to do with waiting turns, by sequence number. ``shortened``: turns without the units that flapped; ``next_at``: when
    the next turn becomes due.
    """

    messages: list[tuple[Group, list[int]]] = field(default_factory=list)
    flapped: list[int] = field(default_factory=list)
    unsent_stops: list[int] = field(default_factory=list)
    shortened: dict[int, AlertTurn] = field(default_factory=dict)
    next_at: UnixMs | None = None


def plan_messages(
    waiting: Sequence[SpooledTurn], last_sent: Mapping[Group, UnixMs], policy: SendingPolicy, now: UnixMs
) -> DeliveryPlan:
    """Messages due by ``now``, in the order of their first turn. ``last_sent``: when the last message of each group was built."""
    plan = DeliveryPlan()
    kept = drop_flaps(waiting, policy, plan)
    groups: dict[Group, list[SpooledTurn]] = {}
    for spooled in kept:
        groups.setdefault(policy.group_of(spooled.turn), []).append(spooled)
    for group, members in groups.items():
        ready = _ready(members, policy, now)
        due_at = _due_at(ready, last_sent.get(group), policy, policy.interval_of(group))
        if due_at is not None and due_at <= now:
            plan.messages.append((group, [spooled.seq for spooled in ready]))
            due_at = None
        _set_next(plan, due_at)
        if len(ready) < len(members):
            _set_next(plan, _released_at(members[len(ready)], policy))
    plan.messages.sort(key=lambda message: message[1][0])
    return plan


def _set_next(plan: DeliveryPlan, moment: UnixMs | None) -> None:
    plan.next_at = min((at for at in (plan.next_at, moment) if at is not None), default=None)


def drop_flaps(waiting: Iterable[SpooledTurn], policy: SendingPolicy, plan: DeliveryPlan) -> list[SpooledTurn]:
    """The turns without those that started and stopped within the hold, and without stops if the policy does not send them."""
    kept: list[SpooledTurn | None] = []
    starts: dict[tuple[str, str], list[int]] = {}
    for spooled in waiting:
        turn: AlertTurn | None = spooled.turn
        if spooled.turn.is_start:
            starts.setdefault(spooled.turn.subject, []).append(len(kept))
        else:
            turn = _cancel(spooled.turn, starts.get(spooled.turn.subject, ()), kept, policy, plan)
            if turn is None:
                plan.flapped.append(spooled.seq)
            elif not policy.sends_stops:
                plan.unsent_stops.append(spooled.seq)
                turn = None
            elif turn is not spooled.turn:
                plan.shortened[spooled.seq] = turn
        kept.append(None if turn is None else SpooledTurn(spooled.seq, spooled.posted_at, turn))
    return [spooled for spooled in kept if spooled is not None]


def _cancel(
    stop: AlertTurn,
    candidates: Sequence[int],
    kept: list[SpooledTurn | None],
    policy: SendingPolicy,
    plan: DeliveryPlan,
) -> AlertTurn | None:
    """Cancel ``stop`` against held starts of the same units; returns the rest of ``stop``."""
    left: AlertTurn | None = stop
    for index in candidates:
        start = kept[index]
        if left is None or start is None or stop.at - start.turn.at >= policy.hold_ms:
            continue
        shared = start.turn.parts & left.parts
        if not shared:
            continue
        rest = start.turn.without(shared)
        kept[index] = None if rest is None else SpooledTurn(start.seq, start.posted_at, rest)
        if rest is None:
            plan.flapped.append(start.seq)
            plan.shortened.pop(start.seq, None)
        else:
            plan.shortened[start.seq] = rest
        left = left.without(shared)
    return left


def _ready(members: Sequence[SpooledTurn], policy: SendingPolicy, now: UnixMs) -> Sequence[SpooledTurn]:
    """The turns before the first that is still held: later turns of its group wait for it."""
    for index, spooled in enumerate(members):
        if _released_at(spooled, policy) > now:
            return members[:index]
    return members


def _released_at(spooled: SpooledTurn, policy: SendingPolicy) -> UnixMs:
    """When the hold of a turn ends. Only starts are held; a start time in the future (clock skew) does not prolong the hold."""
    if not spooled.turn.is_start:
        return spooled.posted_at
    return UnixMs(min(spooled.turn.at, spooled.posted_at) + policy.hold_ms)


def _due_at(
    ready: Sequence[SpooledTurn], last_sent_at: UnixMs | None, policy: SendingPolicy, interval_ms: int
) -> UnixMs | None:
    if not ready:
        return None
    first = ready[0]
    due_at = max(first.posted_at, _released_at(first, policy)) + policy.group_wait_ms
    return UnixMs(due_at if last_sent_at is None else max(due_at, last_sent_at + interval_ms))
