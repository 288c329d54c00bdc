"""Gathers what exporters say about hardware, by labels and by values, and tells which records are new or changed."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from clusterscape.ingest.exporter_labels import ExporterNames, Hardware, Place
from clusterscape.model import GpuUuid, Node, NodeId, Unit, UnitId, UnitKind, UnixMs
from clusterscape.model.machine_types import name_machine_type

LatestValue = Callable[[UnitId, str], float | None]
"""The last stored value of a unit's metric, None where there is none."""


LastSeen = Callable[[UnitId], UnixMs | None]
"""When a unit's newest sample was taken, None where there is none."""

TWIN_AFTER_MS = 300_000
"""A GPU that two places show counts where it was first, unless that place has been silent for so long: then it was moved."""


@dataclass(slots=True)
class _KnownUnit:
    place: Place
    hardware: Hardware
    shown_by: set[ExporterNames]
    memory_bytes: int | None = None
    unit: Unit | None = None  # as last told


@dataclass(slots=True)
class _KnownNode:
    units: set[UnitId] = field(default_factory=set)
    node: Node | None = None  # as last told


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareChanges:
    """Nodes and units that are new or other than last told, and those that are shown no longer."""

    nodes: list[Node]
    units: list[Unit]
    gone: list[UnitId]
    gone_nodes: list[NodeId]

    def __bool__(self) -> bool:
        return bool(self.nodes or self.units or self.gone or self.gone_nodes)


class HardwareBook:
    """Every GPU, MIG instance and node that exporters have shown. A GPU's UUID counts at one place only."""

    def __init__(self) -> None:
        self._units: dict[UnitId, _KnownUnit] = {}
        self._nodes: dict[NodeId, _KnownNode] = {}
        self._homes: dict[GpuUuid, UnitId] = {}
        self._twins: dict[UnitId, UnitId] = {}  # unit that does not count → where its GPU does
        self.twins_version = 0
        self._touched: set[UnitId] = set()
        self._gone: set[UnitId] = set()
        self._turned: set[NodeId] = set()
        self._shown: dict[ExporterNames, set[UnitId]] = {}

    def see(self, place: Place, hardware: Hardware, names: ExporterNames) -> None:
        """A label set of an exporter names this unit."""
        known = self._units.get(place.unit)
        if known is None:
            self._units[place.unit] = _KnownUnit(place, hardware, {names})
            self._nodes.setdefault(place.node, _KnownNode()).units.add(place.unit)
        else:
            known.hardware = hardware
            known.shown_by.add(names)
        self._shown.setdefault(names, set()).add(place.unit)
        self._touched.add(place.unit)
        if place.instance is not None:
            # A MIG row names its GPU's UUID, model and bus; the GPU may have no row of its own.
            whole = Hardware(hardware.uuid, hardware.model_name, hardware.pci_bus_id, None, hardware.driver_version)
            self.see(Place(place.node, place.index), whole, names)

    def forget(self, names: ExporterNames) -> list[UnitId]:
        """An exporter belongs elsewhere: the units that it alone has shown."""
        lost = []
        for key in self._shown.pop(names, set()) & self._units.keys():
            shown_by = self._units[key].shown_by
            shown_by.discard(names)
            if not shown_by:
                self._remove(key)
                lost.append(key)
        return lost

    def twins(self) -> dict[ExporterNames, dict[UnitId, UnitId]]:
        """Units that do not count, because their GPU does elsewhere, by who shows them."""
        found: dict[ExporterNames, dict[UnitId, UnitId]] = {}
        for unit, home in self._twins.items():
            for names in self._units[unit].shown_by:
                found.setdefault(names, {})[unit] = home
        return found

    def recheck(self) -> None:
        """Look again at units whose memory no value has told yet, and at those that do not count."""
        self._touched.update(key for key, known in self._units.items() if known.memory_bytes is None)
        self._touched.update(self._twins)

    def take_changes(self, latest: LatestValue, last_seen: LastSeen, now_ms: UnixMs) -> HardwareChanges:
        """What is new, other or gone since the last time."""
        touched, self._touched = sorted(self._touched), set()
        twins = dict(self._twins)
        units: list[Unit] = []
        for key in touched:
            known = self._units.get(key)
            if known is None:  # shown no longer, or its GPU was found elsewhere in this very round
                continue
            known.memory_bytes = _memory_bytes(key, latest) or known.memory_bytes
            unit = _describe_unit(known, latest(key, "power_limit_watts"))
            if not self._claim(key, unit.uuid, last_seen, now_ms):
                self._withdraw(key, known)
            elif unit != known.unit:
                known.unit = unit
                units.append(unit)
                self._turned.add(known.place.node)
        gone = sorted(key for key in self._gone if key not in self._units or self._units[key].unit is None)
        nodes, gone_nodes = self._describe_nodes(self._turned)
        self._gone.clear()
        self._turned.clear()
        self.twins_version += twins != self._twins
        return HardwareChanges(nodes=nodes, units=units, gone=gone, gone_nodes=gone_nodes)

    def _claim(self, key: UnitId, uuid: GpuUuid | None, last_seen: LastSeen, now_ms: UnixMs) -> bool:
        """Whether this is the place where the GPU counts."""
        former = self._units[key].unit
        if former is not None and former.uuid not in (None, uuid):
            self._give_up(former.uuid, key)
        self._twins.pop(key, None)
        if uuid is None:
            return True
        home = self._homes.setdefault(uuid, key)
        if home == key:
            return True
        seen_at = last_seen(home) if home in self._units else None
        if seen_at is not None and now_ms - seen_at < TWIN_AFTER_MS:
            self._twins[key] = home
            return False
        self._homes[uuid] = key
        if home in self._units:
            self._remove(home)
        return True

    def _give_up(self, uuid: GpuUuid | None, key: UnitId) -> None:
        """Another GPU is in this place now, or none."""
        if uuid is not None and self._homes.get(uuid) == key:
            del self._homes[uuid]
            self._touched.update(twin for twin, home in self._twins.items() if home == key)

    def _remove(self, key: UnitId) -> None:
        known = self._units[key]
        self._give_up(known.unit.uuid if known.unit else None, key)
        self._withdraw(key, known)
        self._twins.pop(key, None)
        self._nodes[known.place.node].units.discard(key)
        del self._units[key]

    def _withdraw(self, key: UnitId, known: _KnownUnit) -> None:
        """It does not count any more."""
        if known.unit is not None:
            known.unit = None
            self._gone.add(key)
            self._turned.add(known.place.node)

    def _describe_nodes(self, ids: Iterable[NodeId]) -> tuple[list[Node], list[NodeId]]:
        changed: list[Node] = []
        gone: list[NodeId] = []
        for node_id in sorted(ids):
            known = self._nodes[node_id]
            members = [self._units[key] for key in known.units if self._units[key].unit is not None]
            gpus = [member for member in members if member.place.instance is None]
            if not members:
                if known.node is not None:
                    gone.append(node_id)
                known.node = None
                continue
            node = Node(
                id=node_id,
                machine_type=_most_common(m.unit.machine_type for m in gpus if m.unit),
                gpu_count=len(gpus),
                driver_version=_most_common(m.hardware.driver_version for m in members),
            )
            if node != known.node:
                known.node = node
                changed.append(node)
        return changed, gone


def _describe_unit(known: _KnownUnit, power_limit_watts: float | None) -> Unit:
    place, hardware = known.place, known.hardware
    is_mig = place.instance is not None
    uuid = hardware.uuid if hardware.uuid is None or hardware.uuid.startswith("MIG-") == is_mig else None
    whole_memory = None if is_mig else known.memory_bytes
    return Unit(
        id=place.unit,
        kind=UnitKind.MIG if is_mig else UnitKind.GPU,
        node=place.node,
        index=place.index,
        uuid=uuid,
        machine_type=name_machine_type(hardware.model_name, whole_memory) if hardware.model_name else None,
        memory_bytes=known.memory_bytes,
        power_limit_watts=power_limit_watts,
        pci_bus_id=hardware.pci_bus_id,
        parent=Place(place.node, place.index).unit if is_mig else None,
        mig_profile=hardware.mig_profile,
    )


def _memory_bytes(unit: UnitId, latest: LatestValue) -> int | None:
    total = latest(unit, "memory_total_bytes")
    if total is None:
        used, free = latest(unit, "memory_used_bytes"), latest(unit, "memory_free_bytes")
        if used is None or free is None:
            return None
        total = used + free + (latest(unit, "memory_reserved_bytes") or 0.0)
    return round(total) or None


def _most_common(values: Iterable[str | None]) -> str | None:
    counted = Counter(value for value in values if value is not None)
    # By name where counts tie, so that the answer does not hang on the order of rows.
    return min(counted, key=lambda value: (-counted[value], value), default=None)
