"""Verdicts on simulated hangs (classes, seeds, formats), and on the cases that tools get wrong."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hangs.made_up import write_case
from hangs.simulated import KINDS

from clusterscape.analyze.hang.history import predict_next
from clusterscape.analyze.hang.verdict import judge_hang
from clusterscape.collect.hangs.reading import read_looks
from clusterscape.model.hangs import (
    Certainty,
    CollectiveCall,
    GroupProgress,
    HangKind,
    HangLook,
    ProcessLook,
    RankLook,
    StackFrame,
    ThreadStack,
)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_class_and_rank_are_right_when_a_hang_is_simulated(tmp_path: Path, kind: str, seed: int) -> None:
    case = write_case(kind, seed, tmp_path)
    verdict = judge_hang(read_looks(list(case.looks)))
    assert (verdict.kind, frozenset(verdict.ranks) in {case.ranks, *case.others_right}) == (kind, True), verdict.reason
    assert verdict.place is not None or kind in ("dead", "link")
    assert verdict.held_gpus == case.world


@pytest.mark.parametrize("kind", ["absent", "dead", "deadlock", "storage", "slow"])
def test_class_and_rank_are_right_when_only_ras_and_stacks_are_there(tmp_path: Path, kind: str) -> None:
    case = write_case(kind, 2, tmp_path, has_recorder=False)
    verdict = judge_hang(read_looks(list(case.looks)))
    assert (verdict.kind, set(verdict.ranks)) == (kind, set(case.ranks)), verdict.reason


def call(
    group: str,
    sequence: int,
    *,
    done: bool = False,
    name: str = "all_reduce",
    size: int = 8,
    state: str = "",
    order: int = 0,
) -> CollectiveCall:
    """One call of NCCL's states."""
    state = state or ("completed" if done else "started")
    return CollectiveCall(
        group, sequence, name, input_sizes=((size,),), types=("Float",), state=state, is_done=done, order=order,
        created_ns=10**18 + sequence,
    )  # fmt: skip


def rank(number: int, members: Mapping[str, tuple[int, ...]], *calls: CollectiveCall, **more: object) -> RankLook:
    """A rank with calls in groups with these members."""
    groups = {
        name: GroupProgress(
            max((call.sequence for call in calls if call.group == name), default=0),
            max((call.sequence for call in calls if call.group == name and call.is_done), default=0),
            ranks,
        )
        for name, ranks in members.items()
    }
    return RankLook(number, backend="nccl", groups=groups, calls=calls, has_recorder=True, **more)  # type: ignore[arg-type]


def look(*ranks: RankLook, **more: object) -> HangLook:
    """A look at these ranks."""
    return HangLook({rank.rank: rank for rank in ranks}, **more)  # type: ignore[arg-type]


def test_first_cause_is_named_when_groups_wait_for_groups() -> None:
    """Pipeline: rank 3 is absent in b; ranks 2 and then 0, 1 wait because of it."""
    at = look(
        rank(0, {"a": (0, 1), "w": (0, 1, 2, 3)}, call("a", 1, done=True), call("w", 5)),
        rank(1, {"a": (0, 1), "w": (0, 1, 2, 3)}, call("a", 1, done=True), call("w", 5)),
        rank(2, {"b": (2, 3), "w": (0, 1, 2, 3)}, call("w", 4, done=True), call("b", 7)),
        rank(3, {"b": (2, 3), "w": (0, 1, 2, 3)}, call("w", 4, done=True), call("b", 6, done=True)),
    )
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks, verdict.group, verdict.sequence) == (HangKind.ABSENT, (3,), "b", 7)
    assert [(stalled.group, stalled.is_victim) for stalled in verdict.stalled] == [("b", False), ("w", True)]


def test_link_is_the_cause_when_its_group_keeps_ranks_from_another_group() -> None:
    at = look(
        rank(0, {"w": (0, 1, 2)}, call("w", 5)),
        *(rank(number, {"b": (1, 2), "w": (0, 1, 2)}, call("w", 4, done=True), call("b", 7)) for number in (1, 2)),
    )
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.group, verdict.ranks) == (HangKind.LINK, "b", (1, 2))


def test_pair_is_named_when_groups_wait_for_each_other() -> None:
    """Rank 0 calls a before b, rank 1 b before a: what PyTorch's tool cannot say."""
    members = {"a": (0, 1), "b": (0, 1)}
    at = look(rank(0, members, call("a", 1)), rank(1, members, call("b", 1)))
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks) == (HangKind.MISMATCH, (0, 1))
    assert "different orders" in verdict.reason


def test_guilty_rank_of_two_is_named_when_its_own_past_predicts_another_call() -> None:
    members = {"a": (0, 1)}
    names = ["all_reduce", "broadcast", "barrier"] * 4
    past = [call("a", number + 1, done=True, name=name, order=number) for number, name in enumerate(names)]
    at = look(
        rank(0, members, *past, call("a", 13, name="broadcast", order=12)),
        rank(1, members, *past, call("a", 13, name="all_reduce", order=12)),
    )
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks) == (HangKind.MISMATCH, (0,))


def test_majority_is_right_when_the_first_rank_is_guilty() -> None:
    members = {"a": (0, 1, 2)}
    at = look(rank(0, members, call("a", 3, size=9)), *(rank(number, members, call("a", 3)) for number in (1, 2)))
    assert judge_hang([at, at]).ranks == (0,)


def test_shapes_may_differ_when_elements_are_as_many() -> None:
    members = {"a": (0, 1)}
    wide = CollectiveCall("a", 1, "all_reduce", input_sizes=((4, 2),), types=("Float",), state="started")
    at = look(rank(0, members, wide), rank(1, members, call("a", 1)))
    assert judge_hang([at, at]).kind is HangKind.LINK


def test_sizes_may_differ_when_the_operation_allows_it() -> None:
    members = {"a": (0, 1)}
    at = look(*(rank(number, members, call("a", 1, name="all_to_all", size=number + 1)) for number in (0, 1)))
    assert judge_hang([at, at]).kind is HangKind.LINK


def test_verdict_is_less_sure_when_there_is_one_look() -> None:
    members = {"a": (0, 1)}
    stack = (ThreadStack((StackFrame("save", "/x/train.py", 3),), is_main=True),)
    at = look(rank(0, members, call("a", 2)), rank(1, members, call("a", 1, done=True), stacks=stack))
    once, twice = judge_hang([at]), judge_hang([at, at])
    assert (once.certainty, twice.certainty) == (Certainty.LIKELY, Certainty.CERTAIN)
    assert "second look" in once.notes[-1]


def test_only_slow_is_said_when_the_missing_rank_advanced() -> None:
    members = {"a": (0, 1)}
    first = look(rank(0, members, call("a", 2)), rank(1, members, call("a", 1, done=True)))
    second = look(rank(0, members, call("a", 3)), rank(1, members, call("a", 2, done=True)))
    verdict = judge_hang([first, second])
    assert (verdict.kind, verdict.ranks) == (HangKind.SLOW, (1,))


def test_hang_is_said_when_only_the_waiting_ranks_advanced() -> None:
    """Rank 2 finished the work of another group before it, too, had to wait."""
    members = {"a": (0, 1, 2), "b": (2, 3)}
    absent = rank(1, {"a": (0, 1, 2)}, call("a", 1, done=True))
    waiting = rank(0, {"a": (0, 1, 2)}, call("a", 2))
    first = look(
        waiting, absent, rank(2, members, call("b", 4, done=True)), rank(3, {"b": (2, 3)}, call("b", 4, done=True))
    )
    second = look(
        waiting,
        absent,
        rank(2, members, call("b", 5, done=True), call("a", 2)),
        rank(3, {"b": (2, 3)}, call("b", 5, done=True)),
    )
    verdict = judge_hang([first, second])
    assert (verdict.kind, verdict.ranks) == (HangKind.ABSENT, (1,))


def test_receiver_is_named_when_a_send_has_no_receive() -> None:
    members = {"p": (4, 5)}
    send = CollectiveCall("p", 1, "send 0->1", is_p2p=True, input_sizes=((8,),), state="started", created_ns=10**18)
    at = look(rank(4, members, send), rank(5, members, call("p", 1, done=True)))
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks, verdict.collective) == (HangKind.ABSENT, (5,), "send 4->5")


def test_two_ranks_are_named_when_both_send_first() -> None:
    members = {"p": (0, 1)}
    at = look(
        rank(0, members, CollectiveCall("p", 1, "send 0->1", is_p2p=True, state="started")),
        rank(1, members, CollectiveCall("p", 1, "send 1->0", is_p2p=True, state="started")),
    )
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks) == (HangKind.MISMATCH, (0, 1))


def test_rank_is_dead_when_it_left_no_dump() -> None:
    members = {"a": (0, 1, 2)}
    at = look(rank(0, members, call("a", 2)), rank(1, members, call("a", 2)))
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks, verdict.certainty) == (HangKind.DEAD, (2,), Certainty.LIKELY)


def test_out_of_memory_is_named_when_the_kernel_killed_the_rank() -> None:
    members = {"a": (0, 1)}
    at = look(
        rank(0, members, call("a", 2)),
        RankLook(1, process=ProcessLook(pid=9, state="X", exit_signal=9, ran_out_of_memory=True)),
    )
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks, verdict.certainty) == (HangKind.DEAD, (1,), Certainty.CERTAIN)
    assert "out of memory" in verdict.reason


def test_thread_is_named_when_another_one_holds_the_gil() -> None:
    members = {"a": (0, 1)}
    main = ThreadStack((StackFrame("step", "/x/train.py", 5),), "MainThread", owns_gil=False, is_main=True)
    other = ThreadStack((StackFrame("parse", "/x/native.py", 8),), "parser", owns_gil=True, is_main=False)
    at = look(rank(0, members, call("a", 2)), rank(1, members, call("a", 1, done=True), stacks=(main, other)))
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks, verdict.place) == (HangKind.DEADLOCK, (1,), "native.py:8 in parse")


def test_computing_rank_is_no_deadlock_when_its_main_thread_waits_for_its_pool() -> None:
    """The main thread of a math library sleeps in a futex, too; its process uses cores."""
    members = {"a": (0, 1)}
    stack = (ThreadStack((StackFrame("matmul", "/x/train.py", 5),), is_main=True),)

    def at(ticks: int, ms: int) -> HangLook:
        process = ProcessLook(5, "S", "futex_do_wait", ticks)
        absent = rank(1, members, call("a", 1, done=True), stacks=stack, process=process)
        return look(rank(0, members, call("a", 2)), absent, taken_ms=ms)

    verdict = judge_hang([at(100, 0), at(1100, 5000)])
    assert (verdict.kind, verdict.doing) == (HangKind.ABSENT, "computes on the CPU")
    assert judge_hang([at(100, 0), at(101, 5000)]).kind is HangKind.DEADLOCK


def test_stack_decides_when_there_is_no_recorder() -> None:
    inside = ThreadStack((StackFrame("all_reduce", "/v/torch/distributed/distributed_c10d.py", 1),), is_main=True)
    outside = ThreadStack(
        (StackFrame("__next__", "/v/torch/utils/data/dataloader.py", 1), StackFrame("fit", "/x/t.py", 4)), is_main=True
    )
    at = look(RankLook(0, stacks=(inside,)), RankLook(1, stacks=(outside,)))
    verdict = judge_hang([at, at])
    assert (verdict.kind, verdict.ranks, verdict.place) == (HangKind.ABSENT, (1,), "t.py:4 in fit")
    assert "data loader" in verdict.title


def test_nothing_is_claimed_when_no_rank_waits() -> None:
    members = {"a": (0, 1)}
    at = look(*(rank(number, members, call("a", 1, done=True)) for number in (0, 1)))
    assert judge_hang([at, at]).kind is HangKind.UNKNOWN


def test_pattern_is_predicted_when_it_came_before() -> None:
    assert predict_next(list("abcabcab")) == "c"
    assert predict_next(list("abcd")) is None
