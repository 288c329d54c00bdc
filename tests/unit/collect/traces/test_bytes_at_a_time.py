"""Bytes of traces are looked at many at a time: what is found depends neither on where they lie nor on how near the end is."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from unit.collect.traces.test_scanning_traces import check_same
from unit.collect.traces.trace_files import document, host, kernel

from clusterscape.collect.traces import byte_kernels, json_kernels, kineto_kernels, kineto_scan

ODD = json_kernels.ODD
texts = st.lists(st.sampled_from([b"a", b"b" * 7, b"c" * 40, b'"', b"\\", b"\n", b" ", b"\xc3\xa9"]), max_size=12).map(
    b"".join
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=70), inner, max_size=3)),
    max_leaves=8,
)
arguments = st.dictionaries(
    st.one_of(st.sampled_from(["correlation", "bytes", "flops", "cbid", "bytes "]), st.text(max_size=70)), values
)


def as_array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def end_of_string(data: bytes, at: int) -> int:
    at += 1
    while at < len(data):
        if data[at] == json_kernels.QUOTE:
            return at + 1
        if data[at] < 32:
            return ODD
        at += 2 if data[at] == json_kernels.BACKSLASH else 1
    return ODD


@given(texts, texts)
@settings(max_examples=200, deadline=None)
def test_string_and_space_end_where_they_do_byte_by_byte_when_skipped(before: bytes, text: bytes) -> None:
    data = before + b'"' + text
    raw = as_array(data)
    assert json_kernels.skip_string(raw, len(before)) == end_of_string(data, len(before))
    for at in range(0, len(data), 5):
        rest = data[at:]
        assert json_kernels.skip_space(raw, at) == len(data) - len(rest.lstrip(b" \t\r\n"))


@given(texts, st.integers(0, 63), st.integers(0, 63), st.integers(0, 70))
@settings(max_examples=200, deadline=None)
def test_bytes_are_equal_and_of_one_hash_when_they_are_the_same(text: bytes, one: int, gap: int, length: int) -> None:
    data = b"x" * one + text[:length] + b"y" * gap + text[:length]
    raw = as_array(data or b" ")
    size = min(length, len(text))
    other = one + size + gap
    assert byte_kernels.is_equal(raw, one, other, size)
    first = json_kernels.hash_bytes(raw, one, one + size)
    assert first == json_kernels.hash_bytes(raw, other, other + size)
    for place in range(size):
        changed = bytearray(data)
        changed[other + place] ^= 1
        assert not byte_kernels.is_equal(as_array(bytes(changed)), one, other, size)


@given(st.lists(st.integers(0, 63), unique=True))
@settings(max_examples=50, deadline=None)
def test_bits_are_within_strings_when_quotes_are_folded(places: list[int]) -> None:
    quotes = sum(1 << place for place in places)
    inside, expected = False, 0
    for place in range(64):
        inside ^= bool(quotes >> place & 1)
        expected |= inside << place
    assert byte_kernels.fold_quotes(quotes - (1 << 64) * (quotes >> 63)) & (2**64 - 1) == expected


numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.tuples(st.integers(0, 10**17), st.integers(0, 10**17)).map(lambda parts: f"{parts[0]}.{parts[1]}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1669783687464181", "1669783687464181.123", "12345678", "0.12345678", "-0", "9007199254740993.0"]),
)


@given(numbers, st.sampled_from([b"", b",", b"}" * 40, b", 12345678"]))
@settings(max_examples=300, deadline=None)
def test_number_is_as_python_reads_it_when_it_is_read(text: str, behind: bytes) -> None:
    what, whole, real = json_kernels.read_number(as_array(text.encode() + behind), 0)
    if what == json_kernels.WHOLE_NUMBER:
        assert whole == int(text)
    elif what == json_kernels.REAL_NUMBER:
        assert real == float(text)
    else:
        assert what == json_kernels.HARD_NUMBER
        assert len(text.lstrip("-0.")) > 15 or "e" in text


@given(arguments, st.sampled_from([None, 1]), st.booleans(), st.sampled_from([0, 30, 200]), st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_arguments_are_found_as_byte_by_byte_when_64_are_looked_at(
    own: dict[str, Any], indent: int | None, is_ascii: bool, behind: int, data: st.DataObject
) -> None:
    text = bytearray(json.dumps(own, indent=indent, ensure_ascii=is_ascii, separators=(",", ":")).encode())
    if data.draw(st.booleans()):
        text[data.draw(st.integers(1, len(text) - 1))] = data.draw(st.integers(0, 255))
    raw = as_array(b"x" + bytes(text) + b', {"a": 1}' * (behind // 10))
    fast, slow = np.zeros(kineto_kernels.FOUND, np.int64), np.zeros(kineto_kernels.FOUND, np.int64)
    end = kineto_kernels.find_arguments(raw, 1, fast)
    assert end == kineto_kernels.find_arguments_slowly(raw, 1, slow)
    if end != ODD:
        assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("length", [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 200])
def test_both_ways_give_the_same_when_names_are_long(length: int) -> None:
    names = ["n" * length, "n" * (length - 1) + "m", "m" + "n" * (length - 1), "é" * length, '"' * length]
    events = [host(name, 10 * at, 5) for at, name in enumerate([*names, *names])]
    events += [
        kernel("gemm", 1000, 2, correlation=5, stack="frame } \\ {" * length, bytes=7),
        {"ph": "i", "cat": "x", "name": "y" * length, "ts": 1, "s": "t"},
    ]
    for indent in (None, 2):
        data = json.dumps(document(events, 0, 1), indent=indent).encode()
        check_same(data)
        assert kineto_scan.scan_kineto(data) is not None


@pytest.mark.parametrize(
    "members",
    [
        '"ph":"X","ts":1,"ts":2,"cat":"kernel","name":"a"',
        '"ph":"X","ts":1,"ts":null,"cat":"kernel","name":"a"',
        '"ph":"s","ts":1,"cat":"kernel","name":"a","ph":"X"',
        '"ph":"X","ts":1,"cat":"kernel","cat":"cpu_op","name":"a"',
        '"ph":"X","ts":1,"cat":"kernel","name":"a","args":{"bytes":1},"args":{"bytes":2}',
        '"ph":"X","ts":1,"cat":"kernel","name":"a","args":{"bytes":1,"bytes":2}',
    ],
)
def test_both_ways_give_the_same_when_a_member_is_told_twice(members: str) -> None:
    check_same(b'[{%s}, {"ph":"X","ts":5,"dur":1,"cat":"kernel","name":"b"}]' % members.encode())


@pytest.mark.parametrize(
    "own", [{"stream": [1]}, {"External id": True}, {"Seq": 4}, {"dtype": "Float"}, {"grid": [1]}, {}]
)
def test_both_ways_give_the_same_when_arguments_of_a_collective_tell_something_or_nothing(own: dict[str, Any]) -> None:
    collective = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3, 5, correlation=4) | {"args": own}
    check_same(json.dumps(document([collective, host("aten::mm", 1, 2)], 0, 1)).encode())


def test_both_ways_give_the_same_when_every_number_is_a_string_or_has_an_exponent() -> None:
    own = '{"ph":"X","cat":"kernel","ts":1e1,"dur":1e1,"args":{"bytes":"1","flops":"2","correlation":"3"}}'
    check_same(b"[%s]" % ",".join([own] * 500).encode())
