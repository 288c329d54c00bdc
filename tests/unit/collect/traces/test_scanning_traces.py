"""Large files are scanned, small ones decoded: both ways give the same spans, facts and notes, whatever is in the file."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.collect.traces.trace_files import document, host, kernel, simple_rank, step, write

from clusterscape.collect.traces import kineto_scan, read_traces, reading
from clusterscape.collect.traces.files import Content, TraceFile, read_content
from clusterscape.collect.traces.reading import RankSpans, parse_rank
from clusterscape.errors import SourceError

FILE = TraceFile(Path("rank0.json"))
NAMES = (
    "aten::mm",
    "ProfilerStep#3",
    "nccl:all_reduce",
    "gloo:all_gather",
    "record_param_comms",
    "forward mb2",
    'a "b" \\',
    "é\n",
)
KERNELS = ("gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclKernel_SendRecv")
CATEGORIES = (
    "kernel",
    "cpu_op",
    "cuda_runtime",
    "user_annotation",
    "gpu_memcpy",
    "gpu_user_annotation",
    "overhead",
    "ac2g",
)


def read(data: bytes, *, is_large: bool) -> RankSpans | str:
    """What a file gives, or why nothing."""
    try:
        return parse_rank(FILE, Content(data), is_large=is_large)
    except SourceError as error:
        return error.message


def check_same(data: bytes) -> None:
    fast, slow = read(data, is_large=True), read(data, is_large=False)
    if isinstance(slow, str) or isinstance(fast, str):
        assert fast == slow
        return
    assert fast.spans.equals(slow.spans)
    assert dict(fast.spans.schema) == dict(slow.spans.schema)
    assert (fast.facts, fast.stated_rank) == (slow.facts, slow.stated_rank)
    assert (fast.memory is None) == (slow.memory is None)
    if fast.memory is not None and slow.memory is not None:
        assert fast.memory.equals(slow.memory)


whole = st.integers(0, 10**15)
times = st.one_of(
    whole,
    whole.map(lambda us: us / 1000),
    st.floats(0, 1e15, allow_nan=False),
    st.sampled_from([1_669_783_687_464_181, 1_669_783_687_464_181.123, 0, 1e3, 2.5e-7]),
)
numbers = st.one_of(st.integers(0, 2**40), st.integers(0, 99).map(str), st.none(), st.sampled_from(["x", 1.5, 12.0]))
arguments = st.fixed_dictionaries(
    {},
    optional={
        "correlation": numbers,
        "bytes": numbers,
        "flops": st.one_of(st.floats(0, 1e20), st.integers(0, 2**60)),
        "Collective name": st.sampled_from(["allreduce", "send", None]),
        "Process Group Name": st.sampled_from(["0", 7, None]),
        "Seq": st.integers(0, 9),
        "Input Dims": st.just([[4, 8], []]),
        "Input type": st.just(["float", "Scalar"]),
        "In msg nelems": st.integers(0, 2**30),
        "dtype": st.sampled_from(["Float", "odd"]),
        "deep": st.recursive(st.text(max_size=3), lambda inner: st.lists(inner, max_size=2), max_leaves=4),
    },
)
events = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "X", "X", "s", "M"]),
        "cat": st.sampled_from(CATEGORIES),
        "name": st.sampled_from([*NAMES, *KERNELS, 7, None]),
    },
    optional={
        "pid": st.sampled_from([0, "Spans"]),
        "tid": st.sampled_from([7, "7", "PyTorch Profiler", None, 2.5]),
        "ts": times,
        "dur": st.one_of(st.none(), times, st.just(-3)),
        "args": st.one_of(st.none(), arguments),
        "other": st.sampled_from([True, {"x": [1, {}]}, "\\"]),
    },
)
facts = st.fixed_dictionaries(
    {},
    optional={
        "distributedInfo": st.just(
            {"backend": "nccl", "rank": 3, "world_size": 4, "pg_config": [{"pg_name": "0", "ranks": [0]}]}
        ),
        "deviceProperties": st.just([{"id": 0, "name": "H200"}]),
        "baseTimeNanoseconds": st.just(1_790_857_026_000_000_000),
        "traceName": st.text(max_size=5),
    },
)


@given(st.lists(events, max_size=8), facts, st.sampled_from([None, 1]), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_both_ways_give_the_same_when_a_file_is_whole(
    found: list[dict[str, Any]], known: dict[str, Any], indent: int | None, is_list: bool, is_ascii: bool
) -> None:
    content: Any = found if is_list else {"schemaVersion": 1, **known, "traceEvents": found, "traceName": "x"}
    check_same(json.dumps(content, indent=indent, ensure_ascii=is_ascii).encode())


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_both_ways_give_the_same_when_a_file_is_cut_or_a_bracket_is_lost(data: st.DataObject) -> None:
    text = json.dumps(simple_rank(1, 2, steps=2), indent=data.draw(st.sampled_from([None, 1]))).encode()
    at = data.draw(st.integers(1, len(text) - 1))
    check_same(text[:at])
    if text[at : at + 1] in b"{}[]":
        check_same(text[:at] + text[at + 1 :])


ODD = (
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": "soon", "dur": 3},
    {"ph": "X", "cat": ["kernel"], "name": "gemm", "ts": 5, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": {}, "ts": 5, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 5, "dur": 3, "args": [1]},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 5, "dur": 3, "args": {"correlation": [1]}},
    {"ph": 1, "cat": "kernel", "name": "gemm", "ts": 5},
)


@pytest.mark.parametrize("odd", ODD)
def test_odd_events_are_left_to_the_careful_way_when_there_is_one(odd: dict[str, Any]) -> None:
    check_same(json.dumps(document([odd, kernel("gemm", 20, 5), host("aten::mm", 1, 2)], 0, 1)).encode())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"traceEvents": {}}',
        b'{"traceEvents": [], "traceEvents": []}',
        b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": NaN}]}',
        b'[{"ph": "X", "cat": "kernel", "name": "\xff", "ts": 1, "dur": 2}]',
        b'[{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 2}] x',
    ],
)
def test_both_ways_say_the_same_when_a_file_is_strange(text: bytes) -> None:
    check_same(text)


def test_events_are_scanned_when_a_file_is_as_profilers_write_it() -> None:
    events = [step(0, 0, 1000), kernel("gemm", 1.5, 2.25, correlation=4), {"ph": "i", "name": "end", "ts": "never"}]
    scanned = kineto_scan.scan_kineto(json.dumps(document(events, 2, 4), indent=2).encode())
    assert scanned is not None
    assert scanned.document.distributed is not None
    assert (scanned.document.distributed.rank, scanned.built.notes) == (2, [])
    spans = scanned.built.spans
    assert spans["start_ns"].to_list() == [0, 1500]
    assert spans["end_ns"].to_list() == [1_000_000, 3750]
    assert spans["correlation"].to_list() == [None, 4]


@pytest.mark.parametrize("indent", [None, 2])
def test_memory_is_the_same_both_ways_when_it_was_recorded(indent: int | None) -> None:
    def mark(at_us: float, **arguments: Any) -> dict[str, Any]:
        own = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at_us}
        return {**own, "args": arguments}

    marks = [
        mark(10, **{"Total Allocated": 5, "Total Reserved": 8, "Device Type": 0, "Device Id": -1}),
        mark(30.1239, **{"Device Type": 1, "Device Id": 0, "Addr": "0x1", "Total Allocated": 70}),
        mark(20.5, **{"Device Type": 1, "Device Id": 0, "Total Allocated": 60}),
        mark(40, **{"Device Type": 1, "Device Id": 1, "Total Allocated": 9}),
        mark(50, **{"Device Type": 1, "Device Id": 0, "Bytes": 9}),
    ]
    check_same(json.dumps(document([*marks, kernel("gemm", 1, 2)], 0, 1), indent=indent).encode())


def test_many_names_are_told_apart_when_they_outgrow_the_first_table() -> None:
    events = [host(f"operator {number}", number, 1) for number in range(5000)]
    scanned = kineto_scan.scan_kineto(json.dumps(document(events, 0, 1)).encode())
    assert scanned is not None
    assert scanned.built.spans["name"].cast(str).to_list() == [f"operator {number}" for number in range(5000)]


def test_all_members_are_unpacked_when_a_gzip_file_has_several(tmp_path: Path) -> None:
    text = json.dumps(simple_rank(0, 1)).encode()
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(text[:300]) + gzip.compress(text[300:]) + b"\0" * 9)
    assert read_content(TraceFile(path)) == Content(text)


def test_threads_read_the_same_when_there_is_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(3):
        write(tmp_path / f"rank{rank}.json.gz", simple_rank(rank, 3))
    alone = read_traces([tmp_path])
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    together = read_traces([tmp_path], workers=2)
    assert together.spans.equals(alone.spans)
    assert together.ranks == alone.ranks
