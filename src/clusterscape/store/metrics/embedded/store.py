"""The embedded metric store: Parquet segments, the latest scrapes in memory, no server.

Appends, and decides when to compact, downsample and drop. One process at a time; one thread appends, one maintains, any
number read.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from clusterscape.errors import ConfigError, StoreError
from clusterscape.model import Names, SampleBatch, UnitId, UnixMs
from clusterscape.model.arrays import Int32s
from clusterscape.model.durations import DAY_MS
from clusterscape.model.runs import is_run_unit
from clusterscape.settings import RetentionSettings
from clusterscape.store.files import check_free_space, make_folder
from clusterscape.store.metrics.contract import DayContents, MetricStoreInfo, SeriesStatistic
from clusterscape.store.metrics.embedded.blocks import Block, is_possible, join_columns, merge_blocks, pivot, select
from clusterscape.store.metrics.embedded.compaction import CompactionPolicy, Compactor, day_of
from clusterscape.store.metrics.embedded.live import FOREVER_MS, LiveFiles
from clusterscape.store.metrics.embedded.manifest import SegmentEntry, check_version, create, locked
from clusterscape.store.metrics.embedded.reading import View, damage_of, read_latest, read_series, read_statistics
from clusterscape.store.metrics.embedded.recent import RecentBlock
from clusterscape.store.metrics.embedded.segments import DamagedSegmentError, Segment, UnitNames, write_segment

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

RING_MS = 15 * 60_000
"""The ring buffer keeps at least this much, so that live pages never wait for a file."""


class EmbeddedMetricStore:
    """A :class:`MetricStore` in a folder.

    ``append`` writes one small file and syncs it: O(samples). ``maintain`` compacts: a sample is rewritten about four times in
    its first day, then never. Samples that are not compacted yet are also in memory: 8 bytes each, up to 30 minutes or
    8,000,000 samples.
    """

    def __init__(
        self,
        folder: Path,
        retention: RetentionSettings,
        *,
        min_free_bytes: int = 0,
        policy: CompactionPolicy | None = None,
    ) -> None:
        self._folder = folder
        self._retention = retention
        self._step_ms = _coarse_step_ms(retention)
        self._min_free_bytes = min_free_bytes
        self._policy = policy or CompactionPolicy()
        self._units = UnitNames()
        self._translation: tuple[Names, Int32s] = (Names(), np.empty(0, np.int32))
        self._compactor = Compactor(folder, self._units, self._policy, self._step_ms)
        self._write_lock = threading.Lock()  # acquired before the next one if both are needed
        self._maintenance_lock = threading.Lock()
        check_version(folder)
        make_folder(folder / "recent")
        with ExitStack() as opening:
            opening.enter_context(locked(folder))
            create(folder)
            self._live = LiveFiles(folder, self._units, ring_ms=RING_MS)
            self._resources = opening.pop_all()
        self._is_closed = False

    # -- writing -----------------------------------------------------------------------------------------------------

    def append(self, batch: SampleBatch) -> None:
        """Store ``batch``; durable when it returns."""
        with self._write_lock:
            self._check_open()
            block = self._pivot(batch)
            if not len(block):
                return
            check_free_space(self._folder, min_free_bytes=self._min_free_bytes)
            seq = self._live.next_seq()
            path = self._live.recent_path(seq)
            try:
                size_bytes, _ = write_segment(path, block, self._units, is_kept=False)
            except BaseException:
                path.unlink(missing_ok=True)  # renamed, but not durable
                raise
            of_runs = all(map(is_run_unit, batch.units.values))
            self._live.add_recent(RecentBlock.of(block, seq=seq, size_bytes=size_bytes, is_of_runs=of_runs))
            if self._compactor.is_overdue(self._live.view):
                with self._maintenance_lock:
                    self._compact()

    def append_history(self, batches: Sequence[SampleBatch]) -> None:
        """Store older data atomically, as compacted segments."""
        with self._write_lock, self._maintenance_lock:
            self._check_open()
            check_free_space(self._folder, min_free_bytes=self._min_free_bytes)
            blocks = join_columns([self._pivot(batch) for batch in batches])
            block = merge_blocks(blocks, self._units.rank())
            if not len(block):
                return
            self._compact()  # older writes must not come after newer ones
            seq = self._live.next_seq()
            entries = self._compactor.write_raw(block, seq=seq)
            last_ms = max(entry.last_ms for entry in entries)
            newest = select(block, list(block.columns), start_ms=last_ms - RING_MS, end_ms=FOREVER_MS)
            tail = RecentBlock.of(newest, seq=seq, size_bytes=0)
            self._live.publish(raw=entries, compacted_seq=seq, tail=tail)

    def _pivot(self, batch: SampleBatch) -> Block:
        codes = self._translate(batch.units)
        keep = is_possible(batch.time_ms)
        unit, metric, time_ms, value = batch.unit, batch.metric, batch.time_ms, batch.value
        if not keep.all():
            _log.warning("%d samples were dropped: their times are before 1970 or after 2100", int((~keep).sum()))
            unit, metric, time_ms, value = unit[keep], metric[keep], time_ms[keep], value[keep]
        return pivot(codes[unit], metric, time_ms, value, batch.metrics.values)

    def _translate(self, units: Names) -> Int32s:
        """The store's code of each of the batch's unit codes. Cached, because batches share their dictionary."""
        cached, codes = self._translation
        if cached is not units:
            codes = np.empty(0, np.int32)
        if len(codes) < len(units):
            codes = np.concatenate([codes, self._units.encode(units.values[len(codes) :])])
        self._translation = (units, codes)
        return codes

    # -- reading -----------------------------------------------------------------------------------------------------

    def latest(self, metrics: Sequence[str], *, at_ms: UnixMs, lookback_ms: int) -> pl.DataFrame:
        """The last value of each unit in [at − lookback, at]."""
        return self._read(lambda view: read_latest(view, metrics, at_ms, lookback_ms))

    def series(
        self,
        metrics: Sequence[str],
        units: Sequence[UnitId],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        step_ms: int | None = None,
    ) -> pl.DataFrame:
        """Samples, or steps, of the named units."""
        return self._read(lambda view: read_series(view, metrics, units, start_ms, end_ms, step_ms))

    def statistics(
        self,
        metric: str,
        statistics: Sequence[SeriesStatistic],
        *,
        start_ms: UnixMs,
        end_ms: UnixMs,
        units: Sequence[UnitId] | None = None,
    ) -> pl.DataFrame:
        """One row per unit."""
        return self._read(lambda view: read_statistics(view, metric, statistics, start_ms, end_ms, units))

    def _read(self, read: Callable[[View], _Result]) -> _Result:
        self._check_open()
        while True:
            try:
                with self._live.reading() as view:
                    return read(view)
            except DamagedSegmentError as error:
                self._live.set_aside(error.segment, error)

    def days(self, *, start_ms: UnixMs, end_ms: UnixMs) -> list[DayContents]:
        """The days with samples or coarse values in [start, end), oldest first."""
        view = self._live.view
        days: dict[int, tuple[set[str], int]] = {}
        parts = [
            (segment.entry.start_ms, segment.entry.last_ms, segment.entry.metrics, segment.entry.samples)
            for segment in view.raw
        ]
        parts += [
            (block.start_ms, block.last_ms, tuple(block.block.columns), block.samples)
            for block in view.ring.waiting(view.compacted_seq)
        ]
        for segment in view.coarse:
            entry = segment.entry
            if entry.start_ms < view.raw_from_ms:  # elsewhere their raw samples still exist
                metrics = tuple({column.rpartition("#")[0] for column in entry.metrics})
                parts.append((entry.start_ms, entry.last_ms, metrics, entry.rows * len(metrics)))
        for first_ms, last_ms, metrics, samples in parts:
            for day in range(day_of(max(first_ms, start_ms)), day_of(min(last_ms, end_ms - 1)) + 1):
                names, count = days.get(day, (set(), 0))
                days[day] = (names | set(metrics), count + samples)
        return [DayContents(day, tuple(sorted(names)), count) for day, (names, count) in sorted(days.items())]

    def read_all(self, metrics: Sequence[str], *, start_ms: UnixMs, end_ms: UnixMs) -> pl.DataFrame:
        """Samples of all units."""
        return self._read(lambda view: read_series(view, metrics, None, start_ms, end_ms, None))

    def info(self) -> MetricStoreInfo:
        """Number of raw samples, and size and time range of everything."""
        view = self._live.view
        waiting = view.ring.waiting(view.compacted_seq)
        raw = [segment.entry for segment in view.raw]
        files = raw + [segment.entry for segment in view.coarse]
        starts = [entry.start_ms for entry in files] + [block.start_ms for block in waiting]
        ends = [entry.last_ms for entry in files] + [block.last_ms for block in waiting]
        return MetricStoreInfo(
            engine="embedded",
            samples=sum(entry.samples for entry in raw) + sum(block.samples for block in waiting),
            bytes_on_disk=sum(entry.size_bytes for entry in files) + sum(block.size_bytes for block in waiting),
            oldest_at=UnixMs(min(starts)) if starts else None,
            newest_at=UnixMs(max(ends)) if ends else None,
        )

    # -- maintenance -------------------------------------------------------------------------------------------------

    def maintain(self, *, now_ms: UnixMs) -> None:
        """Compact, downsample complete days, drop expired data. Steps are independent; the first error is raised at the end."""
        with self._maintenance_lock:
            self._check_open()
            failure: Exception | None = None
            for step in (self._drop_coarse, self._compact_when_due, self._downsample_days, self._merge_segments):
                try:
                    step(now_ms)
                except DamagedSegmentError as error:
                    self._live.set_aside(error.segment, error)  # the step is repeated next time
                except Exception as error:
                    failure = failure or error
            self._live.delete_retired()
            if failure is not None:
                raise failure

    def remove_unit(self, unit: UnitId, *, start_ms: UnixMs, end_ms: UnixMs) -> bool:
        """Rewrite the segments that contain the unit without it."""
        with self._maintenance_lock:
            self._check_open()
            self._compact()
            while True:
                try:
                    self._write_without(unit, start_ms, end_ms)
                    break
                except DamagedSegmentError as error:
                    self._live.set_aside(error.segment, error)
            self._live.forget_units(self._units.find_below(unit))
            self._live.delete_retired()
        return True

    def _write_without(self, unit: str, start_ms: int, end_ms: int) -> None:
        view = self._live.view
        for is_raw, segments in ((True, view.raw), (False, view.coarse)):
            for segment in segments:
                if not segment.overlaps(start_ms, end_ms):
                    continue
                with damage_of(segment):
                    units, _ = segment.runs()
                removed = self._units.find_below(unit)  # after the segment's names were read
                if np.isin(units, removed).any():
                    entries = self._compactor.write_without(segment, removed)
                    self._live.publish(
                        raw=entries if is_raw else (), coarse=() if is_raw else entries, without=[segment]
                    )

    def _compact_when_due(self, now_ms: int) -> None:
        if self._compactor.is_due(self._live.view, now_ms):
            self._compact()

    def _compact(self) -> None:
        view = self._live.seal()
        if view.ring.waiting(view.compacted_seq):
            entries, seq = self._compactor.write_waiting(view)
            self._live.publish(raw=entries, compacted_seq=seq)

    def _downsample_days(self, now_ms: int) -> None:
        """Downsample complete days; drop the samples of days beyond ``raw_days``."""
        raw_from = day_of(int(now_ms - self._retention.raw_days * DAY_MS))
        coarse_from = day_of(int(now_ms - self._retention.coarse_days * DAY_MS))
        complete = day_of(now_ms - self._policy.late_ms)
        for day in sorted({day_of(segment.entry.start_ms) for segment in self._live.view.raw}):
            if day < complete:
                self._downsample_day(day, keeps_raw=day >= raw_from, keeps_coarse=day >= coarse_from)

    def _downsample_day(self, day: int, *, keeps_raw: bool, keeps_coarse: bool) -> None:
        """In one atomic change, so that every sample is counted either as raw or as coarse."""
        view, manifest = self._live.view, self._live.manifest
        raw = [segment for segment in view.raw if day_of(segment.entry.start_ms) == day]
        seq = max(segment.entry.seq for segment in raw)
        old: list[Segment] = []
        new: list[SegmentEntry] = []
        if keeps_coarse and manifest.coarse_days.get(day, 0) < seq:
            old = [segment for segment in view.coarse if day_of(segment.entry.start_ms) == day]
            is_raw_dropped = day * DAY_MS < manifest.raw_from_ms  # then late samples are added to the old coarse values
            new = self._compactor.write_coarse(view, day, existing=old if is_raw_dropped else ())
        dropped = [] if keeps_raw else raw
        if new or dropped:
            self._live.publish(
                coarse=new,
                without=[*old, *dropped],
                coarse_days={**manifest.coarse_days, day: seq} if new else None,
                raw_from_ms=max(manifest.raw_from_ms, (day + 1) * DAY_MS) if dropped else None,
            )

    def _merge_segments(self, now_ms: int) -> None:
        for group in self._compactor.find_merges(self._live.view.raw, now_ms):
            self._live.publish(raw=[self._compactor.merge(group)], without=group)

    def _drop_coarse(self, now_ms: int) -> None:
        keep_from = day_of(int(now_ms - self._retention.coarse_days * DAY_MS))
        expired = [segment for segment in self._live.view.coarse if day_of(segment.entry.start_ms) < keep_from]
        if expired:
            days = {day: seq for day, seq in self._live.manifest.coarse_days.items() if day >= keep_from}
            self._live.publish(without=expired, coarse_days=days)

    def close(self) -> None:
        """Release the folder."""
        with self._write_lock, self._maintenance_lock:
            if not self._is_closed:
                self._is_closed = True
                self._live.delete_retired()
                self._resources.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("the metric store is closed", hint="Open it again.")


def _coarse_step_ms(retention: RetentionSettings) -> int:
    step_ms = retention.coarse_step_s * 1000
    if DAY_MS % step_ms:
        raise ConfigError(
            f"setting `retention.coarse_step_s` = {retention.coarse_step_s} does not divide a day",
            hint="Use a divisor of 86,400, such as 60, 300 or 900.",
        )
    return step_ms
