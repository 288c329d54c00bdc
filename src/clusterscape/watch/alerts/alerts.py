"""The entry point of alerts: spools turns of violations and delivers them to every channel until it is stopped."""

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
from clusterscape.watch.alerts.spool import AlertSpool
from clusterscape.watch.alerts.turns import AlertTurn, flatten

log = logging.getLogger(__name__)

LONGEST_SLEEP_S = 60.0  # the clock may be set in the meantime
FAILURE_PAUSE_S = 10.0


class Alerts:
    """Turns in, messages out. One process per spool; ``post`` and ``state`` from any thread."""

    def __init__(
        self,
        channels: Sequence[Channel],
        spool: Path,
        *,
        clock: Callable[[], UnixMs],
        rng: random.Random | None = None,
        loops: BackgroundLoops | None = None,
    ) -> None:
        self._channels = channels
        self._clock = clock
        self._spool = AlertSpool(spool)
        self._spool.register({channel.name: channel.kind for channel in channels})
        rng = rng or random.Random()
        self._deliveries = [Delivery(channel, self._spool, clock, rng) for channel in channels]
        self._loops = loops or BackgroundLoops()
        self._awake: dict[Delivery, asyncio.Event] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def names(self) -> frozenset[str]:
        """Names of the configured channels."""
        return frozenset(channel.name for channel in self._channels)

    def post(self, turns: Sequence[ViolationTurn]) -> None:
        """Spool the turns; they are on disk when this returns. Turns that were posted before are ignored.

        Raises StoreError if they cannot be written: then post them again later.
        """
        self.post_flat([flatten(turn) for turn in turns])

    def post_flat(self, flat: Sequence[AlertTurn]) -> None:
        """Spool turns of something else than a rule of the book. Raises StoreError."""
        turns_by_channel = {channel.name: _select_turns(channel, flat) for channel in self._channels}
        turns_by_channel = {name: selected for name, selected in turns_by_channel.items() if selected}
        if not turns_by_channel:
            return
        self._spool.post(turns_by_channel, self._clock())
        for channel in self._channels:
            if channel.name in turns_by_channel:
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
            with suppress(RuntimeError):  # the loop was closed just now
                for awake in self._awake.values():
                    loop.call_soon_threadsafe(awake.set)

    async def run(self) -> None:
        """Deliver until cancelled; a message that is being sent gets a moment to finish."""
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
            fails=f"alerts for {channel.name} cannot be delivered",
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
        """Deliver all that is due now, once; returns when something is due next."""
        due = [await delivery.step() for delivery in self._deliveries]
        return min((at for at in due if at is not None), default=None)

    def state(self) -> list[ChannelState]:
        """The state of each channel."""
        return self._spool.states()

    def close(self) -> None:
        """Close the spool; call it after ``run`` has ended."""
        self._spool.close()


def _select_turns(channel: Channel, turns: Sequence[AlertTurn]) -> list[AlertTurn]:
    """The turns for a channel. All stops pass: the spool drops those whose start the channel was not sent."""
    return [turn for turn in turns if (not turn.is_start or channel.policy.wants(turn)) and channel.can_reach(turn)]
