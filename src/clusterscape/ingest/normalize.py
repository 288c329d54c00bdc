"""Converts the scrapes of a round to canonical samples, hardware facts and holders by label. Stores nothing.

Handles the irregularities of exporter data: blank values, repeated rows of shared GPUs, units, late and future samples,
counter resets. Every row that does not become a sample is counted by reason: rows in = samples out + drops.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.drops import REASON_CODES, REASONS, DropReason, Drops, NoteReason, Reasons, resolve_duplicates
from clusterscape.ingest.exporter_labels import ExporterNames
from clusterscape.ingest.exporter_matching import ExporterMatcher, UuidNodes
from clusterscape.ingest.ledger import ExporterFacts
from clusterscape.ingest.name_questions import find_questions
from clusterscape.ingest.series_map import MappedRows, SeriesMap, SharedNames
from clusterscape.ingest.source_limits import HolderLimiter, SubjectLimiter, UnitLimiter
from clusterscape.model import NodeId, RawScrape, SampleBatch, Unit, UnitId, UnixMs, WorkloadId
from clusterscape.model.arrays import Float64s, Int32s, Int64s
from clusterscape.model.inventory import NameQuestion
from clusterscape.settings.limits import SourceLimits

LATE_AFTER_MS = 3_600_000
SKEW_TOLERANCE_MS = 10_000
UNITS_FACTOR = 2
"""All unit codes are discarded when there are this many times more than the limit of units."""
MOST_JOB_CODES = 50_000
"""They are also discarded when there are this many codes of jobs, most of which have ended."""
RESTATE_MS = 60_000
"""Holders by label are returned when they change, and all of them again at this interval."""
FORGET_AFTER_MS = 900_000
"""The map of an exporter that has been silent for this long is dropped; its next scrape is slower."""

# DCGM's blanks (dcgm_structs.h): 16 codes at the top of int32 and int64, and from 2**47 for doubles. As float64 all of the
# int64 ones become 2**63. Counters may exceed 2**47, so only the exact codes are blank there.
_INT32_BLANKS = (2.0**31 - 16, 2.0**31)
_FP64_BLANKS = (2.0**47, 2.0**47 + 16)
_INT64_BLANKS_FROM = 2.0**63 - 2.0**56

_NEVER = np.iinfo(np.int64).min


Number = TypeVar("Number", bound=np.generic)
Holders = dict[UnitId, tuple[WorkloadId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized:
    """The result of one round. ``facts`` is None if only samples are new."""

    batch: SampleBatch
    facts: ExporterFacts | None
    rows: int  # received rows and malformed lines
    dropped: Mapping[str, int]  # rows that did not become samples, by reason
    exceeded: Mapping[str, frozenset[str]] = field(default_factory=dict)  # exceeded limits by source


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of many scrapes, as columns."""

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
        """Make room for units; empty cells have NaN and no time."""
        wanted = unit_count * self.metric_count
        if wanted <= len(self.value):
            return
        more = max(wanted, 2 * len(self.value)) - len(self.value)
        self.value = np.concatenate([self.value, np.full(more, np.nan)])
        self.time_ms = np.concatenate([self.time_ms, np.full(more, _NEVER)])
        self._row = np.empty(len(self.value), np.int32)

    def find_duplicated(self, cell: Int64s) -> NDArray[np.bool_]:
        """Rows whose cell has more than one row."""
        row = np.arange(len(cell), dtype=np.int32)
        self._row[cell] = row
        is_repeated: NDArray[np.bool_] = self._row[cell] != row
        if not is_repeated.any():
            return is_repeated
        duplicated = np.zeros(len(self.value), np.bool_)
        duplicated[cell[is_repeated]] = True
        return duplicated[cell]

    def update(self, cell: Int64s, time_ms: Int64s, value: Float64s) -> None:
        """Store the latest sample of each cell. Rows must be ordered by time: of several rows of a cell the last wins."""
        newer = time_ms > self.time_ms[cell]
        if not newer.all():
            cell, time_ms, value = cell[newer], time_ms[newer], value[newer]
        self.value[cell] = value
        self.time_ms[cell] = time_ms


class Normalizer:
    """Keeps state between rounds: maps of series, latest samples, hardware, and holders already returned."""

    def __init__(
        self,
        drops: Drops,
        *,
        scheduler: str = "slurm",
        matcher: ExporterMatcher | None = None,
        uuid_nodes: UuidNodes = dict,
        late_after_ms: int = LATE_AFTER_MS,
        skew_tolerance_ms: int = SKEW_TOLERANCE_MS,
        limits: SourceLimits | None = None,
        known_units: Callable[[], Iterable[Unit]] = lambda: (),
    ) -> None:
        """``matcher``: matches exporters to nodes; ``uuid_nodes``: stored nodes of GPUs.

        ``known_units``: units of the current inventory; limits never drop these.
        """
        self._drops = drops
        self._scheduler = scheduler
        self._limits = limits or SourceLimits()
        self._units = UnitLimiter(self._limits, known_units)
        self._holder_limiter = HolderLimiter(self._limits)
        self._subjects = SubjectLimiter(self._limits)
        self._late_after_ms = late_after_ms
        self._skew_tolerance_ms = skew_tolerance_ms
        self.matcher = matcher or ExporterMatcher()
        self._uuid_nodes = uuid_nodes
        self._names: dict[str, set[ExporterNames]] = {}  # as last reported, by source
        self._heard: dict[ExporterNames, UnixMs] = {}  # last new samples of exporters that a Prometheus scrapes
        self._released: Holders = {}  # units that are no longer reported, without holders
        self._start()

    def _start(self) -> None:
        self._shared = SharedNames(self._scheduler, self.matcher, self._units, self._subjects)
        self._maps: dict[str, SeriesMap] = {}  # by source
        self._seen_at: dict[str, UnixMs] = {}
        self._holders: dict[str, Holders] = {}  # as last returned, by source
        self._over_holder_limit: set[str] = set()  # sources whose labels name more holders than the limit
        self._restated_at: UnixMs | None = None
        self._last = _LastSamples(len(self._shared.catalogue.metrics))
        self._check_jobs_at: int | None = None  # set after the next round

    def normalize(self, scrapes: Sequence[RawScrape], *, now_ms: UnixMs, kind: str = "exporter") -> Normalized:
        """The samples and facts of ``scrapes``; drops are counted under ``kind``."""
        dropped: Counter[str] = Counter()
        self._units.begin_round(now_ms)
        self._subjects.begin_round(now_ms)
        if len(self._shared.units) > UNITS_FACTOR * self._limits.units or self._has_many_ended_jobs(now_ms):
            self._start()  # codes of removed units are never reused
        for scrape in scrapes:
            dropped.update(scrape.malformed)
        malformed = dropped.total()
        rows, holders = self._gather(scrapes, now_ms)
        self._last.reserve(len(self._shared.units))
        if self._check_jobs_at is None:
            self._check_jobs_at = max(MOST_JOB_CODES, 2 * len(self._shared.job_codes))
        batch = self._to_samples(rows, now_ms, dropped)
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
            exceeded={scrape.source: exceeded for scrape in scrapes if (exceeded := self._find_limits(scrape.source))},
        )

    def _has_many_ended_jobs(self, now_ms: UnixMs) -> bool:
        """Whether most of many jobs had no sample for an hour. Checked when the number of codes of jobs doubles."""
        codes, count = self._shared.job_codes, self._last.metric_count
        if self._check_jobs_at is None or len(codes) < self._check_jobs_at:
            return False
        self._check_jobs_at = 2 * len(codes)
        newest = self._last.time_ms.reshape(-1, count)[codes].max(axis=1, initial=_NEVER)
        return 2 * int(np.count_nonzero(newest > now_ms - self._late_after_ms)) < len(codes)

    def _find_limits(self, source: str) -> frozenset[str]:
        """The limits that a source exceeds."""
        exceeded = {DropReason.TOO_MANY_UNITS} if self._maps[source].has_refused else set[str]()
        return frozenset(exceeded | ({NoteReason.TOO_MANY_HOLDERS} if source in self._over_holder_limit else set()))

    def settle(self, now_ms: UnixMs) -> ExporterFacts | None:
        """Facts that changed because nodes or their names changed, between rounds."""
        self._settle()
        self._last.reserve(len(self._shared.units))
        return self._take_facts({}, now_ms)

    def indirect_nodes(self) -> dict[NodeId, UnixMs]:
        """Nodes whose exporters a Prometheus scrapes, and the time of their last new samples."""
        last_heard: dict[NodeId, UnixMs] = {}
        for names, at in self._heard.items():
            match = self.matcher.find(names)
            if match is not None and match.is_counted:
                last_heard[match.node] = max(at, last_heard.get(match.node, at))
        return last_heard

    @property
    def names_version(self) -> tuple[int, int]:
        """Changes when the result of ``find_questions`` may change."""
        return self.matcher.settled, self._shared.hardware.duplicates_version

    def find_questions(self) -> list[NameQuestion]:
        """Questions about exporters without a certain node."""
        return find_questions(self.matcher, self._shared.hardware.duplicates())

    def _settle(self) -> None:
        moved = self.matcher.settle(self._uuid_nodes)
        for names in moved:
            for unit in self._shared.hardware.forget(names):
                self._released[unit] = ()
        if moved:
            for holders in self._holders.values():
                for unit in self._released.keys() & holders.keys():
                    del holders[unit]
            for series_map in self._maps.values():
                series_map.place()

    def _update_names(self, scrape: RawScrape, series_map: SeriesMap, now_ms: UnixMs) -> None:
        """An exporter that changed its names is still the same one: its former names are dropped."""
        if series_map.is_last(scrape.series):
            return
        names = series_map.find_names(scrape.series)
        former = self._names.get(scrape.source, set())
        if not names:
            return
        if scrape.address is not None:
            self.matcher.rename(former - names, names)
        else:
            self._heard.update(dict.fromkeys(names, now_ms))
        self._names[scrape.source] = names

    def _gather(self, scrapes: Sequence[RawScrape], now_ms: UnixMs) -> tuple[_Rows, Holders]:
        """All rows as columns, and the holders of units whose labels may have changed."""
        changed: Holders = {}
        mapped: list[MappedRows] = []
        times: list[Int64s] = []
        series_maps = [self._map_of(scrape) for scrape in scrapes]
        for scrape, series_map in zip(scrapes, series_maps, strict=True):
            series_map.extend()
            self._update_names(scrape, series_map, now_ms)
        self._settle()
        for scrape, series_map in zip(scrapes, series_maps, strict=True):
            series_map.place()
            is_same = series_map.is_last(scrape.series)
            mapped.append(series_map.map_rows(scrape.series))
            times.append(self._times_of(scrape, now_ms))
            self._seen_at[scrape.source] = now_ms
            if not is_same or series_map.has_job_numbers or scrape.source in self._over_holder_limit:
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
        """The rows' times; a timestamp in the future means that the exporter's clock is wrong, so ours is used."""
        if scrape.time_ms is None:
            return np.full(len(scrape.series), scrape.fetched_at, np.int64)
        from_future = scrape.time_ms > now_ms + self._skew_tolerance_ms
        self._shared.notes[NoteReason.CLOCK_SKEW] += int(np.count_nonzero(from_future))
        return np.where(from_future, np.int64(scrape.fetched_at), scrape.time_ms)

    def _to_samples(self, rows: _Rows, now_ms: UnixMs, dropped: Counter[str]) -> SampleBatch:
        catalogue, last = self._shared.catalogue, self._last
        rows = _drop(rows, self._check_values(rows, now_ms), dropped)
        rows = replace(rows, value=rows.value * catalogue.scale[rows.alias])
        cell = self._cells(rows)
        is_repeated = last.time_ms[cell] == rows.time_ms
        if is_repeated.any():
            rows = _drop(rows, np.where(is_repeated, REASON_CODES[DropReason.REPEATED], 0), dropped)
            cell = self._cells(rows)
        is_duplicated = last.find_duplicated(cell)
        if is_duplicated.any():
            rows = self._resolve_duplicates(rows, cell, is_duplicated, dropped)
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
        """The code of the reason why a row is dropped, 0 if it is kept; later checks override earlier ones."""
        catalogue = self._shared.catalogue
        value, size = rows.value, np.abs(rows.value)
        with np.errstate(over="ignore"):  # values that overflow are far beyond every blank
            scaled = value * catalogue.scale[rows.alias]
        is_blank = (size >= _INT64_BLANKS_FROM) | _within(size, _INT32_BLANKS) | _within(size, _FP64_BLANKS)
        reasons = np.zeros(len(rows), np.int8)
        reasons[rows.time_ms < now_ms - self._late_after_ms] = REASON_CODES[DropReason.LATE]
        reasons[(scaled < catalogue.lower[rows.alias]) | (scaled > catalogue.upper[rows.alias])] = REASON_CODES[
            DropReason.OUT_OF_RANGE
        ]
        reasons[is_blank] = REASON_CODES[DropReason.BLANK]
        reasons[~np.isfinite(value)] = REASON_CODES[DropReason.NOT_A_NUMBER]
        has_no_unit = rows.unit < 0
        reasons[has_no_unit] = -rows.unit[has_no_unit]
        return reasons

    def _resolve_duplicates(
        self, rows: _Rows, cell: Int64s, is_duplicated: NDArray[np.bool_], dropped: Counter[str]
    ) -> _Rows:
        """One row per unit, metric and time, ordered by time because a cell may have several times."""
        catalogue, alias = self._shared.catalogue, rows.alias[is_duplicated]
        reasons, value = np.zeros(len(rows), np.int8), rows.value.copy()
        reasons[is_duplicated], value[is_duplicated] = resolve_duplicates(
            cell=cell[is_duplicated],
            time_ms=rows.time_ms[is_duplicated],
            part=rows.part[is_duplicated],
            rank=catalogue.rank[alias],
            is_counter=catalogue.is_counter[alias],
            value=rows.value[is_duplicated],
        )
        kept = _drop(replace(rows, value=value), reasons, dropped)
        return kept.keep(np.argsort(kept.time_ms, kind="stable"))

    def _cells(self, rows: _Rows) -> Int64s:
        return rows.unit.astype(np.int64) * self._last.metric_count + self._shared.catalogue.metric[rows.alias]

    def _changed_holders(self, scrape: RawScrape, series_map: SeriesMap, now_ms: UnixMs) -> Holders:
        previous = self._holders.setdefault(scrape.source, {})
        changed: Holders = {}
        left_out = 0
        for unit, labelled in series_map.find_holders(scrape.series, scrape.value).items():
            holders = previous.get(unit)
            if labelled == holders:
                continue
            accepted = self._holder_limiter.limit(unit, labelled, frozenset(holders or ()), now_ms)
            left_out += len(labelled) - len(accepted)
            if accepted != holders:
                changed[unit] = accepted
        previous.update(changed)
        self._note_left_out(scrape.source, left_out)
        return changed

    def _note_left_out(self, source: str, left_out: int) -> None:
        self._shared.notes[NoteReason.TOO_MANY_HOLDERS] += left_out
        if left_out:
            self._over_holder_limit.add(source)
        else:
            self._over_holder_limit.discard(source)

    def _take_facts(self, holders: Holders, now_ms: UnixMs) -> ExporterFacts | None:
        if self._restated_at is None or now_ms - self._restated_at >= RESTATE_MS:
            self._restated_at = now_ms
            self._forget_silent(now_ms)
            self._shared.hardware.recheck()
            current = {
                unit: workloads for units in self._holders.values() for unit, workloads in units.items() if workloads
            }
            holders = current | holders
        holders, self._released = self._released | holders, {}
        changes = self._shared.hardware.take_changes(self._latest, self.last_seen, now_ms)
        if not (changes or holders):
            return None
        return ExporterFacts(
            nodes=changes.nodes,
            units=changes.units,
            missing_units=changes.missing_units,
            missing_nodes=changes.missing_nodes,
            labels=holders,
        )

    def _forget_silent(self, now_ms: UnixMs) -> None:
        for source in [key for key, at in self._seen_at.items() if now_ms - at > FORGET_AFTER_MS]:
            del self._seen_at[source], self._maps[source]
            self._holders.pop(source, None)
            self._over_holder_limit.discard(source)

    def last_seen(self, unit: UnitId) -> UnixMs | None:
        """The time of the latest sample of a unit."""
        code, count = self._shared.units.find(unit), self._last.metric_count
        if code is None:
            return None
        newest = int(self._last.time_ms[code * count : (code + 1) * count].max(initial=_NEVER))
        return None if newest == _NEVER else UnixMs(newest)

    def all_last_seen(self) -> dict[UnitId, UnixMs]:
        """The time of the latest sample of each unit."""
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
    """The rows without a reason; counts the others."""
    counts = np.bincount(reasons, minlength=len(REASONS) + 1)[1:]
    if not counts.any():
        return rows
    dropped.update({reason: int(count) for reason, count in zip(REASONS, counts, strict=True) if count})
    return rows.keep(reasons == 0)


def _within(value: Float64s, bounds: tuple[float, float]) -> NDArray[np.bool_]:
    return (value >= bounds[0]) & (value < bounds[1])


def _join(arrays: Sequence[NDArray[Number]], dtype: type[Number]) -> NDArray[Number]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)
