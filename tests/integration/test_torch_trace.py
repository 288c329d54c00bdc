"""A real PyTorch run of 2 stages × 2 tensor-parallel ranks on the processor: captured, read, drawn, the delayed rank named."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from servers.programs import free_port

from clusterscape.analyze.trace.document import find_stage_modules
from clusterscape.analyze.trace.flow_spans import NamedModules, add_shards, find_layers, paths_of, spans_to_operators
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.model.spans import RankFacts
from clusterscape.model.trace_report import VerdictKind

if os.environ.get("CI") != "true":  # there it must be installed
    pytest.importorskip("torch", reason="torch is not installed; `pip install -e '.[torch-tests]'` brings it")
pytestmark = pytest.mark.server

DELAYED_RANK = 3
DELAY_S = 0.3  # a forward: far above what two busy cores add
STEPS, MICRO_BATCHES = 4, 4
SLOW_MS = 120_000
OUTPUT = Path(__file__).parents[1] / "e2e/output"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    captured = tmp_path_factory.mktemp("captured")
    script = Path(__file__).with_name("torch_pipeline.py")
    command = [sys.executable, str(script), str(free_port()), str(captured), str(DELAYED_RANK), str(DELAY_S)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return captured


@pytest.fixture(scope="module")
def report(folder: Path) -> TraceReport:
    return analyze_trace(read_traces([folder / "ranks"], workers=1), np.random.default_rng(0))


def facts_of(report: TraceReport, rank: int) -> RankFacts:
    return next(facts for facts in report.trace.ranks if facts.rank == rank)


def test_a_trace_and_a_capture_are_left_by_every_rank_when_a_run_is_captured(folder: Path) -> None:
    wanted = {f"{name}_rank{rank}" for name in ("trace", "capture") for rank in range(4)}
    assert {path.name.split(".")[0] for path in (folder / "ranks").iterdir()} == wanted


def test_stages_groups_and_placements_are_known_when_a_capture_is_next_to_the_trace(report: TraceReport) -> None:
    assert [(facts.rank, facts.stage, facts.world_size, facts.backend) for facts in report.trace.ranks] == [
        (rank, rank // 2, 4, "gloo") for rank in range(4)
    ]
    own = {group.kind: group.ranks for group in facts_of(report, 3).process_groups}
    assert own == {None: (0, 1, 2, 3), "pp": (1, 3), "tp": (2, 3)}
    modules = {module.path: module for module in facts_of(report, 3).modules}
    assert modules["blocks.1.up"].class_name == "Linear"
    weight = next(parameter for parameter in modules["blocks.1.down"].parameters if parameter.name == "weight")
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
    # Two blocks reduce in a forward; in a backward both in stage 1, and one in stage 0, whose input needs no gradient.
    # The head of stage 1 gathers in the forward and reduces in the backward.
    assert sorted(groups["len"].to_list()) == [STEPS * MICRO_BATCHES * passes * 2 for passes in (3, 6)]


def test_the_held_up_rank_is_named_first_when_it_sleeps_in_its_forward(report: TraceReport) -> None:
    first = next(verdict for verdict in report.verdicts if verdict.rank == DELAYED_RANK)
    assert first.kind is VerdictKind.HOST_PAUSE
    # Ranks that share too few cores with other tests lose more than the delay, which is then reported first.
    has_cores = all(verdict.kind is not VerdictKind.CORE_CONTENTION for verdict in report.verdicts)
    # One of them may be as late in the same steps: both are named, with the same seconds.
    others = {
        verdict.rank for verdict in report.verdicts if str(DELAYED_RANK) in str(verdict.evidence.get("joint_ranks"))
    }
    assert report.verdicts[0] is first or not has_cores or report.verdicts[0].rank in others
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


def test_how_tensors_are_split_is_known_when_modules_were_called(report: TraceReport) -> None:
    modules = {module.path: module for module in facts_of(report, 2).modules}
    block = [modules[f"blocks.0.{name}"] for name in ("up", "down")]
    assert [(module.inputs[0].splits, module.outputs[0].splits) for module in block] == [
        ((1, 1), (1, 2)),
        ((1, 2), (1, 1)),
    ]
    assert block[0].outputs[0].shape == (16, 256)
    # Its parts are gathered before others get it.
    assert (modules["head"].parameters[0].splits, modules["head"].outputs[0].splits) == ((2, 1), (1, 1))


def test_strategy_is_in_the_flow_when_it_is_made_of_the_capture_and_the_trace(report: TraceReport) -> None:
    stages = {facts.rank: facts.stage for facts in report.trace.ranks}
    kinds = {group.name: group.kind for facts in report.trace.ranks for group in facts.process_groups}
    step = int(report.steps["step"][0])
    operators = spans_to_operators(relate_spans(report), stages, step=step, origin_ns=0, group_kinds=kinds)
    modules = NamedModules(find_stage_modules(report.trace.ranks))
    table = add_shards(operators, modules)
    marks = dict(table.drop_nulls("mark").group_by("mark").len().iter_rows())
    # Of one rank per stage: reduced 3 and 5 times a micro-batch, gathered once, sent and received both ways.
    assert marks == {"tp": 8 * MICRO_BATCHES, "redistribution": MICRO_BATCHES, "pp": 4 * MICRO_BATCHES}
    into_down = table.filter(pl.col("namespace") == "forward mb0/Stage/blocks.0/down")
    assert into_down["shards"].to_list()[0] == [[1, 2]]
    spaces = sorted({path for space in operators["namespace"].unique() for path in paths_of(space)})
    assert {"forward mb0/Stage/blocks.0", "forward mb0/Stage/blocks.1"} <= find_layers(spaces, [0, 1], modules)


def test_memory_and_flops_are_known_when_the_run_is_captured(report: TraceReport) -> None:
    assert report.trace.memory is not None
    assert sorted(report.trace.memory["rank"].unique()) == [0, 1, 2, 3]
    assert {facts.flops_source for facts in report.trace.ranks} == {"estimated"}
    products = report.trace.spans.filter((pl.col("name") == "aten::addmm") & pl.col("flops").is_not_null())
    # A linear layer of 64 to 256, half of it on each rank, for 16 rows.
    assert 2 * 16 * 64 * 128 in set(products["flops"])


@pytest.mark.browser
def test_the_captured_run_is_drawn_when_its_folder_is_brought_to_the_page(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from playwright.sync_api import Locator, expect
    from servers.browser import chromium
    from servers.demo import running_demo

    with (
        running_demo(tmp_path_factory.mktemp("site"), gpus=64, needs_history=False) as url,
        chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1440, "height": 900}, base_url=url)
        page.set_default_timeout(SLOW_MS)
        page.goto("/parallel")
        page.get_by_label("Trace folder").set_input_files(folder / "ranks")
        entry = page.locator("li[data-state=ready]").filter(has_text="ranks · 4 steps").first
        expect(entry).to_be_visible(timeout=SLOW_MS)
        entry.get_by_role("button").first.click()
        page.get_by_role("radio", name="Flow").check(force=True)
        drawing = page.get_by_role("application", name=re.compile("^Execution flow"))

        def node(label: str) -> Locator:
            named = page.locator("text").filter(has_text=re.compile(f"^{re.escape(label)}$"))
            return drawing.locator("g[data-kind=namespace]").filter(has=named).first

        layers = node("blocks.0–1 ×2")
        expect(layers).to_be_visible(timeout=SLOW_MS)
        expect(drawing.locator("g[data-class=send_receive]").first).to_be_attached()
        legend = page.get_by_role("list", name="Marks")
        for mark in ("pipeline message", "tensor parallel", "redistribution"):
            expect(legend).to_contain_text(mark)
        # One layer after another, then what is inside the first.
        for block in (layers, node("blocks.0")):
            block.click()
            expect(block).to_have_attribute("data-selected", "true")
            drawing.press("Enter")
        expect(legend).to_contain_text("split in 2")
        node("down").click()
        details = page.get_by_role("complementary", name="Selected node")
        expect(details.get_by_role("region", name="Module")).to_contain_text("Linear blocks.0.down")
        expect(details).to_contain_text("64 × 256 split 1 × 2")
        page.get_by_role("button", name="Show in graph").click()
        graph = page.get_by_role("group", name=re.compile("^Marey graph of"))
        expect(graph).to_have_attribute("aria-busy", "false", timeout=SLOW_MS)
        page.get_by_label("Memory", exact=True).check(force=True)
        page.wait_for_url(re.compile("curve=memory"))
        page.get_by_role("button", name="Show in flow").click()
        expect(details).to_contain_text("blocks.0/down")
        OUTPUT.mkdir(exist_ok=True)
        page.screenshot(path=OUTPUT / "captured-flow.png")
