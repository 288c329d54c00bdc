"""A real PyTorch run of 2 stages × 2 tensor-parallel ranks on the processor: captured, read, and the delayed rank is named."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from servers.programs import free_port

from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.model.spans import RankFacts
from clusterscape.model.verdicts import VerdictKind

if os.environ.get("CI") != "true":  # there it must be installed
    pytest.importorskip("torch", reason="torch is not installed; `pip install -e '.[torch-tests]'` brings it")
pytestmark = pytest.mark.server

DELAYED_RANK = 3
DELAY_S = 0.1  # a forward: far above what two busy cores add
STEPS, MICRO_BATCHES = 4, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("captured")
    script = Path(__file__).with_name("torch_pipeline.py")
    command = [sys.executable, str(script), str(free_port()), str(made), str(DELAYED_RANK), str(DELAY_S)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return made


@pytest.fixture(scope="module")
def report(folder: Path) -> TraceReport:
    return analyze_trace(read_traces([folder / "ranks"], workers=1), np.random.default_rng(0))


def facts_of(report: TraceReport, rank: int) -> RankFacts:
    return next(facts for facts in report.trace.ranks if facts.rank == rank)


def test_a_trace_and_a_capture_are_left_by_every_rank_when_a_run_is_captured(folder: Path) -> None:
    wanted = {f"{name}_rank{rank}" for name in ("trace", "capture") for rank in range(4)}
    assert {path.name.split(".")[0] for path in (folder / "ranks").iterdir()} == wanted


def test_stages_groups_and_placements_are_known_when_a_capture_lies_beside(report: TraceReport) -> None:
    assert [(facts.rank, facts.stage, facts.world_size, facts.backend) for facts in report.trace.ranks] == [
        (rank, rank // 2, 4, "gloo") for rank in range(4)
    ]
    own = {group.kind: group.ranks for group in facts_of(report, 3).process_groups}
    assert own == {None: (0, 1, 2, 3), "pp": (1, 3), "tp": (2, 3)}
    modules = {module.path: module for module in facts_of(report, 3).modules}
    assert modules["blocks.1.up"].class_name == "Linear"
    weight = next(each for each in modules["blocks.1.down"].parameters if each.name == "weight")
    assert (weight.shape, weight.local_shape, weight.placements) == ((64, 256), (64, 128), (("tp", "shard 1"),))


def test_spans_lie_in_their_modules_when_calls_are_named(report: TraceReport) -> None:
    products = report.trace.spans.filter((pl.col("name") == "aten::addmm") & (pl.col("phase") == "forward"))
    paths = set(products["namespace"].cast(pl.String))
    assert "forward mb2/Stage/blocks.1/down" in paths
    assert None not in paths


def test_all_communication_is_matched_when_gloo_names_no_groups(report: TraceReport) -> None:
    assert report.steps["step"].n_unique() == STEPS
    assert report.matches.unmatched == 0
    assert report.matches.messages.height == STEPS * MICRO_BATCHES * 2 * 2
    groups = report.matches.members.group_by("process_group").agg(pl.col("rank").unique().sort(), pl.len())
    assert sorted(groups["rank"].to_list()) == [[0, 1], [2, 3]]
    # Two blocks reduce in a forward; in a backward both in stage 1, and one in stage 0, whose input needs no gradient. The head of
    # stage 1 gathers in the forward and reduces in the backward.
    assert sorted(groups["len"].to_list()) == [STEPS * MICRO_BATCHES * each * 2 for each in (3, 6)]


def test_the_held_up_rank_is_named_first_when_it_sleeps_in_its_forward(report: TraceReport) -> None:
    first = report.verdicts[0]
    assert (first.kind, first.rank) == (VerdictKind.SLOW_WORKER, DELAYED_RANK)
    assert first.seconds_per_step > 0.5 * DELAY_S * MICRO_BATCHES
    assert first.spans
    assert report.bubble is not None
    assert (report.bubble.stages, report.bubble.micro_batches) == (2, MICRO_BATCHES)


def test_a_capture_is_read_when_one_process_trains_alone(folder: Path) -> None:
    trace = read_traces([folder / "alone/captured"], workers=1)
    assert [(facts.rank, facts.world_size, facts.stage) for facts in trace.ranks] == [(0, 1, None)]
    assert trace.spans["step"].drop_nulls().n_unique() == 2
    assert {"Stage/blocks.0/up", "Stage/blocks.1/down"} <= set(trace.spans["namespace"].cast(pl.String))


def test_the_stage_is_known_when_a_profiler_of_ones_own_is_written(folder: Path) -> None:
    (facts,) = read_traces([folder / "alone/own"], workers=1).ranks
    assert (facts.stage, len(facts.modules)) == (1, 8)
