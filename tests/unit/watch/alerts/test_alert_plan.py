"""Grouping of turns into messages, and their times."""

from collections.abc import Sequence

from alerting.turns import T0, flat, rule, started, stopped
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import ViolationTurn
from clusterscape.watch.alerts.contract import Group, SendingPolicy
from clusterscape.watch.alerts.plan import DeliveryPlan, SpooledTurn, plan_messages


def plan(
    turns: Sequence[ViolationTurn], policy: SendingPolicy, now_s: float, sent: dict[Group, UnixMs] | None = None
) -> DeliveryPlan:
    waiting = [SpooledTurn(seq, turn.at, flat(turn)) for seq, turn in enumerate(turns)]
    return plan_messages(waiting, sent or {}, policy, at(now_s))


def at(seconds: float) -> UnixMs:
    return UnixMs(T0 + int(seconds * 1000))


def test_turns_of_a_rule_share_a_message_when_grouped_by_rule() -> None:
    other = rule("idle")
    delivery_plan = plan([started("a"), started("b", of=other), started("c")], SendingPolicy(group_by=("rule",)), 0)
    assert delivery_plan.messages == [((("rule", "low-util"),), [0, 2]), ((("rule", "idle"),), [1])]


def test_everything_shares_a_message_when_nothing_groups() -> None:
    delivery_plan = plan([started("a"), started("b", of=rule("idle"), user="bob")], SendingPolicy(group_by=()), 0)
    assert [seqs for _, seqs in delivery_plan.messages] == [[0, 1]]


def test_addressee_separates_groups_when_users_are_lanes() -> None:
    policy = SendingPolicy(group_by=("rule",), lane_by=("user",))
    delivery_plan = plan([started("a", user="ada"), started("b", user="bob"), started("c", user="ada")], policy, 0)
    assert [policy.lane_of(group) for group, _ in delivery_plan.messages] == ["ada", "bob"]
    assert [seqs for _, seqs in delivery_plan.messages] == [[0, 2], [1]]


def test_group_waits_for_more_when_it_is_new() -> None:
    policy = SendingPolicy(group_wait_ms=30_000)
    delivery_plan = plan([started("a", 0), started("b", 20)], policy, 29)
    assert not delivery_plan.messages
    assert delivery_plan.next_at == at(30)
    assert plan([started("a", 0), started("b", 20)], policy, 30).messages[0][1] == [0, 1]


def test_group_waits_for_its_interval_when_it_was_sent_recently() -> None:
    policy = SendingPolicy(group_wait_ms=10_000, group_interval_ms=300_000)
    sent: dict[Group, UnixMs] = {(("rule", "low-util"),): at(0)}
    assert plan([started("a", 100)], policy, 299, sent).next_at == at(300)
    assert plan([started("a", 100)], policy, 300, sent).messages
    assert plan([started("a", 900)], policy, 909, sent).next_at == at(910)


def test_both_are_dropped_when_a_stop_follows_within_the_hold() -> None:
    policy = SendingPolicy(hold_ms=60_000)
    delivery_plan = plan([started("a", 0), stopped("a", 59), started("b", 0)], policy, 60)
    assert sorted(delivery_plan.flapped) == [0, 1]
    assert [seqs for _, seqs in delivery_plan.messages] == [[2]]


def test_both_are_sent_when_a_stop_follows_after_the_hold() -> None:
    delivery_plan = plan([started("a", 0), stopped("a", 60)], SendingPolicy(hold_ms=60_000), 60)
    assert [seqs for _, seqs in delivery_plan.messages] == [[0, 1]]


def test_start_is_not_sent_when_it_is_still_held() -> None:
    delivery_plan = plan([started("a", 0)], SendingPolicy(hold_ms=60_000), 59)
    assert not delivery_plan.messages
    assert delivery_plan.next_at == at(60)


def test_only_the_units_that_flapped_are_left_out_when_others_go_on() -> None:
    delivery_plan = plan(
        [started("a", 0, units=("n1:0", "n1:1")), stopped("a", 10, units=("n1:0",))], SendingPolicy(hold_ms=60_000), 60
    )
    assert delivery_plan.flapped == [1]
    assert delivery_plan.shortened[0].units == ("n1:1",)
    assert [seqs for _, seqs in delivery_plan.messages] == [[0]]


def test_stop_keeps_its_other_units_when_some_ended_within_the_hold() -> None:
    turns = [
        started("a", 0, units=("n1:0",)),
        started("a", 55, units=("n1:1",)),
        stopped("a", 61, units=("n1:0", "n1:1")),
    ]
    delivery_plan = plan(turns, SendingPolicy(hold_ms=60_000), 61)
    assert delivery_plan.flapped == [1]
    assert delivery_plan.shortened[2].units == ("n1:0",)
    assert [seqs for _, seqs in delivery_plan.messages] == [[0, 2]]


def test_new_start_is_sent_when_one_before_it_flapped() -> None:
    delivery_plan = plan([started("a", 0), stopped("a", 10), started("a", 20)], SendingPolicy(hold_ms=60_000), 80)
    assert [seqs for _, seqs in delivery_plan.messages] == [[2]]


def test_whole_workload_flaps_when_no_units_are_named() -> None:
    delivery_plan = plan([started("a", 0, units=()), stopped("a", 10, units=())], SendingPolicy(hold_ms=60_000), 100)
    assert sorted(delivery_plan.flapped) == [0, 1]


def test_stop_ends_a_held_start_when_stops_are_not_sent() -> None:
    policy = SendingPolicy(hold_ms=60_000, sends_stops=False)
    delivery_plan = plan([started("a", 0), stopped("a", 10), started("b", 0), stopped("b", 90)], policy, 90)
    assert sorted(delivery_plan.flapped) == [0, 1]
    assert delivery_plan.unsent_stops == [3]
    assert [seqs for _, seqs in delivery_plan.messages] == [[2]]


def test_nothing_overtakes_a_held_start_when_it_is_in_the_same_group() -> None:
    delivery_plan = plan(
        [started("a", 0), started("b", 50), stopped("c", 55, since_s=-500)], SendingPolicy(hold_ms=60_000), 60
    )
    assert [seqs for _, seqs in delivery_plan.messages] == [[0]]
    assert delivery_plan.next_at == at(110)


def test_start_is_not_held_for_ever_when_its_time_lies_in_the_future() -> None:
    ahead = SpooledTurn(0, at(0), flat(started("a", 86_400)))
    assert plan_messages([ahead], {}, SendingPolicy(hold_ms=60_000), at(60)).messages


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 40)), max_size=25),
    st.sampled_from([0, 30, 90]),
)
def test_every_unit_is_sent_or_flapped_when_turns_are_arbitrary(
    steps: list[tuple[bool, str, int, int]], hold_s: int
) -> None:
    """Planned and dropped turns together are exactly the posted ones, and starts and stops cancel in pairs."""
    now_s, turns = 0, []
    for is_start, workload, units, pause_s in steps:
        now_s += pause_s
        make = started if is_start else stopped
        turns.append(make(workload, now_s, units=tuple(f"n1:{i}" for i in range(units))))
    delivery_plan = plan(turns, SendingPolicy(hold_ms=hold_s * 1000), now_s + 1000)
    sent = [seq for _, seqs in delivery_plan.messages for seq in seqs]
    assert sorted([*sent, *delivery_plan.flapped]) == list(range(len(turns)))
    assert sent == sorted(sent)
    kept = {seq: delivery_plan.shortened.get(seq, flat(turns[seq])) for seq in sent}
    balance = 0
    for seq, turn in enumerate(turns):
        lost = len(turn.units) - (len(kept[seq].units) if seq in kept else 0)
        balance += lost if flat(turn).is_start else -lost
    assert balance == 0
