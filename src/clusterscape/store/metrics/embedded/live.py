"""The current files of the store and their changes: load, publish, retire, quarantine.

Owns the manifest in memory and on disk, and the view that readers get.
"""

import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from clusterscape.model.arrays import Int32s
from clusterscape.model.durations import DAY_MS
from clusterscape.model.runs import is_run_unit
from clusterscape.store.files import TEMPORARY_SUFFIX
from clusterscape.store.metrics.embedded.blocks import drop_impossible_times
from clusterscape.store.metrics.embedded.manifest import Manifest, SegmentEntry, read_manifest, write_manifest
from clusterscape.store.metrics.embedded.reading import View, read_segment
from clusterscape.store.metrics.embedded.recent import RecentBlock, Ring
from clusterscape.store.metrics.embedded.segments import (
    UNREADABLE,
    ColumnCache,
    DamagedSegmentError,
    Segment,
    UnitNames,
    read_block,
)

_log = logging.getLogger(__name__)
FOREVER_MS = 2**62


class LiveFiles:
    """The store's state. Thread-safe."""

    def __init__(self, folder: Path, units: UnitNames, *, ring_ms: int) -> None:
        self._folder = folder
        self._units = units
        self._ring_ms = ring_ms
        self._lock = threading.RLock()
        self._generation = 0
        self._readers: Counter[int] = Counter()  # of each generation
        self._retired: list[tuple[int, Path]] = []  # removed files, and the first generation without them
        self._manifest = read_manifest(folder)
        self._sealed_seq = self._manifest.compacted_seq
        self._clear_leftovers()
        self._view = self._load()
        recent = [block.seq for block in self._view.ring.blocks]
        self._last_seq = max([self._manifest.last_seq, *recent])

    # -- loading -----------------------------------------------------------------------------------------------------

    def _clear_leftovers(self) -> None:
        """Delete leftovers of a crash: temporary files, and files that the manifest does not list."""
        live = {entry.file for entry in (*self._manifest.raw, *self._manifest.coarse)}
        for path in self._folder.glob(f"**/*{TEMPORARY_SUFFIX}"):
            path.unlink()
        for path in [*self._folder.glob("raw/*/*.parquet"), *self._folder.glob("coarse/*/*.parquet")]:
            if path.relative_to(self._folder).as_posix() not in live:
                path.unlink()
        for path in self._recent_paths():
            if int(path.stem) <= self._manifest.compacted_seq:
                path.unlink()

    def _recent_paths(self) -> list[Path]:
        return sorted(path for path in self._folder.glob("recent/*.parquet") if path.stem.isdecimal())

    def _load(self) -> View:
        view = View(
            units=self._units,
            raw=tuple(Segment(self._folder, entry, self._units) for entry in self._manifest.raw),
            coarse=tuple(Segment(self._folder, entry, self._units) for entry in self._manifest.coarse),
            ring=Ring(),
            compacted_seq=self._manifest.compacted_seq,
            raw_from_ms=self._manifest.raw_from_ms,
            coarse_days=self._manifest.coarse_days,
            kept=ColumnCache(),
        )
        self._view = view
        for segment in (*view.raw, *view.coarse):
            if not segment.path.exists() or segment.path.stat().st_size != segment.entry.size_bytes:
                self.set_aside(segment, "its size is wrong")
        recent = [block for path in self._recent_paths() if (block := self._load_recent(path))]
        newest_ms = max([b.last_ms for b in recent] + [s.entry.last_ms for s in self._view.raw], default=0)
        border_ms = newest_ms - self._ring_ms
        others = [segment for segment in self._view.raw if not segment.is_of_runs]
        tails = [tail for segment in others if (tail := self._load_tail(segment, border_ms))]
        ring = Ring(tuple(sorted(tails, key=lambda block: block.seq)), border_ms if self._view.raw else 0)
        for block in recent:
            ring = ring.add(block, sealed_seq=self._sealed_seq)
        return replace(self._view, ring=ring)

    def _load_recent(self, path: Path) -> RecentBlock | None:
        try:
            block = read_block(path, self._units)
        except UNREADABLE as error:
            self._move_aside(path, error)
            return None
        possible, left_out = drop_impossible_times(block)
        if left_out:  # written by earlier versions: such times have no day folder
            _log.warning("%s: %d rows were dropped: their times are before 1970 or after 2100", path, left_out)
        if not len(possible):
            self._move_aside(path, "all its times are before 1970 or after 2100")
            return None
        of_runs = all(map(is_run_unit, self._units.decode(possible.keys.units)))
        return RecentBlock.of(possible, seq=int(path.stem), size_bytes=path.stat().st_size, is_of_runs=of_runs)

    def _load_tail(self, segment: Segment, border_ms: int) -> RecentBlock | None:
        try:
            block = read_segment(segment, segment.entry.metrics, border_ms, FOREVER_MS)
        except DamagedSegmentError as error:
            self.set_aside(segment, error)
            return None
        return RecentBlock.of(block, seq=segment.entry.seq, size_bytes=0) if len(block) else None

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """The current view, for the maintenance thread."""
        return self._view

    @property
    def manifest(self) -> Manifest:
        """The current manifest."""
        return self._manifest

    @contextmanager
    def reading(self) -> Iterator[View]:
        """The current view; its files are kept until the end of the block."""
        with self._lock:
            generation, view = self._generation, self._view
            self._readers[generation] += 1
        try:
            yield view
        finally:
            with self._lock:
                self._readers[generation] -= 1
                if not self._readers[generation]:
                    del self._readers[generation]

    # -- changing ----------------------------------------------------------------------------------------------------

    def next_seq(self) -> int:
        """The number of the next write."""
        with self._lock:
            self._last_seq += 1
            return self._last_seq

    def recent_path(self, seq: int) -> Path:
        """The file of write number ``seq`` until it is compacted."""
        return self._folder / "recent" / f"{seq:010d}.parquet"

    def add_recent(self, block: RecentBlock) -> None:
        """Make a durable write visible to readers."""
        while True:
            view, sealed_seq = self._view, self._sealed_seq
            ring = view.ring.add(block, sealed_seq=sealed_seq)
            ring = ring.trim(compacted_seq=view.compacted_seq, keep_ms=self._ring_ms)
            with self._lock:
                if self._view is view and self._sealed_seq == sealed_seq:
                    self._view = replace(view, ring=ring)
                    return

    def forget_units(self, units: Int32s) -> None:
        """Remove units from the blocks in memory, which must be compacted."""
        while True:
            view = self._view
            ring = view.ring.without(units)
            with self._lock:
                if self._view is view:
                    self._view = replace(view, ring=ring)
                    return

    def seal(self) -> View:
        """The current view, whose recent blocks no longer change and can be compacted."""
        with self._lock:
            self._sealed_seq = max([self._sealed_seq, *(block.seq for block in self._view.ring.blocks)])
            return self._view

    def publish(
        self,
        *,
        raw: Sequence[SegmentEntry] = (),
        coarse: Sequence[SegmentEntry] = (),
        without: Collection[Segment] = (),
        compacted_seq: int | None = None,
        raw_from_ms: int | None = None,
        coarse_days: Mapping[int, int] | None = None,
        tail: RecentBlock | None = None,
    ) -> None:
        """Write a manifest with the new segments and without ``without``, then make it visible to readers.

        ``tail``: the latest part of new segments, for the ring buffer.
        """
        removed = {segment.entry.file for segment in without}
        with self._lock:
            old, view = self._manifest, self._view
            manifest = Manifest(
                compacted_seq=old.compacted_seq if compacted_seq is None else compacted_seq,
                raw_from_ms=old.raw_from_ms if raw_from_ms is None else raw_from_ms,
                raw=(*(entry for entry in old.raw if entry.file not in removed), *raw),
                coarse=(*(entry for entry in old.coarse if entry.file not in removed), *coarse),
                coarse_days=old.coarse_days if coarse_days is None else dict(coarse_days),
            )
            self._switch(manifest, new=(*raw, *coarse))
            ring = (
                view.ring
                if tail is None
                else view.ring.add(tail, sealed_seq=manifest.compacted_seq).complete_from(tail.start_ms)
            )
            self._manifest = manifest
            self._view = View(
                units=self._units,
                raw=self._segments(view.raw, manifest.raw),
                coarse=self._segments(view.coarse, manifest.coarse),
                ring=ring.trim(compacted_seq=manifest.compacted_seq, keep_ms=self._ring_ms),
                compacted_seq=manifest.compacted_seq,
                raw_from_ms=manifest.raw_from_ms,
                coarse_days=manifest.coarse_days,
                kept=view.kept,
            )
            self._generation += 1
            self._retired += [(self._generation, segment.path) for segment in without]
            waiting = view.ring.waiting(old.compacted_seq)
            compacted = [block for block in waiting if block.seq <= manifest.compacted_seq]
        for seq in (seq for block in compacted for seq in range(block.first_seq, block.seq + 1)):
            self.recent_path(seq).unlink(missing_ok=True)

    def _switch(self, manifest: Manifest, *, new: Sequence[SegmentEntry]) -> None:
        try:
            write_manifest(self._folder, manifest)
        except BaseException:
            if read_manifest(self._folder) == self._manifest:
                for entry in new:
                    (self._folder / entry.file).unlink(missing_ok=True)
            raise

    def _segments(self, current: Sequence[Segment], entries: Sequence[SegmentEntry]) -> tuple[Segment, ...]:
        by_file = {segment.entry.file: segment for segment in current}
        return tuple(by_file.get(entry.file) or Segment(self._folder, entry, self._units) for entry in entries)

    def delete_retired(self) -> None:
        """Delete removed files that no reader uses any more."""
        with self._lock:
            oldest = min(self._readers, default=self._generation)
            free = [path for generation, path in self._retired if generation <= oldest]
            self._retired = [item for item in self._retired if item[0] > oldest]
        for path in free:
            path.unlink(missing_ok=True)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()

    def set_aside(self, segment: Segment, reason: object) -> None:
        """Remove a damaged segment from the store, move its file to ``damaged/`` and log a warning. Idempotent."""
        with self._lock:
            live = (*self._manifest.raw, *self._manifest.coarse)
            if segment.entry.file not in {entry.file for entry in live}:
                return  # another reader was first
            days = self._manifest.coarse_days
            if segment.entry.step_ms:  # computed again if the raw samples still exist
                days = {day: seq for day, seq in days.items() if day != segment.entry.start_ms // DAY_MS}
            self.publish(without=[segment], coarse_days=days)
            self._retired = [item for item in self._retired if item[1] != segment.path]
        self._move_aside(segment.path, reason)

    def _move_aside(self, path: Path, reason: object) -> None:
        folder = self._folder / "damaged"
        folder.mkdir(exist_ok=True)
        target = folder / path.relative_to(self._folder).as_posix().replace("/", "_")
        try:
            path.rename(target)
        except FileNotFoundError:
            _log.warning("%s is missing; its samples are lost", path)
            return
        _log.warning("%s is damaged (%s); it was moved to %s, and the store continues without it", path, reason, target)
