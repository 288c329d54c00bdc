"""Telling many listeners of a change: one after another, evenly, and nobody is forgotten."""

import asyncio
import itertools

import pytest

from clusterscape.model import UnixMs
from clusterscape.serve.live import FEW, LONGEST_SPREAD_S, LiveHub, spread_s
from clusterscape.store.changes import Changes


def test_nobody_waits_when_few_listen() -> None:
    assert [spread_s(clients) for clients in (0, 1, FEW)] == [0.0, 0.0, 0.0]


def test_telling_takes_longer_but_never_long_when_more_listen() -> None:
    spreads = [spread_s(clients) for clients in range(FEW, 1000)]
    assert all(one <= other for one, other in itertools.pairwise(spreads))
    assert spreads[-1] == LONGEST_SPREAD_S


async def test_all_are_told_of_the_last_change_when_many_listen(monkeypatch: pytest.MonkeyPatch) -> None:
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
    told = await asyncio.wait_for(asyncio.gather(*waiting), 30)
    assert all(b'"rules_version":2' in event for event in told)
    # Evenly: of a hundred, no two are told within a third of their share of the time, and none has long nobody before it.
    turns = sorted(delays)
    gaps = [(late - early) * 100 / spread_s(100) for early, late in itertools.pairwise(turns)]
    assert min(gaps) > 1 / 3
    assert max(gaps) < 3
    hub.close()
    for stream in streams:
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(stream), 30)
    assert hub.clients == 0


async def test_streams_end_at_once_when_the_server_stops_while_they_wait_for_their_turn() -> None:
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
    assert all(isinstance(each, bytes | StopAsyncIteration) for each in ended)
