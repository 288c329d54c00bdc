"""Kineto files of old profilers and other devices, and files with a token or byte that JSON does not allow, are read whole."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from unit.collect.traces.trace_files import document, host, kernel, simple_rank, step, write

from clusterscape.analyze.trace.report import analyze_trace
from clusterscape.collect.traces import read_traces

OLD = {
    "cpu_op": "Operator",
    "kernel": "Kernel",
    "cuda_runtime": "Runtime",
    "gpu_memcpy": "Memcpy",
    "user_annotation": "Operator",
}


def test_spans_and_steps_are_the_same_when_categories_are_old(tmp_path: Path) -> None:
    new = simple_rank(0, 1)
    old = json.loads(json.dumps(new))
    for event in old["traceEvents"]:
        event["cat"] = OLD[event["cat"]]
    tables = [
        read_traces([write(tmp_path / f"{name}.json", content)]).spans for name, content in (("new", new), ("old", old))
    ]
    assert tables[1].equals(tables[0])
    assert (tables[1]["span_class"] == "step").sum() == 4


def test_device_time_is_compute_when_the_device_is_an_mtia(tmp_path: Path) -> None:
    device = kernel("fused_op", 100, 300) | {"cat": "mtia_ccp_events"}
    launch = host("mtiaLaunchKernel", 50, 10) | {"cat": "mtia_runtime"}
    path = write(tmp_path / "rank0.json", document([step(0, 0, 1000), host("aten::mm", 10, 80), launch, device], 0, 1))
    report = analyze_trace(read_traces([path]), np.random.default_rng(0))
    assert report.breakdown["compute_ns"].to_list() == [300_000]


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_all_other_events_are_read_when_one_value_is_not_a_number(tmp_path: Path, token: str) -> None:
    content = simple_rank(0, 1, steps=50)
    content["traceEvents"][7]["args"] = {"bytes": "HERE", "comment": "NaN, in a text"}
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(content).replace('"HERE"', token))
    trace = read_traces([path])
    assert trace.spans.height == len(content["traceEvents"])
    assert any("not numbers" in note for note in trace.notes)
    assert trace.ranks[0].is_complete


def test_file_is_read_when_a_name_has_a_byte_of_another_encoding(tmp_path: Path) -> None:
    content = simple_rank(0, 1)
    content["traceEvents"][1]["name"] = "caf\u00e9"
    path = tmp_path / "rank0.json"
    path.write_bytes(json.dumps(content, ensure_ascii=False).encode("latin-1"))
    trace = read_traces([path])
    assert trace.spans.height == len(content["traceEvents"])
    assert trace.spans["name"].cast(pl.String).str.starts_with("caf").any()
    assert any("not UTF-8" in note for note in trace.notes)
