"""Samples in memory as wide tables: one row per (unit, time), one column per metric, NaN where there is no sample.

Owns pivoting and selecting of such tables. Knows nothing of files. NaN never leaves this package: results have
nulls or no row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.model.samples import Float64s, Int32s, Int64s

Bools = NDArray[np.bool_]
LAST_MS = 4_102_444_800_000
"""2100: no clock shows a later time, nor one before 1970. Files are kept by days, and named after them."""


def is_possible(time_ms: Int64s) -> Bools:
    """Which times a clock can have shown."""
    return (time_ms >= 0) & (time_ms < LAST_MS)


@dataclass(frozen=True, slots=True)
class Keys:
    """The rows of a table: runs of one unit each, time rising strictly within a run.

    Run ``i`` is unit ``units[i]`` (a code of the store) and rows ``offsets[i]:offsets[i + 1]``; no unit has two runs and no
    run is empty. ``time_ms`` has one entry per row.
    """

    units: Int32s
    offsets: Int64s
    time_ms: Int64s

    def __len__(self) -> int:
        return len(self.time_ms)

    @property
    def lengths(self) -> Int64s:
        """Rows of each run."""
        return np.diff(self.offsets)

    def is_same_as(self, other: "Keys") -> bool:
        """Whether both describe the same rows in the same order."""
        return (
            np.array_equal(self.time_ms, other.time_ms)
            and np.array_equal(self.units, other.units)
            and np.array_equal(self.offsets, other.offsets)
        )


@dataclass(frozen=True, slots=True)
class Block:
    """A wide table: ``columns`` maps a metric (or metric and aggregate) to one value per row of ``keys``."""

    keys: Keys
    columns: Mapping[str, Float64s]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def cells(self) -> int:
        """Rows times columns: what the block costs in memory and in work."""
        return len(self.keys) * len(self.columns)

    def count_samples(self) -> int:
        """Cells that hold a value."""
        return self.cells - sum(int(np.count_nonzero(np.isnan(column))) for column in self.columns.values())


EMPTY = Block(Keys(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int64)), {})


def keys_of_rows(unit: Int32s, time_ms: Int64s) -> Keys:
    """Keys of rows that are already grouped by unit and rise in time within it."""
    starts = np.flatnonzero(np.diff(unit)) + 1
    offsets = np.concatenate(([0], starts, [len(unit)])) if len(unit) else np.zeros(1, np.int64)
    return Keys(unit[offsets[:-1]], offsets.astype(np.int64), time_ms)


def pivot(unit: Int32s, metric: Int32s, time_ms: Int64s, value: Float64s, metric_names: Sequence[str]) -> Block:
    """The wide table of long rows; of several rows with the same (unit, metric, time) the last one counts.

    Costs O(rows) for one scrape (one time per unit), for rows stacked metric by metric with the same sorted (unit, time)
    rows each (backfill, nothing is copied), and for times on a grid; otherwise it sorts.
    """
    missing = np.isnan(value)
    if missing.any():
        keep = ~missing
        unit, metric, time_ms, value = unit[keep], metric[keep], time_ms[keep], value[keep]
    if len(value) == 0:
        return EMPTY
    stacked = _pivot_stacked(unit, metric, time_ms, value, metric_names)
    if stacked is not None:
        return stacked
    keys, row = _find_scrape_rows(unit, time_ms) or _find_grid_rows(unit, time_ms) or _find_rows(unit, time_ms)
    return _scatter(keys, row, metric, value, metric_names)


def _pivot_stacked(
    unit: Int32s, metric: Int32s, time_ms: Int64s, value: Float64s, names: Sequence[str]
) -> Block | None:
    starts = np.concatenate(([0], np.flatnonzero(np.diff(metric)) + 1))
    rows = len(value) // len(starts)
    if rows * len(starts) != len(value) or not np.array_equal(starts, np.arange(len(starts)) * rows):
        return None
    metrics = metric[starts].tolist()
    if len(set(metrics)) < len(metrics) or not (_repeats(unit, rows) and _repeats(time_ms, rows)):
        return None
    keys = keys_of_rows(unit[:rows], time_ms[:rows])
    if len(np.unique(keys.units)) < len(keys.units) or not is_rising(keys):
        return None
    return Block(keys, {names[m]: value[s : s + rows] for m, s in zip(metrics, starts.tolist(), strict=True)})


def _repeats(column: Int32s | Int64s, rows: int) -> bool:
    return bool((column[rows:] == column[:-rows]).all()) if len(column) > rows else True


def is_rising(keys: Keys) -> bool:
    """Whether time rises strictly within each run."""
    rising = np.diff(keys.time_ms) > 0
    rising[keys.offsets[1:-1] - 1] = True  # a new unit may start earlier
    return bool(rising.all())


def _find_scrape_rows(unit: Int32s, time_ms: Int64s) -> tuple[Keys, Int64s] | None:
    """The rows of one scrape, one for each unit, and the row of each sample; None where a unit has two times."""
    time_of = np.zeros(int(unit.max()) + 1, np.int64)
    time_of[unit] = time_ms
    if not np.array_equal(time_of[unit], time_ms):
        return None
    is_there = np.zeros(len(time_of), np.bool_)
    is_there[unit] = True
    units = np.flatnonzero(is_there).astype(np.int32)
    row_of = np.cumsum(is_there) - 1
    return Keys(units, np.arange(len(units) + 1, dtype=np.int64), time_of[units]), row_of[unit]


def _find_grid_rows(unit: Int32s, time_ms: Int64s) -> tuple[Keys, Int64s] | None:
    """As ``_find_rows``, in O(rows) where all times are multiples of one step and the grid is not mostly empty."""
    start = int(time_ms.min())
    since = time_ms - start
    step = max(1, int(np.gcd.reduce(since[:4096])))
    width = int(since.max()) // step + 1
    if (int(unit.max()) + 1) * width > 4 * len(unit):
        return None
    place = since // step
    if not np.array_equal(place * step, since):
        return None
    cell = unit * np.int64(width) + place
    is_there = np.zeros((int(unit.max()) + 1) * width, np.bool_)
    is_there[cell] = True
    cells = np.flatnonzero(is_there)
    keys = keys_of_rows((cells // width).astype(np.int32), cells % width * step + start)
    return keys, (np.cumsum(is_there) - 1)[cell]


def _find_rows(unit: Int32s, time_ms: Int64s) -> tuple[Keys, Int64s]:
    """The distinct (unit, time) of samples, in order, and for each sample its row among them."""
    start = int(time_ms.min())
    span = int(time_ms.max()) - start + 1
    key, row = np.unique(unit.astype(np.int64) * span + (time_ms - start), return_inverse=True)
    return keys_of_rows((key // span).astype(np.int32), key % span + start), row


def _scatter(keys: Keys, row: Int64s, metric: Int32s, value: Float64s, names: Sequence[str]) -> Block:
    present = np.flatnonzero(np.bincount(metric))
    column_of = np.zeros(int(present[-1]) + 1, np.int64)
    column_of[present] = np.arange(len(present))
    cell = column_of[metric] * len(keys) + row
    table = np.full(len(present) * len(keys), np.nan)
    table[cell] = value
    if len(table) - int(np.count_nonzero(np.isnan(table))) != len(value):
        # Some cell was written twice, and numpy does not promise which write stays.
        last = np.full(len(table), -1, np.int64)
        np.maximum.at(last, cell, np.arange(len(value)))
        written = last >= 0
        table[written] = value[last[written]]
    matrix = table.reshape(len(present), len(keys))
    return Block(keys, {names[m]: matrix[i] for i, m in enumerate(present.tolist())})


def select(block: Block, metrics: Sequence[str], *, start_ms: int, end_ms: int, wanted: Bools | None = None) -> Block:
    """The named columns of ``block``; its rows in [start, end), of all units or those with ``wanted[code]``."""
    keys = block.keys
    columns = {name: block.columns[name] for name in metrics if name in block.columns}
    if not columns or len(keys) == 0:
        return EMPTY
    keep = (keys.time_ms >= start_ms) & (keys.time_ms < end_ms)
    if wanted is not None:
        keep &= np.repeat(wanted[keys.units], keys.lengths)
    return take_rows(Block(keys, columns), keep)


def take_rows(block: Block, keep: Bools) -> Block:
    """The rows of ``block`` where ``keep`` holds."""
    if keep.all():
        return block
    keys = block.keys
    lengths = np.add.reduceat(keep, keys.offsets[:-1], dtype=np.int64) if len(keys) else keys.lengths
    left = lengths > 0
    offsets = np.concatenate(([0], np.cumsum(lengths[left])))
    kept = Keys(keys.units[left], offsets, keys.time_ms[keep])
    return Block(kept, {name: column[keep] for name, column in block.columns.items()})


def count_merged_cells(tables: Iterable[tuple[int, Iterable[str]]]) -> int:
    """How many cells one table has in the place of several (rows, names): all rows times all names."""
    rows = 0
    names: set[str] = set()
    for table_rows, table_names in tables:
        rows += table_rows
        names.update(table_names)
    return rows * len(names)


def drop_impossible_times(block: Block) -> tuple[Block, int]:
    """The block without rows of times that no clock shows, and how many those are."""
    keep = is_possible(block.keys.time_ms)
    kept = take_rows(block, keep)
    return (kept if len(kept) else EMPTY), len(keep) - int(keep.sum())


def join_columns(blocks: Sequence[Block]) -> list[Block]:
    """Blocks that have the same rows and different columns become one (a backfill comes metric by metric)."""
    joined: list[Block] = []
    for block in blocks:
        if not len(block):
            continue
        for place, other in enumerate(joined):
            if not (other.columns.keys() & block.columns.keys()) and other.keys.is_same_as(block.keys):
                joined[place] = Block(other.keys, {**other.columns, **block.columns})
                break
        else:
            joined.append(block)
    return joined
