"""Several wide tables become one: in O(rows) where they follow one another in time, by sorting where they overlap.

Owns the order of rows and which of two equal samples stays. Knows nothing of files.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from clusterscape.model.samples import Float64s, Int32s, Int64s
from clusterscape.store.metrics.embedded.blocks import EMPTY, Block, Keys, is_rising


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
        """For each table, where its rows go: each run behind those of the same unit in the tables before."""
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
        """One merged column of its parts, one for each table; None where a table lacks it."""
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
    """The order by (run, time), rows that are equal staying as they are."""
    start = int(time_ms.min())
    span = int(time_ms.max()) - start + 1
    if (int(run[-1]) + 1) * span >= 2**63:
        return np.lexsort((time_ms, run))
    # One key instead of two: rows lie in sorted runs, of which the stable sort makes use.
    return np.argsort(run * span + (time_ms - start), kind="stable")


def _in_time_order(tables: Sequence[Keys]) -> tuple[list[int], bool]:
    """The tables' indices by time and True where their ranges do not overlap; else as written (the last row then wins)."""
    ranges = sorted((int(table.time_ms.min()), int(table.time_ms.max()), i) for i, table in enumerate(tables))
    if all(before[1] < after[0] for before, after in pairwise(ranges)):
        return [i for _, _, i in ranges], True
    return list(range(len(tables))), False


def merge_blocks(blocks: Sequence[Block], rank: Int64s) -> Block:
    """One table of several, given in the order they were written; see :class:`Merge`."""
    blocks = [block for block in blocks if len(block)]
    if not blocks:
        return EMPTY
    if len(blocks) == 1 and (np.diff(rank[blocks[0].keys.units]) > 0).all():
        return blocks[0]
    merge = Merge([block.keys for block in blocks], rank)
    names = dict.fromkeys(name for block in blocks for name in block.columns)
    return Block(merge.keys, {name: merge.column([block.columns.get(name) for block in blocks]) for name in names})
