"""Kineto files, complete, damaged or truncated: spans equal those of a plain Python reader."""

import gzip
import json
import math
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.collect.traces.trace_files import Json, document, host, kernel, simple_rank, step, write

from clusterscape.collect.traces import kineto, read_traces, reading
from clusterscape.collect.traces.files import Content, TraceFile, read_content
from clusterscape.collect.traces.kineto_spans import CLASSES, DEVICE_CATEGORIES
from clusterscape.collect.traces.reading import RankSpans, parse_rank
from clusterscape.errors import SourceError
from clusterscape.model.spans import SPAN_SCHEMA

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
Row = tuple[str, str, int, int, int | None]
"""Lane, name, start and end in nanoseconds, correlation."""


def read(data: bytes, block_bytes: int = kineto.BLOCK_BYTES) -> RankSpans | str:
    """The spans of a file, or the error message."""
    with patch.object(kineto, "BLOCK_BYTES", block_bytes):
        try:
            return parse_rank(FILE, Content(data))
        except SourceError as error:
            return error.message


def rows_of(result: RankSpans | str) -> list[Row]:
    if isinstance(result, str):
        assert result in ("it has no spans", "no event can be read from it")
        return []
    assert dict(result.spans.schema) == dict(SPAN_SCHEMA)
    texts = [pl.col(name).cast(pl.String) for name in ("lane", "name")]
    return list(result.spans.select(*texts, "start_ns", "end_ns", "correlation").iter_rows())


def expected_rows(events: list[Json], base_ns: int = 0) -> list[Row]:
    """The rows of a plain Python reader, for events with valid field types."""
    used = [
        event
        for event in events
        if event["ph"] == "X"
        and event["cat"] in CLASSES
        and event.get("ts") is not None
        and (event.get("dur") or 0) >= 0
    ]
    rows = []
    for event in used:
        place = "stream" if event["cat"] in DEVICE_CATEGORIES else "thread"
        whole = math.floor(event["ts"])
        start_ns = base_ns + 1000 * whole + round((event["ts"] - whole) * 1000)
        end_ns = start_ns + round(float(event.get("dur") or 0) * 1000)
        correlation = expected_number((event.get("args") or {}).get("correlation"))
        rows.append((f"{place} {event.get('tid')}", str(event["name"]), start_ns, end_ns, correlation))
    return rows


def expected_number(value: Any) -> int | None:
    try:
        return None if value is None else int(float(value)) if isinstance(value, str | float) else value
    except ValueError:
        return None


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
        "ph": st.sampled_from(["X", "X", "X", "X", "s", "M", "i", "C", "?", ""]),
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
BASE_NS = 1_790_857_026_000_000_000
facts = st.fixed_dictionaries(
    {},
    optional={
        "distributedInfo": st.just(
            {"backend": "nccl", "rank": 3, "world_size": 4, "pg_config": [{"pg_name": "0", "ranks": [0]}]}
        ),
        "deviceProperties": st.just([{"id": 0, "name": "H200"}]),
        "baseTimeNanoseconds": st.just(BASE_NS),
        "traceName": st.text(max_size=5),
    },
)


block_sizes = st.sampled_from([1, 100, kineto.BLOCK_BYTES])


@given(st.lists(events, max_size=8), facts, st.sampled_from([None, 1]), st.booleans(), st.booleans(), block_sizes)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_spans_match_plain_python_when_a_file_is_complete(
    some: list[Json], head: Json, indent: int | None, is_list: bool, is_ascii: bool, block_bytes: int
) -> None:
    content: Any = some if is_list else {"schemaVersion": 1, **head, "traceEvents": some, "traceName": "x"}
    result = read(json.dumps(content, indent=indent, ensure_ascii=is_ascii).encode(), block_bytes)
    base_ns = 0 if is_list else head.get("baseTimeNanoseconds", 0)
    assert rows_of(result) == expected_rows(some, base_ns)
    if isinstance(result, RankSpans) and not is_list:
        assert result.stated_rank == (3 if "distributedInfo" in head else None)
        assert result.facts.device == ("H200" if "deviceProperties" in head else None)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_every_event_before_the_damage_is_used_when_a_file_is_cut(data: st.DataObject) -> None:
    trace = simple_rank(1, 2, steps=2)
    text = json.dumps(trace, indent=data.draw(st.sampled_from([None, 1]))).encode()
    at = data.draw(st.integers(1, len(text) - 1))
    rows = rows_of(read(text[:at], data.draw(block_sizes)))
    all_rows = expected_rows(trace["traceEvents"])
    assert rows == all_rows[: len(rows)]
    # An event's braces are all closed before the cut: the last ones of a file may be cut off with the document's.
    assert len(rows) >= text[:at].count(b'"ph"') - 1


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_file_is_read_or_refused_when_one_byte_differs(data: st.DataObject) -> None:
    text = bytearray(json.dumps(simple_rank(1, 2, steps=2)).encode())
    text[data.draw(st.integers(1, len(text) - 1))] = data.draw(st.integers(0, 255))
    rows = rows_of(read(bytes(text), data.draw(block_sizes)))
    assert len(rows) <= len(expected_rows(simple_rank(1, 2, steps=2)["traceEvents"]))


UNEXPECTED = (
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": "soon", "dur": 3},
    {"ph": "X", "cat": ["kernel"], "name": "gemm", "ts": 5, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": {}, "ts": 5, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 5, "dur": 3, "args": [1]},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 5, "dur": 3, "args": {"correlation": [1]}},
    {"ph": 1, "cat": "kernel", "name": "gemm", "ts": 5},
    None,
    7,
)


@pytest.mark.parametrize("unexpected", UNEXPECTED)
def test_an_event_is_left_out_and_counted_when_its_fields_have_unexpected_types(unexpected: Any) -> None:
    good = [kernel("gemm", 20, 5), host("aten::mm", 1, 2)]
    whole_file = document([unexpected, *good], 0, 1) | {"deviceProperties": [{"name": "H200"}]}
    result = read(json.dumps(whole_file).encode())
    assert rows_of(result) == expected_rows(good)
    assert isinstance(result, RankSpans)
    assert result.facts.notes == ("1 events with fields of unexpected types were skipped",)
    assert (result.stated_rank, result.facts.device) == (0, "H200")


def test_events_are_used_when_one_of_them_is_unexpected_and_the_file_is_cut() -> None:
    good = [kernel("gemm", 20, 5), host("aten::mm", 1, 2)]
    text = json.dumps(document([UNEXPECTED[0], *good, kernel("cut", 30, 5)], 0, 1)).encode()
    result = read(text[:-10])
    assert rows_of(result) == expected_rows(good)
    assert isinstance(result, RankSpans)
    assert not result.facts.is_complete
    assert "1 events with fields of unexpected types" in result.facts.notes[-1]


@pytest.mark.parametrize(
    ("member", "note"),
    [
        ('"distributedInfo": 7', "distributedInfo has an unexpected type and was skipped"),
        ('"deviceProperties": {}', "deviceProperties has an unexpected type and was skipped"),
        ('"baseTimeNanoseconds": "noon"', "baseTimeNanoseconds has an unexpected type and was skipped"),
    ],
)
def test_spans_are_read_when_a_fact_of_the_file_has_an_unexpected_type(member: str, note: str) -> None:
    result = read(b'{%s, "traceEvents": [%s]}' % (member.encode(), json.dumps(host("aten::mm", 1, 2)).encode()))
    assert rows_of(result) == expected_rows([host("aten::mm", 1, 2)])
    assert isinstance(result, RankSpans)
    assert result.facts.notes == (note,)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"", "no event can be read from it"),
        (b"[]", "it has no spans"),
        (b"{}", "no event can be read from it"),
        (b'{"traceEvents": {}}', "no event can be read from it"),
        (b'{"traceEvents": [], "traceEvents": []}', "it has no spans"),
        (
            b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": NaN}]}',
            ["a"],
        ),
        (b'[{"ph": "X", "cat": "kernel", "name": "a", "ts": 1}, {"ph": "X", "dur": NaN}]', ["a"]),
        (
            b'[{"ph": "X", "cat": "kernel", "name": "a\xff", "ts": 1}, {"ph": "X", "cat": "kernel", "name": "b", "ts": 1}]',
            ["a\ufffd", "b"],
        ),
        (b'[{"ph": "X", "cat": "kernel", "ts": 1}, {"ph": "X", "cat": "kernel", "name": "\\ud800", "ts": 1}]', ["None"]),
        (b'[{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 2}] x', ["a"]),
    ],
)  # fmt: skip
def test_readable_parts_are_kept_when_a_file_is_malformed(text: bytes, names: str | list[str]) -> None:
    result = read(text)
    assert names == (result if isinstance(result, str) else result.spans["name"].cast(pl.String).to_list())


@pytest.mark.parametrize("length", [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 200, 5000])
def test_names_are_distinguished_when_they_are_long(length: int) -> None:
    names = ["n" * length, "n" * (length - 1) + "m", "m" + "n" * (length - 1), "é" * length, '"' * length]
    some = [host(name, 10 * at, 5) for at, name in enumerate([*names, *names])]
    some += [
        kernel("gemm", 1000, 2, correlation=5, stack="frame } \\ {" * length, bytes=7),
        {"ph": "i", "cat": "x", "name": "y" * length, "ts": 1, "s": "t"},
    ]
    for indent in (None, 2):
        assert rows_of(read(json.dumps(document(some, 0, 1), indent=indent).encode())) == expected_rows(some)


@pytest.mark.parametrize(
    ("members", "row"),
    [
        ('"ph":"X","ts":1,"ts":2,"cat":"kernel","name":"a"', ("stream None", "a", 2000, 2000, None)),
        ('"ph":"X","ts":1,"ts":null,"cat":"kernel","name":"a"', None),
        ('"ph":"s","ts":1,"cat":"kernel","name":"a","ph":"X"', None),
        ('"ph":"X","ts":1,"cat":"kernel","cat":"cpu_op","name":"a"', ("thread None", "a", 1000, 1000, None)),
        (
            '"ph":"X","ts":1,"cat":"kernel","name":"a","args":{"correlation":1,"correlation":2}',
            ("stream None", "a", 1000, 1000, 2),
        ),
    ],
)
def test_the_last_value_counts_when_a_member_is_written_twice(members: str, row: Row | None) -> None:
    result = read(b'[{%s}, {"ph":"X","ts":5,"dur":1,"cat":"kernel","name":"b"}]' % members.encode())
    assert rows_of(result) == [*([row] if row else []), ("stream None", "b", 5000, 6000, None)]


@pytest.mark.parametrize(
    "own", [{"stream": [1]}, {"External id": True}, {"Seq": 4}, {"dtype": "Float"}, {"grid": [1]}, {}]
)
def test_collective_is_read_when_its_arguments_are_arbitrary(own: Json) -> None:
    collective = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3, 5) | {"args": own}
    result = read(json.dumps(document([collective, host("aten::mm", 1, 2)], 0, 1)).encode())
    assert isinstance(result, RankSpans)
    assert result.spans["collective"].cast(pl.String).to_list() == ["all_reduce", None]
    assert result.spans["sequence"].to_list() == [own.get("Seq"), None]


@pytest.mark.parametrize("member", [b'"Input type": ["\xf9"]', b'"Concrete Inputs": ["\xf9"]'])
def test_a_collective_has_no_size_when_its_types_are_no_text(member: bytes) -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"%s","ts":1,"dur":2,"args":{"Input Dims": [[4, 8], [8, 4]], %s}}'
    data = b"[%s, %s]" % (event % (b"record_param_comms", member), event % (b"aten::mm", member))
    result = read(data)
    assert isinstance(result, RankSpans)
    assert result.spans["bytes"].to_list() == [None, None]


def test_numbers_are_read_when_they_are_strings_or_have_an_exponent() -> None:
    own = '{"ph":"X","cat":"kernel","ts":1e1,"dur":1e1,"args":{"bytes":"1","flops":"2","correlation":"3"}}'
    result = read(b"[%s]" % ",".join([own] * 500).encode())
    assert rows_of(result) == [("stream None", "None", 10_000, 20_000, 3)] * 500
    assert isinstance(result, RankSpans)
    assert set(result.spans.select("bytes", "flops").iter_rows()) == {(1, 2.0)}


def test_times_and_facts_are_read_when_a_file_is_as_profilers_write_it() -> None:
    some = [step(0, 0, 1000), kernel("gemm", 1.5, 2.25, correlation=4), {"ph": "i", "name": "end", "ts": "never"}]
    result = read(json.dumps(document(some, 2, 4), indent=2).encode())
    assert isinstance(result, RankSpans)
    assert (result.stated_rank, result.facts.notes) == (2, ())
    assert result.spans["start_ns"].to_list() == [0, 1500]
    assert result.spans["end_ns"].to_list() == [1_000_000, 3750]
    assert result.spans["correlation"].to_list() == [None, 4]


@pytest.mark.parametrize("indent", [None, 2])
def test_memory_is_that_of_the_largest_device_when_it_was_recorded(indent: int | None) -> None:
    def mark(at_us: float, **own: Any) -> Json:
        event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at_us}
        return {**event, "args": own}

    marks = [
        mark(10, **{"Total Allocated": 5, "Total Reserved": 8, "Device Type": 0, "Device Id": -1}),
        mark(30.1239, **{"Device Type": 1, "Device Id": 0, "Addr": "0x1", "Total Allocated": 70}),
        mark(20.5, **{"Device Type": 1, "Device Id": 0, "Total Allocated": 60}),
        mark(40, **{"Device Type": 1, "Device Id": 1, "Total Allocated": 9}),
        mark(50, **{"Device Type": 1, "Device Id": 0, "Bytes": 9}),
    ]
    result = read(json.dumps(document([*marks, kernel("gemm", 1, 2)], 0, 1), indent=indent).encode())
    assert isinstance(result, RankSpans)
    assert result.memory is not None
    assert result.memory.rows() == [(20_500, 60), (30_123, 70)]


@pytest.mark.parametrize("block_bytes", [1, 10_000, kineto.BLOCK_BYTES])
def test_all_events_are_read_when_a_file_has_many_blocks(block_bytes: int) -> None:
    some = [host(f"operator {number}", number + number % 7 / 2, 1) for number in range(5000)]
    assert rows_of(read(json.dumps(document(some, 0, 1)).encode(), block_bytes)) == expected_rows(some)


@pytest.mark.parametrize("inner", ['}, {"ph": "X"', "}, {", '"traceEvents": [', '"traceEvents": [{'])
def test_events_are_separated_when_strings_and_arguments_look_like_their_boundaries(inner: str) -> None:
    nested = [{"a": 1}, {"b": [{"c": inner}, {"d": {}}]}] * 9
    some = [kernel(f"{inner} {number}", number, 1, nested=nested, correlation=number) for number in range(20)]
    head = {"traceName": inner, "config": {"traceEvents": [inner]}}
    for block_bytes in (1, 50, 1000, kineto.BLOCK_BYTES):
        result = read(json.dumps(head | document(some, 3, 4)).encode(), block_bytes)
        assert rows_of(result) == expected_rows(some)
        assert isinstance(result, RankSpans)
        assert (result.stated_rank, result.facts.notes) == (3, ())
        cut = json.dumps(document([*some, kernel("cut", 1, 1)], 3, 4)).encode()[:-9]
        assert rows_of(read(cut, block_bytes)) == expected_rows(some)


def test_events_before_the_damage_are_used_when_it_lies_in_the_middle_of_many_blocks() -> None:
    some = [host(f"operator {number}", number, 1) for number in range(3000)]
    text = json.dumps(document(some, 3, 4)).encode()
    at = text.index(b'"operator 2000"')
    for damage in (b"nan", b"\x01", b'"\\ud800"'):
        result = read(text[:at] + damage + text[at + 15 :], 5000)
        assert rows_of(result) == expected_rows(some[:2000])
        assert isinstance(result, RankSpans)
        assert (result.stated_rank, result.facts.is_complete) == (3, False)
        assert "only the 2,000 events before that are used" in result.facts.notes


def test_all_members_are_unpacked_when_a_gzip_file_has_several(tmp_path: Path) -> None:
    text = json.dumps(simple_rank(0, 1)).encode()
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(text[:300]) + gzip.compress(text[300:]) + b"\0" * 9)
    assert read_content(TraceFile(path)) == Content(text)


def test_parallel_reading_gives_the_same_when_files_are_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(3):
        write(tmp_path / f"rank{rank}.json.gz", simple_rank(rank, 3))
    alone = read_traces([tmp_path])
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    together = read_traces([tmp_path], workers=2)
    assert together.spans.equals(alone.spans)
    assert together.ranks == alone.ranks
