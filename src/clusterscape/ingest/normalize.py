"""Turns what exporters said in a round into canonical samples, hardware facts and labelled holders. Stores nothing.

The one place for the traps of exporter data: blank values, repeated rows of shared GPUs, units, late and future samples,
counter resets. Every row that does not become a sample is counted with its reason: rows in = samples out + drops.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.drops import REASON_CODES, REASONS, DropReason, Drops, NoteReason
from clusterscape.ingest.duplicates import Reasons, settle_duplicates
from clusterscape.ingest.exporter_labels import ExporterNames
from clusterscape.ingest.ledger import ExporterFacts
from clusterscape.ingest.name_questions import ask_questions
from clusterscape.ingest.node_ties import NodeTies, UuidNodes
from clusterscape.ingest.series_map import MappedRows, SeriesMap, SharedNames
from clusterscape.ingest.source_bounds import HolderBounds, UnitBounds
from clusterscape.model import NodeId, RawScrape, SampleBatch, Unit, UnitId, UnixMs, WorkloadId
from clusterscape.model.exporter_names import NameQuestion
from clusterscape.model.samples import Float64s, Int32s, Int64s
from clusterscape.settings.limits import SourceLimits

LATE_AFTER_MS = 3_600_000
SKEW_TOLERANCE_MS = 10_000
UNITS_FACTOR = 2
"""Codes of units are given up when there are so many times as many as there may be units."""
RESTATE_MS = 60_000
"""Labelled holders are told when they change, and all of them again this often."""
FORGET_AFTER_MS = 900_000
"""An exporter that has been silent for so long loses its map; it costs nothing but a slower next scrape."""

# DCGM's blanks (dcgm_structs.h): 16 codes at the top of int32 and int64, and from 2**47 for doubles. As float64 all of the
# int64 ones become 2**63. Counters may pass beyond 2**47, so that only the codes themselves count there.
_INT32_BLANKS = (2.0**31 - 16, 2.0**31)
_FP64_BLANKS = (2.0**47, 2.0**47 + 16)
_INT64_BLANKS_FROM = 2.0**63 - 2.0**56

_NEVER = np.iinfo(np.int64).min


Number = TypeVar("Number", bound=np.generic)
Holders = dict[UnitId, tuple[WorkloadId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized:
    """One round. ``facts`` is None where exporters said nothing new beside samples."""

    batch: SampleBatch
    facts: ExporterFacts | None
    rows: int  # rows and malformed lines that came in
    dropped: Mapping[str, int]  # those that did not become samples, by reason
    beyond: Mapping[str, frozenset[str]] = field(default_factory=dict)  # limits that sources are beyond, by source


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of many scrapes under way, as columns."""

    unit: Int32s
    alias: Int32s
    part: Int32s
    time_ms: Int64s
    value: Float64s

    def __len__(self) -> int:
        return len(self.value)

    def keep(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> "_Rows":
        return _Rows(self.unit[which], self.alias[which], self.part[which], self.time_ms[which], self.value[which])


class _LastSamples:
    """The newest sample of every (unit, metric), as flat arrays over cells: unit code × metrics + metric code."""

    def __init__(self, metric_count: int) -> None:
        self.metric_count = metric_count
        self.value: Float64s = np.empty(0)
        self.time_ms: Int64s = np.empty(0, np.int64)
        self._row: Int32s = np.empty(0, np.int32)

    def reserve(self, unit_count: int) -> None:
        """Make room for units; unseen cells are NaN at no time."""
        wanted = unit_count * self.metric_count
        if wanted <= len(self.value):
            return
        more = max(wanted, 2 * len(self.value)) - len(self.value)
        self.value = np.concatenate([self.value, np.full(more, np.nan)])
        self.time_ms = np.concatenate([self.time_ms, np.full(more, _NEVER)])
        self._row = np.empty(len(self.value), np.int32)

    def find_crowded(self, cell: Int64s) -> NDArray[np.bool_]:
        """Rows whose cell has more than one row."""
        row = np.arange(len(cell), dtype=np.int32)
        self._row[cell] = row
        again: NDArray[np.bool_] = self._row[cell] != row
        if not again.any():
            return again
        crowded = np.zeros(len(self.value), np.bool_)
        crowded[cell[again]] = True
        return crowded[cell]

    def update(self, cell: Int64s, time_ms: Int64s, value: Float64s) -> None:
        """Note the newest of each cell. Of several rows of one cell the last is taken, so rows come in order of time."""
        newer = time_ms > self.time_ms[cell]
        if not newer.all():
            cell, time_ms, value = cell[newer], time_ms[newer], value[newer]
        self.value[cell] = value
        self.time_ms[cell] = time_ms


class Normalizer:
    """Remembers what it must between rounds: maps of series, the newest samples, hardware and holders already told."""

    def __init__(
        self,
        drops: Drops,
        *,
        scheduler: str = "slurm",
        ties: NodeTies | None = None,
        uuid_nodes: UuidNodes = dict,
        late_after_ms: int = LATE_AFTER_MS,
        skew_tolerance_ms: int = SKEW_TOLERANCE_MS,
        limits: SourceLimits | None = None,
        known_units: Callable[[], Iterable[Unit]] = lambda: (),
    ) -> None:
        """``ties``: which exporter is on which node; ``uuid_nodes``: where GPUs have been seen before.

        ``known_units``: those that ingest believes in now; they are never too many.
        """
        self._drops = drops
        self._scheduler = scheduler
        self._limits = limits or SourceLimits()
        self._units = UnitBounds(self._limits, known_units)
        self._holder_bounds = HolderBounds(self._limits)
        self._late_after_ms = late_after_ms
        self._skew_tolerance_ms = skew_tolerance_ms
        self.ties = ties or NodeTies()
        self._uuid_nodes = uuid_nodes
        self._names: dict[str, set[ExporterNames]] = {}  # as last shown, by source
        self._heard: dict[ExporterNames, UnixMs] = {}  # of exporters that others ask: when they last had something new
        self._released: Holders = {}  # units that are shown no longer are held by nobody there
        self._start()

    def _start(self) -> None:
        self._shared = SharedNames(self._scheduler, self.ties, self._units)
        self._maps: dict[str, SeriesMap] = {}  # by source
        self._seen_at: dict[str, UnixMs] = {}
        self._holders: dict[str, Holders] = {}  # as last told, by source
        self._crowded: set[str] = set()  # sources whose labels name more holders than were believed
        self._restated_at: UnixMs | None = None
        self._last = _LastSamples(len(self._shared.catalogue.metrics))

    def normalize(self, scrapes: Sequence[RawScrape], *, now_ms: UnixMs, kind: str = "exporter") -> Normalized:
        """The samples and facts of ``scrapes``; ``kind`` is what drops are counted under."""
        dropped: Counter[str] = Counter()
        self._units.begin_round(now_ms)
        if len(self._shared.units) > UNITS_FACTOR * self._limits.units:
            self._start()  # units come and go, and codes of those that went are never given back
        for scrape in scrapes:
            dropped.update(scrape.malformed)
        malformed = dropped.total()
        rows, holders = self._gather(scrapes, now_ms)
        self._last.reserve(len(self._shared.units))
        batch = self._judge(rows, now_ms, dropped)
        notes = self._shared.notes
        self._drops.add_all(kind, dropped)
        self._drops.note_all(kind, notes)
        notes.clear()
        facts = self._take_facts(holders, now_ms)
        return Normalized(
            batch=batch,
            facts=facts,
            rows=malformed + len(rows),
            dropped=dropped,
            beyond={scrape.source: beyond for scrape in scrapes if (beyond := self._find_limits(scrape.source))},
        )

    def _find_limits(self, source: str) -> frozenset[str]:
        """Which limits a source is beyond."""
        beyond = {DropReason.TOO_MANY_UNITS} if self._maps[source].has_refused else set[str]()
        return frozenset(beyond | ({NoteReason.TOO_MANY_HOLDERS} if source in self._crowded else set()))

    def settle(self, now_ms: UnixMs) -> ExporterFacts | None:
        """What changes because more is known of nodes and their names, between rounds."""
        self._settle()
        self._last.reserve(len(self._shared.units))
        return self._take_facts({}, now_ms)

    def heard_nodes(self) -> dict[NodeId, UnixMs]:
        """Nodes whose exporters somebody else asks, and when they last had something new."""
        found: dict[NodeId, UnixMs] = {}
        for names, at in self._heard.items():
            tie = self.ties.find(names)
            if tie is not None and tie.is_counted:
                found[tie.node] = max(at, found.get(tie.node, at))
        return found

    @property
    def names_version(self) -> tuple[int, int]:
        """Changes when ``find_questions`` may answer otherwise."""
        return self.ties.settled, self._shared.hardware.twins_version

    def find_questions(self) -> list[NameQuestion]:
        """What remains uncertain of which exporter is on which node."""
        return ask_questions(self.ties, self._shared.hardware.twins())

    def _settle(self) -> None:
        moved = self.ties.settle(self._uuid_nodes)
        for names in moved:
            for unit in self._shared.hardware.forget(names):
                self._released[unit] = ()
        if moved:
            for told in self._holders.values():
                for unit in self._released.keys() & told.keys():
                    del told[unit]
            for series_map in self._maps.values():
                series_map.place()

    def _see_names(self, scrape: RawScrape, series_map: SeriesMap, now_ms: UnixMs) -> None:
        """An exporter that calls itself otherwise than before is the same one: its former name is given up."""
        if series_map.is_last(scrape.series):
            return
        shown = series_map.find_names(scrape.series)
        former = self._names.get(scrape.source, set())
        if not shown:
            return
        if scrape.address is not None:
            self.ties.rename(former - shown, shown)
        else:
            self._heard.update(dict.fromkeys(shown, now_ms))
        self._names[scrape.source] = shown

    def _gather(self, scrapes: Sequence[RawScrape], now_ms: UnixMs) -> tuple[_Rows, Holders]:
        """All rows as columns, and the holders of units whose labels may have changed."""
        changed: Holders = {}
        mapped: list[MappedRows] = []
        times: list[Int64s] = []
        series_maps = [self._map_of(scrape) for scrape in scrapes]
        for scrape, series_map in zip(scrapes, series_maps, strict=True):
            series_map.extend()
            self._see_names(scrape, series_map, now_ms)
        self._settle()
        for scrape, series_map in zip(scrapes, series_maps, strict=True):
            series_map.place()
            is_same = series_map.is_last(scrape.series)
            mapped.append(series_map.map_rows(scrape.series))
            times.append(self._times_of(scrape, now_ms))
            self._seen_at[scrape.source] = now_ms
            if not is_same or scrape.source in self._crowded:
                changed.update(self._changed_holders(scrape, series_map, now_ms))
        rows = _Rows(
            unit=_join([rows.unit for rows in mapped], np.int32),
            alias=_join([rows.alias for rows in mapped], np.int32),
            part=_join([rows.part for rows in mapped], np.int32),
            time_ms=_join(times, np.int64),
            value=_join([scrape.value for scrape in scrapes], np.float64),
        )
        return rows, changed

    def _map_of(self, scrape: RawScrape) -> SeriesMap:
        series_map = self._maps.get(scrape.source)
        if series_map is None or series_map.table is not scrape.table or series_map.node != scrape.node:
            series_map = self._maps[scrape.source] = SeriesMap(scrape.table, scrape.node, scrape.address, self._shared)
        return series_map

    def _times_of(self, scrape: RawScrape, now_ms: UnixMs) -> Int64s:
        """The rows' times; a timestamp from the future says that the exporter's clock is wrong, so ours is taken."""
        if scrape.time_ms is None:
            return np.full(len(scrape.series), scrape.fetched_at, np.int64)
        from_future = scrape.time_ms > now_ms + self._skew_tolerance_ms
        self._shared.notes[NoteReason.CLOCK_SKEW] += int(np.count_nonzero(from_future))
        return np.where(from_future, np.int64(scrape.fetched_at), scrape.time_ms)

    def _judge(self, rows: _Rows, now_ms: UnixMs, dropped: Counter[str]) -> SampleBatch:
        catalogue, last = self._shared.catalogue, self._last
        rows = _drop(rows, self._check_values(rows, now_ms), dropped)
        rows = replace(rows, value=rows.value * catalogue.scale[rows.alias])
        cell = self._cells(rows)
        is_repeated = last.time_ms[cell] == rows.time_ms
        if is_repeated.any():
            rows = _drop(rows, np.where(is_repeated, REASON_CODES[DropReason.REPEATED], 0), dropped)
            cell = self._cells(rows)
        crowded = last.find_crowded(cell)
        if crowded.any():
            rows = self._thin_out(rows, cell, crowded, dropped)
            cell = self._cells(rows)
        is_reset = catalogue.is_counter[rows.alias] & (rows.value < last.value[cell])
        self._shared.notes[NoteReason.COUNTER_RESET] += int(np.count_nonzero(is_reset))
        last.update(cell, rows.time_ms, rows.value)
        return SampleBatch(
            units=self._shared.units,
            metrics=catalogue.metrics,
            unit=rows.unit,
            metric=catalogue.metric[rows.alias],
            time_ms=rows.time_ms,
            value=rows.value,
        )

    def _check_values(self, rows: _Rows, now_ms: UnixMs) -> Reasons:
        """Why each row cannot become a sample, 0 where it can; of several reasons the first of the checks below, upwards."""
        catalogue = self._shared.catalogue
        value, size = rows.value, np.abs(rows.value)
        with np.errstate(over="ignore"):  # what overflows is far beyond every blank
            scaled = value * catalogue.scale[rows.alias]
        is_blank = (size >= _INT64_BLANKS_FROM) | _within(size, _INT32_BLANKS) | _within(size, _FP64_BLANKS)
        reasons = np.zeros(len(rows), np.int8)
        reasons[rows.time_ms < now_ms - self._late_after_ms] = REASON_CODES[DropReason.LATE]
        reasons[(scaled < catalogue.lower[rows.alias]) | (scaled > catalogue.upper[rows.alias])] = REASON_CODES[
            DropReason.OUT_OF_RANGE
        ]
        reasons[is_blank] = REASON_CODES[DropReason.BLANK]
        reasons[~np.isfinite(value)] = REASON_CODES[DropReason.NOT_A_NUMBER]
        homeless = rows.unit < 0
        reasons[homeless] = -rows.unit[homeless]
        return reasons

    def _thin_out(self, rows: _Rows, cell: Int64s, crowded: NDArray[np.bool_], dropped: Counter[str]) -> _Rows:
        """One row per unit, metric and time; what is left is in order of time, since a cell may have several times."""
        catalogue, alias = self._shared.catalogue, rows.alias[crowded]
        reasons, value = np.zeros(len(rows), np.int8), rows.value.copy()
        reasons[crowded], value[crowded] = settle_duplicates(
            cell=cell[crowded],
            time_ms=rows.time_ms[crowded],
            part=rows.part[crowded],
            rank=catalogue.rank[alias],
            is_counter=catalogue.is_counter[alias],
            value=rows.value[crowded],
        )
        kept = _drop(replace(rows, value=value), reasons, dropped)
        return kept.keep(np.argsort(kept.time_ms, kind="stable"))

    def _cells(self, rows: _Rows) -> Int64s:
        return rows.unit.astype(np.int64) * self._last.metric_count + self._shared.catalogue.metric[rows.alias]

    def _changed_holders(self, scrape: RawScrape, series_map: SeriesMap, now_ms: UnixMs) -> Holders:
        told = self._holders.setdefault(scrape.source, {})
        changed: Holders = {}
        left_out = 0
        for unit, named in series_map.find_holders(scrape.series).items():
            holders = told.get(unit)
            if named == holders:
                continue
            believed = self._holder_bounds.limit(unit, named, frozenset(holders or ()), now_ms)
            left_out += len(named) - len(believed)
            if believed != holders:
                changed[unit] = believed
        told.update(changed)
        self._note_crowded(scrape.source, left_out)
        return changed

    def _note_crowded(self, source: str, left_out: int) -> None:
        self._shared.notes[NoteReason.TOO_MANY_HOLDERS] += left_out
        if left_out:
            self._crowded.add(source)
        else:
            self._crowded.discard(source)

    def _take_facts(self, holders: Holders, now_ms: UnixMs) -> ExporterFacts | None:
        if self._restated_at is None or now_ms - self._restated_at >= RESTATE_MS:
            self._restated_at = now_ms
            self._forget_silent(now_ms)
            self._shared.hardware.recheck()
            named = {unit: who for told in self._holders.values() for unit, who in told.items() if who}
            holders = named | holders
        holders, self._released = self._released | holders, {}
        changes = self._shared.hardware.take_changes(self._latest, self.last_seen, now_ms)
        if not (changes or holders):
            return None
        return ExporterFacts(
            nodes=changes.nodes,
            units=changes.units,
            gone=changes.gone,
            gone_nodes=changes.gone_nodes,
            labels=holders,
        )

    def _forget_silent(self, now_ms: UnixMs) -> None:
        for source in [key for key, at in self._seen_at.items() if now_ms - at > FORGET_AFTER_MS]:
            del self._seen_at[source], self._maps[source]
            self._holders.pop(source, None)
            self._crowded.discard(source)

    def last_seen(self, unit: UnitId) -> UnixMs | None:
        """When the newest sample of a unit was taken."""
        code, count = self._shared.units.find(unit), self._last.metric_count
        if code is None:
            return None
        newest = int(self._last.time_ms[code * count : (code + 1) * count].max(initial=_NEVER))
        return None if newest == _NEVER else UnixMs(newest)

    def all_last_seen(self) -> dict[UnitId, UnixMs]:
        """When the newest sample of each unit was taken."""
        names, count = self._shared.units.values, self._last.metric_count
        times = self._last.time_ms[: len(names) * count].reshape(-1, count)
        newest = times.max(axis=1, initial=_NEVER).tolist()
        return {UnitId(unit): UnixMs(at) for unit, at in zip(names, newest, strict=False) if at != _NEVER}

    def _latest(self, unit: UnitId, metric: str) -> float | None:
        unit_code, metric_code = self._shared.units.find(unit), self._shared.catalogue.metrics.find(metric)
        if unit_code is None or metric_code is None:
            return None
        value = float(self._last.value[unit_code * self._last.metric_count + metric_code])
        return None if np.isnan(value) else value


def _drop(rows: _Rows, reasons: Reasons, dropped: Counter[str]) -> _Rows:
    """The rows without a reason; the others are counted."""
    counts = np.bincount(reasons, minlength=len(REASONS) + 1)[1:]
    if not counts.any():
        return rows
    dropped.update({reason: int(count) for reason, count in zip(REASONS, counts, strict=True) if count})
    return rows.keep(reasons == 0)


def _within(value: Float64s, bounds: tuple[float, float]) -> NDArray[np.bool_]:
    return (value >= bounds[0]) & (value < bounds[1])


def _join(arrays: Sequence[NDArray[Number]], dtype: type[Number]) -> NDArray[Number]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)
