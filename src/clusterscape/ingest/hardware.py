"""Gathers what exporters say about hardware, by labels and by values, and tells which records are new or changed."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from clusterscape.ingest.exporter_labels import Hardware, Place
from clusterscape.model import Node, NodeId, Unit, UnitId, UnitKind
from clusterscape.model.machine_types import name_machine_type

LatestValue = Callable[[UnitId, str], float | None]
"""The last stored value of a unit's metric, None where there is none."""


@dataclass(slots=True)
class _KnownUnit:
    place: Place
    hardware: Hardware
    memory_bytes: int | None = None
    unit: Unit | None = None  # as last told


@dataclass(slots=True)
class _KnownNode:
    units: set[UnitId] = field(default_factory=set)
    node: Node | None = None  # as last told


class HardwareBook:
    """Every GPU, MIG instance and node that exporters have shown."""

    def __init__(self) -> None:
        self._units: dict[UnitId, _KnownUnit] = {}
        self._nodes: dict[NodeId, _KnownNode] = {}
        self._touched: set[UnitId] = set()

    def see(self, place: Place, hardware: Hardware) -> None:
        """A label set names this unit."""
        known = self._units.get(place.unit)
        if known is None:
            self._units[place.unit] = _KnownUnit(place, hardware)
            self._nodes.setdefault(place.node, _KnownNode()).units.add(place.unit)
        elif known.hardware != hardware:
            known.hardware = hardware
        self._touched.add(place.unit)
        if place.instance is not None:
            # A MIG row names its GPU's UUID, model and bus; the GPU may have no row of its own.
            whole = Hardware(hardware.uuid, hardware.model_name, hardware.pci_bus_id, None, hardware.driver_version)
            self.see(Place(place.node, place.index), whole)

    def recheck_unknown_memory(self) -> None:
        """Look again at units whose memory no value has told yet."""
        self._touched.update(key for key, known in self._units.items() if known.memory_bytes is None)

    def take_changes(self, latest: LatestValue) -> tuple[list[Node], list[Unit]]:
        """Nodes and units that are new or other than last told."""
        units: list[Unit] = []
        nodes: set[NodeId] = set()
        for key in sorted(self._touched):
            known = self._units[key]
            known.memory_bytes = _memory_bytes(key, latest) or known.memory_bytes
            unit = _describe_unit(known, latest(key, "power_limit_watts"))
            if unit != known.unit:
                known.unit = unit
                units.append(unit)
                nodes.add(known.place.node)
        self._touched.clear()
        return self._describe_nodes(nodes), units

    def _describe_nodes(self, ids: Iterable[NodeId]) -> list[Node]:
        changed: list[Node] = []
        for node_id in sorted(ids):
            known = self._nodes[node_id]
            members = [self._units[key] for key in known.units]
            gpus = [member for member in members if member.place.instance is None]
            node = Node(
                id=node_id,
                machine_type=_most_common(m.unit.machine_type for m in gpus if m.unit),
                gpu_count=len(gpus),
                driver_version=_most_common(m.hardware.driver_version for m in members),
            )
            if node != known.node:
                known.node = node
                changed.append(node)
        return changed


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
