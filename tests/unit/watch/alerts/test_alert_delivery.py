"""From a post to the channel: order, attempts, limits and what survives a restart. Time is pretended."""

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alerting.channels import DOWN, FORBIDDEN, PaperChannel
from alerting.turns import T0, PretendClock, rule, started, stopped

from clusterscape.errors import StoreBusyError
from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import Severity
from clusterscape.watch.alerts import Alerts, Answer, MessageKind, Policy, read_spool

HOUR_S = 3600.0


class Desk:
    """Alerts with one channel on paper, and a clock."""

    def __init__(self, folder: Path, channel: PaperChannel) -> None:
        self.path = folder / "alerts.db"
        self.channel = channel
        self.clock = PretendClock()
        self.alerts = self._open()

    def _open(self) -> Alerts:
        return Alerts([self.channel], self.path, clock=self.clock, dice=random.Random(1))

    def restart(self) -> None:
        self.alerts.close()
        self.alerts = self._open()

    async def run_until(self, seconds: float) -> None:
        """Deliver what becomes due until so many seconds after T0."""
        end = T0 + int(seconds * 1000)
        while (due_at := await self.alerts.deliver_due()) is not None and due_at <= end:
            assert due_at > self.clock.at
            self.clock.at = due_at
        self.clock.at = UnixMs(max(end, self.clock.at))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator["Maker"]:
    made: list[Desk] = []

    def make(policy: Policy | None = None, **given: object) -> Desk:
        made.append(Desk(tmp_path, PaperChannel(policy or Policy(), **given)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.alerts.close()


Maker = Callable[..., Desk]


async def test_only_wanted_rules_are_told_when_a_channel_chooses(desk: Maker) -> None:
    one = desk(Policy(severities=frozenset({Severity.CRITICAL}), rules=("stall*", "xid")))
    one.alerts.post(
        [
            started("a", of=rule("stalled", Severity.CRITICAL)),
            started("b", of=rule("stalled-2", Severity.WARNING)),
            started("c", of=rule("low-util", Severity.CRITICAL)),
            started("d", of=rule("xid", Severity.CRITICAL)),
        ]
    )
    await one.run_until(10)
    assert one.channel.told() == [("started", "a"), ("started", "d")]


async def test_turn_is_told_once_when_it_is_posted_again(desk: Maker) -> None:
    one = desk()
    one.alerts.post([started("a"), started("a")])
    await one.run_until(1)
    one.restart()
    one.alerts.post([started("a")])
    await one.run_until(2)
    assert one.channel.told() == [("started", "a")]


async def test_only_new_units_are_told_when_a_start_is_posted_again_in_other_groups(desk: Maker) -> None:
    one = desk()
    one.alerts.post([started("a", units=("n1:0", "n1:1"))])
    one.alerts.post([started("a", units=("n1:1", "n1:2"))])
    await one.run_until(1)
    assert [turn.units for message in one.channel.received for turn in message.turns] == [("n1:0", "n1:1"), ("n1:2",)]


async def test_start_is_told_once_when_it_is_posted_again_after_weeks(desk: Maker) -> None:
    one = desk()
    one.alerts.post([started("a")])
    await one.run_until(1)
    one.clock.forward(30 * 86_400.0)
    one.alerts.post([started("b", 30 * 86_400.0)])
    one.alerts.post([started("a")])
    await one.run_until(31 * 86_400.0)
    assert one.channel.told() == [("started", "a"), ("started", "b")]


async def test_stop_is_not_told_when_its_start_was_not(desk: Maker) -> None:
    one = desk(Policy(severities=frozenset({Severity.WARNING})))
    one.alerts.post([stopped("muted", 10), started("a", units=("n1:0",))])
    one.alerts.post([stopped("a", 10, units=("n1:0", "n1:1"), of=rule(severity=Severity.INFO))])
    await one.run_until(60)
    assert one.channel.told() == [("started", "a"), ("stopped", "a")]
    assert one.channel.received[-1].turns[-1].units == ("n1:0",)


async def test_order_is_kept_when_the_channel_is_down(desk: Maker) -> None:
    one = desk(Policy(group_by=("workload",)), answers=[DOWN] * 8)
    for number in range(20):
        one.alerts.post([started(f"w{number}", number)])
        await one.run_until(number + 1)
    assert not one.channel.received
    await one.run_until(HOUR_S)
    assert one.channel.told() == [("started", f"w{number}") for number in range(20)]
    assert len({message.key for message in one.channel.received}) == 20


async def test_attempts_come_later_and_later_when_the_channel_stays_down(desk: Maker) -> None:
    one = desk(answers=[DOWN] * 1000)
    one.alerts.post([started()])
    await one.run_until(HOUR_S)
    attempts = len(one.channel.tried)
    assert 10 <= attempts <= 20
    assert len({message.key for message in one.channel.tried}) == 1
    await one.run_until(2 * HOUR_S)
    assert 6 <= len(one.channel.tried) - attempts <= 12


async def test_refusal_is_reported_and_retried_slowly_when_it_lasts(desk: Maker) -> None:
    one = desk(answers=[FORBIDDEN] * 3)
    one.alerts.post([started()])
    await one.run_until(1)
    (state,) = one.alerts.state()
    assert (state.waiting, state.is_lasting, state.last_error) == (1, True, "403 Forbidden")
    assert state.failing_since == T0
    assert state.next_attempt_at is not None
    assert state.next_attempt_at - T0 >= 15 * 60_000
    await one.run_until(2 * HOUR_S)
    (state,) = one.alerts.state()
    assert one.channel.told() == [("started", "slurm:1")]
    assert (state.waiting, state.last_error, state.failing_since, state.delivered) == (0, None, None, 1)


async def test_retry_after_is_respected_when_it_is_longer(desk: Maker) -> None:
    one = desk(answers=[Answer(is_accepted=False, text="429", retry_after_s=900.0)])
    one.alerts.post([started()])
    await one.run_until(899)
    assert not one.channel.received
    await one.run_until(900)
    assert one.channel.received


async def test_refused_addressee_does_not_hold_up_others_when_it_lasts(desk: Maker) -> None:
    one = desk(Policy(lane_by=("user",)), answers=[FORBIDDEN])
    one.alerts.post([started("a", user="ada"), started("b", user="bob")])
    await one.run_until(60)
    assert one.channel.told() == [("started", "b")]
    (state,) = one.alerts.state()
    assert state.last_error == "403 Forbidden"
    await one.run_until(HOUR_S)
    assert one.channel.told() == [("started", "b"), ("started", "a")]


async def test_message_keeps_its_key_when_we_ended_before_its_answer_was_kept(
    desk: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterscape.watch.alerts.delivery.GRACE_S", 0.0)
    one = desk(Policy(group_by=("workload",), max_per_hour=2), hangs=asyncio.Event())
    one.alerts.post([started("a")])
    task = asyncio.create_task(one.alerts.deliver_due())
    assert one.channel.hangs is not None
    await one.channel.hangs.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    one.channel.hangs = None
    one.alerts.post([started("b"), started("c")])
    one.restart()
    await one.run_until(HOUR_S)
    # The first was tried, so it stays alone; only what follows may be folded.
    assert [[turn.workload for turn in message.turns] for message in one.channel.received] == [["a"], ["b", "c"]]
    assert one.channel.received[0].key == one.channel.tried[0].key


async def test_rest_is_folded_into_one_when_the_hour_is_full(desk: Maker) -> None:
    one = desk(Policy(group_by=("workload",), max_per_hour=3))
    one.alerts.post([started(f"w{number}") for number in range(10)])
    await one.run_until(1)
    kinds = [(message.kind, len(message.turns)) for message in one.channel.received]
    assert kinds == [(MessageKind.ALERT, 1), (MessageKind.ALERT, 1), (MessageKind.SUMMARY, 8)]
    for number in range(10, 15):
        one.alerts.post([started(f"w{number}", number)])
        await one.run_until(number)
    assert len(one.channel.received) == 3
    await one.run_until(2 * HOUR_S)
    assert one.channel.told() == [("started", f"w{number}") for number in range(15)]


async def test_limit_holds_in_every_hour_when_much_is_posted(desk: Maker) -> None:
    one = desk(Policy(group_by=("workload",), max_per_hour=4))
    sent_at: list[int] = []
    for number in range(300):
        one.alerts.post([started(f"w{number}", number * 60.0)])
        before = len(one.channel.received)
        await one.run_until(number * 60.0 + 59)
        sent_at += [one.clock.at] * (len(one.channel.received) - before)
    await one.run_until(10 * HOUR_S)
    assert one.channel.told() == [("started", f"w{number}") for number in range(300)]
    assert all(later - earlier > 3_500_000 for earlier, later in zip(sent_at, sent_at[4:], strict=False))


async def test_oldest_become_numbers_when_too_many_wait(desk: Maker) -> None:
    one = desk(Policy(group_by=("workload",), max_waiting=100), answers=[DOWN] * 3)
    for number in range(250):
        one.alerts.post([started(f"w{number}", number * 0.01)])
        await one.alerts.deliver_due()
    assert one.alerts.state()[0].waiting_turns <= 100
    tallied = one.alerts.state()[0].tallied_turns
    await one.run_until(HOUR_S)
    first, summary, *rest = one.channel.received
    assert [turn.workload for turn in first.turns] == ["w0"]  # it was tried: it stays what it was
    assert summary.kind is MessageKind.SUMMARY
    assert summary.tallies[0].started == tallied == 250 - 1 - len(rest) - len(summary.turns)
    assert one.channel.told()[1:] == [("started", f"w{number}") for number in range(1 + tallied, 250)]


async def test_oldest_become_numbers_when_nobody_delivers(desk: Maker) -> None:
    one = desk(Policy(max_waiting=100))
    one.alerts.post([started(f"w{number}") for number in range(1000)])
    assert one.alerts.state()[0].waiting_turns == 50
    await one.run_until(10)
    assert sum(each.started for message in one.channel.received for each in message.tallies) == 950
    assert one.channel.told() == [("started", f"w{number}") for number in range(950, 1000)]


async def test_state_is_whole_when_too_many_wait_for_a_channel_of_states(desk: Maker) -> None:
    one = desk(Policy(max_waiting=100), refresh_every_ms=60_000)
    one.alerts.post([each for number in range(60) for each in (started(f"w{number}", 0), stopped(f"w{number}", 5))])
    one.alerts.post([started("last", 6)])
    await one.run_until(10)
    assert one.channel.told() == [("started", "last")]


async def test_what_fires_is_repeated_when_the_channel_forgets(desk: Maker) -> None:
    one = desk(refresh_every_ms=100_000)
    one.alerts.post([started("a", units=("n1:0", "n1:1")), started("b")])
    await one.run_until(10)
    one.alerts.post([stopped("a", 10, units=("n1:0",)), stopped("b", 10)])
    await one.run_until(350)
    assert [(f.first.workload, sorted(f.parts)) for f in one.channel.refreshed[-1]] == [("a", ["n1:1"])]
    assert 3 <= len(one.channel.refreshed) <= 5
    one.restart()
    count = len(one.channel.refreshed)
    await one.alerts.deliver_due()
    assert len(one.channel.refreshed) == count + 1
    one.alerts.post([stopped("a", 400, units=("n1:1",))])
    await one.run_until(500)
    assert await one.alerts.deliver_due() is None


async def test_held_start_is_not_told_when_it_stops_after_a_restart(desk: Maker) -> None:
    one = desk(Policy(hold_ms=60_000))
    one.alerts.post([started("a", 0)])
    await one.run_until(30)
    one.restart()
    one.alerts.post([stopped("a", 40)])
    await one.run_until(HOUR_S)
    assert not one.channel.received
    assert one.alerts.state()[0].flaps == 2


async def test_interval_of_a_group_is_kept_when_restarted(desk: Maker) -> None:
    one = desk(Policy(group_interval_ms=300_000))
    one.alerts.post([started("a", 0)])
    await one.run_until(1)
    one.restart()
    one.alerts.post([started("b", 1)])
    await one.run_until(299)
    assert one.channel.told() == [("started", "a")]
    await one.run_until(300)
    assert one.channel.told() == [("started", "a"), ("started", "b")]


async def test_fault_of_a_channel_is_its_state_when_it_raises(desk: Maker) -> None:
    one = desk()

    async def fail(message: object) -> Answer:
        raise ValueError("odd")

    one.channel.send = fail  # type: ignore[method-assign]
    one.alerts.post([started("a")])
    await one.alerts.deliver_due()
    assert "ValueError: odd" in (one.alerts.state()[0].last_error or "")


def test_second_process_is_refused_when_one_delivers(desk: Maker) -> None:
    one = desk()
    with pytest.raises(StoreBusyError):
        one._open()


def test_state_is_read_from_outside_when_one_delivers(desk: Maker) -> None:
    one = desk()
    one.alerts.post([started("a")])
    (state,) = read_spool(one.path)
    assert (state.name, state.waiting_turns, state.delivered) == ("paper", 1, 0)
    assert read_spool(one.path.with_name("other.db")) == []
