"""Clock alignment: known shifts are removed, durations stay, unknown shifts are not changed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.collect.traces.trace_files import simple_rank, write

from clusterscape.analyze.trace.align import align_clocks, apply_alignment
from clusterscape.analyze.trace.intervals import clip_times, join_times, subtract_times
from clusterscape.analyze.trace.match import match_collectives
from clusterscape.collect.traces import read_traces
from clusterscape.model.spans import Trace


def shifted(trace: Trace, offsets_ns: dict[int, int], drifts_ppm: dict[int, float]) -> Trace:
    """The trace as recorded by clocks with these errors."""
    begin = int(trace.spans["start_ns"].to_numpy().min())
    offset = pl.col("rank").replace_strict(offsets_ns, return_dtype=pl.Int64)
    drift = pl.col("rank").replace_strict(drifts_ppm, return_dtype=pl.Float64) * 1e-6
    columns = [
        (pl.col(name) + offset + ((pl.col(name) - begin) * drift).round().cast(pl.Int64)).alias(name)
        for name in ("start_ns", "end_ns", "ready_ns")
    ]
    return replace(trace, spans=trace.spans.with_columns(columns))


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    for rank in range(4):
        write(tmp_path / f"rank{rank}.json", simple_rank(rank, 4, late_us=13.0 * rank, steps=200))
    return read_traces([tmp_path], workers=1)


def test_offsets_and_drifts_are_removed_when_clocks_differ(trace: Trace) -> None:
    offsets = {0: 0, 1: 233_000_000, 2: -233_000_000, 3: 1_000_000}
    moved = shifted(trace, offsets, {0: 0.0, 1: 5.0, 2: -5.0, 3: 0.0})
    alignment = align_clocks(moved, match_collectives(moved.spans))
    aligned = apply_alignment(moved, alignment)
    off = np.abs((aligned.spans["start_ns"] - trace.spans["start_ns"]).to_numpy())
    assert off.max() < 1000
    assert alignment.clocks[1].drift_ppm == pytest.approx(5.0, abs=0.1)
    assert alignment.error_ns is not None
    assert alignment.error_ns < 1000
    lengths = aligned.spans["end_ns"] - aligned.spans["start_ns"]
    assert (lengths == moved.spans["end_ns"] - moved.spans["start_ns"]).all()


def test_clocks_are_left_alone_when_they_agree(trace: Trace) -> None:
    alignment = align_clocks(trace, match_collectives(trace.spans))
    assert {clock.offset_ns for clock in alignment.clocks.values()} == {0.0}
    assert alignment.notes == ()


def test_one_outlier_does_not_move_a_clock_when_most_ends_agree(trace: Trace) -> None:
    is_odd = (pl.col("rank") == 1) & (pl.col("collective") == "all_reduce") & (pl.col("step") == 50)
    odd = pl.when(is_odd).then(pl.col("end_ns") + 40_000_000).otherwise(pl.col("end_ns")).alias("end_ns")
    late = replace(trace, spans=trace.spans.with_columns(odd))
    alignment = align_clocks(late, match_collectives(late.spans))
    assert abs(alignment.clocks[1].offset_ns) < 1000


Pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


def covered(pairs: list[tuple[int, int]]) -> set[int]:
    return {moment for start, length in pairs for moment in range(start, start + length)}


@given(Pairs, Pairs)
def test_times_are_those_of_sets_when_they_are_joined_and_subtracted(
    first: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    times = [join_times([a for a, _ in pairs], [a + b for a, b in pairs]) for pairs in (first, other)]
    assert times[0].length_ns == len(covered(first))
    left = subtract_times(times[0], times[1])
    assert left.length_ns == len(covered(first) - covered(other))
    assert clip_times(times[0], 10, 30).length_ns == len(covered(first) & set(range(10, 30)))
    assert (left.starts[1:] > left.ends[:-1]).all()
