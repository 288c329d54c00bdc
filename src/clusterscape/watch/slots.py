"""Assigns rows to lives: a life gets a row when its allocation starts and keeps it for a while after its end.

Does not count samples.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from clusterscape.model import Names, UnitId, UnixMs, WorkloadId
from clusterscape.model.arrays import Int64s

LifeKey = tuple[WorkloadId, UnitId, UnixMs]
"""A life: workload, unit and start of the allocation. A workload that gets the same unit again starts a new life."""

ENDLESS = np.iinfo(np.int64).max
FIRST_ROWS = 256


class Slots:
    """Rows of lives. Arrays have one entry per row; free rows have ``is_used`` False."""

    def __init__(self) -> None:
        self.units = Names()
        self.keys: dict[LifeKey, int] = {}  # open and ended lives
        self.from_at = np.zeros(0, np.int64)
        self.until_at = np.zeros(0, np.int64)  # ENDLESS while the life is open
        self.unit = np.zeros(0, np.int32)
        self.is_used = np.zeros(0, np.bool_)
        self.generation = np.zeros(0, np.int64)  # grows whenever a row gets another life or is reset
        self.life_offsets = np.zeros(1, np.int64)
        self.life_rows = np.zeros(0, np.int64)
        self._open: dict[LifeKey, int] = {}
        self._free: list[int] = []

    @property
    def row_count(self) -> int:
        """Number of rows, used or not."""
        return len(self.from_at)

    def used_rows(self) -> Int64s:
        """Rows of open and ended lives, ascending."""
        return np.flatnonzero(self.is_used)

    def rows_of(self, units: NDArray[np.int32] | NDArray[np.int64]) -> Int64s:
        """Rows of all lives on these units (our codes)."""
        if not len(units):
            return np.zeros(0, np.int64)
        starts, stops = self.life_offsets[units], self.life_offsets[units + 1]
        return np.concatenate([self.life_rows[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])

    def follow(self, open_lives: Iterable[LifeKey], at_ms: UnixMs, *, keep_ended_ms: int) -> tuple[Int64s, Int64s]:
        """End lives that are no longer open, free rows of lives that ended long ago, and assign rows to new lives.

        Returns the rows of new lives, and of lives that resumed because a source had missed them for a while.
        """
        open_keys = set(open_lives)
        for key in [key for key in self._open if key not in open_keys]:
            row = self._open.pop(key)
            self.until_at[row] = max(at_ms, int(self.from_at[row]))
        missing = open_keys - self._open.keys()
        resumed = np.array([self._resume(key) for key in missing if key in self.keys], np.int64)
        freed = self._free_ended(at_ms - keep_ended_ms)
        began = sorted(missing - self.keys.keys())
        shortfall = len(began) - len(self._free)
        if shortfall > 0:
            self._grow(max(FIRST_ROWS, self.row_count + max(shortfall, self.row_count // 8)))
        rows = np.array([self._set(self._free.pop(), key) for key in began], np.int64)
        if began or freed:
            self.index()
        return rows, resumed

    def restore(self, rows: Sequence[int], keys: Sequence[LifeKey], until_at: Int64s, generation: Int64s) -> None:
        """Load the lives of a checkpoint into their rows; only into empty slots."""
        self._grow(max(FIRST_ROWS, max(rows, default=-1) + 1))
        for row, key, end_ms, row_generation in zip(rows, keys, until_at.tolist(), generation.tolist(), strict=True):
            self._set(row, key)
            self.until_at[row], self.generation[row] = end_ms, row_generation
            if end_ms != ENDLESS:
                del self._open[key]
        self._free = np.flatnonzero(~self.is_used)[::-1].tolist()
        self.index()

    def index(self) -> None:
        """Rebuild the index of rows by unit."""
        rows = self.used_rows()
        units = self.unit[rows]
        order = np.argsort(units, kind="stable")
        self.life_rows = rows[order]
        self.life_offsets = np.searchsorted(units[order], np.arange(len(self.units) + 1)).astype(np.int64)

    def _free_ended(self, before_ms: int) -> int:
        old = self.is_used & (self.until_at < before_ms)
        if not old.any():
            return 0
        expired = [key for key, row in self.keys.items() if old[row]]
        for key in expired:
            row = self.keys.pop(key)
            self.is_used[row] = False
            self._free.append(row)
        return len(expired)

    def _resume(self, key: LifeKey) -> int:
        row = self._open[key] = self.keys[key]
        self.until_at[row] = ENDLESS
        return row

    def _set(self, row: int, key: LifeKey) -> int:
        self.keys[key] = self._open[key] = row
        self.unit[row] = self.units.code(key[1])
        self.from_at[row], self.until_at[row] = key[2], ENDLESS
        self.is_used[row] = True
        self.generation[row] += 1
        return row

    def _grow(self, row_count: int) -> None:
        old, more = self.row_count, row_count - self.row_count
        self.from_at = np.concatenate([self.from_at, np.zeros(more, np.int64)])
        self.until_at = np.concatenate([self.until_at, np.zeros(more, np.int64)])
        self.unit = np.concatenate([self.unit, np.zeros(more, np.int32)])
        self.is_used = np.concatenate([self.is_used, np.zeros(more, np.bool_)])
        self.generation = np.concatenate([self.generation, np.zeros(more, np.int64)])
        self._free.extend(range(row_count - 1, old - 1, -1))
