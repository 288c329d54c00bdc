"""Visual aggregation preserves time per class, counts and outliers at every zoom and level."""

from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.analyze.trace.made_traces import analyze, collective, draw, kernel, random_rows, step_of

from clusterscape.analyze.trace import aggregate
from clusterscape.analyze.trace.aggregate import Merge, Window
from clusterscape.analyze.trace.drawn import CLASSES, DrawnTrace, Level
from clusterscape.analyze.trace.marey import MareyGraph, draw_marey

SHOWN = ("compute", "communication", "memory")
TRACES: dict[int, tuple[pl.DataFrame, DrawnTrace]] = {}


def trace_of(seed: int) -> tuple[pl.DataFrame, DrawnTrace]:
    """A cached trace: analysis takes longer than drawing."""
    if seed not in TRACES:
        stages: dict[int, int | None] = {0: 0, 1: 0, 2: 1, 3: 1} if seed % 2 else dict.fromkeys(range(4))
        TRACES[seed] = draw(analyze(random_rows(seed), stages))
    return TRACES[seed]


def in_window(spans: pl.DataFrame, drawn: DrawnTrace, window: Window) -> pl.DataFrame:
    start, end = pl.col("drawn_ns") - drawn.origin_ns, pl.col("end_ns") - drawn.origin_ns
    shown = pl.col("span_class").cast(pl.String).is_in(SHOWN)
    return spans.with_row_index("span").filter(shown & (end >= window.start_ns) & (start <= window.end_ns))


windows = st.tuples(st.floats(0, 0.95), st.floats(0.001, 1.0), st.sampled_from([16, 200, 1400, 8000]))


def make_window(drawn: DrawnTrace, drawn_from: tuple[float, float, int]) -> Window:
    start, width, pixels = drawn_from
    return Window(start * drawn.extent_ns, min(1.0, start + width) * drawn.extent_ns, pixels)


@given(
    seed=st.integers(0, 3),
    of=windows,
    level=st.sampled_from(["rank", "lane"]),
    merge=st.sampled_from(["gap", "namespace", "none"]),
)
@settings(max_examples=60, deadline=None)
def test_counts_and_time_of_each_class_add_up_when_spans_are_merged(
    seed: int, of: tuple[float, float, int], level: str, merge: str
) -> None:
    spans, drawn = trace_of(seed)
    window = make_window(drawn, of)
    graph = draw_marey(drawn, window, level=cast(Level, level), merge=cast(Merge, merge), classes=SHOWN)
    visible = in_window(spans, drawn, window)
    length = (pl.col("end_ns") - pl.col("drawn_ns")).sum()
    expected = {row[0]: row[1:] for row in visible.group_by("span_class").agg(pl.len(), length).iter_rows()}
    totals = graph.spans.group_by("class").agg(pl.col("count").sum(), pl.col("total_ns").sum())
    assert {row[0]: (row[1], row[2]) for row in totals.iter_rows()} == {
        k: (n, float(t)) for k, (n, t) in expected.items()
    }
    assert (graph.spans["min_ns"] <= graph.spans["median_ns"]).all()
    assert (graph.spans["median_ns"] <= graph.spans["max_ns"]).all()


@given(seed=st.integers(0, 3), of=windows, merge=st.sampled_from(["gap", "namespace"]))
@settings(max_examples=60, deadline=None)
def test_every_outlier_is_drawn_when_zoomed_out(seed: int, of: tuple[float, float, int], merge: str) -> None:
    spans, drawn = trace_of(seed)
    window = make_window(drawn, of)
    graph = draw_marey(drawn, window, merge=cast(Merge, merge), classes=SHOWN)
    odd = in_window(spans, drawn, window).filter(pl.col("is_outlier"))
    shown = graph.spans.filter(pl.col("is_outlier"))
    assert shown["count"].sum() == odd.height
    for row in odd.iter_rows(named=True):
        start, end = row["drawn_ns"] - drawn.origin_ns, row["end_ns"] - drawn.origin_ns
        over = shown.filter(
            (pl.col("start_ns") <= start) & (pl.col("end_ns") >= end) & (pl.col("class") == row["span_class"])
        )
        assert over.height
        assert over["max_ns"].max() >= np.float32(end - start) * 0.999  # type: ignore[operator]


@given(seed=st.integers(0, 3), of=windows, opened=st.sampled_from([(), ("0",), ("r1",), ("0", "r1")]))
@settings(max_examples=40, deadline=None)
def test_bands_join_parts_of_spans_on_other_rows_when_drawn(
    seed: int, of: tuple[float, float, int], opened: tuple[str, ...]
) -> None:
    _, drawn = trace_of(seed)
    graph = draw_marey(drawn, make_window(drawn, of), level="stage" if seed % 2 else "rank", opened=opened)
    spans, bands = graph.spans, graph.bands
    first, second = spans[bands["from_span"]], spans[bands["to_span"]]
    assert (first["row"] != second["row"]).all()
    headers = graph.rows.filter(pl.col("is_open"))["row"].to_list()
    assert not set(first["row"]) & set(headers)
    ends = bands.with_row_index("at").with_columns(low=first["earliest_ns"], high=second["latest_ns"])
    assert (ends["from_start"] <= ends["from_end"]).all()
    assert (ends["to_start"] <= ends["to_end"]).all()


def uniform(ranks: int, count: int, length: int = 1_000, gap: int = 10) -> list[dict[str, object]]:
    """Equal kernels; the third of the second rank takes four times as long, which delays all later ones."""
    rows: list[dict[str, object]] = []
    for rank in range(ranks):
        now = 0
        for place in range(count):
            own = length * 4 if (rank, place) == (1, 2) else length
            rows.append(kernel(rank, now, now + own))
            now += own + gap
        rows.append(step_of(rank, 0, 0, now))
    return rows


def test_outlier_stays_a_separate_span_when_all_others_are_merged() -> None:
    _, drawn = draw(analyze(uniform(4, 500), dict.fromkeys(range(4))))
    graph = draw_marey(drawn, Window(0, drawn.extent_ns, 16))
    on_row = graph.spans.filter(pl.col("row") == 1)
    outliers = on_row.filter(pl.col("is_outlier"))
    assert outliers.height == 1
    assert (outliers["count"][0], outliers["end_ns"][0] - outliers["start_ns"][0]) == (1, 4_000.0)
    assert outliers["span"][0] == outliers["worst_span"][0]
    assert on_row.filter(~pl.col("is_outlier"))["count"].sum() == 499
    assert graph.spans.height == 5


def test_stage_row_is_the_mean_of_its_ranks_when_they_differ() -> None:
    rows = [kernel(rank, 1_000 * rank, 1_000 * rank + 500) for rank in range(3)] + [
        step_of(r, 0, 0, 9_000) for r in range(3)
    ]
    _, drawn = draw(analyze(rows, dict.fromkeys(range(3))))
    span = draw_marey(drawn, Window(0, 9_000, 900), level="stage", classes=["compute"]).spans.row(0, named=True)
    assert (span["start_ns"], span["end_ns"], span["count"]) == (1_000.0, 1_500.0, 3)
    assert (span["earliest_ns"], span["latest_ns"]) == (0.0, 2_500.0)
    assert (span["min_ns"], span["max_ns"], span["total_ns"]) == (500.0, 500.0, 1_500.0)
    assert span["span"] is None


def test_waiting_is_the_slanted_edge_when_one_rank_comes_late_to_a_collective() -> None:
    rows: list[dict[str, Any]] = [step_of(rank, 0, 0, 10_000) for rank in range(3)]
    rows += [kernel(rank, 0, arrive) for rank, arrive in enumerate((1_000, 2_000, 5_000))]
    rows += [collective(rank, arrive, 7_000) for rank, arrive in enumerate((1_000, 2_000, 5_000))]
    _, drawn = draw(analyze(rows, dict.fromkeys(range(3))))
    graph = draw_marey(drawn, Window(0, 10_000, 1_000))
    talk = graph.spans.filter(pl.col("class") == "communication").sort("row")
    assert talk["wait_ns"].to_list() == [4_000.0, 3_000.0, 0.0]
    bands = graph.bands.filter(pl.col("kind") == "collective").sort("from_start")
    edges = bands.select("from_start", "from_end", "to_start", "to_end").rows()
    assert edges == [(1_000.0, 7_000.0, 2_000.0, 7_000.0), (2_000.0, 7_000.0, 5_000.0, 7_000.0)]
    assert bands["max_skew_ns"].to_list() == [1_000.0, 3_000.0]


def test_namespace_is_the_deepest_common_one_when_members_differ() -> None:
    names = ["model/a/x", "model/a/y", "model/a/x", "model/b"]
    rows = [kernel(0, 10 * at, 10 * at + 9, namespace=name) for at, name in enumerate(names)] + [step_of(0, 0, 0, 40)]
    _, drawn = draw(analyze(rows, {0: None}))
    inner = draw_marey(drawn, Window(0, 30, 16), classes=["compute"])
    assert inner.spans["namespace"].to_list() == ["model"]
    assert draw_marey(drawn, Window(0, 27, 20), classes=["compute"]).spans["namespace"].to_list() == ["model/a"]


def test_host_operators_stand_for_compute_when_a_rank_has_no_device() -> None:
    host = {"rank": 0, "lane": "thread 1", "is_device": False, "span_class": "host", "step": 0}
    rows: list[dict[str, object]] = [
        host | {"name": "aten::linear", "start_ns": 0, "end_ns": 100},
        host | {"name": "aten::mm", "start_ns": 10, "end_ns": 90},
        step_of(0, 0, 0, 200),
    ]
    _, drawn = draw(analyze(rows, {0: None}))
    graph = draw_marey(drawn, Window(0, 200, 1_000))
    assert graph.spans.select("class", "name").rows() == [("compute", "aten::linear")]


def test_rows_follow_the_tree_when_stages_and_ranks_are_opened() -> None:
    _, drawn = trace_of(1)

    def rows_of(graph: MareyGraph) -> list[str]:
        return graph.rows["label"].cast(pl.String).to_list()

    window = Window(0, drawn.extent_ns, 100)
    assert rows_of(draw_marey(drawn, window, level="stage")) == ["stage 0", "stage 1"]
    opened = draw_marey(drawn, window, level="stage", opened={"0", "r1"})
    assert rows_of(opened) == ["stage 0", "rank 0", "rank 1", "stream 7", "thread 1", "stage 1"]
    assert opened.rows["depth"].to_list() == [0, 1, 1, 2, 2, 0]
    assert rows_of(draw_marey(drawn, window, level="rank")) == [f"rank {rank}" for rank in range(4)]
    assert draw_marey(drawn, window, level="lane").rows["depth"].to_list() == [2] * 8


@pytest.mark.parametrize("name", CLASSES)
def test_only_the_named_classes_are_drawn_when_classes_are_named(name: str) -> None:
    _, drawn = trace_of(0)
    graph = draw_marey(drawn, Window(0, drawn.extent_ns, 100), classes=[name])
    assert set(graph.spans["class"].cast(pl.String)) <= {name}


@pytest.fixture
def with_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coarser copies also for small traces."""
    monkeypatch.setattr(aggregate, "MIN_ENTRIES", 10)
    monkeypatch.setattr(aggregate, "WORTHWHILE", 1.0)
    monkeypatch.setattr(aggregate, "GAPS", (4096, 1024, 256, 64, 16))


@pytest.mark.usefixtures("with_copies")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("level", ["rank", "stage"])
def test_picture_is_the_same_when_it_is_made_from_coarser_copies(seed: int, level: Level) -> None:
    stages: dict[int, int | None] = {0: 0, 1: 0, 2: 1, 3: 1} if seed % 2 else dict.fromkeys(range(4))
    _, drawn = draw(analyze(random_rows(seed + 10, count=1_000), stages))
    for pixels in (16, 100, 700):
        window = Window(0, drawn.extent_ns, pixels)
        coarse = draw_marey(drawn, window, level=level)
        assert aggregate.find_copy(drawn, level, window.pixel_ns) is not None
        copies, drawn.copies[level] = drawn.copies[level], ()
        exact = draw_marey(drawn, window, level=level)
        drawn.copies[level] = copies
        names = ["row", "start_ns", "class", "start_ns", "end_ns", "count", "max_ns", "worst_span", "is_outlier"]
        order = ["row", "start_ns", "end_ns", "class"]
        columns = [pl.col(name) for name in dict.fromkeys(names)]
        assert coarse.spans.sort(order).select(columns).equals(exact.spans.sort(order).select(columns))
        assert coarse.spans["total_ns"].sum() == pytest.approx(exact.spans["total_ns"].sum())
        assert coarse.bands.height == exact.bands.height
        assert coarse.bands["count"].sum() == exact.bands["count"].sum()
        edges = ["from_start", "from_end", "to_start", "to_end"]
        assert coarse.bands.select(edges).sort(edges).equals(exact.bands.select(edges).sort(edges))


@pytest.mark.usefixtures("with_copies")
def test_little_more_than_the_window_is_counted_when_a_part_is_made_from_copies() -> None:
    spans, drawn = draw(analyze(random_rows(20, count=1_000), dict.fromkeys(range(4))))
    for low, high in ((0.2, 0.7), (0.45, 0.55)):
        window = Window(low * drawn.extent_ns, high * drawn.extent_ns, 100)
        margin_ns = aggregate.LONGEST_GAPS * window.pixel_ns
        wider = Window(window.start_ns - margin_ns, window.end_ns + margin_ns, 100)
        counted = draw_marey(drawn, window, classes=SHOWN).spans["count"].sum()
        assert in_window(spans, drawn, window).height <= counted <= in_window(spans, drawn, wider).height
