"""Brings one channel's messages out of the spool and to their end, in order. Knows times and outcomes, not protocols."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from clusterscape import executors
from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import Answer, Channel, Firing, Message
from clusterscape.watch.alerts.firing import advance
from clusterscape.watch.alerts.plan import plan_messages
from clusterscape.watch.alerts.retry import next_attempt_at
from clusterscape.watch.alerts.spool import Head, Spool

log = logging.getLogger(__name__)

HOUR_MS = 3_600_000
GRACE_S = 3.0
"""So long a message under way may take when we are told to stop: its answer is worth more than a quick end."""


class Delivery:
    """One channel at work. ``step`` does all that is due and says when to come again."""

    def __init__(self, channel: Channel, spool: Spool, clock: Callable[[], UnixMs], dice: random.Random) -> None:
        self._channel = channel
        self._spool = spool
        self._clock = clock
        self._dice = dice
        self._refreshed_at: UnixMs | None = None

    async def step(self) -> UnixMs | None:
        """Make messages, send what is due, repeat what fires. Returns when something is due next; None: nothing waits."""
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
        plan = plan_messages(waiting, self._spool.last_told(name), policy, now)
        if plan.messages or plan.flapped or plan.untold or plan.shortened:
            self._spool.apply(name, plan, now, lane_of=policy.lane_of, interval_ms=policy.group_interval_ms)
        return plan.next_at

    def _choose(self) -> tuple[Head | None, UnixMs | None]:
        """The oldest message that may go now; else None and when one may."""
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
                    # The last place of this hour takes everything that waits.
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
        fires: Sequence[Firing] = ()
        if self._channel.refresh_every_ms is not None:
            before = await executors.UPKEEP.run(self._spool.firing, name)
            message = replace(message, firing=advance(before, message.turns))
            fires = list(message.firing.values())
        answer = await self._ask(message)
        now = self._clock()
        if answer.is_accepted:
            await executors.UPKEEP.run(self._spool.finish, name, head.id, answer, now, fires)
            return
        next_at = next_attempt_at(answer, attempts, now, self._dice)
        await executors.UPKEEP.run(self._spool.fail, name, head.id, answer, now, next_at)
        if attempts == 1 or answer.is_lasting:
            log.warning("alerts cannot be sent to %s: %s", name, answer.text)

    async def _ask(self, message: Message) -> Answer:
        try:
            return await self._channel.send(message)
        except Exception as error:
            # Without this one odd message would end the channel's task, and all later ones with it.
            log.exception("alert channel %s failed", self._channel.name)
            text = f"{type(error).__name__}: {error} (a fault in ClusterScape; the log has its traceback)"
            return Answer(is_accepted=False, is_lasting=True, text=text)

    async def _refresh(self) -> UnixMs | None:
        """Repeat what fires, where the channel forgets; at once after a start, which may follow a long absence."""
        every_ms = self._channel.refresh_every_ms
        if every_ms is None:
            return None
        firing = await executors.UPKEEP.run(self._spool.firing, self._channel.name)
        if not firing:
            return None
        now = self._clock()
        if self._refreshed_at is None or now - self._refreshed_at >= every_ms:
            self._refreshed_at = now
            answer = await self._channel.refresh(list(firing.values()))
            await executors.UPKEEP.run(self._spool.note_refresh, self._channel.name, answer, now)
        return UnixMs(self._refreshed_at + every_ms)
