"""Phases that a run announces are blocks of the Marey graph, joined from stage to stage."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from clusterscape.analyze.trace.aggregate import Window
from clusterscape.analyze.trace.drawn import DrawnTrace, _namespace_tree
from clusterscape.analyze.trace.marey import MareyGraph, draw_marey
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.report import analyze_trace
from clusterscape.collect.traces import read_traces

TRACES = Path(__file__).parents[3] / "data/h200/traces"
STAGES, MICRO_BATCHES = 4, 8


@pytest.fixture(scope="module")
def graph() -> MareyGraph:
    """Step 5 of the recorded pipeline."""
    report = analyze_trace(read_traces(sorted(TRACES.glob("pipe_*")), workers=1), np.random.default_rng(0))
    drawn = DrawnTrace(relate_spans(report), {facts.rank: facts.stage for facts in report.trace.ranks})
    step = report.steps.filter(pl.col("step") == 5)
    low, high = (int(step[name].to_numpy()[0]) - drawn.origin_ns for name in ("start_ns", "end_ns"))
    return draw_marey(drawn, Window(low, high, 1400), level="stage")


def test_every_pass_is_one_block_when_annotations_name_micro_batches(graph: MareyGraph) -> None:
    blocks = graph.spans.filter((pl.col("class") == "phase") & (pl.col("step") == 5))
    passes = blocks.filter(pl.col("phase").is_in(["forward", "backward"]))
    counts = passes.group_by("row", "phase").len()["len"]
    assert counts.to_list() == [MICRO_BATCHES] * (2 * STAGES)
    assert (passes["count"] == 1).all()
    assert not blocks["name"].cast(pl.String).str.contains("send|recv").any()


def test_bands_span_the_whole_pass_when_its_kernels_are_short(graph: MareyGraph) -> None:
    bands = graph.bands.filter(pl.col("kind") == "same")
    blocks = graph.spans.with_row_index("at")
    joined = bands.join(blocks, left_on="from_span", right_on="at").filter(pl.col("step") == 5)
    assert joined.height == 2 * MICRO_BATCHES * (STAGES - 1)
    assert (joined["class"] == "phase").all()
    assert ((joined["from_end"] - joined["from_start"]) > 1e6).all()


def test_path_to_the_root_ends_when_a_namespace_begins_with_a_slash() -> None:
    spans = pl.Series(["/Default/a", "/Gradients/b", "plain", None], dtype=pl.Categorical)
    names, parent, depth, own = _namespace_tree(spans)
    assert names == ["", "/Default", "/Default/a", "/Gradients", "/Gradients/b", "plain"]
    assert parent.tolist() == [-1, 0, 1, 0, 3, -1]
    assert depth.tolist() == [0, 1, 2, 1, 2, 0]
    assert own.tolist() == [2, 4, 5, -1]
