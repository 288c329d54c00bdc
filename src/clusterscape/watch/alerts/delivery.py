"""Sends one channel's messages from the spool, in order. Handles times and results, not protocols."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from clusterscape import executors
from clusterscape.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import Channel, DeliveryResult, Firing, Message
from clusterscape.watch.alerts.plan import plan_messages
from clusterscape.watch.alerts.spool import AlertSpool, Head
from clusterscape.watch.alerts.turns import AlertTurn

log = logging.getLogger(__name__)

GRACE_S = 3.0
"""On shutdown, the time that a message being sent has to finish, so that its result is not lost."""
FIRST_RETRY_MS = 5_000
LONGEST_RETRY_MS = 10 * MINUTE_MS
LASTING_RETRY_MS = 30 * MINUTE_MS
"""Permanent errors are retried, too: after an operator fixes the token, everything that waited is delivered."""
_LONGEST_RETRY_AFTER_MS = DAY_MS  # a longer Retry-After is an error of the server

FiringKey = tuple[str, str]


class Delivery:
    """The delivery of one channel. ``step`` does all that is due and returns when to call it again."""

    def __init__(self, channel: Channel, spool: AlertSpool, clock: Callable[[], UnixMs], rng: random.Random) -> None:
        self._channel = channel
        self._spool = spool
        self._clock = clock
        self._rng = rng
        self._refreshed_at: UnixMs | None = None

    async def step(self) -> UnixMs | None:
        """Build messages, send due ones, repeat firing alerts. Returns when something is due next; None: nothing waits."""
        planned_at = await executors.UPKEEP.run(self._plan)
        while True:
            head, ready_at = await executors.UPKEEP.run(self._choose)
            if head is None:
                break
            await self._finish_even_if_cancelled(head)
        refresh_at = await self._refresh()
        return min((at for at in (planned_at, ready_at, refresh_at) if at is not None), default=None)

    def _plan(self) -> UnixMs | None:
        name, policy, now = self._channel.name, self._channel.policy, self._clock()
        waiting = self._spool.waiting(name)
        if not waiting:
            return None
        plan = plan_messages(waiting, self._spool.last_sent(name), policy, now)
        if plan.messages or plan.flapped or plan.unsent_stops or plan.shortened:
            self._spool.apply(name, plan, now, lane_of=policy.lane_of, interval_ms=policy.group_interval_ms)
        return plan.next_at

    def _choose(self) -> tuple[Head | None, UnixMs | None]:
        """The oldest message that may be sent now; else None and when one may."""
        now = self._clock()
        heads, paused_until = self._spool.heads(self._channel.name)
        if paused_until is not None and paused_until > now:
            return None, paused_until if heads else None
        limit = self._channel.policy.max_per_hour
        since = UnixMs(now - HOUR_MS)
        recent = self._spool.delivered_since(self._channel.name, since) if heads and limit is not None else {}
        earliest: UnixMs | None = None
        for head in heads:
            sent = recent.get(head.lane, [])
            free_at = now if limit is None or len(sent) < limit else UnixMs(sent[-limit] + HOUR_MS)
            ready_at = max(free_at, head.next_at or now)
            if ready_at <= now:
                if limit is not None and len(sent) == limit - 1 and head.waiting > 1:
                    # The last message that the rate limit allows contains everything that waits.
                    self._spool.fold(self._channel.name, head.lane)
                return head, None
            earliest = ready_at if earliest is None else min(earliest, ready_at)
        return None, earliest

    async def _finish_even_if_cancelled(self, head: Head) -> None:
        task = asyncio.create_task(self._send(head), name=f"alert {self._channel.name} {head.id}")
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=GRACE_S)
            task.cancel()
            raise

    async def _send(self, head: Head) -> None:
        name = self._channel.name
        message, attempts = await executors.UPKEEP.run(self._spool.begin, head.id)
        firing: Sequence[Firing] = ()
        if self._channel.refresh_every_ms is not None:
            before = await executors.UPKEEP.run(self._spool.firing, name)
            message = replace(message, firing=update_firing(before, message.turns))
            firing = list(message.firing.values())
        result = await self._send_safely(message)
        now = self._clock()
        if result.is_accepted:
            await executors.UPKEEP.run(self._spool.finish, name, head.id, result, now, firing)
            return
        next_at = next_attempt_at(result, attempts, now, self._rng)
        await executors.UPKEEP.run(self._spool.fail, name, head.id, result, now, next_at)
        if attempts == 1 or result.is_lasting:
            log.warning("cannot send alerts to %s: %s", name, result.text)

    async def _send_safely(self, message: Message) -> DeliveryResult:
        try:
            return await self._channel.send(message)
        except Exception as error:
            # Otherwise one bad message would end the channel's task and block all later messages.
            log.exception("alert channel %s failed", self._channel.name)
            text = f"{type(error).__name__}: {error} (a bug in ClusterScape; see the traceback in its log)"
            return DeliveryResult(is_accepted=False, is_lasting=True, text=text)

    async def _refresh(self) -> UnixMs | None:
        """Repeat firing alerts, if the channel needs it; at once after a start, because the process may have been down."""
        interval_ms = self._channel.refresh_every_ms
        if interval_ms is None:
            return None
        firing = await executors.UPKEEP.run(self._spool.firing, self._channel.name)
        if not firing:
            return None
        now = self._clock()
        if self._refreshed_at is None or now - self._refreshed_at >= interval_ms:
            self._refreshed_at = now
            result = await self._channel.refresh(list(firing.values()))
            await executors.UPKEEP.run(self._spool.note_refresh, self._channel.name, result, now)
        return UnixMs(self._refreshed_at + interval_ms)


def next_attempt_at(result: DeliveryResult, attempts: int, now: UnixMs, rng: random.Random) -> UnixMs:
    """Exponential backoff with jitter: between half and the whole interval, never before the server's Retry-After."""
    interval_ms = (
        LASTING_RETRY_MS if result.is_lasting else min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(attempts - 1, 20))
    )
    wait_ms = interval_ms * rng.uniform(0.5, 1.0)
    if result.retry_after_s is not None:
        wait_ms = max(wait_ms, min(result.retry_after_s * 1000, _LONGEST_RETRY_AFTER_MS))
    return UnixMs(now + int(wait_ms))


def update_firing(before: Mapping[FiringKey, Firing], turns: Iterable[AlertTurn]) -> dict[FiringKey, Firing]:
    """Which alerts fire after ``turns``, by subject; one with empty ``parts`` has stopped."""
    after: dict[FiringKey, Firing] = {}
    for turn in turns:
        previous = after.get(turn.subject) or before.get(turn.subject)
        if turn.is_start:
            is_open = previous is not None and bool(previous.parts)
            first = previous.first if previous is not None and is_open else turn
            parts = (previous.parts if previous is not None else frozenset()) | turn.parts
        else:
            first = previous.first if previous is not None else turn
            # A stop of the whole workload stops all its parts.
            parts = frozenset() if previous is None or not turn.units else previous.parts - turn.parts
        after[turn.subject] = Firing(first=first, parts=parts)
    return after
