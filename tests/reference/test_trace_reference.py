"""Traces of others with known answers: DLRM on 8 GPUs, two labelled production jobs, MindSpore, Megatron, odd Kineto files."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from servers.reference import reference_data

from clusterscape.analyze.trace.aggregate import Window
from clusterscape.analyze.trace.align import align_clocks, apply_alignment
from clusterscape.analyze.trace.drawn import DrawnTrace
from clusterscape.analyze.trace.marey import draw_marey
from clusterscape.analyze.trace.match import match_collectives
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.analyze.trace.whatif import analyze_stragglers, build_operator_graph
from clusterscape.collect.traces import read_traces
from clusterscape.collect.traces.files import TraceFile, read_content
from clusterscape.collect.traces.mindspore import parse_graphs
from clusterscape.model.spans import Trace
from clusterscape.model.trace_report import VerdictKind


def report_on(*paths: Path) -> TraceReport:
    return analyze_trace(read_traces(paths, workers=1), np.random.default_rng(0))


@pytest.fixture(scope="module")
def dlrm() -> Trace:
    return read_traces([reference_data("traces", "dlrm-8rank")], workers=1)


def last_arrivers(report: TraceReport) -> Counter[int]:
    return Counter(report.collectives["last_rank"].to_list())


def test_all_collectives_match_when_dlrm_is_read(dlrm: Trace) -> None:
    report = analyze_trace(dlrm, np.random.default_rng(0))
    assert [facts.rank for facts in dlrm.ranks] == list(range(8))
    assert (report.matches.instances, report.matches.unmatched) == (8, 0)
    assert last_arrivers(report) == {7: 5, 5: 2, 4: 1}
    assert report.alignment.error_ns is not None
    assert report.alignment.error_ns <= 7000


def test_clocks_are_recovered_when_dlrm_is_shifted(dlrm: Trace) -> None:
    generator = np.random.default_rng(7)
    offsets = {rank: int(offset) for rank, offset in enumerate(generator.uniform(-233e6, 233e6, 8))}
    drifts = {rank: float(drift) for rank, drift in enumerate(generator.uniform(-5e-6, 5e-6, 8))}
    begin = int(dlrm.spans["start_ns"].to_numpy().min())
    offset = pl.col("rank").replace_strict(offsets, return_dtype=pl.Int64)
    drift = pl.col("rank").replace_strict(drifts, return_dtype=pl.Float64)
    columns = [
        (pl.col(name) + offset + ((pl.col(name) - begin) * drift).round().cast(pl.Int64)).alias(name)
        for name in ("start_ns", "end_ns")
    ]
    moved = replace(dlrm, spans=dlrm.spans.with_columns(columns))
    alignment = align_clocks(moved, match_collectives(moved.spans))
    aligned = apply_alignment(moved, alignment)
    off = (aligned.spans["start_ns"] - dlrm.spans["start_ns"]).to_numpy()
    # Only differences between ranks can be known: the first rank's clock is the reference.
    off = off - off[dlrm.spans["rank"].to_numpy() == 0].mean()
    assert np.abs(off).max() < 10_000
    assert last_arrivers(analyze_trace(moved, generator)) == {7: 5, 5: 2, 4: 1}


def test_there_is_no_straggler_when_all_ranks_are_copies_of_one(dlrm: Trace) -> None:
    copied = dlrm.spans.filter(pl.col("rank") == 3)
    copies = [copied.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank in range(8)]
    report = analyze_trace(replace(dlrm, spans=pl.concat(copies)), np.random.default_rng(0))
    assert report.matches.instances == 8
    assert last_arrivers(report) == {None: 8}
    assert not [verdict for verdict in report.verdicts if verdict.rank is not None]


@pytest.mark.parametrize(
    ("job", "kind", "rank", "stage"),
    [("ST", VerdictKind.STAGE_IMBALANCE, None, 3), ("AR", VerdictKind.SLOW_WORKER, 0, 0)],
)
def test_what_if_gives_the_published_answers_when_a_job_is_labelled(
    job: str, kind: VerdictKind, rank: int | None, stage: int
) -> None:
    path = reference_data("traces", "straggler", f"trace-{job}.parquet")
    published = {
        name: json.loads((path.parent / f"{name}-{job}.json").read_text(encoding="utf-8"))
        for name in ("result", "mw", "ms")
    }
    report = report_on(path)
    answer = report.stragglers
    assert answer is not None
    assert answer.slowdown == pytest.approx(published["result"]["blocking_slowdown"], rel=0.005)
    assert answer.worker_share == pytest.approx(published["mw"]["Mw"], rel=0.005)
    assert answer.last_stage_share == pytest.approx(published["ms"]["Ms"], rel=0.005)
    first = report.verdicts[0]
    assert (first.kind, first.rank, first.stage) == (kind, rank, stage)


def test_simulation_takes_as_long_as_the_step_when_durations_are_measured() -> None:
    path = reference_data("traces", "straggler", "trace-ST.parquet")
    answer = analyze_stragglers(build_operator_graph(read_traces([path])))
    assert answer.without_delay_s == pytest.approx(answer.measured_s, rel=0.03)


def test_both_stages_are_on_one_axis_when_mindspore_is_read() -> None:
    report = report_on(reference_data("traces", "mindspore", "marey_graph"))
    raw = read_traces([reference_data("traces", "mindspore", "marey_graph")])
    assert report.trace.spans.height == 13_381
    lengths = report.trace.spans["end_ns"] - report.trace.spans["start_ns"]
    assert (lengths == raw.spans["end_ns"] - raw.spans["start_ns"]).all()
    clocks = report.alignment.clocks
    assert (clocks[0].offset_ns - clocks[2].offset_ns) / 1e6 == pytest.approx(233, abs=2)
    assert report.trace.spans["namespace"].drop_nulls().len() > 5000


def test_mindspore_steps_and_micro_batches_are_found_when_nothing_marks_them() -> None:
    report = report_on(reference_data("traces", "mindspore", "marey_graph"))
    assert report.steps["end_ns"].to_numpy().max() - report.steps["start_ns"].to_numpy().min() == pytest.approx(
        45.9e6, rel=0.01
    )
    assert any("spans lie up to 844 ms from the rest of their step" in note for note in report.notes)
    bubble = report.bubble
    assert bubble is not None
    assert (bubble.stages, bubble.micro_batches) == (2, 4)
    # Each pass is cut at its own messages, so passes of a stage are alike.
    compute = report.trace.spans.filter((pl.col("span_class") == "compute") & pl.col("micro_batch").is_not_null())
    counts = compute.group_by("rank", "phase", "micro_batch").len()
    assert counts.height == 4 * 2 * 4
    for (_, phase), passes in counts.group_by("rank", "phase"):
        if phase == "forward":
            assert passes["len"].to_numpy().std() / passes["len"].to_numpy().mean() < 0.2


def test_shards_and_messages_are_read_when_a_graph_has_them() -> None:
    path = reference_data("traces", "mindspore", "graphs", "resnet_pipeline_8p_all_data.json.gz")
    first, second = parse_graphs(read_content(TraceFile(path)))
    assert (first.operators.height, second.operators.height) == (2339, 2959)
    assert (first.ranks, second.ranks) == ((0, 1, 2, 3), (4, 5, 6, 7))
    kinds = set(first.operators["instance_type"].drop_nulls())
    assert kinds == {"Redistribution", "GradientAggregation"}
    assert first.operators.filter(pl.col("type").is_in(["Send", "Receive"]))["sr_tag"].null_count() == 0
    assert first.operators["shard"].drop_nulls().len() > 100


def test_bubble_is_split_when_megatron_is_read() -> None:
    report = report_on(reference_data("traces", "megatron-pp4"))
    bubble = report.bubble
    assert bubble is not None
    assert (bubble.stages, bubble.micro_batches) == (4, 8)
    assert report.trace.spans.filter(pl.col("span_class") == "compute").height == 5120
    assert bubble.ideal + bubble.imbalance + bubble.jitter == pytest.approx(bubble.measured)


@pytest.mark.parametrize(
    ("folder", "note"),
    [
        ("rank_unavailable", "Neither the trace nor the name gives the rank"),
        ("distributed_info_unavailable", "Neither the trace nor the name gives the rank"),
        ("cpu_only", "No rank has device spans"),
        ("amd_trace", "Neither the trace nor the name gives the rank"),
    ],
)
def test_oddities_are_said_when_a_file_lacks_something(folder: str, note: str) -> None:
    report = report_on(reference_data("traces", "kineto", folder))
    assert any(note in line for line in report.notes)
    total = report.breakdown["compute_ns"] + report.breakdown["exposed_ns"] + report.breakdown["idle_ns"]
    assert (total == report.breakdown["step_ns"]).all()


def test_process_groups_and_sizes_are_known_when_nccl_reports_them() -> None:
    trace = read_traces([reference_data("traces", "kineto", "nccl_parser_config")])
    spans = trace.spans.filter(pl.col("span_class") == "communication")
    assert spans["collective"].null_count() == 0
    assert set(spans["process_group"].cast(pl.String)) == {"0"}
    assert spans["bytes"].null_count() == 0


def drawn_from(report: TraceReport) -> DrawnTrace:
    return DrawnTrace(relate_spans(report), {facts.rank: facts.stage for facts in report.trace.ranks})


def test_waits_are_drawn_when_dlrm_is_read(dlrm: Trace) -> None:
    report = analyze_trace(dlrm, np.random.default_rng(0))
    drawn = drawn_from(report)
    graph = draw_marey(drawn, Window(0, drawn.extent_ns, 1400))
    assert graph.rows["rank"].to_list() == list(range(8))
    collectives = graph.bands.filter(pl.col("kind") == "collective")
    assert collectives["count"].sum() == 8 * 7  # each of 8 collectives joins 8 ranks
    ends = (collectives["from_end"] - collectives["to_end"]).abs()
    assert (ends <= 20_000).all()
    starts = (collectives["from_start"] - collectives["to_start"]).abs()
    assert starts.max() > 10 * ends.max()  # type: ignore[operator]


def test_passes_of_all_micro_batches_are_joined_when_megatron_is_drawn() -> None:
    report = report_on(reference_data("traces", "megatron-pp4"))
    drawn = drawn_from(report)
    step = report.steps.filter(pl.col("step") == report.steps["step"].unique().sort()[5])
    low, high = (int(step["start_ns"].to_numpy().min()), int(step["end_ns"].to_numpy().max()))
    graph = draw_marey(drawn, Window(low - drawn.origin_ns, high - drawn.origin_ns, 1400), level="stage")
    assert graph.rows["stage"].to_list() == [0, 1, 2, 3]
    passes = graph.spans.filter((pl.col("class") == "compute") & (pl.col("step") == step["step"][0]))
    for phase in ("forward", "backward"):
        for stage in range(4):
            mine = passes.filter((pl.col("phase") == phase) & (pl.col("row") == stage))
            assert sorted(set(mine["micro_batch"])) == list(range(8))
    spans = graph.spans.with_row_index("at")
    bands = graph.bands.filter(pl.col("kind") == "same").join(spans, left_on="from_span", right_on="at")
    inside = bands.filter(pl.col("step") == step["step"][0])
    chunks = 4  # of the model on every stage
    assert inside.height == 2 * 8 * 3 * chunks


def test_every_span_is_counted_when_mindspore_is_drawn() -> None:
    report = report_on(reference_data("traces", "mindspore", "marey_graph"))
    drawn = drawn_from(report)
    classes = ["compute", "communication", "launch"]
    graph = draw_marey(drawn, Window(0, drawn.extent_ns, 1400), level="rank", classes=classes)
    assert graph.rows["stage"].to_list() == [0, 0, 1, 1]
    assert graph.spans["count"].sum() == 13_381
    assert graph.bands.filter(pl.col("kind") == "same").height > 0
