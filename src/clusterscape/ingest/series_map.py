"""Maps the series of one exporter to units and metrics, each series once, so that a scrape is mapped by array lookups.

Owns the lookup tables; judges no value.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.drops import REASON_CODES, DropReason, NoteReason
from clusterscape.ingest.exporter_labels import (
    ExporterNames,
    Labels,
    find_hardware,
    find_holder,
    find_names,
    find_node,
    find_part,
    find_place,
)
from clusterscape.ingest.hardware import HardwareBook
from clusterscape.ingest.node_ties import NodeTies
from clusterscape.ingest.source_bounds import UnitBounds
from clusterscape.model import ALIASES, METRICS, MetricKind, Names, NodeId, SeriesTable, UnitId, WorkloadId
from clusterscape.model.samples import Float64s, Int32s

_UNKNOWN_METRIC = -REASON_CODES[DropReason.UNKNOWN_METRIC]
_TOO_MANY_UNITS = -REASON_CODES[DropReason.TOO_MANY_UNITS]


class Catalogue:
    """The metric catalogue as columns over alias codes: every name a source may use, in the order of ALIASES."""

    def __init__(self) -> None:
        self.metrics = Names(METRICS)
        self.codes = {name: code for code, name in enumerate(ALIASES)}
        aliases = list(ALIASES.items())
        self.metric: Int32s = np.array([self.metrics.code(alias.metric.name) for _, alias in aliases], np.int32)
        self.scale: Float64s = np.array([alias.scale for _, alias in aliases])
        self.lower: Float64s = np.array([alias.metric.lower for _, alias in aliases])
        self.upper: Float64s = np.array(
            [np.inf if alias.metric.upper is None else alias.metric.upper for _, alias in aliases]
        )
        # Where a source gives one metric under two names, the one listed first is believed.
        self.rank: Int32s = np.array(
            [[*alias.metric.aliases, alias.metric.name].index(name) for name, alias in aliases], np.int32
        )
        self.is_counter: NDArray[np.bool_] = np.array(
            [alias.metric.kind is MetricKind.COUNTER for _, alias in aliases], np.bool_
        )


@dataclass(frozen=True, slots=True)
class MappedRows:
    """Where the rows of a scrape belong. ``unit`` is the negative code of the reason for a row that belongs nowhere."""

    unit: Int32s
    alias: Int32s
    part: Int32s  # 0: the whole number; else which part of it


MOST_PARTS = 10_000
"""Values of labels that split a number, such as XIDs and links; others count as one."""
OTHER_PART = "other"


class SharedNames:
    """What the maps of all exporters share: unit codes, part codes, ties to nodes, hardware and notes."""

    def __init__(self, scheduler: str, ties: NodeTies, bounds: UnitBounds) -> None:
        self.scheduler = scheduler
        self.ties = ties
        self.bounds = bounds
        self.catalogue = Catalogue()
        self.units = Names()
        self.parts = Names([""])
        self.hardware = HardwareBook()
        self.notes: Counter[str] = Counter()

    def part_code(self, part: str) -> int:
        """The code of a part."""
        if len(self.parts) >= MOST_PARTS and self.parts.find(part) is None:
            part = OTHER_PART
        return self.parts.code(part)


class SeriesMap:
    """The map of one table, extended as the table grows. Rows are placed anew when their exporter belongs elsewhere."""

    def __init__(self, table: SeriesTable, node: NodeId | None, address: str | None, shared: SharedNames) -> None:
        self.table = table
        self.node = node
        self._address = address
        self._shared = shared
        self._alias: Int32s = np.empty(0, np.int32)
        self._label_set: Int32s = np.empty(0, np.int32)
        self._set_codes: dict[int, int] = {}  # by id() of a label mapping, which the table keeps alive
        # Set 0 is that of unknown metrics, whose labels nobody reads.
        self._set_labels: list[Labels] = [{}]
        self._set_names: list[ExporterNames | None] = [None]
        self._set_part: list[int] = [0]
        self._set_unit: list[int] = [_UNKNOWN_METRIC]
        self._set_holder: list[WorkloadId | None] = [None]
        self._ties_version = shared.ties.version
        self._refused: list[int] = []  # sets whose unit was one too many
        self._series: Int32s | None = None
        self._rows = MappedRows(self._alias, self._alias, self._alias)

    @property
    def has_refused(self) -> bool:
        """Whether some of its units were too many."""
        return bool(self._refused)

    def is_last(self, series: Int32s) -> bool:
        """Whether these very rows were mapped last time, so that labels cannot have changed."""
        return series is self._series and not (self._refused and self._shared.bounds.has_room)

    def map_rows(self, series: Int32s) -> MappedRows:
        """Where each row of a scrape belongs."""
        self.place()
        if self.is_last(series):
            return self._rows
        if self._refused and self._shared.bounds.has_room:
            self._try_again()
        sets = self._label_set[series]
        unit = np.array(self._set_unit, np.int32)[sets]
        part = np.array(self._set_part, np.int32)[sets]
        self._rows = MappedRows(unit, self._alias[series], part)
        self._series = series
        return self._rows

    def find_holders(self, series: Int32s) -> dict[UnitId, tuple[WorkloadId, ...]]:
        """Who holds the units of a scrape by its labels; an empty tuple where a unit's labels name nobody."""
        names = self._shared.units.values
        holders: dict[UnitId, set[WorkloadId]] = {}
        for code in np.unique(self._label_set[series]).tolist():
            if self._set_unit[code] < 0:
                continue
            named = holders.setdefault(UnitId(names[self._set_unit[code]]), set())
            holder = self._set_holder[code]
            if holder is not None:
                named.add(holder)
        return {unit: tuple(sorted(named)) for unit, named in holders.items()}

    def find_names(self, series: Int32s) -> set[ExporterNames]:
        """The exporters that the rows of a scrape are from."""
        found = {self._set_names[code] for code in np.unique(self._label_set[series]).tolist()}
        return {names for names in found if names is not None}

    def extend(self) -> None:
        """Read the series that are new in the table; which nodes they belong to is settled afterwards."""
        if len(self._alias) == len(self.table):
            return
        fresh = self.table.series[len(self._alias) :]
        codes, set_codes = self._shared.catalogue.codes, self._set_codes
        alias: list[int] = []
        label_set: list[int] = []
        for series in fresh:
            code = codes.get(series.name, -1)
            alias.append(code)
            if code < 0:
                label_set.append(0)
                continue
            set_code = set_codes.get(id(series.labels))
            label_set.append(self._add_set(series.labels) if set_code is None else set_code)
        self._alias = np.concatenate([self._alias, np.array(alias, np.int32)])
        self._label_set = np.concatenate([self._label_set, np.array(label_set, np.int32)])

    def place(self) -> None:
        """Give every label set its unit: new ones, and all where an exporter was tied to another node."""
        if self._ties_version != self._shared.ties.version:
            self._ties_version = self._shared.ties.version
            del self._set_unit[1:], self._set_holder[1:]
            self._refused.clear()
            self._series = None
        for code in range(len(self._set_unit), len(self._set_labels)):
            unit, holder = self._place_set(self._set_labels[code], self._set_names[code])
            if unit == _TOO_MANY_UNITS:
                self._refused.append(code)
            self._set_unit.append(unit)
            self._set_holder.append(holder)

    def _add_set(self, labels: Labels) -> int:
        shared = self._shared
        names = find_names(labels, self.node, self._address)
        if names is not None:
            place = find_place(labels, NodeId("any"))
            hardware = find_hardware(labels)
            is_whole = not isinstance(place, DropReason) and not (hardware.uuid or "").startswith("MIG-")
            index = place.index if is_whole and not isinstance(place, DropReason) else None
            shared.ties.see(names, index, hardware.uuid, hardware.model_name)
            if self.node is not None and find_node(labels) not in (None, self.node):
                shared.notes[NoteReason.NODE_DIFFERS] += 1
        code = self._set_codes[id(labels)] = len(self._set_labels)
        self._set_labels.append(labels)
        self._set_names.append(names)
        self._set_part.append(shared.part_code(find_part(labels) or ""))
        return code

    def _place_set(self, labels: Labels, names: ExporterNames | None) -> tuple[int, WorkloadId | None]:
        """The code of a label set's unit, negative where there is none, and who holds it."""
        shared = self._shared
        tie = None if names is None else shared.ties.find(names)
        place = find_place(labels, None if tie is None else tie.node)
        if isinstance(place, DropReason):
            return -REASON_CODES[place], None
        if not shared.bounds.admit(place.node, place.unit):
            return _TOO_MANY_UNITS, None
        unit = shared.units.code(place.unit)
        if names is None or tie is None or not tie.is_counted:
            return unit, None
        shared.hardware.see(place, find_hardware(labels), names)
        return unit, find_holder(labels, shared.scheduler)

    def _try_again(self) -> None:
        """Units that were too many, now that there is room."""
        refused, self._refused = self._refused, []
        for code in refused:
            self._set_unit[code], self._set_holder[code] = self._place_set(
                self._set_labels[code], self._set_names[code]
            )
            if self._set_unit[code] == _TOO_MANY_UNITS:
                self._refused.append(code)
