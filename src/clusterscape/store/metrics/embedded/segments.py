"""One Parquet file of samples (``unit``, ``time_ms`` and one Float64 column per metric, sorted by unit and time), and
an LRU cache of decoded columns.

Owns the file layout and partial reads; other tools can read these files, too. A wide row stores a time once for all metrics of
a scrape. Row groups are small, so that reading some units of a large file decodes little else.
"""

import io
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from clusterscape.model import Names
from clusterscape.model.arrays import Bools, Float64s, Int32s, Int64s
from clusterscape.store.files import write_file
from clusterscape.store.metrics.embedded.blocks import EMPTY, Block, Keys, take_rows
from clusterscape.store.metrics.embedded.manifest import SegmentEntry

KEPT_BYTES = 256 * 1024 * 1024

Column = Float64s | Int64s


class ColumnCache:
    """LRU cache of at most ``limit_bytes`` of columns by (file, name); columns must not be modified. Thread-safe."""

    def __init__(self, limit_bytes: int = KEPT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._columns: OrderedDict[tuple[str, str], Column] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, file: str, name: str) -> Column | None:
        """The cached column, or None."""
        with self._lock:
            column = self._columns.get((file, name))
            if column is not None:
                self._columns.move_to_end((file, name))
            return column

    def keep(self, file: str, name: str, column: Column) -> None:
        """Cache the column, evicting others if needed."""
        with self._lock:
            if (file, name) in self._columns or column.nbytes > self._limit_bytes:
                return
            self._columns[file, name] = column
            self._bytes += column.nbytes
            while self._bytes > self._limit_bytes:
                _, dropped = self._columns.popitem(last=False)
                self._bytes -= dropped.nbytes


UNIT, TIME = "unit", "time_ms"
_ESCAPE = "metric:"
RUNS_SUFFIX = "-runs.parquet"
"""Suffix of files with samples of tracked runs, which have many metric names and are never merged with others."""
ROW_GROUP_ROWS = 16_384
_GAP_ROWS = 2 * ROW_GROUP_ROWS  # reading across a gap this short is cheaper than another read
_MAX_SLICES = 24  # beyond this, decoding whole columns is cheaper
# Otherwise polars would detect the common scan of the slices, and read the whole file.
_SEPARATE_SCANS = pl.QueryOptFlags(comm_subplan_elim=False)
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""Errors of reading a damaged file."""


class DamagedSegmentError(Exception):
    """A file is damaged; the store moves it away and continues without it."""

    def __init__(self, segment: "Segment", reason: object) -> None:
        super().__init__(str(reason))
        self.segment = segment


class UnitNames:
    """The store's dictionary of unit names. Thread-safe."""

    def __init__(self) -> None:
        self._names = Names()
        self._lock = threading.Lock()
        self._series = pl.Series(UNIT, [], dtype=pl.String)

    def __len__(self) -> int:
        return len(self._names)

    def encode(self, names: Iterable[str]) -> Int32s:
        """The code of each name, assigned on first use."""
        with self._lock:
            return np.array([self._names.code(name) for name in names], dtype=np.int32)

    def find(self, names: Iterable[str]) -> Int32s:
        """The codes of those names that have one."""
        codes = (self._names.find(name) for name in names)
        return np.array([code for code in codes if code is not None], dtype=np.int32)

    def find_below(self, name: str) -> Int32s:
        """The codes of ``name`` and of all names below it (``name/…``)."""
        values = self._names.values[:]
        codes = [code for code, value in enumerate(values) if value == name or value.startswith(f"{name}/")]
        return np.array(codes, dtype=np.int32)

    def decode(self, codes: Int32s) -> list[str]:
        """The name of each code."""
        values = self._names.values
        return [values[code] for code in codes.tolist()]

    def decode_series(self, codes: Int32s | Int64s) -> pl.Series:
        """The name of each code, as a String series; O(codes) after the first call for a dictionary of this size."""
        names = self._series
        if len(names) < len(self._names):
            names = self._series = pl.Series(UNIT, self._names.values[:], dtype=pl.String)
        return names[codes]  # `gather` would use polars' thread pool

    def rank(self) -> Int64s:
        """For each code its position in the alphabetical order of all names."""
        values = self._names.values[:]
        order = sorted(range(len(values)), key=values.__getitem__)
        rank = np.empty(len(values), np.int64)
        rank[order] = np.arange(len(values))
        return rank


def column_of(metric: str) -> str:
    """The column of ``metric``: its name, unless a key column has that name."""
    return f"{_ESCAPE}{metric}" if metric in (UNIT, TIME) else metric


def write_segment(path: Path, block: Block, units: UnitNames, *, is_kept: bool) -> tuple[int, int]:
    """Write ``block`` durably to ``path``; returns the file's size in bytes and its CRC-32.

    A file that ``is_kept`` is packed harder: a sixth smaller for a quarter more time.
    """
    buffer = io.BytesIO()
    block_frame(block, units).write_parquet(
        buffer,
        compression="zstd",
        compression_level=3 if is_kept else 1,
        row_group_size=ROW_GROUP_ROWS,
        statistics=False,
    )
    content = buffer.getbuffer()
    write_file(path, content)
    return len(content), zlib.crc32(content)


def block_frame(block: Block, units: UnitNames) -> pl.DataFrame:
    """``block`` as the table that a segment file holds: NaN becomes null."""
    unit = units.decode_series(np.repeat(block.keys.units, block.keys.lengths))
    columns = [unit, pl.Series(TIME, block.keys.time_ms)]
    columns += [pl.Series(column_of(m), c, nan_to_null=True) for m, c in block.columns.items()]
    return pl.DataFrame(columns)


class Segment:
    """A segment file that is part of the store."""

    def __init__(self, folder: Path, entry: SegmentEntry, units: UnitNames) -> None:
        self.entry = entry
        self.path = folder / entry.file
        self._units = units
        self._runs: tuple[Int32s, Int64s] | None = None

    def __repr__(self) -> str:
        return f"Segment({self.entry.file})"

    @property
    def is_of_runs(self) -> bool:
        """Whether it contains samples of tracked runs."""
        return self.entry.file.endswith(RUNS_SUFFIX)

    @property
    def cells(self) -> int:
        """Rows times metrics."""
        return self.entry.rows * len(self.entry.metrics)

    def overlaps(self, start_ms: int, end_ms: int) -> bool:
        """Whether it may contain samples in [start, end)."""
        return self.entry.start_ms < end_ms and self.entry.last_ms >= start_ms

    def check(self) -> None:
        """Verify the size and checksum of the file; raises DamagedSegmentError."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError as error:
            raise DamagedSegmentError(self, "it is missing") from error
        if len(content) != self.entry.size_bytes or zlib.crc32(content) != self.entry.crc32:
            raise DamagedSegmentError(self, "its checksum is wrong")

    def runs(self) -> tuple[Int32s, Int64s]:
        """Unit codes and row offsets of the runs; read once, O(rows), then cached (12 bytes per unit)."""
        if self._runs is None:
            self._runs = _runs(pl.read_parquet(self.path, columns=[UNIT]), self._units)
        return self._runs

    def read_keys(self) -> Keys:
        """All rows."""
        units, offsets = self.runs()
        return Keys(units, offsets, _times(self._read([TIME], None)))

    def read_column(self, name: str) -> Float64s | None:
        """One column, NaN where there is no sample; None if the segment does not have it."""
        if name not in self.entry.metrics:
            return None
        return _values(self._read([column_of(name)], None), column_of(name))

    def read_short(self, metrics: Sequence[str], kept: ColumnCache, *, start_ms: int, end_ms: int) -> Block:
        """As ``read`` for all units, faster for short times: decoded columns are cached in ``kept``."""
        names = [name for name in metrics if name in self.entry.metrics]
        if not names or not self.overlaps(start_ms, end_ms):
            return EMPTY
        units, offsets = self.runs()
        wanted = self._read_kept([TIME, *map(column_of, names)], kept)
        time_ms = wanted[TIME].astype(np.int64, copy=False)
        keep = (time_ms >= start_ms) & (time_ms < end_ms)
        rows = np.flatnonzero(keep)
        lengths = np.add.reduceat(keep, offsets[:-1], dtype=np.int64)
        left = lengths > 0
        keys = Keys(units[left], np.concatenate(([0], np.cumsum(lengths[left]))), time_ms[rows])
        return Block(keys, {name: wanted[column_of(name)][rows].astype(np.float64, copy=False) for name in names})

    def _read_kept(self, columns: Sequence[str], kept: ColumnCache) -> dict[str, Column]:
        """The columns; those that are not cached are read together."""
        file = self.entry.file
        by_name = {column: kept.find(file, column) for column in columns}
        missing = [column for column, values in by_name.items() if values is None]
        frame = self._read(missing, None) if missing else None
        for column in missing:
            assert frame is not None
            by_name[column] = values = _times(frame) if column == TIME else _values(frame, column)
            kept.keep(file, column, values)
        return {column: values for column, values in by_name.items() if values is not None}

    def read(self, metrics: Sequence[str], *, start_ms: int, end_ms: int, only: Sequence[str] | None = None) -> Block:
        """The named metrics in [start, end), of all units or of ``only``.

        Decodes the named columns whole for all units; for some units, the row groups that hold them.
        """
        names = [name for name in metrics if name in self.entry.metrics]
        if not names or not self.overlaps(start_ms, end_ms):
            return EMPTY
        units, offsets = self.runs()
        is_wanted = np.ones(len(units), np.bool_) if only is None else np.isin(units, self._units.find(only))
        if not is_wanted.any():
            return EMPTY
        slices = None
        if not is_wanted.all():
            chosen = np.flatnonzero(is_wanted)
            slices = _slices(offsets[chosen], offsets[chosen + 1], self.entry.rows)
            inside = _covered(offsets, slices)
            units, is_wanted = units[inside], is_wanted[inside]
            offsets = np.concatenate(([0], np.cumsum(np.diff(offsets)[inside])))
        frame = self._read([TIME, *map(column_of, names)], slices)
        keys = Keys(units, offsets, _times(frame))
        block = Block(keys, {name: _values(frame, column_of(name)) for name in names})
        is_inside = start_ms <= self.entry.start_ms and self.entry.last_ms < end_ms
        if is_inside and is_wanted.all():
            return block
        keep = np.repeat(is_wanted, keys.lengths)
        if not is_inside:
            keep &= (keys.time_ms >= start_ms) & (keys.time_ms < end_ms)
        return take_rows(block, keep)

    def _read(self, columns: Sequence[str], slices: Sequence[tuple[int, int]] | None) -> pl.DataFrame:
        if slices is None:
            return pl.read_parquet(self.path, columns=list(columns))
        scan = pl.scan_parquet(self.path).select(columns)
        parts = [scan.slice(start, stop - start) for start, stop in slices]
        return pl.concat(pl.collect_all(parts, optimizations=_SEPARATE_SCANS))


def _runs(frame: pl.DataFrame, units: UnitNames) -> tuple[Int32s, Int64s]:
    """Unit codes and row offsets of the runs."""
    names = frame.get_column(UNIT)
    is_first = names.ne_missing(names.shift(1))
    starts = is_first.arg_true().to_numpy().astype(np.int64)
    return units.encode(names.filter(is_first).to_list()), np.append(starts, len(names))


def _times(frame: pl.DataFrame) -> Int64s:
    return frame.get_column(TIME).to_numpy()


def _values(frame: pl.DataFrame, column: str) -> Float64s:
    return frame.get_column(column).to_numpy()  # null becomes NaN


def _slices(starts: Int64s, stops: Int64s, rows: int) -> list[tuple[int, int]] | None:
    """A few row ranges that cover the increasing [start, stop) pairs; None if reading everything is cheaper."""
    breaks = np.flatnonzero(starts[1:] - stops[:-1] > _GAP_ROWS) + 1
    if len(breaks) >= _MAX_SLICES:
        return None
    firsts = starts[np.concatenate(([0], breaks))]
    lasts = stops[np.concatenate((breaks - 1, [len(stops) - 1]))]
    if int((lasts - firsts).sum()) * 2 > rows:
        return None
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _covered(offsets: Int64s, slices: list[tuple[int, int]] | None) -> Bools:
    """Which runs are within the slices."""
    if slices is None:
        return np.ones(len(offsets) - 1, np.bool_)
    covered = np.zeros(len(offsets) - 1, np.bool_)
    for start, stop in slices:
        covered |= (offsets[:-1] >= start) & (offsets[1:] <= stop)
    return covered


def read_block(path: Path, units: UnitNames) -> Block:
    """A whole file of rows grouped by unit."""
    frame = pl.read_parquet(path)
    keys = Keys(*_runs(frame, units), _times(frame))
    metrics = [name.removeprefix(_ESCAPE) for name in frame.columns if name not in (UNIT, TIME)]
    return Block(keys, {metric: _values(frame, column_of(metric)) for metric in metrics})
