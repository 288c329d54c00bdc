"""Samples in memory as wide tables: one row per (unit, time), one column per metric, NaN where there is no sample.

Pivots, selects and merges such tables: owns the order of rows, and which of two duplicate samples is kept. NaN never leaves this
package: results have nulls or no row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clusterscape.model.arrays import Bools, Float64s, Int32s, Int64s

LAST_MS = 4_102_444_800_000
"""The year 2100. Later times and times before 1970 are invalid: files are stored in folders by day."""


def is_possible(time_ms: Int64s) -> Bools:
    """Which times are valid (1970–2100)."""
    return (time_ms >= 0) & (time_ms < LAST_MS)


@dataclass(frozen=True, slots=True)
class Keys:
    """The rows of a table: runs of one unit each, with strictly increasing time within a run.

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
        """Rows times columns: the cost in memory and work."""
        return len(self.keys) * len(self.columns)

    def count_samples(self) -> int:
        """Number of cells with a value."""
        return self.cells - sum(int(np.count_nonzero(np.isnan(column))) for column in self.columns.values())


EMPTY = Block(Keys(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int64)), {})


def keys_of_rows(unit: Int32s, time_ms: Int64s) -> Keys:
    """Keys of rows that are already grouped by unit and sorted by time."""
    starts = np.flatnonzero(np.diff(unit)) + 1
    offsets = np.concatenate(([0], starts, [len(unit)])) if len(unit) else np.zeros(1, np.int64)
    return Keys(unit[offsets[:-1]], offsets.astype(np.int64), time_ms)


def pivot(unit: Int32s, metric: Int32s, time_ms: Int64s, value: Float64s, metric_names: Sequence[str]) -> Block:
    """The wide table of long rows; of several rows with the same (unit, metric, time) the last one wins.

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
    """Whether time increases strictly within each run."""
    rising = np.diff(keys.time_ms) > 0
    rising[keys.offsets[1:-1] - 1] = True  # a new unit may start earlier
    return bool(rising.all())


def _find_scrape_rows(unit: Int32s, time_ms: Int64s) -> tuple[Keys, Int64s] | None:
    """The rows of one scrape, one per unit, and the row of each sample; None if a unit has two times."""
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
        # A cell was written twice, and numpy does not define which write wins.
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
    """Number of cells of the merged table of several (rows, names): all rows times all names."""
    rows = 0
    names: set[str] = set()
    for table_rows, table_names in tables:
        rows += table_rows
        names.update(table_names)
    return rows * len(names)


def drop_impossible_times(block: Block) -> tuple[Block, int]:
    """The block without rows of invalid times, and the number of those rows."""
    keep = is_possible(block.keys.time_ms)
    kept = take_rows(block, keep)
    return (kept if len(kept) else EMPTY), len(keep) - int(keep.sum())


def join_columns(blocks: Sequence[Block]) -> list[Block]:
    """Join blocks with the same rows and different columns (a backfill arrives metric by metric)."""
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


class Merge:
    """How the rows of several tables become one table, and the same for each of their columns.

    ``tables``, none empty, come in the order they were written: where two hold a sample of the same (metric, unit, time),
    the later one's counts. Rows come out by ``rank[unit]``, then time.
    """

    def __init__(self, tables: Sequence[Keys], rank: Int64s) -> None:
        self._tables = tables
        self._count = sum(map(len, tables))
        self._sequence, is_disjoint = _in_time_order(tables)
        lengths = np.zeros(len(rank), np.int64)
        for table in tables:
            lengths[table.units] += table.lengths
        units = np.flatnonzero(lengths).astype(np.int32)
        units = units[np.argsort(rank[units], kind="stable")]
        offsets = np.concatenate(([0], np.cumsum(lengths[units])))
        self._runs_of = _align(tables, units, len(rank))
        self._places = [] if self._runs_of else self._place(units, offsets, len(rank))
        self._order: Int64s | None = None
        self._first_of_group: Int64s | None = None
        time_ms = np.empty(self._count, np.int64)
        self._lay([table.time_ms for table in tables], time_ms)
        self.keys = Keys(units, offsets, time_ms)
        if not is_disjoint and not is_rising(self.keys):
            self._sort()

    def _place(self, units: Int32s, offsets: Int64s, codes: int) -> list[Int64s]:
        """For each table the target of its rows: each run after those of the same unit in earlier tables."""
        cursor = np.zeros(codes, np.int64)
        cursor[units] = offsets[:-1]
        places = [np.empty(0, np.int64)] * len(self._tables)
        for index in self._sequence:
            table = self._tables[index]
            places[index] = np.arange(len(table)) + np.repeat(cursor[table.units] - table.offsets[:-1], table.lengths)
            cursor[table.units] += table.lengths
        return places

    def _lay(self, parts: Sequence[Float64s | Int64s | None], into: Float64s | Int64s) -> None:
        """Copy the parts of a column to their places."""
        if not self._runs_of:
            for place, part in zip(self._places, parts, strict=True):
                if part is not None:
                    into[place] = part
            return
        runs = len(self._runs_of[0])
        grid = into.reshape(runs, -1)
        column = 0
        for index in self._sequence:
            part, width = parts[index], len(self._tables[index]) // runs
            if part is not None:
                grid[:, column : column + width] = part.reshape(runs, width)[self._runs_of[index]]
            column += width

    def _sort(self) -> None:
        """Order rows by time within each unit, and find rows that stand for the same (unit, time).

        Rows lie in the order they were written here (see ``_in_time_order``), and the sort is stable.
        """
        keys = self.keys
        run = np.repeat(np.arange(len(keys.units)), keys.lengths)
        order = _stable_order(run, keys.time_ms)
        time_ms, run = keys.time_ms[order], run[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(time_ms) != 0) | (np.diff(run) != 0)
        self._order = order
        if not is_first.all():
            self._first_of_group = np.flatnonzero(is_first)
            time_ms = time_ms[is_first]
        lengths = np.bincount(run[is_first], minlength=len(keys.units))
        self.keys = Keys(keys.units, np.concatenate(([0], np.cumsum(lengths))), time_ms)

    def column(self, parts: Sequence[Float64s | None]) -> Float64s:
        """The merged column of its parts, one per table; None for a table without it."""
        is_whole = all(part is not None for part in parts)
        merged = np.empty(self._count) if is_whole else np.full(self._count, np.nan)
        self._lay(parts, merged)
        if self._order is None:
            return merged
        merged = merged[self._order]
        if self._first_of_group is None:
            return merged
        row = np.where(np.isnan(merged), -1, np.arange(len(merged)))
        last = np.maximum.reduceat(row, self._first_of_group)
        return np.where(last >= 0, merged[last], np.nan)


def _align(tables: Sequence[Keys], units: Int32s, codes: int) -> list[Int64s]:
    """For each table the order of its runs in the result; empty unless each has all units and runs of one length.

    That is the usual case, every unit scraped every time; columns are then copied as matrices, without an index per row.
    """
    runs_of = []
    for table in tables:
        width = len(table) // len(units)
        if len(table.units) < len(units) or not np.array_equal(table.offsets, np.arange(len(units) + 1) * width):
            return []
        run = np.empty(codes, np.int64)
        run[table.units] = np.arange(len(units))
        runs_of.append(run[units])
    return runs_of


def _stable_order(run: Int64s, time_ms: Int64s) -> Int64s:
    """The stable order by (run, time)."""
    start = int(time_ms.min())
    span = int(time_ms.max()) - start + 1
    if (int(run[-1]) + 1) * span >= 2**63:
        return np.lexsort((time_ms, run))
    # One key instead of two: the stable sort exploits sorted runs.
    return np.argsort(run * span + (time_ms - start), kind="stable")


def _in_time_order(tables: Sequence[Keys]) -> tuple[list[int], bool]:
    """The tables' indices by time and True where their ranges do not overlap; else as written (the last row then wins)."""
    ranges = sorted((int(table.time_ms.min()), int(table.time_ms.max()), i) for i, table in enumerate(tables))
    if all(before[1] < after[0] for before, after in pairwise(ranges)):
        return [i for _, _, i in ranges], True
    return list(range(len(tables))), False


def merge_blocks(blocks: Sequence[Block], rank: Int64s) -> Block:
    """Merge tables, given in the order of writes; see :class:`Merge`."""
    blocks = [block for block in blocks if len(block)]
    if not blocks:
        return EMPTY
    if len(blocks) == 1 and (np.diff(rank[blocks[0].keys.units]) > 0).all():
        return blocks[0]
    merge = Merge([block.keys for block in blocks], rank)
    names = dict.fromkeys(name for block in blocks for name in block.columns)
    return Block(merge.keys, {name: merge.column([block.columns.get(name) for block in blocks]) for name in names})
