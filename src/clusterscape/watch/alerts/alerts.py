"""The way in: takes turns of violations, keeps them, and delivers them to every channel until it is stopped."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import ViolationTurn
from clusterscape.supervision import BackgroundLoops, SupervisedLoop
from clusterscape.watch.alerts.contract import Channel, ChannelState
from clusterscape.watch.alerts.delivery import Delivery
from clusterscape.watch.alerts.spool import Spool
from clusterscape.watch.alerts.turns import AlertTurn, flatten

log = logging.getLogger(__name__)

LONGEST_SLEEP_S = 60.0  # the clock may be set meanwhile
FAILURE_PAUSE_S = 10.0


class Alerts:
    """Turns in, messages out. One process per spool; ``post`` and ``state`` from any thread."""

    def __init__(
        self,
        channels: Sequence[Channel],
        spool: Path,
        *,
        clock: Callable[[], UnixMs],
        dice: random.Random | None = None,
        loops: BackgroundLoops | None = None,
    ) -> None:
        self._channels = channels
        self._clock = clock
        self._spool = Spool(spool)
        self._spool.register({channel.name: channel.kind for channel in channels})
        dice = dice or random.Random()
        self._deliveries = [Delivery(channel, self._spool, clock, dice) for channel in channels]
        self._loops = loops or BackgroundLoops()
        self._awake: dict[Delivery, asyncio.Event] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def names(self) -> frozenset[str]:
        """The channels that are configured."""
        return frozenset(channel.name for channel in self._channels)

    def post(self, turns: Sequence[ViolationTurn]) -> None:
        """Keep the turns; they are on the disk when this returns. What was posted before is known and left out.

        Raises StoreError where the disk does not take them: then post them again later.
        """
        flat = [flatten(turn) for turn in turns]
        wanted = {channel.name: _wanted(channel, flat) for channel in self._channels}
        wanted = {name: many for name, many in wanted.items() if many}
        if not wanted:
            return
        self._spool.post(wanted, self._clock())
        for channel in self._channels:
            if channel.name in wanted:
                self._bound(channel)
        self._wake()

    def _bound(self, channel: Channel) -> None:
        policy = channel.policy
        self._spool.bound(
            channel.name,
            policy.max_waiting,
            is_stateful=channel.refresh_every_ms is not None,
            lane_of=lambda turn: policy.lane_of(policy.group_of(turn)),
        )

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it was closed just now
                for awake in self._awake.values():
                    loop.call_soon_threadsafe(awake.set)

    async def run(self) -> None:
        """Deliver until cancelled; a message under way is given a moment to be answered."""
        self._awake = {delivery: asyncio.Event() for delivery in self._deliveries}
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as group:
                for channel, (delivery, awake) in zip(self._channels, self._awake.items(), strict=True):
                    group.create_task(self._follow(delivery, awake, self._loop_of(channel)))
        finally:
            self._loop = None

    def _loop_of(self, channel: Channel) -> SupervisedLoop:
        return self._loops.loop(
            f"alerts {channel.name}",
            log,
            fails=f"alerts for {channel.name} wait",
            works=f"alerts for {channel.name} are delivered again",
        )

    async def _follow(self, delivery: Delivery, awake: asyncio.Event, loop: SupervisedLoop) -> None:
        while True:
            awake.clear()
            pause_s = FAILURE_PAUSE_S
            with loop:
                due_at = await delivery.step()
                pause_s = LONGEST_SLEEP_S if due_at is None else (due_at - self._clock()) / 1000
            with suppress(TimeoutError):
                async with asyncio.timeout(min(max(pause_s, 0.0), LONGEST_SLEEP_S)):
                    await awake.wait()

    async def deliver_due(self) -> UnixMs | None:
        """All that is due now, once, for who keeps time himself; returns when something is due next."""
        due = [await delivery.step() for delivery in self._deliveries]
        return min((at for at in due if at is not None), default=None)

    def state(self) -> list[ChannelState]:
        """How each channel does."""
        return self._spool.states()

    def close(self) -> None:
        """Let go of the spool; after ``run`` has ended."""
        self._spool.close()


def _wanted(channel: Channel, turns: Sequence[AlertTurn]) -> list[AlertTurn]:
    """Stops all pass: the spool knows which starts the channel was told, whatever the rule's severity is by now."""
    return [turn for turn in turns if (not turn.is_start or channel.policy.wants(turn)) and channel.can_reach(turn)]
