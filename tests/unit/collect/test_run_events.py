"""Runs from the lines they wrote about themselves."""

from pathlib import Path

import pytest

from clusterscape.collect.run_events import RunSpan, parse_run_events, read_run_events
from clusterscape.errors import SourceError
from clusterscape.model import UnixMs, WorkloadId


def test_runs_are_cut_when_they_start_and_end() -> None:
    text = """{"t": 10.5, "pid": 1, "mode": "train", "phase": "start", "gpu": 3}
{"t": 11, "pid": 2, "mode": "eval", "phase": "start", "gpus": [0, 1]}
{"t": 12, "pid": 1, "mode": "train", "phase": "step"}
not JSON
[1]
{"t": "soon", "pid": 1, "mode": "train", "phase": "end"}
{"t": 20, "pid": 1, "mode": "train", "phase": "end"}
{"t": 30, "pid": 1, "mode": "train", "phase": "start"}
{"t": 40, "pid": 1, "mod"""
    assert parse_run_events(text) == [
        RunSpan(WorkloadId("train-1"), "train", UnixMs(10_500), UnixMs(20_000), (3,)),
        RunSpan(WorkloadId("eval-2"), "eval", UnixMs(11_000), None, (0, 1)),
        RunSpan(WorkloadId("train-1"), "train", UnixMs(30_000), None),
    ]


def test_run_is_cut_when_it_starts_again_without_an_end() -> None:
    text = '{"t": 1, "mode": "a", "phase": "start"}\n{"t": 5, "mode": "a", "phase": "start"}\n'
    assert [(run.from_at, run.until_at) for run in parse_run_events(text)] == [(1000, None), (5000, None)]


def test_shape_is_shown_when_no_line_is_an_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n")
    with pytest.raises(SourceError, match="names no run") as caught:
        read_run_events(path)
    assert '"phase": "start"' in (caught.value.hint or "")
    with pytest.raises(SourceError, match="cannot be read"):
        read_run_events(tmp_path / "none")
