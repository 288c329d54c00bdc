"""FLOPs and memory of PyTorch traces: recorded or estimated, attributed to kernels; null when not recorded."""

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from unit.collect.traces.trace_files import Json, document, host, kernel, step, write

from clusterscape.collect.traces import read_traces
from clusterscape.collect.traces.files import Content
from clusterscape.collect.traces.kineto import EventArguments, KinetoFile
from clusterscape.collect.traces.kineto_measures import MemoryColumns, estimate_flops, parse_times
from clusterscape.model.spans import Trace


def arguments(shapes: list[Any], settings: list[str] | None = None) -> EventArguments:
    args: Json = {"Input Dims": shapes}
    if settings is not None:
        args["Concrete Inputs"] = settings
    return msgspec.json.decode(msgspec.json.encode(args), type=EventArguments)


@pytest.mark.parametrize(
    ("name", "shapes", "settings", "flops"),
    [
        ("aten::mm", [[4, 8], [8, 2]], None, 2 * 4 * 8 * 2),
        ("aten::addmm", [[2], [4, 8], [8, 2], [], []], None, 2 * 4 * 8 * 2),
        ("aten::bmm", [[3, 4, 8], [3, 8, 2]], None, 3 * 2 * 4 * 8 * 2),
        # 8 × 8 pixels, 3 × 3 kernels, stride 2, padding 1: 4 × 4 outputs.
        (
            "aten::convolution",
            [[2, 3, 8, 8], [5, 3, 3, 3], [5], [], [], [], [], [], []],
            ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
            2 * 2 * 5 * 16 * 27,
        ),
        (
            "aten::convolution_backward",
            [[2, 5, 4, 4], [2, 3, 8, 8], [5, 3, 3, 3], []],
            ["", "", "", "[5]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[False, True, True]"],
            2 * 2 * 5 * 16 * 27,
        ),
        # Each of 16 queries with each of 32 keys, over 8 numbers; then 32 values of 4 numbers for each query.
        (
            "aten::_scaled_dot_product_efficient_attention",
            [[2, 3, 16, 8], [2, 3, 32, 8], [2, 3, 32, 4], [], [], [], []],
            ["", "", "", "", "True", "0.", "False"],
            2 * 2 * 3 * 16 * 32 * (8 + 4),
        ),
        # The first query sees one key, the last all 16.
        (
            "aten::_scaled_dot_product_flash_attention",
            [[2, 4, 16, 8], [2, 2, 16, 8], [2, 2, 16, 8], [], []],
            ["", "", "", "0.", "True"],
            2 * 2 * 4 * (16 * 17 // 2) * (8 + 8),
        ),
        (
            "aten::_scaled_dot_product_flash_attention_backward",
            [[2, 3, 16, 4], [2, 3, 16, 8], [2, 3, 32, 8], [2, 3, 32, 4]],
            None,
            2 * 2 * 3 * 16 * 32 * (3 * 8 + 2 * 4),
        ),
        ("aten::_scaled_dot_product_flash_attention", [[16, 4, 8], [16, 4, 8], [16, 4, 8]], None, None),
        ("aten::mm", [[4, 8], [9, 2]], None, None),
        ("aten::mm", [[10**18] * 30, [10**18] * 30], None, None),
        ("aten::mm", [], None, None),
        ("aten::mm", [[[4, 8]], [[8, 2]]], None, None),
        ("aten::convolution", [[2, 3, 8, 8], [5, 3, 3, 3]], None, None),
        ("aten::add", [[4, 8], [4, 8]], None, None),
    ],
)
def test_flops_are_those_of_the_shapes_when_these_were_recorded(
    name: str, shapes: list[Any], settings: list[str] | None, flops: int | None
) -> None:
    assert estimate_flops(name, arguments(shapes, settings)) == flops


def launch(correlation: int, start_us: float) -> Json:
    return {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start_us, "dur": 2,
        "args": {"correlation": correlation},
    }  # fmt: skip


def product(start_us: float, **more: Any) -> Json:
    return host("aten::mm", start_us, 20) | {"args": {"Input Dims": [[100, 100], [100, 100]], **more}}


def allocation(at_us: float, total: int, device: int) -> Json:
    return {
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at_us,
        "args": {"Total Allocated": total, "Bytes": 8, "Device Id": 0 if device else -1, "Device Type": device},
    }  # fmt: skip


def read(folder: Path, events: list[Json]) -> Trace:
    write(folder / "trace_rank0.json", document([step(0, 0, 1000), *events], 0, 1))
    return read_traces([folder])


def test_flops_lie_on_the_kernels_when_an_operator_launches_some(tmp_path: Path) -> None:
    events = [product(10), launch(1, 12), launch(2, 15), launch(3, 40)]
    events += [kernel(f"gemm {at}", 100 + 50 * at, 10 * at, correlation=at) for at in (1, 2, 3)]
    trace = read(tmp_path, events)
    flops = dict(trace.spans.drop_nulls("flops").select(pl.col("name").cast(pl.String), "flops").iter_rows())
    assert flops == pytest.approx({"gemm 1": 2e6 / 3, "gemm 2": 4e6 / 3})
    assert trace.ranks[0].flops_source == "estimated"


def test_the_profilers_own_flops_are_used_when_it_recorded_some(tmp_path: Path) -> None:
    trace = read(tmp_path, [product(10, flops=5), product(50)])
    assert trace.spans["flops"].drop_nulls().to_list() == [5.0]
    assert trace.ranks[0].flops_source == "recorded"


def test_flops_and_memory_are_missing_when_none_were_recorded(tmp_path: Path) -> None:
    trace = read(tmp_path, [host("aten::mm", 10, 20)])
    assert trace.spans["flops"].null_count() == trace.spans.height
    assert (trace.ranks[0].flops_source, trace.memory) == (None, None)


def test_memory_is_that_of_the_device_when_there_is_one(tmp_path: Path) -> None:
    trace = read(tmp_path, [allocation(10, 7, 0), allocation(20.5, 64, 1), allocation(30, 16, 1)])
    assert trace.memory is not None
    assert trace.memory.rows() == [(0, 20_500, 64), (0, 30_000, 16)]


def test_memory_is_that_of_the_host_when_there_is_no_device(tmp_path: Path) -> None:
    trace = read(tmp_path, [allocation(10, 7, 0), allocation(20, 9, 0)])
    assert trace.memory is not None
    assert trace.memory["bytes"].to_list() == [7, 9]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (b'"name": "[memory]", "ts": 12.3456, "args": {"Total Allocated": 8}}', (12_345, 8)),
        (b'"name":"[memory]","ts":"7","args":{"Device Type":"0","Total Allocated":"9"}}', (7_000, 9)),
        (b'"name": "[memory]", "ts": 1.5, "args": {"Bytes": 8}}, {"ts": 2, "Total Allocated": 3}', None),
        (b'"name": "[memory]", "args": {"ts": 3, "Total Allocated": 8}}', None),
        (b'"name": "[memory]", "ts": 1', None),
    ],
)
def test_allocation_is_read_when_its_event_has_time_and_total(event: bytes, expected: tuple[int, int] | None) -> None:
    content = Content(b'[{"ph": "i", "name": "start", "ts": 0}, {"ph": "i", ' + event + b"]")
    memory = MemoryColumns()
    for events in KinetoFile(content).iter_events():
        memory.add(events)
    table = memory.build(0)
    assert (None if table is None else table.row(0)) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], []),
        (["7", "1669783687464181"], [7_000, 1_669_783_687_464_181_000]),
        (["-7", "", "4000000000000001"], [None, None, None]),
        (["7", "12.3456", '"8"', "9.", "1e3", '"x"', "12345678901234567", "\xff"],
         [7_000, 12_345, 8_000, 9_000, None, None, None, None]),
    ],
)  # fmt: skip
def test_times_of_memory_are_nanoseconds_when_they_are_possible(texts: list[str], expected: list[int | None]) -> None:
    assert parse_times(texts).to_list() == expected
