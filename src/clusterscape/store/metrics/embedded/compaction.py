"""Compaction and downsampling: recent writes become segments, segments are merged, complete days get coarse values.

Decides which files are merged, and writes the result; the store adds it to the manifest.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, groupby
from pathlib import Path

import numpy as np

from clusterscape.model.arrays import Float64s, Int32s
from clusterscape.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from clusterscape.store.files import make_folder
from clusterscape.store.metrics.embedded.blocks import Block, Merge, count_merged_cells, merge_blocks, take_rows
from clusterscape.store.metrics.embedded.coarse import add_late, coarse_columns, coarse_metrics, downsample
from clusterscape.store.metrics.embedded.manifest import SegmentEntry
from clusterscape.store.metrics.embedded.reading import View, damage_of, read_segment
from clusterscape.store.metrics.embedded.recent import SPARSE_CELLS, RecentBlock, Ring
from clusterscape.store.metrics.embedded.segments import RUNS_SUFFIX, Segment, UnitNames, write_segment

_OVERDUE = 4
_GROUPS_TRIED = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """When files are merged. A cell is one row of one metric: 8 bytes in memory during compaction."""

    wait_ms: int = 30 * MINUTE_MS  # longest time until a write is compacted
    wait_cells: int = 8_000_000  # most cells that are not compacted
    segment_cells: int = 32_000_000  # largest segment
    fan_in: int = 4  # number of neighbors of similar size that are merged
    small_cells: int = 65_536  # all segments up to this size count as similar
    late_ms: int = 2 * HOUR_MS  # a day is complete this long after its end


def day_of(time_ms: int) -> int:
    """The number of the UTC day since 1970."""
    return time_ms // DAY_MS


class Compactor:
    """Writes segments into ``folder``."""

    def __init__(self, folder: Path, units: UnitNames, policy: CompactionPolicy, coarse_step_ms: int) -> None:
        self._folder = folder
        self._units = units
        self._policy = policy
        self._step_ms = coarse_step_ms

    def is_due(self, view: View, now_ms: int) -> bool:
        """Whether recent writes should become segments now."""
        waiting = view.ring.waiting(view.compacted_seq)
        if not waiting:
            return False
        cells = sum(recent.block.cells for recent in waiting)
        oldest_ms = min(recent.start_ms for recent in waiting)
        return cells >= self._policy.wait_cells or now_ms - oldest_ms >= self._policy.wait_ms

    def is_overdue(self, view: View) -> bool:
        """Whether the backlog is so large that ``append`` itself should compact, because maintenance does not run."""
        waiting = view.ring.waiting(view.compacted_seq)
        return sum(recent.block.cells for recent in waiting) >= _OVERDUE * self._policy.wait_cells

    def write_waiting(self, view: View) -> tuple[list[SegmentEntry], int]:
        """Segments of all recent writes, and the number of the last of them."""
        waiting = view.ring.waiting(view.compacted_seq)
        rank = self._units.rank()
        others = [recent for recent in waiting if not recent.is_of_runs]
        groups = [others] if others else []
        groups += _group_by_fit([recent for recent in waiting if recent.is_of_runs])
        with self._all_or_nothing() as entries:
            for group in groups:
                block = merge_blocks([recent.block for recent in group], rank)
                entries += self.write_raw(block, seq=group[-1].seq, is_of_runs=group[0].is_of_runs)
        return entries, waiting[-1].seq

    def write_raw(self, block: Block, *, seq: int, is_of_runs: bool = False) -> list[SegmentEntry]:
        """Segments of ``block``, which is in the order of :class:`Merge`: one or more for each day."""
        with self._all_or_nothing() as entries:
            for day, part in self._split(block):
                entries.append(self._write(f"raw/{_day_name(day)}", part, seq, is_of_runs=is_of_runs))
        return entries

    @contextmanager
    def _all_or_nothing(self) -> Iterator[list[SegmentEntry]]:
        """A list for new segments; on errors their files are deleted."""
        entries: list[SegmentEntry] = []
        try:
            yield entries
        except BaseException:
            for entry in entries:
                (self._folder / entry.file).unlink(missing_ok=True)
            raise

    def _split(self, block: Block) -> Iterator[tuple[int, Block]]:
        days = np.unique(block.keys.time_ms // DAY_MS).tolist()
        for day in days:
            of_day = block if len(days) == 1 else _between(block, day * DAY_MS, (day + 1) * DAY_MS)
            start_ms, last_ms = int(of_day.keys.time_ms.min()), int(of_day.keys.time_ms.max())
            pieces = -(-of_day.cells // self._policy.segment_cells)
            width_ms = -(-(last_ms + 1 - start_ms) // pieces)
            for piece in range(pieces):
                from_ms = start_ms + piece * width_ms
                part = of_day if pieces == 1 else _between(of_day, from_ms, from_ms + width_ms)
                if len(part):
                    yield day, part

    def find_merges(self, raw: Sequence[Segment], now_ms: int) -> list[list[Segment]]:
        """Groups of segments, each within a day, that should become one."""
        groups: list[list[Segment]] = []
        ordered = sorted(raw, key=lambda segment: segment.entry.start_ms)
        for day, of_day in groupby(ordered, key=lambda segment: day_of(segment.entry.start_ms)):
            is_complete = now_ms >= (day + 1) * DAY_MS + self._policy.late_ms
            segments = list(of_day)
            for of_runs in (False, True):
                alike = [segment for segment in segments if segment.is_of_runs == of_runs]
                groups += self._find_in_day(alike, is_complete=is_complete)
        return groups

    def _find_in_day(self, segments: list[Segment], *, is_complete: bool) -> list[list[Segment]]:
        """Neighbors of similar size; for complete days, all that fit together."""
        fan_in = 2 if is_complete else self._policy.fan_in
        groups: list[list[Segment]] = []
        group: list[Segment] = []
        for segment in segments:
            fits = self._fit([*group, segment])
            is_alike = is_complete or not group or self._tier(group[-1]) == self._tier(segment)
            if not (fits and is_alike):
                groups.append(group)
                group = []
            group.append(segment)
        groups.append(group)
        return [group for group in groups if len(group) >= fan_in and not _is_interleaved(group, segments)]

    def _fit(self, segments: Sequence[Segment]) -> bool:
        """Whether these can be one segment that is neither too large nor mostly empty."""
        merged = count_merged_cells((segment.entry.rows, segment.entry.metrics) for segment in segments)
        most = max(SPARSE_CELLS, 2 * sum(segment.cells for segment in segments))
        return merged <= min(most, self._policy.segment_cells)

    def _tier(self, segment: Segment) -> int:
        return max(0, int(np.log(segment.cells / self._policy.small_cells) / np.log(self._policy.fan_in)))

    def merge(self, segments: Sequence[Segment]) -> SegmentEntry:
        """Merge segments into one, column by column."""
        segments = sorted(segments, key=lambda segment: segment.entry.seq)
        keys, names = [], sorted({name for segment in segments for name in segment.entry.metrics})
        parts: dict[str, list[Float64s | None]] = {name: [] for name in names}
        for segment in segments:
            segment.check()  # damaged data must not be copied
            with damage_of(segment):
                keys.append(segment.read_keys())
                for name in names:
                    parts[name].append(segment.read_column(name))
        merge = Merge(keys, self._units.rank())
        columns = {name: merge.column(parts.pop(name)) for name in names}
        folder = f"raw/{_day_name(day_of(segments[0].entry.start_ms))}"
        block = Block(merge.keys, columns)
        return self._write(folder, block, segments[-1].entry.seq, is_of_runs=segments[0].is_of_runs)

    def write_without(self, segment: Segment, units: Int32s) -> list[SegmentEntry]:
        """Rewrite a segment without ``units``; an empty list if no rows are left."""
        segment.check()  # damaged data must not be copied
        entry = segment.entry
        block = read_segment(segment, entry.metrics, entry.start_ms, entry.last_ms + 1)
        kept = take_rows(block, np.repeat(~np.isin(block.keys.units, units), block.keys.lengths))
        if not len(kept):
            return []
        folder = entry.file.rpartition("/")[0]
        return [self._write(folder, kept, entry.seq, step_ms=entry.step_ms, is_of_runs=segment.is_of_runs)]

    def write_coarse(self, view: View, day: int, *, existing: Sequence[Segment] = ()) -> list[SegmentEntry]:
        """Coarse values of a day from all its raw samples, combined with ``existing`` ones (of samples that were dropped)."""
        start_ms, end_ms = day * DAY_MS, (day + 1) * DAY_MS
        view = replace(view, ring=Ring())  # samples that are not compacted yet would be counted twice
        raw = [segment for segment in view.raw if segment.overlaps(start_ms, end_ms)]
        of_others = {name for segment in raw if not segment.is_of_runs for name in segment.entry.metrics}
        of_others |= {name for segment in existing for name in coarse_metrics(segment.entry.metrics)}
        of_runs = {name for segment in raw if segment.is_of_runs for name in segment.entry.metrics} - of_others
        rows = sum(segment.entry.rows for segment in raw)
        rows_of_runs = sum(segment.entry.rows for segment in raw if segment.is_of_runs)
        seq = max(segment.entry.seq for segment in raw)
        batches = [(metrics, rows) for metrics in self._batches(of_others, rows)]
        batches += [(metrics, rows_of_runs) for metrics in self._batches(of_runs, rows_of_runs)]
        with self._all_or_nothing() as entries:
            for metrics, most_rows in batches:
                columns = [column for metric in metrics for column in coarse_columns(metric)]
                kept = [read_segment(segment, columns, start_ms, end_ms) for segment in existing]
                old = merge_blocks(kept, self._units.rank())
                new = self._downsample(view, metrics, start_ms, end_ms, most_rows)
                block = add_late(old, new, self._step_ms, self._units.rank())
                if len(block):
                    entries.append(self._write(f"coarse/{_day_name(day)}", block, seq, step_ms=self._step_ms))
        return entries

    def _batches(self, names: set[str], rows: int) -> Iterator[Sequence[str]]:
        """Batches of metrics that fit into a segment."""
        return _batched(sorted(names), max(1, self._policy.segment_cells // max(1, rows)))

    def _downsample(self, view: View, metrics: Sequence[str], start_ms: int, end_ms: int, rows: int) -> Block:
        """In time windows, so that at most about ``segment_cells`` are in memory."""
        windows = -(-rows * len(metrics) // self._policy.segment_cells)
        width_ms = -(-(end_ms - start_ms) // (windows * self._step_ms)) * self._step_ms
        parts = []
        for from_ms in range(start_ms, end_ms, width_ms):
            blocks = view.read_raw(metrics, from_ms, min(from_ms + width_ms, end_ms), None)
            parts.append(downsample(merge_blocks(blocks, self._units.rank()), self._step_ms))
        return merge_blocks(parts, self._units.rank())

    def _write(
        self, folder: str, block: Block, seq: int, *, step_ms: int = 0, is_of_runs: bool = False
    ) -> SegmentEntry:
        make_folder(self._folder / folder)
        suffix = RUNS_SUFFIX if is_of_runs else ".parquet"
        names = (f"{folder}/{seq:010d}-{number}{suffix}" for number in count())
        file = next(name for name in names if not (self._folder / name).exists())
        size_bytes, crc32 = write_segment(self._folder / file, block, self._units, is_kept=True)
        return SegmentEntry(
            file=file,
            seq=seq,
            start_ms=int(block.keys.time_ms.min()),
            last_ms=int(block.keys.time_ms.max()),
            rows=len(block),
            samples=block.count_samples(),
            size_bytes=size_bytes,
            crc32=crc32,
            metrics=tuple(block.columns),
            step_ms=step_ms,
        )


def _day_name(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date().isoformat()


class _Group:
    """Blocks of runs that become one table."""

    def __init__(self, first: RecentBlock) -> None:
        self.blocks = [first]
        self._rows = len(first.block)
        self._names = set(first.block.columns)
        self._cells = first.block.cells

    def take(self, block: RecentBlock) -> bool:
        """Add ``block`` unless most of the table would be empty: runs with different metric names share no columns."""
        rows, cells = self._rows + len(block.block), self._cells + block.block.cells
        names = self._names | block.block.columns.keys()
        if rows * len(names) > max(SPARSE_CELLS, 2 * cells):
            return False
        self.blocks.append(block)
        self._rows, self._names, self._cells = rows, names, cells
        return True


def _group_by_fit(blocks: Sequence[RecentBlock]) -> list[list[RecentBlock]]:
    """Group blocks of runs that fit together; blocks of one run keep their order."""
    groups: list[_Group] = []
    for block in blocks:
        if not any(group.take(block) for group in groups[-_GROUPS_TRIED:]):
            groups.append(_Group(block))
    return [group.blocks for group in groups]


def _between(block: Block, start_ms: int, end_ms: int) -> Block:
    return take_rows(block, (block.keys.time_ms >= start_ms) & (block.keys.time_ms < end_ms))


def _is_interleaved(group: Sequence[Segment], segments: Sequence[Segment]) -> bool:
    """Whether a segment outside the group was written between its members and at the same times.

    Merging the group would then give an older sample precedence over a newer one.
    """
    seqs = [segment.entry.seq for segment in group]
    start_ms = min(segment.entry.start_ms for segment in group)
    last_ms = max(segment.entry.last_ms for segment in group)
    return any(
        min(seqs) < other.entry.seq < max(seqs) and other.overlaps(start_ms, last_ms + 1)
        for other in segments
        if other not in group
    )


def _batched(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), size):
        yield names[first : first + size]
