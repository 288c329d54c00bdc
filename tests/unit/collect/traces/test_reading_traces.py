"""Reading traces: file names, compression and damage as they occur in practice."""

import gzip
import json
import tarfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hostile.memory import MIB, measure
from typer.testing import CliRunner
from unit.collect.traces.trace_files import document, host, kernel, simple_rank, step, write

from clusterscape.analyze.trace.document import pack_trace
from clusterscape.analyze.trace.report import analyze_trace, check_trace
from clusterscape.cli.entry import app
from clusterscape.collect.traces import read_traces, reading
from clusterscape.collect.traces.collective_names import find_kind, is_communication_kernel, parse_annotation
from clusterscape.collect.traces.files import assign_ranks, find_rank_in_name
from clusterscape.errors import SourceError
from clusterscape.model.spans import SPAN_SCHEMA


def test_spans_have_the_schema_when_a_folder_is_read(tmp_path: Path) -> None:
    for rank in range(3):
        write(tmp_path / f"rank{rank}.json.gz", simple_rank(rank, 3))
    trace = read_traces([tmp_path])
    assert dict(trace.spans.schema) == dict(SPAN_SCHEMA)
    assert [facts.rank for facts in trace.ranks] == [0, 1, 2]
    assert trace.notes == ()
    reduced = trace.spans.filter(pl.col("collective") == "all_reduce")
    assert reduced.height == 12
    assert reduced["step"].to_list() == [0, 1, 2, 3] * 3


def test_members_are_read_when_they_are_in_a_tar(tmp_path: Path) -> None:
    inner = [write(tmp_path / f"worker{rank}.json", simple_rank(rank, 2)) for rank in range(2)]
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        for path in inner:
            archive.add(path, f"run/{path.name}")
    assert len(read_traces([tmp_path / "all.tar.gz"]).ranks) == 2


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("ddp_rank3.json.gz", 3),
        ("worker7_step_12.1694128201553.pt.trace.json", 7),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("run/rank_12/trace.json", 12),
        ("trace_8_rank_1.json", 1),
        ("host1_r5.json", 5),
        ("benchmark_result_493459.json", None),
    ],
)
def test_rank_is_found_when_the_name_has_it(name: str, rank: int | None) -> None:
    assert find_rank_in_name(name) == rank


def test_ranks_come_from_the_varying_number_when_names_say_nothing_else() -> None:
    ranks, notes = assign_ranks(["t_0_x.json", "t_1_x.json", "t_2_x.json"], [None] * 3)
    assert ranks == [0, 1, 2]
    assert "file names" in notes[0]


def test_names_decide_when_copies_state_one_rank() -> None:
    ranks, notes = assign_ranks([f"rank{rank}.json" for rank in range(8)], [0] * 8)
    assert ranks == list(range(8))
    assert "more than once" in notes[0]


def test_note_is_added_when_the_rank_is_unknown(tmp_path: Path) -> None:
    trace = read_traces([write(tmp_path / "some.json", document([host("aten::mm", 1, 2)]))])
    assert [facts.rank for facts in trace.ranks] == [0]
    assert "Neither the trace nor the name gives the rank" in trace.notes[0]


def test_fuller_file_is_used_when_two_are_of_one_rank(tmp_path: Path) -> None:
    write(tmp_path / "a.json", simple_rank(0, 2, steps=1))
    write(tmp_path / "b.json", simple_rank(0, 2, steps=3))
    write(tmp_path / "c.json", simple_rank(1, 2, steps=3))
    trace = read_traces([tmp_path])
    assert [facts.source for facts in trace.ranks] == ["b.json", "c.json"]
    assert any("Rank 0 has two files: b.json is used, a.json is not" in note for note in trace.notes)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_events_before_the_cut_are_used_when_json_is_truncated(tmp_path: Path, share: float) -> None:
    whole = json.dumps(simple_rank(1, 2, steps=20)).encode()
    (tmp_path / "rank1.json").write_bytes(whole[: int(len(whole) * share)])
    write(tmp_path / "rank0.json", simple_rank(0, 2, steps=20))
    trace = read_traces([tmp_path])
    cut = next(facts for facts in trace.ranks if facts.rank == 1)
    assert not cut.is_complete
    kept = trace.spans.filter(pl.col("rank") == 1).height
    assert (share - 0.1) * 80 < kept < 80
    assert any("truncated or damaged" in note for note in trace.notes)


def test_events_before_the_cut_are_used_when_gzip_is_truncated(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(simple_rank(1, 2, steps=3000)).encode())
    (tmp_path / "rank1.json.gz").write_bytes(packed[: len(packed) // 2])
    trace = read_traces([tmp_path])
    assert not trace.ranks[0].is_complete
    assert trace.spans.height > 1000
    assert any("gzip stream is truncated" in note for note in trace.notes)


def test_other_files_are_read_when_one_file_is_broken(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", simple_rank(0, 2))
    (tmp_path / "rank1.json").write_text('{"schemaVersion": 1, "traceEvents": [', encoding="utf-8")
    trace = read_traces([tmp_path])
    assert [facts.rank for facts in trace.ranks] == [0]
    assert any("Cannot read rank1.json" in note for note in trace.notes)


def test_negative_durations_are_left_out_when_there_are_some(tmp_path: Path) -> None:
    events = [step(0, 0, 100), kernel("gemm", 10, -5), kernel("gemm", 20, 5)]
    trace = read_traces([write(tmp_path / "rank0.json", document(events, 0, 1))])
    assert trace.spans.height == 2
    assert any("1 spans with a negative duration" in note for note in trace.notes)


def test_events_are_skipped_when_fields_have_wrong_types(tmp_path: Path) -> None:
    odd = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": "soon", "dur": 3}
    trace = read_traces([write(tmp_path / "rank0.json", document([odd, kernel("gemm", 20, 5)], 0, 1))])
    assert trace.spans.height == 1
    assert any("unexpected types" in note for note in trace.notes)


def test_plain_lists_are_read_when_there_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "rank2.json").write_text(json.dumps([host("aten::mm", 1, 2)]), encoding="utf-8")
    assert [facts.rank for facts in read_traces([tmp_path]).ranks] == [2]


def test_error_names_the_path_when_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no traces in"):
        read_traces([tmp_path])
    with pytest.raises(SourceError, match="no such file"):
        read_traces([tmp_path / "missing"])
    (tmp_path / "x.json").write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(SourceError, match="unknown trace format"):
        read_traces([tmp_path])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "send_recv"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("rcclDevKernel_AllGather_RING_LL", "all_gather"),
        ("hcom_broadcast__123", "broadcast"),
        ("void at::native::reduce_kernel<512>", None),
    ],
)
def test_collective_is_recognized_when_a_library_names_its_kernels(name: str, kind: str | None) -> None:
    assert is_communication_kernel(name) == (kind is not None)
    if kind:
        assert find_kind(name) == kind


def test_backend_is_reported_when_an_annotation_names_it() -> None:
    assert parse_annotation("gloo:all_reduce") == ("gloo", "all_reduce")
    assert parse_annotation("nccl:_all_gather_base") == ("nccl", "all_gather")
    assert parse_annotation("forward") is None


def test_whole_microseconds_stay_exact_when_they_count_from_1970(tmp_path: Path) -> None:
    at_us = 1_694_128_201_435_447
    trace = read_traces([write(tmp_path / "rank0.json", document([host("aten::mm", at_us, 53)], 0, 1))])
    assert trace.spans["start_ns"].to_list() == [at_us * 1000]
    assert trace.spans["end_ns"].to_list() == [(at_us + 53) * 1000]


def test_parallel_reading_gives_the_same_when_there_is_much_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(3):
        write(tmp_path / f"rank{rank}.json", simple_rank(rank, 3))
    (tmp_path / "rank3.json").write_text('{"schemaVersion": 1, "traceEvents": [', encoding="utf-8")
    alone = read_traces([tmp_path], workers=1)
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    progress_calls: list[int] = []
    together = read_traces(
        [tmp_path], workers=2, progress=lambda done, total, _: progress_calls.append(done * 10 + total)
    )
    assert together.spans.equals(alone.spans)
    assert together.notes == alone.notes
    assert progress_calls == [14, 24, 34, 44]


def test_memory_is_bounded_when_the_stated_world_is_absurd(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", simple_rank(0, 10**9))
    cost = measure(notes_of, tmp_path)
    assert "Ranks 1, 2, 3, 4, 5, 6, 7, 8 … (999,999,999 in all) are missing" in cost.value
    assert cost.peak_bytes < 500 * MIB  # 9 GB before; compiled parts included


def notes_of(folder: Path) -> str:
    return " ".join(check_trace(read_traces([folder], workers=1)))


@pytest.mark.parametrize("size", [-5, 0, 1, 2**62])
def test_missing_ranks_are_counted_when_the_world_is_stated(tmp_path: Path, size: int) -> None:
    write(tmp_path / "rank0.json", simple_rank(0, size))
    notes = notes_of(tmp_path)
    assert ("missing" in notes) == (size > 1)


def test_spans_far_from_the_others_are_skipped_when_a_clock_is_damaged(tmp_path: Path) -> None:
    document = simple_rank(0, 1)
    document["traceEvents"].append(kernel("late", 3e15, 5))
    document["traceEvents"].append(kernel("endless", 1_000_100, 3e15))
    trace = read_traces([write(tmp_path / "rank0.json", document)])
    assert "2 spans with impossible times were skipped." in trace.notes
    assert not set(trace.spans["name"].cast(pl.String)) & {"late", "endless"}
    analyze_trace(trace, np.random.default_rng(0))


def test_ranks_are_numbered_when_a_name_has_an_absurd_number(tmp_path: Path) -> None:
    document = simple_rank(0, 1)
    del document["distributedInfo"]
    trace = read_traces([write(tmp_path / f"rank{'9' * 30}.json", document)])
    assert [facts.rank for facts in trace.ranks] == [0]


def test_share_that_was_not_read_is_known_when_files_are_damaged(tmp_path: Path) -> None:
    whole = json.dumps(simple_rank(0, 2, steps=40))
    (tmp_path / "rank0.json").write_text(whole)
    assert read_traces([tmp_path], workers=1).unread_share == 0
    at = whole.index("ProfilerStep#3")
    (tmp_path / "rank1.json").write_text(whole[:at] + '"broken' + whole[at:])
    assert read_traces([tmp_path], workers=1).unread_share == pytest.approx(0.45, abs=0.05)
    (tmp_path / "rank0.json").write_text('{"traceEvents": [{"ph": "X", ')
    trace = read_traces([tmp_path], workers=1)
    assert trace.unread_share > 0.8
    done = CliRunner().invoke(app, ["trace", "report", str(tmp_path), "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["format"] == "Kineto"
    assert "of the trace was not read" in done.stderr


def test_trace_is_packed_when_a_step_is_marked_twice(tmp_path: Path) -> None:
    document = simple_rank(0, 1)
    document["traceEvents"].append(step(3, 1_002_000.0, 1000))
    trace = read_traces([write(tmp_path / "rank0.json", document)])
    assert pack_trace(analyze_trace(trace, np.random.default_rng(0))).spans.height == trace.spans.height
