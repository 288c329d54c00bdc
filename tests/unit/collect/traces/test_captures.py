"""Capture files of traces: data added to ranks, and notes when a capture cannot be used."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from unit.collect.traces.trace_files import Json, document, host, step, write

from clusterscape.collect.traces import read_traces
from clusterscape.model.spans import Trace


def gloo(start_us: float, elements: int) -> Json:
    """An all-reduce as gloo is profiled on the processor: without its process group."""
    arguments = {"Input Dims": [[elements]], "Input type": ["float"]}
    return {
        "ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 2, "ts": start_us, "dur": 5.0,
        "args": arguments,
    }  # fmt: skip


def call(group: str, sequence: int, elements: int) -> Json:
    return {"name": "gloo:all_reduce", "group": group, "sequence": sequence, "elements": elements}


def captured(rank: int, communications: list[Json], **more: Any) -> Json:
    groups = [{"name": "0", "ranks": [0, 1], "kind": None}, {"name": "7", "ranks": [0, 1], "kind": "tp"}]
    head = {"schema": "clusterscape_capture", "version": 1, "rank": rank, "world_size": 2, "backend": "gloo"}
    return {**head, "stage": rank, "process_groups": groups, "communications": communications, "modules": [], **more}


def read(folder: Path, capture: Json | None, sizes: tuple[int, ...] = (8, 16)) -> Trace:
    """One rank whose trace has an all-reduce of each size."""
    events = [step(0, 0, 1000), host("aten::mm", 10, 20), *(gloo(100 + 10 * at, n) for at, n in enumerate(sizes))]
    write(folder / "trace_rank1.json", document(events, 1, 2))
    if capture is not None:
        write(folder / "capture_rank1.json", capture)
    return read_traces([folder])


def groups_of(trace: Trace) -> list[tuple[str | None, int | None]]:
    collectives = trace.spans.filter(pl.col("collective") == "all_reduce").sort("start_ns")
    return list(collectives.select(pl.col("process_group").cast(pl.String), "sequence").iter_rows())


def test_groups_are_named_from_the_last_when_the_record_is_longer(tmp_path: Path) -> None:
    trace = read(tmp_path, captured(1, [call("0", 1, 99), call("0", 2, 8), call("7", 1, 16)]))
    assert groups_of(trace) == [("0", 2), ("7", 1)]
    assert trace.notes == ()
    assert trace.ranks[0].stage == 1
    assert {group.name: group.kind for group in trace.ranks[0].process_groups} == {"0": None, "7": "tp"}


def test_process_group_is_missing_and_noted_when_the_capture_is_shorter(tmp_path: Path) -> None:
    trace = read(tmp_path, captured(1, [call("7", 1, 16)]))
    assert groups_of(trace) == [(None, None), ("7", 1)]
    assert trace.notes == ("Rank 1: the capture has no process group for 1 all_reduce calls.",)


def test_none_is_named_when_sizes_do_not_agree(tmp_path: Path) -> None:
    trace = read(tmp_path, captured(1, [call("0", 2, 8), call("7", 1, 16), call("7", 2, 24)]))
    assert groups_of(trace) == [(None, None), (None, None)]
    assert trace.notes == ("Rank 1: the capture has no process group for 2 all_reduce calls.",)


def test_placements_are_kept_when_modules_are_captured(tmp_path: Path) -> None:
    weight = {"name": "weight", "shape": [64, 256], "dtype": "float32", "local_shape": [64, 128]}
    weight["placements"] = [{"mesh_dim": "tp", "kind": "shard", "dim": 1}, {"mesh_dim": "dp", "kind": "replicate"}]
    module = {"path": "blocks.0.down", "class": "Linear", "parameters": [weight]}
    (kept,) = read(tmp_path, captured(1, [], modules=[module])).ranks[0].modules
    assert (kept.path, kept.class_name) == ("blocks.0.down", "Linear")
    assert kept.parameters[0].placements == (("tp", "shard 1"), ("dp", "replicate"))
    assert kept.parameters[0].local_shape == (64, 128)


def test_the_trace_is_read_when_its_capture_is_broken(tmp_path: Path) -> None:
    trace = read(tmp_path, {"schema": "clusterscape_capture", "rank": "one"})
    assert len(trace.ranks) == 1
    assert trace.notes[0].startswith("Cannot read capture_rank1.json: Expected `int`, got `str`")


@pytest.mark.parametrize("rank", [0, 5])
def test_a_capture_is_passed_over_when_its_rank_has_no_trace(tmp_path: Path, rank: int) -> None:
    trace = read(tmp_path, captured(rank, [call("7", 1, 16)]))
    assert groups_of(trace) == [(None, None), (None, None)]
    assert trace.ranks[0].modules == ()


def linear(weight: list[int], dim: int, **tensors: Any) -> Json:
    """A linear layer whose weight is split into 2 parts by Megatron or a DTensor."""
    parameter = {
        "name": "weight",
        "local_shape": weight,
        "placements": [{"mesh_dim": "tp", "kind": "shard", "dim": dim}],
    }
    return {"path": "up", "class": "Linear", "parameters": [parameter], **tensors}


def test_activations_follow_their_dtensors_when_a_style_splits_them(tmp_path: Path) -> None:
    placed = [{"mesh_dim": "tp", "kind": "shard", "dim": -1, "parts": 2}]
    whole = [{"mesh_dim": "tp", "kind": "replicate", "parts": 2}]
    module = linear(
        [128, 64],
        0,
        inputs=[{"shape": [16, 64]}],
        inner_inputs=[{"shape": [16, 64], "placements": whole}],
        inner_outputs=[{"shape": [16, 256], "placements": placed}],
        outputs=[{"shape": [16, 128], "dtype": "float32"}],
    )
    (kept,) = read(tmp_path, captured(1, [], modules=[module])).ranks[0].modules
    assert kept.inputs[0].splits == (1, 1)
    assert (kept.outputs[0].shape, kept.outputs[0].splits) == ((16, 256), (1, 2))
    assert kept.parameters[0].splits == (2, 1)


@pytest.mark.parametrize(
    ("dim", "goes_in", "comes_out", "splits"),
    [
        (0, [8, 4, 64], [8, 4, 128], ((1, 1, 1), (1, 1, 2))),
        (1, [8, 4, 64], [8, 4, 128], ((1, 1, 2), (1, 1, 1))),
        (0, [8, 4, 64], [8, 4, 256], ((1, 1, 1), ())),  # gathered by the layer: no longer split
    ],
)
def test_activations_are_split_as_the_weight_is_when_they_are_as_long_as_its_part(
    tmp_path: Path, dim: int, goes_in: list[int], comes_out: list[int], splits: object
) -> None:
    module = linear([128, 64], dim, inputs=[{"shape": goes_in}], outputs=[{"shape": comes_out}])
    (kept,) = read(tmp_path, captured(1, [], modules=[module])).ranks[0].modules
    assert (kept.inputs[0].splits, kept.outputs[0].splits) == splits
