"""Reservations and preemption rules as several versions of Slurm print them."""

from hypothesis import given
from hypothesis import strategies as st

from clusterscape.collect.slurm.parse_rules import parse_preemption, parse_reservation_lines, parse_reservations
from clusterscape.model import PreemptionRules

LINE = (
    "ReservationName=maint1 StartTime=1794861658 EndTime=1794865258 Duration=01:00:00 Nodes=gpu[01-03],vgpu1 NodeCnt=4 "
    "CoreCnt=128 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES,ALL_NODES TRES=cpu=128 Users=root "
    "Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)"
)
"""What 22.05 prints with SLURM_TIME_FORMAT=%s."""
REST = {
    "reservations": [
        {
            "flags": ["MAINT", "IGNORE_JOBS", "SPEC_NODES", "ALL_NODES"], "accounts": "", "core_count": 128,
            "end_time": 1794865258, "name": "maint1", "node_count": 4, "node_list": "gpu[01-03],vgpu1", "partition": "",
            "start_time": 1794861658, "watts": 4294967294, "tres": "cpu=128", "users": "root",
        }
    ]
}  # fmt: skip
CONFIG = "PreemptMode             = REQUEUE\nPreemptType             = preempt/{}\nPreemptExemptTime       = 00:05:00\n"
PARTITIONS = (
    "PartitionName=urgent PriorityTier=10 PreemptMode=OFF State=UP\n"
    "PartitionName=idle PriorityTier=1 PreemptMode=REQUEUE\n"
)


def test_both_formats_give_the_same_when_a_reservation_is_read() -> None:
    (by_line,) = parse_reservations(parse_reservation_lines(LINE))
    (by_rest,) = parse_reservations(REST)
    assert by_line == by_rest
    assert by_line.nodes == ("gpu01", "gpu02", "gpu03", "vgpu1")
    assert (by_line.starts_at, by_line.ends_at, by_line.is_maintenance) == (1794861658000, 1794865258000, True)
    assert (by_line.cpus, by_line.gpus, by_line.users, by_line.accounts) == (128, None, ("root",), ())


def test_nothing_is_reserved_when_slurm_says_so() -> None:
    assert parse_reservations(parse_reservation_lines("No reservations in the system\n")) == []


def test_numbers_are_read_when_newer_versions_wrap_them() -> None:
    entry = dict(REST["reservations"][0])
    entry |= {"start_time": {"set": True, "infinite": False, "number": 1794861658}, "tres": "cpu=96,gres/gpu=24"}
    (reservation,) = parse_reservations({"reservations": [entry]})
    assert (reservation.starts_at, reservation.gpus) == (1794861658000, 24)


def test_higher_tiers_preempt_lower_ones_when_it_goes_by_partition() -> None:
    rules = parse_preemption(CONFIG.format("partition_prio"), PARTITIONS, "")
    assert rules.exempt_s == 300

    def may(partition: str, victim: str) -> bool:
        return rules.may_preempt(partition=partition, qos=None, victim_partition=victim, victim_qos=None)

    assert may("urgent", "idle")
    assert not may("idle", "urgent")
    assert not may("urgent", "urgent")


def test_listed_qualities_are_preempted_when_it_goes_by_qos() -> None:
    rules = parse_preemption(CONFIG.format("qos"), PARTITIONS, "high|low,idle|cluster\nlow||cluster\nidle||off\n")

    def may(qos: str, victim: str) -> bool:
        return rules.may_preempt(partition="a", qos=qos, victim_partition="a", victim_qos=victim)

    assert may("high", "low")
    assert not may("high", "idle")  # its own mode is off
    assert not may("low", "high")


def test_preemption_is_off_when_slurm_does_not_preempt() -> None:
    rules = parse_preemption("PreemptMode = OFF\nPreemptType = preempt/none\n", PARTITIONS, "")
    assert not rules.may_preempt(partition="urgent", qos="a", victim_partition="idle", victim_qos="b")


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_rules_are_read_when_responses_are_nonsense(config: str, partitions: str, qos: str) -> None:
    assert isinstance(parse_preemption(config, partitions, qos), PreemptionRules)
    assert isinstance(parse_reservations(parse_reservation_lines(config)), list)
