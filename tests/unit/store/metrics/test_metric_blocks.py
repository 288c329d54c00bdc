"""Wide tables compared with plain dictionaries: pivoting, selecting, merging."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.store.metrics.embedded.blocks import (
    EMPTY,
    Block,
    is_rising,
    join_columns,
    merge_blocks,
    pivot,
    select,
)

METRICS = ("a", "b", "c")
UNITS = 6

Row = tuple[int, int, int, float]  # unit, metric, time, value
Table = dict[tuple[int, str, int], float]  # unit, metric, time


def rows(max_time: int) -> st.SearchStrategy[list[Row]]:
    value = st.one_of(st.floats(allow_nan=False), st.just(float("nan")))
    return st.lists(
        st.tuples(st.integers(0, UNITS - 1), st.integers(0, 2), st.integers(0, max_time), value), max_size=40
    )


def block_of(items: list[Row]) -> Block:
    unit, metric, time, value = zip(*items, strict=True) if items else ((), (), (), ())
    return pivot(
        np.array(unit, dtype=np.int32),
        np.array(metric, dtype=np.int32),
        np.array(time, dtype=np.int64),
        np.array(value, dtype=np.float64),
        METRICS,
    )


def table_of(items: list[Row]) -> Table:
    """Expected contents of a store after writing ``items`` one after another."""
    return {(unit, METRICS[metric], time): value for unit, metric, time, value in items if not np.isnan(value)}


def cells_of(block: Block) -> Table:
    unit = np.repeat(block.keys.units, block.keys.lengths).tolist()
    cells = {}
    for metric, column in block.columns.items():
        for row, value in enumerate(column.tolist()):
            if not np.isnan(value):
                cells[unit[row], metric, int(block.keys.time_ms[row])] = value
    return cells


def check_keys(block: Block) -> None:
    keys = block.keys
    assert len(set(keys.units.tolist())) == len(keys.units)
    assert (keys.lengths > 0).all()
    assert int(keys.offsets[-1]) == len(keys) == len(block)
    assert is_rising(keys)


@given(rows(max_time=5))
def test_pivot_keeps_the_last_of_equal_rows_when_rows_come_in_any_order(items: list[Row]) -> None:
    block = block_of(items)
    check_keys(block)
    assert cells_of(block) == table_of(items)
    assert block.count_samples() == len(table_of(items))


@given(rows(max_time=2**40))
def test_pivot_is_exact_when_times_are_far_apart(items: list[Row]) -> None:
    assert cells_of(block_of(items)) == table_of(items)


@pytest.mark.parametrize("missing", [0, 1])
def test_pivot_takes_columns_as_they_are_when_metrics_are_stacked(missing: int) -> None:
    units, times = 3, 4
    unit = np.tile(np.repeat(np.arange(units, dtype=np.int32), times), 2)
    time = np.tile(np.tile(np.arange(times, dtype=np.int64) * 60_000, units), 2)
    metric = np.repeat(np.arange(2, dtype=np.int32), units * times)
    value = np.arange(len(unit), dtype=np.float64)
    keep = slice(missing, None)
    block = pivot(unit[keep], metric[keep], time[keep], value[keep], METRICS)
    check_keys(block)
    columns = zip(unit, metric, time, value, strict=True)
    items = [(int(u), int(m), int(t), float(v)) for u, m, t, v in columns][missing:]
    assert cells_of(block) == table_of(items)
    assert np.shares_memory(block.columns["b"], value) == (missing == 0)


@given(st.lists(rows(max_time=30), max_size=5), st.permutations(range(UNITS)))
def test_merge_equals_writing_one_after_another_when_tables_overlap(parts: list[list[Row]], order: list[int]) -> None:
    rank = np.array(order, dtype=np.int64)
    merged = merge_blocks([block_of(part) for part in parts], rank)
    check_keys(merged)
    assert cells_of(merged) == table_of([item for part in parts for item in part])
    ranks = rank[merged.keys.units]
    assert (np.diff(ranks) > 0).all()


@given(st.lists(rows(max_time=9), min_size=1, max_size=5), st.permutations(range(5)))
def test_merge_equals_writing_one_after_another_when_tables_follow_in_time(
    parts: list[list[Row]], order: list[int]
) -> None:
    later = [[(u, m, t + 10 * place, v) for u, m, t, v in part] for place, part in zip(order, parts, strict=False)]
    merged = merge_blocks([block_of(part) for part in later], np.arange(UNITS))
    check_keys(merged)
    assert cells_of(merged) == table_of([item for part in later for item in part])


def test_merge_copies_matrices_when_every_unit_is_in_every_table() -> None:
    scrapes = [[(unit, 0, 15 * scrape + unit, float(scrape)) for unit in range(UNITS)] for scrape in range(4)]
    rank = np.arange(UNITS)[::-1].copy()
    merged = merge_blocks([block_of(scrape) for scrape in scrapes], rank)
    assert merged.keys.units.tolist() == [5, 4, 3, 2, 1, 0]
    assert merged.columns["a"].tolist() == [0.0, 1.0, 2.0, 3.0] * UNITS
    assert cells_of(merged) == table_of([row for scrape in scrapes for row in scrape])


@given(rows(max_time=20), st.integers(0, 20), st.integers(0, 20), st.sets(st.integers(0, UNITS - 1)))
def test_select_keeps_what_is_asked_for_when_range_and_units_vary(
    items: list[Row], start: int, end: int, units: set[int]
) -> None:
    wanted = np.zeros(UNITS, np.bool_)
    wanted[list(units)] = True
    chosen = select(block_of(items), ["a", "c", "unknown"], start_ms=start, end_ms=end, wanted=wanted)
    check_keys(chosen)
    expected = {
        key: value
        for key, value in table_of(items).items()
        if key[0] in units and key[1] in ("a", "c") and start <= key[2] < end
    }
    assert cells_of(chosen) == expected


def test_columns_are_joined_when_rows_are_the_same() -> None:
    first = block_of([(0, 0, 1, 1.0), (1, 0, 1, 2.0)])
    second = block_of([(0, 1, 1, 3.0), (1, 1, 1, 4.0)])
    other = block_of([(0, 2, 2, 5.0)])
    joined = join_columns([first, EMPTY, other, second])
    assert [sorted(block.columns) for block in joined] == [["a", "b"], ["c"]]
