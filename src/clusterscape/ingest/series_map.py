"""Maps the series of one exporter to units and metrics, each series once, so that a scrape is mapped by array lookups.

Owns the lookup tables; judges no value.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.drops import REASON_CODES, DropReason, NoteReason
from clusterscape.ingest.exporter_labels import Labels, find_hardware, find_holder, find_node, find_part, find_place
from clusterscape.ingest.hardware import HardwareBook
from clusterscape.model import ALIASES, METRICS, MetricKind, Names, NodeId, SeriesTable, UnitId, WorkloadId
from clusterscape.model.samples import Float64s, Int32s

_UNKNOWN_METRIC = -REASON_CODES[DropReason.UNKNOWN_METRIC]


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


class SharedNames:
    """What the maps of all exporters share: unit codes, part codes, hardware and notes."""

    def __init__(self, scheduler: str) -> None:
        self.scheduler = scheduler
        self.catalogue = Catalogue()
        self.units = Names()
        self.parts = Names([""])
        self.hardware = HardwareBook()
        self.notes: Counter[str] = Counter()


class SeriesMap:
    """The map of one table, extended as the table grows."""

    def __init__(self, table: SeriesTable, node: NodeId | None, shared: SharedNames) -> None:
        self.table = table
        self.node = node
        self._shared = shared
        self._alias: Int32s = np.empty(0, np.int32)
        self._label_set: Int32s = np.empty(0, np.int32)
        self._set_codes: dict[int, int] = {}  # by id() of a label mapping, which the table keeps alive
        self._set_unit: list[int] = [_UNKNOWN_METRIC]  # set 0 is that of unknown metrics, whose labels nobody reads
        self._set_part: list[int] = [0]
        self._set_holder: list[WorkloadId | None] = [None]
        self._series: Int32s | None = None
        self._rows = MappedRows(self._alias, self._alias, self._alias)

    def is_last(self, series: Int32s) -> bool:
        """Whether these very rows were mapped last time, so that labels cannot have changed."""
        return series is self._series

    def map_rows(self, series: Int32s) -> MappedRows:
        """Where each row of a scrape belongs."""
        if self.is_last(series):
            return self._rows
        if len(self._alias) < len(self.table):
            self._extend()
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

    def _extend(self) -> None:
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

    def _add_set(self, labels: Labels) -> int:
        shared = self._shared
        place = find_place(labels, self.node)
        if isinstance(place, DropReason):
            unit, holder = -REASON_CODES[place], None
        else:
            unit, holder = shared.units.code(place.unit), find_holder(labels, shared.scheduler)
            shared.hardware.see(place, find_hardware(labels))
            if self.node is not None and find_node(labels) not in (None, self.node):
                shared.notes[NoteReason.NODE_DIFFERS] += 1
        code = self._set_codes[id(labels)] = len(self._set_unit)
        self._set_unit.append(unit)
        self._set_part.append(shared.parts.code(find_part(labels) or ""))
        self._set_holder.append(holder)
        return code
