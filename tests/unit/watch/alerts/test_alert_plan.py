"""Which turns become which messages, and when."""

from collections.abc import Sequence

from alerting.turns import T0, flat, rule, started, stopped
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.model.ids import UnixMs
from clusterscape.model.rules import ViolationTurn
from clusterscape.watch.alerts.contract import Group, Policy
from clusterscape.watch.alerts.plan import Plan, Waiting, plan_messages


def plan(turns: Sequence[ViolationTurn], policy: Policy, now_s: float, told: dict[Group, UnixMs] | None = None) -> Plan:
    waiting = [Waiting(seq, turn.at, flat(turn)) for seq, turn in enumerate(turns)]
    return plan_messages(waiting, told or {}, policy, at(now_s))


def at(seconds: float) -> UnixMs:
    return UnixMs(T0 + int(seconds * 1000))


def test_turns_of_a_rule_share_a_message_when_grouped_by_rule() -> None:
    other = rule("idle")
    found = plan([started("a"), started("b", of=other), started("c")], Policy(group_by=("rule",)), 0)
    assert found.messages == [((("rule", "low-util"),), [0, 2]), ((("rule", "idle"),), [1])]


def test_everything_shares_a_message_when_nothing_groups() -> None:
    found = plan([started("a"), started("b", of=rule("idle"), user="bob")], Policy(group_by=()), 0)
    assert [seqs for _, seqs in found.messages] == [[0, 1]]


def test_addressee_separates_groups_when_users_are_lanes() -> None:
    policy = Policy(group_by=("rule",), lane_by=("user",))
    found = plan([started("a", user="ada"), started("b", user="bob"), started("c", user="ada")], policy, 0)
    assert [policy.lane_of(group) for group, _ in found.messages] == ["ada", "bob"]
    assert [seqs for _, seqs in found.messages] == [[0, 2], [1]]


def test_group_waits_for_more_when_it_is_new() -> None:
    policy = Policy(group_wait_ms=30_000)
    found = plan([started("a", 0), started("b", 20)], policy, 29)
    assert not found.messages
    assert found.next_at == at(30)
    assert plan([started("a", 0), started("b", 20)], policy, 30).messages[0][1] == [0, 1]


def test_group_waits_for_its_interval_when_it_was_told_lately() -> None:
    policy = Policy(group_wait_ms=10_000, group_interval_ms=300_000)
    told: dict[Group, UnixMs] = {(("rule", "low-util"),): at(0)}
    assert plan([started("a", 100)], policy, 299, told).next_at == at(300)
    assert plan([started("a", 100)], policy, 300, told).messages
    assert plan([started("a", 900)], policy, 909, told).next_at == at(910)


def test_both_are_dropped_when_a_stop_follows_within_the_hold() -> None:
    policy = Policy(hold_ms=60_000)
    found = plan([started("a", 0), stopped("a", 59), started("b", 0)], policy, 60)
    assert sorted(found.flapped) == [0, 1]
    assert [seqs for _, seqs in found.messages] == [[2]]


def test_both_are_told_when_a_stop_follows_after_the_hold() -> None:
    found = plan([started("a", 0), stopped("a", 60)], Policy(hold_ms=60_000), 60)
    assert [seqs for _, seqs in found.messages] == [[0, 1]]


def test_start_is_not_told_when_it_is_still_held() -> None:
    found = plan([started("a", 0)], Policy(hold_ms=60_000), 59)
    assert not found.messages
    assert found.next_at == at(60)


def test_only_the_units_that_flapped_are_left_out_when_others_go_on() -> None:
    found = plan(
        [started("a", 0, units=("n1:0", "n1:1")), stopped("a", 10, units=("n1:0",))], Policy(hold_ms=60_000), 60
    )
    assert found.flapped == [1]
    assert found.shortened[0].units == ("n1:1",)
    assert [seqs for _, seqs in found.messages] == [[0]]


def test_stop_keeps_its_other_units_when_some_ended_within_the_hold() -> None:
    turns = [
        started("a", 0, units=("n1:0",)),
        started("a", 55, units=("n1:1",)),
        stopped("a", 61, units=("n1:0", "n1:1")),
    ]
    found = plan(turns, Policy(hold_ms=60_000), 61)
    assert found.flapped == [1]
    assert found.shortened[2].units == ("n1:0",)
    assert [seqs for _, seqs in found.messages] == [[0, 2]]


def test_new_start_is_told_when_one_before_it_flapped() -> None:
    found = plan([started("a", 0), stopped("a", 10), started("a", 20)], Policy(hold_ms=60_000), 80)
    assert [seqs for _, seqs in found.messages] == [[2]]


def test_whole_workload_flaps_when_no_units_are_named() -> None:
    found = plan([started("a", 0, units=()), stopped("a", 10, units=())], Policy(hold_ms=60_000), 100)
    assert sorted(found.flapped) == [0, 1]


def test_stop_ends_a_held_start_when_stops_are_not_told() -> None:
    policy = Policy(hold_ms=60_000, is_stop_told=False)
    found = plan([started("a", 0), stopped("a", 10), started("b", 0), stopped("b", 90)], policy, 90)
    assert sorted(found.flapped) == [0, 1]
    assert found.untold == [3]
    assert [seqs for _, seqs in found.messages] == [[2]]


def test_nothing_overtakes_a_held_start_when_it_is_in_the_same_group() -> None:
    found = plan([started("a", 0), started("b", 50), stopped("c", 55, since_s=-500)], Policy(hold_ms=60_000), 60)
    assert [seqs for _, seqs in found.messages] == [[0]]
    assert found.next_at == at(110)


def test_start_is_not_held_for_ever_when_its_time_lies_in_the_future() -> None:
    ahead = Waiting(0, at(0), flat(started("a", 86_400)))
    assert plan_messages([ahead], {}, Policy(hold_ms=60_000), at(60)).messages


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 40)), max_size=25),
    st.sampled_from([0, 30, 90]),
)
def test_every_unit_is_told_or_flapped_when_turns_are_arbitrary(
    steps: list[tuple[bool, str, int, int]], hold_s: int
) -> None:
    """What is planned and what is dropped are together exactly what was posted, and starts and stops cancel in pairs."""
    now_s, turns = 0, []
    for is_start, workload, units, pause_s in steps:
        now_s += pause_s
        make = started if is_start else stopped
        turns.append(make(workload, now_s, units=tuple(f"n1:{i}" for i in range(units))))
    found = plan(turns, Policy(hold_ms=hold_s * 1000), now_s + 1000)
    told = [seq for _, seqs in found.messages for seq in seqs]
    assert sorted([*told, *found.flapped]) == list(range(len(turns)))
    assert told == sorted(told)
    kept = {seq: found.shortened.get(seq, flat(turns[seq])) for seq in told}
    balance = 0
    for seq, turn in enumerate(turns):
        lost = len(turn.units) - (len(kept[seq].units) if seq in kept else 0)
        balance += lost if flat(turn).is_start else -lost
    assert balance == 0
