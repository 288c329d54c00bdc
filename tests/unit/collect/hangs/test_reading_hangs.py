"""Folders of dumps as they are found: any names, several formats, some files missing or damaged."""

import json
import pickle
import re
from pathlib import Path

import pytest
from hangs.made_up import dump_of, ras_json, ras_text, write_case
from hangs.simulated import simulate

from clusterscape.analyze.hang.verdict import judge_hang
from clusterscape.collect.hangs.flight_recorder import parse_dump
from clusterscape.collect.hangs.nccl_ras import parse_ras
from clusterscape.collect.hangs.reading import read_looks
from clusterscape.collect.hangs.stacks import parse_faulthandler, read_pyspy
from clusterscape.errors import SourceError


def write_dumps(folder: Path, names: list[str]) -> None:
    """One dump for each name, of ranks in this order; the sizes of their calls tell which it was."""
    simulation = simulate("absent", 0)
    for number, name in enumerate(names):
        document = dump_of(simulation, 0, "2.10", 2000)
        document["entries"] = [
            entry | {"input_sizes": [[100 + number]], "time_created_ns": entry["time_created_ns"] + number}
            for entry in document["entries"]
        ]
        document["pg_config"] = {}
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(document, protocol=2))


@pytest.mark.parametrize(
    "names",
    [
        ["nccl_trace_rank_0", "nccl_trace_rank_1", "nccl_trace_rank_2"],
        ["0", "1", "2"],
        ["job4711.00000.bin", "job4711.00001.bin", "job4711.00002.bin"],
        ["a100-node7_rank0.pkl", "a100-node8_rank1.pkl", "a100-node9_rank2.pkl"],
        ["node0/dump", "node1/dump", "node2/dump"],
        ["alpha", "beta", "gamma"],
        ["n1-gpu0", "n1-gpu1", "n2-gpu0"],
    ],
)
def test_ranks_are_found_when_files_have_any_names(tmp_path: Path, names: list[str]) -> None:
    write_dumps(tmp_path, names)
    (look,) = read_looks([tmp_path])
    assert {rank: about.calls[-1].input_sizes for rank, about in look.ranks.items()} == {
        rank: ((100 + rank,),) for rank in range(3)
    }


def test_two_looks_are_read_when_each_rank_has_two_dumps(tmp_path: Path) -> None:
    write_dumps(tmp_path / "first", ["rank0", "rank1"])
    write_dumps(tmp_path / "second", ["rank0", "rank1"])
    assert [sorted(look.ranks) for look in read_looks([tmp_path / "first", tmp_path / "second"])] == [[0, 1], [0, 1]]
    assert [sorted(look.ranks) for look in read_looks([tmp_path])] == [[0, 1], [0, 1]]


def test_dumps_of_one_rank_are_two_looks_when_no_name_says_rank(tmp_path: Path) -> None:
    for folder in ("look1", "look2"):
        write_dumps(tmp_path / folder, ["host1.trace"])
    assert [sorted(look.ranks) for look in read_looks([tmp_path])] == [[1], [1]]


def test_other_files_are_read_when_some_are_damaged(tmp_path: Path) -> None:
    write_dumps(tmp_path, ["rank0", "rank1"])
    (tmp_path / "rank2").write_bytes((tmp_path / "rank1").read_bytes()[:200])
    (tmp_path / "rank3").write_bytes(b"")
    (tmp_path / "rank4.json").write_text('{"version": "2.10", "entries": [')
    (tmp_path / "rank5").write_bytes(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")
    (tmp_path / "README").write_text("hello")
    (look,) = read_looks([tmp_path])
    assert sorted(look.ranks) == [0, 1]
    for name in ("rank2", "rank3", "rank4.json", "rank5"):
        assert any(name in note for note in look.notes)
    assert any("1 of 7 files" in note for note in look.notes)


def test_error_is_a_sentence_when_nothing_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no files in"):
        read_looks([tmp_path])
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(SourceError, match="nothing could be read"):
        read_looks([tmp_path])
    with pytest.raises(SourceError, match="does not exist"):
        read_looks([tmp_path / "nowhere"])


@pytest.mark.parametrize("version", ["2.1", "2.4", "2.9", "2.10"])
def test_json_and_pickle_say_the_same_when_torch_writes_both(tmp_path: Path, version: str) -> None:
    from hangs.made_up import _as_json

    document = dump_of(simulate("kernel", 1), 0, version, 2000)
    from_pickle = parse_dump(pickle.dumps(document, protocol=2))
    from_json = parse_dump(json.dumps(_as_json(document)).encode())
    assert from_pickle.groups == from_json.groups
    assert [call.state for call in from_pickle.calls] == [call.state for call in from_json.calls]
    assert from_pickle.calls[-1].frames
    assert not from_json.calls[-1].frames


def test_old_dump_is_read_when_it_is_a_list_of_entries() -> None:
    entries = [
        {
            "id": number,
            "pg_id": 0,
            "seq_id": number,
            "profiling_name": "nccl:all_reduce",
            "input_sizes": [[4]],
            "state": state,
        }
        for number, state in enumerate(("completed", "completed", "started"))
    ]
    look = parse_dump(pickle.dumps(entries, protocol=2))
    assert (look.groups["0"].enqueued, look.groups["0"].completed, look.backend) == (2, 1, "nccl")


def test_gloo_call_is_pending_when_it_is_not_retired() -> None:
    """As recorded from torch 2.13: state never changes, and the configuration is empty."""
    entries = [
        {"record_id": number, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": number + 1,
         "profiling_name": "gloo:all_reduce", "state": "scheduled", "retired": number == 0, "is_p2p": False}
        for number in range(2)
    ]  # fmt: skip
    document = {
        "version": "2.10",
        "pg_config": {"": {"name": "", "desc": "", "ranks": "[]"}},
        "pg_status": {
            "0": {"last_enqueued_collective": "2", "last_started_collective": "-1", "last_completed_collective": "1"}
        },
        "entries": entries,
    }
    look = parse_dump(json.dumps(document).encode())
    assert [call.is_done for call in look.calls] == [True, False]
    assert (look.groups["0"].enqueued, look.groups["0"].completed) == (2, 1)


def test_ras_json_is_read_when_nccl_forgets_its_comma() -> None:
    simulation = simulate("dead", 3)
    lost = simulation.fault.rank
    text = ras_json(simulation, lost, is_dead=True)
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    world = parse_ras(text.encode())[0]
    assert (world.dead, world.size) == ((lost,), simulation.world)


@pytest.mark.parametrize("seed", range(8))
def test_ras_text_has_the_counts_of_its_json_when_ranks_differ(seed: int) -> None:
    simulation = simulate("absent", seed)
    in_json = {
        communicator.name: communicator
        for communicator in parse_ras(ras_json(simulation, None, is_dead=False).encode())
    }
    in_text = parse_ras(ras_text(simulation, None, is_dead=False).encode())
    assert in_text
    for communicator in in_text:
        whole = in_json[communicator.name.lstrip("0")]
        assert communicator.size == whole.size
        for rank, counts in communicator.counts.items():
            assert {name: whole.counts[rank][name] for name in counts} == counts


def test_last_dump_counts_when_faulthandler_wrote_several() -> None:
    first = 'Thread 0x01 (most recent call first):\n  File "a.py", line 1 in idle\n\n'
    first += "Current thread 0x02 (most recent call first):\n"
    text = (
        first
        + '  File "a.py", line 2 in old\n\n'
        + first
        + '  File "a.py", line 3 in new\n  File "a.py", line 9 in main\n'
    )
    stacks = parse_faulthandler(text)
    assert [(stack.is_main, [frame.function for frame in stack.frames]) for stack in stacks] == [
        (True, ["new", "main"]),
        (False, ["idle"]),
    ]


def test_main_thread_is_first_when_py_spy_lists_others() -> None:
    threads = [
        {
            "pid": 7,
            "thread_id": number,
            "thread_name": name,
            "owns_gil": number == 2,
            "frames": [{"name": "go", "line": 4}],
        }
        for number, name in ((2, "Thread-1"), (1, "MainThread"))
    ]
    stacks, pid = read_pyspy(threads)
    assert (pid, stacks[0].name, stacks[1].owns_gil) == (7, "MainThread", True)


def test_ranks_of_stacks_follow_the_pids_when_their_names_have_only_those(tmp_path: Path) -> None:
    case = write_case("deadlock", 4, tmp_path)
    looks = read_looks(list(case.looks))
    assert all(look.ranks[rank].stacks for look in looks for rank in range(case.world))


@pytest.mark.parametrize("world_size", [10**9, 2**62, -1, "8", None])
def test_memory_is_bounded_when_a_world_size_is_that_of_no_run(tmp_path: Path, world_size: object) -> None:
    observed = {"clusterscape_processes": 1, "world_size": world_size, "processes": [{"rank": 0, "pid": 5}]}
    (tmp_path / "processes.json").write_text(json.dumps(observed))
    (tmp_path / "rank0").write_bytes(pickle.dumps(dump_of(simulate("absent", 0), 0, "2.10", 2000), protocol=2))
    looks = read_looks([tmp_path])
    assert looks[0].world_size is None
    assert judge_hang(looks).title


@pytest.mark.parametrize("processes", [7, "rank 0", {"rank": 0}, [7, None, {"rank": "0"}], None])
def test_stacks_are_read_when_the_observed_processes_are_no_list_of_them(tmp_path: Path, processes: object) -> None:
    (tmp_path / "processes.json").write_text(json.dumps({"clusterscape_processes": 1, "processes": processes}))
    write_dumps(tmp_path, ["rank0", "rank1"])
    (look,) = read_looks([tmp_path])
    assert sorted(look.ranks) == [0, 1]


def test_stack_keeps_its_other_frames_when_a_line_number_has_thousands_of_digits() -> None:
    text = (
        f'Current thread 0x01 (most recent call first):\n  File "a", line {"9" * 5000} in f\n  File "b", line 3 in g\n'
    )
    (stack,) = parse_faulthandler(text)
    assert [(frame.file, frame.line) for frame in stack.frames] == [("b", 3)]


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 40])
def test_communicators_are_read_when_a_number_has_thousands_of_digits(digits: str) -> None:
    text = ras_text(simulate("mismatch", 1), None, is_dead=False)
    numbers = [match.span() for match in re.finditer(r"\d+", text)]
    for begin, end in numbers:
        parse_ras((text[:begin] + digits + text[end:]).encode())
    assert parse_ras(text.encode())


@pytest.mark.parametrize("number", [[0], {}, None, 1.5, 10**300, "x" * 70_000])
def test_dump_is_read_when_the_number_of_a_group_is_none(number: object) -> None:
    document = dump_of(simulate("absent", 0), 0, "2.10", 2000)
    document["entries"][-1]["pg_id"] = number
    assert parse_dump(pickle.dumps(document, protocol=2)).calls
