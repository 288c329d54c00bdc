"""Small curves of ranks: shares, FLOPs per second and memory in every bin, null where nothing was recorded."""

import polars as pl
import pytest
from unit.analyze.trace.made_traces import ORIGIN_NS, analyze, draw, kernel, step_of

from clusterscape.analyze.trace.window_tables import draw_curves
from clusterscape.model.spans import MEMORY_SCHEMA


def curves(memory: list[tuple[int, int, int]] | None = None, flops: float | None = None) -> pl.DataFrame:
    """Rank 0 computes in the second of four bins."""
    rows = [kernel(0, 1000, 2000, flops=flops), kernel(1, 0, 4000), step_of(0, 0, 0, 4000), step_of(1, 0, 0, 4000)]
    related, _ = draw(analyze(rows, {0: None, 1: None}))
    table = None
    if memory is not None:
        table = pl.DataFrame(memory, schema=dict(MEMORY_SCHEMA), orient="row").with_columns(
            pl.col("time_ns") + ORIGIN_NS
        )
    curves_by_lane = draw_curves(related, ORIGIN_NS, ORIGIN_NS + 4000, 4, table)
    return curves_by_lane.filter(pl.col("rank") == 0)


def test_flops_are_spread_over_their_time_when_a_span_has_some() -> None:
    curve = curves(flops=5e6)
    assert curve["flops"].to_list() == pytest.approx([0.0, 5e12, 0.0, 0.0])
    assert curve["compute"].to_list() == pytest.approx([0.0, 1.0, 0.0, 0.0])


def test_flops_and_memory_are_null_when_nothing_was_recorded() -> None:
    curve = curves()
    assert curve["flops"].null_count() == curve["memory_bytes"].null_count() == 4


def test_memory_is_the_most_of_each_bin_when_it_rises_and_falls() -> None:
    # Null before the first record; a bin has its peak; later bins keep the last value.
    curve = curves([(0, 1100, 10), (0, 1200, 90), (0, 1300, 20), (0, 3500, 5), (1, 0, 777)])
    assert curve["memory_bytes"].to_list() == [None, 90.0, 20.0, 20.0]


def test_memory_continues_from_before_when_the_window_begins_later() -> None:
    curve = curves([(0, -500, 30), (0, 4100, 99)])
    assert curve["memory_bytes"].to_list() == [30.0] * 4
