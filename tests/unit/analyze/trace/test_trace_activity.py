"""The active part of a stretch of time and of every step, the overview of a trace, and timelines without markers."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from unit.analyze.trace.made_traces import ORIGIN_NS, Row, analyze, kernel, make_trace

from clusterscape.analyze.trace.activity import draw_overview, find_step_activity, measure_activity
from clusterscape.analyze.trace.intervals import Activity, find_activity, join_times
from clusterscape.analyze.trace.relations import relate_spans
from clusterscape.analyze.trace.unmarked import number_micro_batches, trim_steps


def test_idle_time_around_the_activity_is_left_out_when_it_is_long() -> None:
    work = [(900 + 10 * at, 908 + 10 * at) for at in range(10)]
    strays = [(0, 1)]
    starts, ends = zip(*strays, *work, strict=True)
    assert find_activity(join_times(starts, ends), 0, 1_000) == Activity(900, 998, 1, 0)
    mirrored = find_activity(join_times([1_000 - end for end in ends], [1_000 - start for start in starts]), 0, 1_000)
    assert mirrored == Activity(2, 100, 0, 1)


@pytest.mark.parametrize(
    "times",
    [
        [(100, 950)],  # a little idle time at both ends
        [(0, 300), (700, 1_000)],  # a gap within the work
        [(10 * at, 10 * at + 1) for at in range(100)],  # idle throughout
        [],
    ],
)
def test_a_stretch_is_whole_when_no_long_idle_time_surrounds_its_work(times: list[tuple[int, int]]) -> None:
    busy = join_times([start for start, _ in times], [end for _, end in times])
    assert find_activity(busy, 0, 1_000) == Activity(0, 1_000, 0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_nearly_all_busy_time_is_in_the_activity_when_times_are_random(seed: int) -> None:
    generator = np.random.default_rng(seed)
    starts = np.concatenate([generator.integers(0, 100_000, 5), generator.integers(60_000, 70_000, 300)])
    busy = join_times(starts, starts + generator.integers(1, 60, starts.size))
    active = find_activity(busy, 0, 100_000)
    assert active.end_ns - active.start_ns < 100_000
    assert active.busy_before_ns + active.busy_after_ns <= 0.05 * busy.length_ns
    assert 50_000 < active.start_ns < active.end_ns < 80_000


def test_steps_have_their_activity_when_it_is_short() -> None:
    rows: list[Row] = []
    for rank in range(2):
        for step in range(2):
            at = 100_000 * step
            rows.append(
                {"rank": rank, "lane": "t", "is_device": False, "span_class": "step", "name": "s", "step": step,
                 "start_ns": at, "end_ns": at + 100_000}
            )  # fmt: skip
            rows += [kernel(rank, at + 80_000 + 100 * k, at + 80_050 + 100 * k, step=step) for k in range(20)]
    spans = relate_spans(analyze(rows, {0: None, 1: None}))
    steps = pl.DataFrame(
        {"step": [0, 0, 1, 1], "rank": [0, 1, 0, 1], "start_ns": [0.0, 0.0, 1e5, 1e5], "step_ns": [1e5] * 4}
    )
    table = find_step_activity(measure_activity(spans, ORIGIN_NS), steps).sort("step")
    assert table.rows() == [(0, 80_000.0, 81_950.0, 0.0, 0.0), (1, 180_000.0, 181_950.0, 0.0, 0.0)]


def test_shares_add_up_to_busy_times_when_a_trace_is_drawn_in_bins() -> None:
    rows = [
        kernel(0, 0, 400),
        kernel(0, 300, 600, span_class="communication", collective="all_reduce"),
        kernel(1, 500, 1_000),
    ]
    activity = measure_activity(relate_spans(analyze(rows, {0: None, 1: None})), ORIGIN_NS)
    apart = draw_overview(activity, [[0], [1]], 1_000.0, 10)
    sums = apart.group_by("row", maintain_order=True).agg(pl.col("compute", "communication").sum())
    assert sums.rows() == [(0, pytest.approx(4), pytest.approx(2)), (1, pytest.approx(5), pytest.approx(0))]
    joined = draw_overview(activity, [[0, 1]], 1_000.0, 10)
    assert joined["compute"].to_list() == pytest.approx([0.5, 0.5, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0.5, 0.5])


def pipeline(micro_batches: int = 3) -> list[Row]:
    """Two stages without markers: forward and backward of every micro-batch between sends and receives, one operator astray."""
    rows: list[Row] = [kernel(0, 0, 10, "stray", phase="forward", stage=0, step=1)]
    at = 1_000_000
    for batch in range(micro_batches):
        for stage, phase in ((0, "forward"), (1, "forward"), (1, "backward"), (0, "backward")):
            if (stage, phase) in ((1, "forward"), (0, "backward")):
                rows.append(kernel(stage, at, at, "Receive", span_class="communication", collective="recv",
                                   process_group="pp", phase=phase, stage=stage, step=1))  # fmt: skip
            work = 100 if stage == 0 else 150
            rows += [
                kernel(stage, at + 10, at + 10 + work, f"op{batch}", phase=phase, stage=stage, step=1),
                kernel(stage, at + 20 + work, at + 20 + 2 * work, f"op{batch}b", phase=phase, stage=stage, step=1),
            ]
            at += 40 + 2 * work
            if (stage, phase) in ((0, "forward"), (1, "backward")):
                rows.append(kernel(stage, at - 5, at - 5, "Send", span_class="communication", collective="send",
                                   process_group="pp", phase=phase, stage=stage, step=1))  # fmt: skip
    return rows


def test_operators_far_from_their_step_are_another_steps_when_no_step_is_marked() -> None:
    trimmed = trim_steps(make_trace(pipeline(), {0: 0, 1: 1}))
    outside = trimmed.spans.filter(pl.col("step").is_null())
    assert outside["name"].cast(pl.String).to_list() == ["stray"]
    assert trimmed.notes[-1].startswith("1 spans lie up to 1 ms from the rest of their step")
    again = trim_steps(trimmed)
    assert again.notes == trimmed.notes


def test_micro_batches_are_counted_by_messages_when_none_are_recorded() -> None:
    numbered = number_micro_batches(trim_steps(make_trace(pipeline(), {0: 0, 1: 1}))).spans
    compute = numbered.filter((pl.col("span_class") == "compute") & pl.col("step").is_not_null())
    name = compute["name"].cast(pl.String)
    assert compute["micro_batch"].to_list() == name.str.extract(r"op(\d+)").cast(pl.Int32).to_list()
    assert numbered.filter(pl.col("name") == "stray")["micro_batch"].to_list() == [None]


def test_no_micro_batch_is_invented_when_messages_are_missing() -> None:
    trace = make_trace(pipeline(), {0: 0, 1: 1})
    first = trace.spans.with_row_index("row").filter(pl.col("collective") == "send")["row"][0]
    fewer = replace(trace, spans=trace.spans.with_row_index("row").filter(pl.col("row") != first).drop("row"))
    assert number_micro_batches(trim_steps(fewer)).spans["micro_batch"].null_count() == fewer.spans.height


def test_a_pipeline_without_markers_is_judged_when_its_stages_differ() -> None:
    report = analyze(pipeline(), {0: 0, 1: 1})
    bubble = report.bubble
    assert bubble is not None
    assert (bubble.stages, bubble.micro_batches) == (2, 3)
    assert bubble.stage_compute_s == pytest.approx((3 * 400e-9, 3 * 600e-9))
