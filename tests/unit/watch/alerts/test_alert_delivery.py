"""Delivery of alerts to channels: order, retries, limits and restarts, with a simulated clock."""

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
from clusterscape.watch.alerts import Alerts, DeliveryResult, MessageKind, SendingPolicy, read_spool

HOUR_S = 3600.0


class Desk:
    """Alerts with one in-memory channel, and a clock."""

    def __init__(self, folder: Path, channel: PaperChannel) -> None:
        self.path = folder / "alerts.db"
        self.channel = channel
        self.clock = PretendClock()
        self.alerts = self._open()

    def _open(self) -> Alerts:
        return Alerts([self.channel], self.path, clock=self.clock, rng=random.Random(1))

    def restart(self) -> None:
        self.alerts.close()
        self.alerts = self._open()

    async def run_until(self, seconds: float) -> None:
        """Deliver everything that becomes due until ``seconds`` after T0."""
        end = T0 + int(seconds * 1000)
        while (due_at := await self.alerts.deliver_due()) is not None and due_at <= end:
            assert due_at > self.clock.at
            self.clock.at = due_at
        self.clock.at = UnixMs(max(end, self.clock.at))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator["Maker"]:
    desks: list[Desk] = []

    def make(policy: SendingPolicy | None = None, **options: object) -> Desk:
        desks.append(Desk(tmp_path, PaperChannel(policy or SendingPolicy(), **options)))  # type: ignore[arg-type]
        return desks[-1]

    yield make
    for opened in desks:
        opened.alerts.close()


Maker = Callable[..., Desk]


async def test_only_selected_rules_are_sent_when_a_channel_filters_rules(desk: Maker) -> None:
    sender = desk(SendingPolicy(severities=frozenset({Severity.CRITICAL}), rules=("stall*", "xid")))
    sender.alerts.post(
        [
            started("a", of=rule("stalled", Severity.CRITICAL)),
            started("b", of=rule("stalled-2", Severity.WARNING)),
            started("c", of=rule("low-util", Severity.CRITICAL)),
            started("d", of=rule("xid", Severity.CRITICAL)),
        ]
    )
    await sender.run_until(10)
    assert sender.channel.delivered() == [("started", "a"), ("started", "d")]


async def test_turn_is_sent_once_when_it_is_posted_again(desk: Maker) -> None:
    sender = desk()
    sender.alerts.post([started("a"), started("a")])
    await sender.run_until(1)
    sender.restart()
    sender.alerts.post([started("a")])
    await sender.run_until(2)
    assert sender.channel.delivered() == [("started", "a")]


async def test_only_new_units_are_sent_when_a_start_is_posted_again_in_other_groups(desk: Maker) -> None:
    sender = desk()
    sender.alerts.post([started("a", units=("n1:0", "n1:1"))])
    sender.alerts.post([started("a", units=("n1:1", "n1:2"))])
    await sender.run_until(1)
    assert [turn.units for message in sender.channel.received for turn in message.turns] == [
        ("n1:0", "n1:1"),
        ("n1:2",),
    ]


async def test_start_is_sent_once_when_it_is_posted_again_after_weeks(desk: Maker) -> None:
    sender = desk()
    sender.alerts.post([started("a")])
    await sender.run_until(1)
    sender.clock.forward(30 * 86_400.0)
    sender.alerts.post([started("b", 30 * 86_400.0)])
    sender.alerts.post([started("a")])
    await sender.run_until(31 * 86_400.0)
    assert sender.channel.delivered() == [("started", "a"), ("started", "b")]


async def test_stop_is_not_sent_when_its_start_was_not(desk: Maker) -> None:
    sender = desk(SendingPolicy(severities=frozenset({Severity.WARNING})))
    sender.alerts.post([stopped("muted", 10), started("a", units=("n1:0",))])
    sender.alerts.post([stopped("a", 10, units=("n1:0", "n1:1"), of=rule(severity=Severity.INFO))])
    await sender.run_until(60)
    assert sender.channel.delivered() == [("started", "a"), ("stopped", "a")]
    assert sender.channel.received[-1].turns[-1].units == ("n1:0",)


async def test_order_is_kept_when_the_channel_is_down(desk: Maker) -> None:
    sender = desk(SendingPolicy(group_by=("workload",)), answers=[DOWN] * 8)
    for number in range(20):
        sender.alerts.post([started(f"w{number}", number)])
        await sender.run_until(number + 1)
    assert not sender.channel.received
    await sender.run_until(HOUR_S)
    assert sender.channel.delivered() == [("started", f"w{number}") for number in range(20)]
    assert len({message.key for message in sender.channel.received}) == 20


async def test_retries_back_off_when_the_channel_stays_down(desk: Maker) -> None:
    sender = desk(answers=[DOWN] * 1000)
    sender.alerts.post([started()])
    await sender.run_until(HOUR_S)
    attempts = len(sender.channel.tried)
    assert 10 <= attempts <= 20
    assert len({message.key for message in sender.channel.tried}) == 1
    await sender.run_until(2 * HOUR_S)
    assert 6 <= len(sender.channel.tried) - attempts <= 12


async def test_refusal_is_reported_and_retried_slowly_when_it_lasts(desk: Maker) -> None:
    sender = desk(answers=[FORBIDDEN] * 3)
    sender.alerts.post([started()])
    await sender.run_until(1)
    (state,) = sender.alerts.state()
    assert (state.waiting, state.is_lasting, state.last_error) == (1, True, "403 Forbidden")
    assert state.failing_since == T0
    assert state.next_attempt_at is not None
    assert state.next_attempt_at - T0 >= 15 * 60_000
    await sender.run_until(2 * HOUR_S)
    (state,) = sender.alerts.state()
    assert sender.channel.delivered() == [("started", "slurm:1")]
    assert (state.waiting, state.last_error, state.failing_since, state.delivered) == (0, None, None, 1)


async def test_retry_after_is_respected_when_it_is_longer(desk: Maker) -> None:
    sender = desk(answers=[DeliveryResult(is_accepted=False, text="429", retry_after_s=900.0)])
    sender.alerts.post([started()])
    await sender.run_until(899)
    assert not sender.channel.received
    await sender.run_until(900)
    assert sender.channel.received


async def test_refused_recipient_does_not_delay_others_when_it_lasts(desk: Maker) -> None:
    sender = desk(SendingPolicy(lane_by=("user",)), answers=[FORBIDDEN])
    sender.alerts.post([started("a", user="ada"), started("b", user="bob")])
    await sender.run_until(60)
    assert sender.channel.delivered() == [("started", "b")]
    (state,) = sender.alerts.state()
    assert state.last_error == "403 Forbidden"
    await sender.run_until(HOUR_S)
    assert sender.channel.delivered() == [("started", "b"), ("started", "a")]


async def test_message_keeps_its_key_when_the_process_ended_before_its_response_was_stored(
    desk: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterscape.watch.alerts.delivery.GRACE_S", 0.0)
    sender = desk(SendingPolicy(group_by=("workload",), max_per_hour=2), hangs=asyncio.Event())
    sender.alerts.post([started("a")])
    task = asyncio.create_task(sender.alerts.deliver_due())
    assert sender.channel.hangs is not None
    await sender.channel.hangs.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    sender.channel.hangs = None
    sender.alerts.post([started("b"), started("c")])
    sender.restart()
    await sender.run_until(HOUR_S)
    # The first was tried, so it stays alone; only what follows may be folded.
    assert [[turn.workload for turn in message.turns] for message in sender.channel.received] == [["a"], ["b", "c"]]
    assert sender.channel.received[0].key == sender.channel.tried[0].key


async def test_remaining_turns_are_folded_into_one_message_when_the_hourly_limit_is_reached(desk: Maker) -> None:
    sender = desk(SendingPolicy(group_by=("workload",), max_per_hour=3))
    sender.alerts.post([started(f"w{number}") for number in range(10)])
    await sender.run_until(1)
    kinds = [(message.kind, len(message.turns)) for message in sender.channel.received]
    assert kinds == [(MessageKind.ALERT, 1), (MessageKind.ALERT, 1), (MessageKind.SUMMARY, 8)]
    for number in range(10, 15):
        sender.alerts.post([started(f"w{number}", number)])
        await sender.run_until(number)
    assert len(sender.channel.received) == 3
    await sender.run_until(2 * HOUR_S)
    assert sender.channel.delivered() == [("started", f"w{number}") for number in range(15)]


async def test_limit_holds_in_every_hour_when_much_is_posted(desk: Maker) -> None:
    sender = desk(SendingPolicy(group_by=("workload",), max_per_hour=4))
    sent_at: list[int] = []
    for number in range(300):
        sender.alerts.post([started(f"w{number}", number * 60.0)])
        before = len(sender.channel.received)
        await sender.run_until(number * 60.0 + 59)
        sent_at += [sender.clock.at] * (len(sender.channel.received) - before)
    await sender.run_until(10 * HOUR_S)
    assert sender.channel.delivered() == [("started", f"w{number}") for number in range(300)]
    assert all(later - earlier > 3_500_000 for earlier, later in zip(sent_at, sent_at[4:], strict=False))


async def test_oldest_turns_are_only_counted_when_too_many_wait(desk: Maker) -> None:
    sender = desk(SendingPolicy(group_by=("workload",), max_waiting=100), answers=[DOWN] * 3)
    for number in range(250):
        sender.alerts.post([started(f"w{number}", number * 0.01)])
        await sender.alerts.deliver_due()
    assert sender.alerts.state()[0].waiting_turns <= 100
    tallied = sender.alerts.state()[0].tallied_turns
    await sender.run_until(HOUR_S)
    first, summary, *rest = sender.channel.received
    assert [turn.workload for turn in first.turns] == ["w0"]  # it was tried, so it stays as it was
    assert summary.kind is MessageKind.SUMMARY
    assert summary.tallies[0].started == tallied == 250 - 1 - len(rest) - len(summary.turns)
    assert sender.channel.delivered()[1:] == [("started", f"w{number}") for number in range(1 + tallied, 250)]


async def test_oldest_turns_are_only_counted_when_nobody_delivers(desk: Maker) -> None:
    sender = desk(SendingPolicy(max_waiting=100))
    sender.alerts.post([started(f"w{number}") for number in range(1000)])
    assert sender.alerts.state()[0].waiting_turns == 50
    await sender.run_until(10)
    assert sum(tally.started for message in sender.channel.received for tally in message.tallies) == 950
    assert sender.channel.delivered() == [("started", f"w{number}") for number in range(950, 1000)]


async def test_state_is_complete_when_too_many_turns_wait_for_a_channel_of_states(desk: Maker) -> None:
    sender = desk(SendingPolicy(max_waiting=100), refresh_every_ms=60_000)
    sender.alerts.post([turn for number in range(60) for turn in (started(f"w{number}", 0), stopped(f"w{number}", 5))])
    sender.alerts.post([started("last", 6)])
    await sender.run_until(10)
    assert sender.channel.delivered() == [("started", "last")]


async def test_firing_alerts_are_repeated_when_the_channel_forgets(desk: Maker) -> None:
    sender = desk(refresh_every_ms=100_000)
    sender.alerts.post([started("a", units=("n1:0", "n1:1")), started("b")])
    await sender.run_until(10)
    sender.alerts.post([stopped("a", 10, units=("n1:0",)), stopped("b", 10)])
    await sender.run_until(350)
    assert [(f.first.workload, sorted(f.parts)) for f in sender.channel.refreshed[-1]] == [("a", ["n1:1"])]
    assert 3 <= len(sender.channel.refreshed) <= 5
    sender.restart()
    count = len(sender.channel.refreshed)
    await sender.alerts.deliver_due()
    assert len(sender.channel.refreshed) == count + 1
    sender.alerts.post([stopped("a", 400, units=("n1:1",))])
    await sender.run_until(500)
    assert await sender.alerts.deliver_due() is None


async def test_held_start_is_not_sent_when_it_stops_after_a_restart(desk: Maker) -> None:
    sender = desk(SendingPolicy(hold_ms=60_000))
    sender.alerts.post([started("a", 0)])
    await sender.run_until(30)
    sender.restart()
    sender.alerts.post([stopped("a", 40)])
    await sender.run_until(HOUR_S)
    assert not sender.channel.received
    assert sender.alerts.state()[0].flaps == 2


async def test_interval_of_a_group_is_kept_when_restarted(desk: Maker) -> None:
    sender = desk(SendingPolicy(group_interval_ms=300_000))
    sender.alerts.post([started("a", 0)])
    await sender.run_until(1)
    sender.restart()
    sender.alerts.post([started("b", 1)])
    await sender.run_until(299)
    assert sender.channel.delivered() == [("started", "a")]
    await sender.run_until(300)
    assert sender.channel.delivered() == [("started", "a"), ("started", "b")]


async def test_error_of_a_channel_is_its_state_when_it_raises(desk: Maker) -> None:
    sender = desk()

    async def fail(message: object) -> DeliveryResult:
        raise ValueError("odd")

    sender.channel.send = fail  # type: ignore[method-assign]
    sender.alerts.post([started("a")])
    await sender.alerts.deliver_due()
    assert "ValueError: odd" in (sender.alerts.state()[0].last_error or "")


def test_second_process_is_refused_when_one_delivers(desk: Maker) -> None:
    sender = desk()
    with pytest.raises(StoreBusyError):
        sender._open()


def test_state_is_read_from_outside_when_one_delivers(desk: Maker) -> None:
    sender = desk()
    sender.alerts.post([started("a")])
    (state,) = read_spool(sender.path)
    assert (state.name, state.waiting_turns, state.delivered) == ("paper", 1, 0)
    assert read_spool(sender.path.with_name("other.db")) == []
