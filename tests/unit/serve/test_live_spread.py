"""Notifications to many clients are spread evenly over time, and every client gets one."""

import asyncio
import itertools

import pytest

from clusterscape.model import UnixMs
from clusterscape.serve.live import LONGEST_SPREAD_S, UNSTAGGERED_CLIENTS, LiveHub, spread_s
from clusterscape.store.changes import Changes


def test_notifications_are_not_delayed_when_few_clients_listen() -> None:
    assert [spread_s(clients) for clients in (0, 1, UNSTAGGERED_CLIENTS)] == [0.0, 0.0, 0.0]


def test_notifications_are_spread_over_a_bounded_time_when_more_clients_listen() -> None:
    spreads = [spread_s(clients) for clients in range(UNSTAGGERED_CLIENTS, 1000)]
    assert all(shorter <= longer for shorter, longer in itertools.pairwise(spreads))
    assert spreads[-1] == LONGEST_SPREAD_S


async def test_all_clients_get_the_last_change_when_many_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = Changes()
    hub = LiveHub(changes, lambda: UnixMs(0))
    hub.open()
    delays: list[float] = []
    wait = hub._wait

    async def note(delay_s: float) -> None:
        delays.append(delay_s)
        await wait(0.0)

    monkeypatch.setattr(hub, "_wait", note)
    streams = [hub.stream() for _ in range(100)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
    await asyncio.sleep(0)
    await asyncio.to_thread(changes.bump_rules)
    events = await asyncio.wait_for(asyncio.gather(*waiting), 30)
    assert all(b'"rules_version":2' in event for event in events)
    # Gaps between the notifications of 100 clients are between a third and three times the mean.
    turns = sorted(delays)
    gaps = [(late - early) * 100 / spread_s(100) for early, late in itertools.pairwise(turns)]
    assert min(gaps) > 1 / 3
    assert max(gaps) < 3
    hub.close()
    for stream in streams:
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(stream), 30)
    assert hub.clients == 0


async def test_streams_end_immediately_when_the_server_stops_during_a_delay() -> None:
    changes = Changes()
    hub = LiveHub(changes, lambda: UnixMs(0))
    hub.open()
    streams = [hub.stream() for _ in range(50)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
    await asyncio.sleep(0)
    await asyncio.to_thread(changes.bump_rules)
    hub.close()
    ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 30)
    assert all(isinstance(result, bytes | StopAsyncIteration) for result in ended)
