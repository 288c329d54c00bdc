"""The picture of a hang, what of a look is sent, and the looks of several machines as one."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hangs.made_up import write_case

from clusterscape.analyze.hang.condense import condense_look
from clusterscape.analyze.hang.joining import MachineLooks, join_looks
from clusterscape.analyze.hang.picture import STATES, report_hang
from clusterscape.analyze.hang.verdict import judge_hang
from clusterscape.collect.hangs.reading import read_looks
from clusterscape.model.hangs import HangKind, HangLook, ProcessLook, RankState, write_plain


def looks_of(kind: str, seed: int, folder: Path, *, has_recorder: bool = True) -> tuple[frozenset[int], list[HangLook]]:
    case = write_case(kind, seed, folder, has_recorder=has_recorder)
    return case.ranks, read_looks(list(case.looks))


def on_machines(looks: list[HangLook], per_machine: int) -> list[MachineLooks]:
    world = max(looks[0].ranks) + 1
    parts = [range(first, min(world, first + per_machine)) for first in range(0, world, per_machine)]
    return [
        MachineLooks(
            looks=[
                replace(
                    look,
                    ranks={rank: look.ranks[rank] for rank in part if rank in look.ranks},
                    world_size=world,
                    is_partial=True,
                )
                for look in looks
            ],
            ended={},
        )
        for part in parts
    ]


@pytest.mark.parametrize("has_recorder", [True, False])
def test_ranks_that_others_wait_for_are_marked_when_one_is_absent(tmp_path: Path, has_recorder: bool) -> None:
    guilty, looks = looks_of("absent", 3, tmp_path, has_recorder=has_recorder)
    report = report_hang(looks)
    absent = {
        rank
        for row in report.rows
        for rank, state in zip(report.ranks, row.state, strict=True)
        if state is not None and STATES[state] is RankState.ABSENT
    }
    assert guilty <= absent
    assert all(len(row.group) == len(report.ranks) for row in report.rows)
    assert {source.name for source in report.sources} >= {"stacks", "processes"}


def test_groups_of_one_kind_share_a_row_when_no_rank_is_in_two(tmp_path: Path) -> None:
    _, looks = looks_of("absent", 3, tmp_path)
    rows = {row.name: row for row in report_hang(looks).rows}
    assert rows["mesh_tp"].groups == ("1", "2", "3", "4")
    assert rows["mesh_tp"].group == (0, 0, 1, 1, 2, 2, 3, 3)


def test_look_is_the_same_when_it_went_over_the_wire(tmp_path: Path) -> None:
    _, looks = looks_of("mismatch", 3, tmp_path)
    sent = condense_look(looks[-1])
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(write_plain(sent))), HangLook, strict=False) == sent
    assert condense_look(sent) == sent


@pytest.mark.parametrize("kind", ["absent", "mismatch", "deadlock", "kernel", "storage", "link"])
@pytest.mark.parametrize("seed", range(3))
def test_verdict_is_the_same_when_the_looks_of_machines_are_joined(tmp_path: Path, kind: str, seed: int) -> None:
    _, looks = looks_of(kind, seed, tmp_path)
    whole = judge_hang(looks)
    joined = judge_hang(join_looks(on_machines([condense_look(look) for look in looks], 2)))
    assert (joined.kind, joined.ranks, joined.sequence, joined.group) == (
        whole.kind,
        whole.ranks,
        whole.sequence,
        whole.group,
    )


def test_no_rank_of_another_machine_is_called_dead_when_only_one_was_looked_at(tmp_path: Path) -> None:
    guilty, looks = looks_of("absent", 3, tmp_path)
    machines = [machine for machine in on_machines(looks, 2) if not guilty & machine.looks[0].ranks.keys()]
    verdict = judge_hang(join_looks(machines[:1]))
    assert verdict.kind is HangKind.UNKNOWN
    assert "nobody has looked at" in verdict.reason


def test_ranks_of_a_machine_are_dead_when_its_tracker_has_ended(tmp_path: Path) -> None:
    guilty, looks = looks_of("dead", 3, tmp_path)
    [rank] = guilty
    machines = [
        *on_machines(looks, 8),
        MachineLooks(looks=(), ended={rank: ProcessLook(state="X", ran_out_of_memory=True)}),
    ]
    verdict = judge_hang(join_looks(machines))
    assert (verdict.kind, verdict.ranks) == (HangKind.DEAD, (rank,))
    assert "memory" in verdict.reason
