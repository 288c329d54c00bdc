"""Maps the series of an exporter to units and metrics. Every series is mapped once, so that a scrape needs only array lookups.

Owns the lookup tables; does not check values.
"""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.drops import REASON_CODES, DropReason, NoteReason
from clusterscape.ingest.exporter_labels import (
    ExporterNames,
    HardwareInventory,
    Labels,
    find_device,
    find_hardware,
    find_holder,
    find_job_part,
    find_names,
    find_node,
    find_part,
    find_place,
    find_whole_node,
)
from clusterscape.ingest.exporter_matching import ExporterMatcher
from clusterscape.ingest.source_limits import SubjectLimiter, UnitLimiter
from clusterscape.model import (
    ALIASES,
    METRICS,
    MetricKind,
    MetricSubject,
    Names,
    NodeId,
    RawSeries,
    SeriesTable,
    UnitId,
    WorkloadId,
)
from clusterscape.model.arrays import Float64s, Int32s
from clusterscape.model.metrics import JOB_NUMBER

_UNKNOWN_METRIC = -REASON_CODES[DropReason.UNKNOWN_METRIC]
_TOO_MANY_UNITS = -REASON_CODES[DropReason.TOO_MANY_UNITS]
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Catalogue:
    """The metric catalogue as columns over alias codes: every name a source may use, in the order of ALIASES."""

    def __init__(self) -> None:
        self.metrics = Names(METRICS)
        aliases = list(ALIASES.items())
        self._codes: dict[str, int] = {}
        self._labelled: dict[
            str, dict[tuple[tuple[str, str], ...], int]
        ] = {}  # by name, then by the labels that decide
        for code, name in enumerate(ALIASES):
            plain, _, conditions = name.partition("{")
            if conditions:
                self._labelled.setdefault(plain, {})[tuple(sorted(_LABEL.findall(conditions)))] = code
            else:
                self._codes[plain] = code
        self.subject = [alias.metric.subject for _, alias in aliases]
        self.is_job_number: NDArray[np.bool_] = np.array(
            [alias.metric.name == JOB_NUMBER for _, alias in aliases], np.bool_
        )
        self.metric: Int32s = np.array([self.metrics.code(alias.metric.name) for _, alias in aliases], np.int32)
        self.scale: Float64s = np.array([alias.scale for _, alias in aliases])
        self.lower: Float64s = np.array([alias.metric.lower for _, alias in aliases])
        self.upper: Float64s = np.array(
            [np.inf if alias.metric.upper is None else alias.metric.upper for _, alias in aliases]
        )
        # If a source has a metric under two names, the one listed first wins.
        self.rank: Int32s = np.array(
            [[*alias.metric.aliases, alias.metric.name].index(name) for name, alias in aliases], np.int32
        )
        self.is_counter: NDArray[np.bool_] = np.array(
            [alias.metric.kind is MetricKind.COUNTER for _, alias in aliases], np.bool_
        )

    def find(self, series: RawSeries) -> int:
        """The alias code of a series, −1 if it is not read."""
        code = self._codes.get(series.name, -1)
        if code < 0:
            for conditions, labelled_code in self._labelled.get(series.name, {}).items():
                if all(series.labels.get(label) == value for label, value in conditions):
                    return labelled_code
        return code


@dataclass(frozen=True, slots=True)
class MappedRows:
    """Units and metrics of the rows of a scrape. For a dropped row, ``unit`` is the negative code of the reason."""

    unit: Int32s
    alias: Int32s
    part: Int32s  # 0: not split by a label; else the code of the part


MOST_PARTS = 10_000
"""Limit of distinct values of labels that split a number, such as XIDs and links; further values share one code."""
OTHER_PART = "other"


class SharedNames:
    """State shared by the maps of all exporters: unit codes, part codes, matches to nodes, hardware and notes."""

    def __init__(
        self, scheduler: str, matcher: ExporterMatcher, limiter: UnitLimiter, subjects: SubjectLimiter
    ) -> None:
        self.scheduler = scheduler
        self.matcher = matcher
        self.limiter = limiter
        self.subjects = subjects
        self.catalogue = Catalogue()
        self.units = Names()
        self.job_codes: list[int] = []  # codes of units that are parts of jobs
        self.parts = Names([""])
        self.hardware = HardwareInventory()
        self.notes: Counter[str] = Counter()

    def part_code(self, part: str) -> int:
        """The code of a part."""
        if len(self.parts) >= MOST_PARTS and self.parts.find(part) is None:
            part = OTHER_PART
        return self.parts.code(part)


class SeriesMap:
    """The map of one series table, extended as the table grows. Remapped when the exporter is matched to another node."""

    def __init__(self, table: SeriesTable, node: NodeId | None, address: str | None, shared: SharedNames) -> None:
        self.table = table
        self.node = node
        self._address = address
        self._shared = shared
        self._alias: Int32s = np.empty(0, np.int32)
        self._label_set: Int32s = np.empty(0, np.int32)
        # By id() of a label mapping, which the table keeps alive, and the subject of its metrics.
        self._set_codes: dict[tuple[int, MetricSubject], int] = {}
        # Set 0 is for unknown metrics, whose labels are not read.
        self._set_labels: list[Labels] = [{}]
        self._set_subject: list[MetricSubject] = [MetricSubject.UNIT]
        self._set_names: list[ExporterNames | None] = [None]
        self._set_part: list[int] = [0]
        self._set_unit: list[int] = [_UNKNOWN_METRIC]
        self._set_holder: list[WorkloadId | None] = [None]
        self._matcher_version = shared.matcher.version
        self._refused: list[int] = []  # sets whose unit exceeded a limit
        self._job_numbers = 0  # series whose values name the jobs of GPUs
        self._series: Int32s | None = None
        self._rows = MappedRows(self._alias, self._alias, self._alias)

    @property
    def has_refused(self) -> bool:
        """Whether some of its units exceeded a limit."""
        return bool(self._refused)

    @property
    def has_job_numbers(self) -> bool:
        """Whether values name holders, so that holders may change while labels do not."""
        return self._job_numbers > 0

    def is_last(self, series: Int32s) -> bool:
        """Whether the same array was mapped last time, so that labels cannot have changed."""
        return series is self._series and not (self._refused and self._shared.limiter.has_room)

    def map_rows(self, series: Int32s) -> MappedRows:
        """Map each row of a scrape to its unit and metric."""
        self.place()
        if self.is_last(series):
            return self._rows
        if self._refused and self._shared.limiter.has_room:
            self._try_again()
        sets = self._label_set[series]
        unit = np.array(self._set_unit, np.int32)[sets]
        part = np.array(self._set_part, np.int32)[sets]
        self._rows = MappedRows(unit, self._alias[series], part)
        self._series = series
        return self._rows

    def find_holders(self, series: Int32s, values: Float64s) -> dict[UnitId, tuple[WorkloadId, ...]]:
        """Holders of the units of a scrape by its labels and job numbers; an empty tuple if nothing names one."""
        names = self._shared.units.values
        holders: dict[UnitId, set[WorkloadId]] = {}
        for code in np.unique(self._label_set[series]).tolist():
            if self._set_unit[code] < 0 or self._set_subject[code] is not MetricSubject.UNIT:
                continue
            named = holders.setdefault(UnitId(names[self._set_unit[code]]), set())
            holder = self._set_holder[code]
            if holder is not None:
                named.add(holder)
        if self.has_job_numbers:
            numbers = np.flatnonzero(self._shared.catalogue.is_job_number[self._alias[series]])
            units = self._rows.unit[numbers]
            # Rows of one series are ordered by time: the last one is the holder now.
            latest = dict(zip(units.tolist(), values[numbers].tolist(), strict=True))
            for unit_code, number in latest.items():
                if unit_code >= 0 and number > 0:
                    holder = WorkloadId(f"{self._shared.scheduler}:{int(number)}")
                    holders.setdefault(UnitId(names[unit_code]), set()).add(holder)
        return {unit: tuple(sorted(named)) for unit, named in holders.items()}

    def find_names(self, series: Int32s) -> set[ExporterNames]:
        """The exporters of the rows of a scrape."""
        exporters = {self._set_names[code] for code in np.unique(self._label_set[series]).tolist()}
        return {names for names in exporters if names is not None}

    def extend(self) -> None:
        """Read the new series of the table; their nodes are matched afterwards."""
        if len(self._alias) == len(self.table):
            return
        new_series = self.table.series[len(self._alias) :]
        catalogue, set_codes = self._shared.catalogue, self._set_codes
        alias: list[int] = []
        label_set: list[int] = []
        for series in new_series:
            code = catalogue.find(series)
            alias.append(code)
            if code < 0:
                label_set.append(0)
                continue
            self._job_numbers += bool(catalogue.is_job_number[code])
            subject = catalogue.subject[code]
            set_code = set_codes.get((id(series.labels), subject))
            label_set.append(self._add_set(series.labels, subject) if set_code is None else set_code)
        self._alias = np.concatenate([self._alias, np.array(alias, np.int32)])
        self._label_set = np.concatenate([self._label_set, np.array(label_set, np.int32)])

    def place(self) -> None:
        """Assign units to new label sets, or to all if an exporter was matched to another node."""
        if self._matcher_version != self._shared.matcher.version:
            self._matcher_version = self._shared.matcher.version
            del self._set_unit[1:], self._set_holder[1:]
            self._refused.clear()
            self._series = None
        for code in range(len(self._set_unit), len(self._set_labels)):
            unit, holder = self._place_set(code)
            if unit == _TOO_MANY_UNITS:
                self._refused.append(code)
            self._set_unit.append(unit)
            self._set_holder.append(holder)

    def _add_set(self, labels: Labels, subject: MetricSubject) -> int:
        shared = self._shared
        names = find_names(labels, self.node, self._address)
        if names is not None:
            is_of_unit = subject is MetricSubject.UNIT
            place = find_place(labels, NodeId("any")) if is_of_unit else DropReason.NO_GPU
            hardware = find_hardware(labels)
            is_whole = not isinstance(place, DropReason) and not (hardware.uuid or "").startswith("MIG-")
            index = place.index if is_whole and not isinstance(place, DropReason) else None
            shared.matcher.see(names, index, hardware.uuid, hardware.model_name)
            if self.node is not None and find_node(labels) not in (None, self.node):
                shared.notes[NoteReason.NODE_DIFFERS] += 1
        code = self._set_codes[id(labels), subject] = len(self._set_labels)
        self._set_labels.append(labels)
        self._set_subject.append(subject)
        self._set_names.append(names)
        part = find_device(labels) if subject is MetricSubject.NODE else find_part(labels)
        self._set_part.append(shared.part_code(part or ""))
        return code

    def _place_set(self, code: int) -> tuple[int, WorkloadId | None]:
        """The code of a label set's unit, negative if it has none, and its holder."""
        shared = self._shared
        labels, names, subject = self._set_labels[code], self._set_names[code], self._set_subject[code]
        match = None if names is None else shared.matcher.find(names)
        if subject is not MetricSubject.UNIT:
            return self._place_subject(labels, None if match is None else match.node, subject), None
        place = find_place(labels, None if match is None else match.node)
        if isinstance(place, DropReason):
            return -REASON_CODES[place], None
        if not shared.limiter.admit(place.node, place.unit):
            return _TOO_MANY_UNITS, None
        unit = shared.units.code(place.unit)
        if names is None or match is None or not match.is_counted:
            return unit, None
        shared.hardware.see(place, find_hardware(labels), names)
        return unit, find_holder(labels, shared.scheduler)

    def _place_subject(self, labels: Labels, node: NodeId | None, subject: MetricSubject) -> int:
        """The code of a job's part or of a whole node, negative if the row has none."""
        shared = self._shared
        find = find_job_part if subject is MetricSubject.JOB else find_whole_node
        place = find(labels, node)
        if isinstance(place, DropReason):
            return -REASON_CODES[place]
        home, unit = place
        unit_code = shared.units.find(unit)
        if unit_code is not None:
            return unit_code
        if not shared.subjects.admit(home, unit):
            return _TOO_MANY_UNITS
        unit_code = shared.units.code(unit)
        if subject is MetricSubject.JOB:
            shared.job_codes.append(unit_code)
        return unit_code

    def _try_again(self) -> None:
        """Admit units that exceeded a limit, now that there is room."""
        refused, self._refused = self._refused, []
        for code in refused:
            self._set_unit[code], self._set_holder[code] = self._place_set(code)
            if self._set_unit[code] == _TOO_MANY_UNITS:
                self._refused.append(code)
