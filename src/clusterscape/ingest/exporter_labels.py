"""Reads the labels of exporters (GPU, hardware, holder; the only place that knows label names), and collects from labels
and values which nodes and units are new or changed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from clusterscape.ingest.drops import DropReason
from clusterscape.model import (
    GpuUuid,
    Node,
    NodeId,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    WorkloadId,
    gpu_unit_id,
    job_unit_id,
    mig_unit_id,
)
from clusterscape.model.machine_types import name_machine_type

Labels = Mapping[str, str]

# Label names, most reliable first. dcgm-exporter changed some between versions; Prometheus adds `instance` and `exported_…`.
# `node` is set by the orchestrator; an exporter in a container may report the container's host name.
_NODE = ("node",)
_OWN_HOST = ("Hostname", "hostname", "host_name")
_ADDRESS_LABELS = ("exported_instance", "instance")
_HOST = (*_NODE, *_OWN_HOST, *_ADDRESS_LABELS)
_INDEX = ("gpu", "minor_number", "device", "index")
_UUID = ("UUID", "uuid", "gpu_uuid")
_MODEL = ("modelName", "model_name")
_INSTANCE = ("GPU_I_ID", "gpu_i_id")
_PROFILE = ("GPU_I_PROFILE", "gpu_i_profile")
_BUS = ("pci_bus_id", "DCGM_FI_DEV_PCI_BUSID")
_DRIVER = ("DCGM_FI_DRIVER_VERSION", "driver_version")
_JOB = ("hpc_job", "exported_hpc_job", "jobid", "job_id")
_STEP = ("step", "task")
_ABSENT = "0"  # what exporters write for "no job"

# Labels that a server adds to every series; the others of a node's series say which device or processor a row is of.
_SERVER_LABELS = frozenset(
    {"instance", "exported_instance", "job", "exported_job", "node", "cluster", "host", "hostname"}
)

# One number of one GPU split over several rows: by XID, clock event, health check, peer or link.
_PART = ("xid", "clock_event", "health_watch", "peer_gpu", "nvlink", "link")

_NUMBER = re.compile(r"(?:nvidia)?(\d{1,5})", re.ASCII)
# A cgroup of Slurm, by the job's number or, from Slurm 26.05, by its SLUID; what follows is a step or task.
_CGROUP = re.compile(r".*/(?:job_(?P<number>\d{1,12})|(?P<sluid>s[0-9A-Z]{13}))(?P<rest>/.*)?", re.ASCII)
_JOB_ID = re.compile(r"\d{1,12}|s[0-9A-Z]{13}", re.ASCII)
_UNCOUNTED_DEVICE = re.compile(
    r"lo|(?:veth|docker|br-|br\d|virbr|cali|cni|flannel|bond|tun|tap|dummy|dm-|md|loop|ram|sr|zram).*"
    r"|.*\.\d+|(?:sd|hd|vd|xvd)[a-z]+\d+|nvme\d+n\d+p\d+",
    re.ASCII,
)
_HOST_AND_PORT = re.compile(r"(?:\[([^\]]*)\]|([^:]*))(?::\d*)?")
_ADDRESS = re.compile(r"[\d.]+|.*:.*")


@dataclass(frozen=True, slots=True)
class Place:
    """The GPU or MIG instance that a row belongs to."""

    node: NodeId
    index: int
    instance: int | None = None

    @property
    def unit(self) -> UnitId:
        """The unit's id."""
        if self.instance is None:
            return gpu_unit_id(self.node, self.index)
        return mig_unit_id(self.node, self.index, self.instance)


@dataclass(frozen=True, slots=True)
class ExporterNames:
    """All names of an exporter's host. ``is_direct``: ``address`` is scraped by ClusterScape, not by a Prometheus."""

    configured: NodeId | None = None
    address: str | None = None
    node: str | None = None  # set by the orchestrator
    host: str | None = None  # reported by the exporter; in a container it may be the container's
    is_direct: bool = False


@dataclass(frozen=True, slots=True)
class LabelledHardware:
    """Hardware facts in the labels of one unit; None: not in the labels."""

    uuid: GpuUuid | None = None
    model_name: str | None = None
    pci_bus_id: str | None = None
    mig_profile: str | None = None
    driver_version: str | None = None


def find_names(labels: Labels, configured: NodeId | None, address: str | None) -> ExporterNames | None:
    """The names of the exporter of a row, scraped at ``address``. None if it has no name."""
    node, host = _find(labels, _NODE), _find(labels, _OWN_HOST)
    instance = address or _find(labels, _ADDRESS_LABELS)
    if not (configured or node or _host_of(host) or _host_of(instance)):
        return None
    return ExporterNames(configured, instance, node, host, is_direct=address is not None)


def _host_of(text: str | None) -> str:
    """The host without the port; empty if there is none."""
    if not text:
        return ""
    host = _HOST_AND_PORT.fullmatch(text)
    return (host[1] or host[2]) if host else text  # more than one colon and no brackets: a bare IPv6 address


def find_node(labels: Labels) -> NodeId | None:
    """The node that the labels name, without domain and port; an IP address unchanged."""
    text = _find(labels, _HOST)
    if text is None:
        return None
    host = _host_of(text)
    return NodeId(host if _ADDRESS.fullmatch(host) else host.partition(".")[0]) if host else None


def find_place(labels: Labels, node: NodeId | None) -> Place | DropReason:
    """The GPU or MIG instance of a row; ``node``, if configured, wins over the host name in the labels."""
    home = node or find_node(labels)
    if home is None:
        return DropReason.NO_NODE
    index = next((int(number[1]) for key in _INDEX if (number := _NUMBER.fullmatch(labels.get(key, "")))), None)
    if index is None:
        return DropReason.NO_GPU
    instance = _find(labels, _INSTANCE)
    if instance is None:
        is_instance = (_find(labels, _UUID) or "").startswith("MIG-")  # whose number the exporter does not report
        return DropReason.NO_GPU if is_instance else Place(home, index)
    number = _NUMBER.fullmatch(instance)
    return DropReason.NO_GPU if number is None else Place(home, index, int(number[1]))


def find_job_part(labels: Labels, node: NodeId | None) -> tuple[NodeId, UnitId] | DropReason:
    """The part of a job on a node that a row of a cgroup exporter belongs to."""
    home = node or find_node(labels)
    if home is None:
        return DropReason.NO_NODE
    job = labels.get("jobid", "")
    if not job:
        cgroup = _CGROUP.fullmatch(labels.get("cgroup", ""))
        if cgroup is None:
            return DropReason.NO_JOB
        if cgroup["rest"]:
            return DropReason.PART_OF_JOB
        job = cgroup["number"] or cgroup["sluid"]
    if any(labels.get(label) for label in _STEP):
        return DropReason.PART_OF_JOB
    return (home, job_unit_id(job, home)) if _JOB_ID.fullmatch(job) else DropReason.NO_JOB


def find_whole_node(labels: Labels, node: NodeId | None) -> tuple[NodeId, UnitId] | DropReason:
    """The node that a row of a node exporter belongs to; rows of virtual devices are not counted."""
    home = node or find_node(labels)
    if home is None:
        return DropReason.NO_NODE
    if _UNCOUNTED_DEVICE.fullmatch(labels.get("device", "")):
        return DropReason.UNCOUNTED_DEVICE
    return home, UnitId(home)


def find_device(labels: Labels) -> str | None:
    """The labels that split a number of a node over several rows: its devices and processors."""
    parts = [f"{key}={value}" for key, value in sorted(labels.items()) if key not in _SERVER_LABELS]
    return ",".join(parts) or None


def find_hardware(labels: Labels) -> LabelledHardware:
    """The hardware facts in a row's labels."""
    uuid = _find(labels, _UUID)
    return LabelledHardware(
        uuid=None if uuid is None else GpuUuid(uuid),
        model_name=_find(labels, _MODEL),
        pci_bus_id=_find(labels, _BUS),
        mig_profile=_find(labels, _PROFILE),
        driver_version=_find(labels, _DRIVER),
    )


def find_holder(labels: Labels, scheduler: str) -> WorkloadId | None:
    """The holder of the unit by its labels: ``slurm:4711`` for a job, ``kubernetes:namespace/pod`` for a pod.

    A job wins over the pod it runs in. Series from Prometheus have `instance`; there a plain `pod` is the exporter's own pod.
    """
    job = _find(labels, _JOB)
    if job is not None and job != _ABSENT:
        return WorkloadId(f"{scheduler}:{job}")
    prefix = "exported_" if "instance" in labels else ""
    pod = _find(labels, (f"{prefix}pod", f"{prefix}pod_name"))
    if pod is None:
        return None
    namespace = _find(labels, (f"{prefix}namespace", f"{prefix}pod_namespace"))
    return WorkloadId(f"kubernetes:{namespace}/{pod}" if namespace else f"kubernetes:{pod}")


def find_part(labels: Labels) -> str | None:
    """The labels that split one number over several rows; None if there are none."""
    parts = [f"{key}={labels[key]}" for key in _PART if key in labels]
    return ",".join(parts) or None


def _find(labels: Labels, spellings: tuple[str, ...]) -> str | None:
    """The first non-empty label; DCGM writes `<<<NULL>>>` or similar for unknown values."""
    for spelling in spellings:
        value = labels.get(spelling)
        if value and not value.startswith(("<<<", "ERROR - FAILED")):
            return value
    return None


LatestValue = Callable[[UnitId, str], float | None]
"""Returns the latest value of a unit's metric, None if there is none."""


LastSeen = Callable[[UnitId], UnixMs | None]
"""Returns the time of a unit's latest sample, None if there is none."""

MOVED_AFTER_MS = 300_000
"""A GPU that two nodes report is counted at the first, unless it had no samples there for this long: then it was moved."""


@dataclass(slots=True)
class _UnitEntry:
    place: Place
    hardware: LabelledHardware
    reported_by: set[ExporterNames]
    memory_bytes: int | None = None
    unit: Unit | None = None  # as last returned


@dataclass(slots=True)
class _NodeEntry:
    units: set[UnitId] = field(default_factory=set)
    node: Node | None = None  # as last returned


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareChanges:
    """Nodes and units that are new or changed since the last call, and those that are no longer reported."""

    nodes: list[Node]
    units: list[Unit]
    missing_units: list[UnitId]
    missing_nodes: list[NodeId]

    def __bool__(self) -> bool:
        return bool(self.nodes or self.units or self.missing_units or self.missing_nodes)


class HardwareInventory:
    """Every GPU, MIG instance and node that exporters report. A GPU's UUID is counted at one place only."""

    def __init__(self) -> None:
        self._units: dict[UnitId, _UnitEntry] = {}
        self._nodes: dict[NodeId, _NodeEntry] = {}
        self._homes: dict[GpuUuid, UnitId] = {}
        self._duplicates: dict[UnitId, UnitId] = {}  # uncounted unit → the unit where its GPU is counted
        self.duplicates_version = 0
        self._touched: set[UnitId] = set()
        self._removed: set[UnitId] = set()
        self._changed_nodes: set[NodeId] = set()
        self._reported: dict[ExporterNames, set[UnitId]] = {}

    def see(self, place: Place, hardware: LabelledHardware, names: ExporterNames) -> None:
        """Add a unit from a label set of an exporter."""
        entry = self._units.get(place.unit)
        if entry is None:
            self._units[place.unit] = _UnitEntry(place, hardware, {names})
            self._nodes.setdefault(place.node, _NodeEntry()).units.add(place.unit)
        else:
            entry.hardware = hardware
            entry.reported_by.add(names)
        self._reported.setdefault(names, set()).add(place.unit)
        self._touched.add(place.unit)
        if place.instance is not None:
            # A MIG row names its GPU's UUID, model and bus; the GPU may have no row of its own.
            gpu_hardware = LabelledHardware(
                hardware.uuid, hardware.model_name, hardware.pci_bus_id, None, hardware.driver_version
            )
            self.see(Place(place.node, place.index), gpu_hardware, names)

    def forget(self, names: ExporterNames) -> list[UnitId]:
        """Forget an exporter; returns the units that only it reported."""
        lost = []
        for key in self._reported.pop(names, set()) & self._units.keys():
            reported_by = self._units[key].reported_by
            reported_by.discard(names)
            if not reported_by:
                self._remove(key)
                lost.append(key)
        return lost

    def duplicates(self) -> dict[ExporterNames, dict[UnitId, UnitId]]:
        """Uncounted units, whose GPU is counted elsewhere, by exporter."""
        by_exporter: dict[ExporterNames, dict[UnitId, UnitId]] = {}
        for unit, home in self._duplicates.items():
            for names in self._units[unit].reported_by:
                by_exporter.setdefault(names, {})[unit] = home
        return by_exporter

    def recheck(self) -> None:
        """Check units of unknown memory size, and uncounted units, again."""
        self._touched.update(key for key, entry in self._units.items() if entry.memory_bytes is None)
        self._touched.update(self._duplicates)

    def take_changes(self, latest: LatestValue, last_seen: LastSeen, now_ms: UnixMs) -> HardwareChanges:
        """What was added, changed or removed since the last call."""
        touched, self._touched = sorted(self._touched), set()
        duplicates = dict(self._duplicates)
        units: list[Unit] = []
        for key in touched:
            entry = self._units.get(key)
            if entry is None:  # no longer reported, or its GPU was found elsewhere in this round
                continue
            entry.memory_bytes = _memory_bytes(key, latest) or entry.memory_bytes
            unit = _describe_unit(entry, latest(key, "power_limit_watts"))
            if not self._claim(key, unit.uuid, last_seen, now_ms):
                self._uncount(key, entry)
            elif unit != entry.unit:
                entry.unit = unit
                units.append(unit)
                self._changed_nodes.add(entry.place.node)
        removed = sorted(key for key in self._removed if key not in self._units or self._units[key].unit is None)
        nodes, missing_nodes = self._describe_nodes(self._changed_nodes)
        self._removed.clear()
        self._changed_nodes.clear()
        self.duplicates_version += duplicates != self._duplicates
        return HardwareChanges(nodes=nodes, units=units, missing_units=removed, missing_nodes=missing_nodes)

    def _claim(self, key: UnitId, uuid: GpuUuid | None, last_seen: LastSeen, now_ms: UnixMs) -> bool:
        """Whether the GPU is counted at this place."""
        former = self._units[key].unit
        if former is not None and former.uuid not in (None, uuid):
            self._release_uuid(former.uuid, key)
        self._duplicates.pop(key, None)
        if uuid is None:
            return True
        home = self._homes.setdefault(uuid, key)
        if home == key:
            return True
        sampled_at = last_seen(home) if home in self._units else None
        if sampled_at is not None and now_ms - sampled_at < MOVED_AFTER_MS:
            self._duplicates[key] = home
            return False
        self._homes[uuid] = key
        if home in self._units:
            self._remove(home)
        return True

    def _release_uuid(self, uuid: GpuUuid | None, key: UnitId) -> None:
        """The place has another GPU now, or none."""
        if uuid is not None and self._homes.get(uuid) == key:
            del self._homes[uuid]
            self._touched.update(twin for twin, home in self._duplicates.items() if home == key)

    def _remove(self, key: UnitId) -> None:
        entry = self._units[key]
        self._release_uuid(entry.unit.uuid if entry.unit else None, key)
        self._uncount(key, entry)
        self._duplicates.pop(key, None)
        self._nodes[entry.place.node].units.discard(key)
        del self._units[key]

    def _uncount(self, key: UnitId, entry: _UnitEntry) -> None:
        """The unit is no longer counted."""
        if entry.unit is not None:
            entry.unit = None
            self._removed.add(key)
            self._changed_nodes.add(entry.place.node)

    def _describe_nodes(self, ids: Iterable[NodeId]) -> tuple[list[Node], list[NodeId]]:
        changed: list[Node] = []
        removed: list[NodeId] = []
        for node_id in sorted(ids):
            entry = self._nodes[node_id]
            members = [self._units[key] for key in entry.units if self._units[key].unit is not None]
            gpus = [member for member in members if member.place.instance is None]
            if not members:
                if entry.node is not None:
                    removed.append(node_id)
                entry.node = None
                continue
            node = Node(
                id=node_id,
                machine_type=_most_common(m.unit.machine_type for m in gpus if m.unit),
                gpu_count=len(gpus),
                driver_version=_most_common(m.hardware.driver_version for m in members),
            )
            if node != entry.node:
                entry.node = node
                changed.append(node)
        return changed, removed


def _describe_unit(entry: _UnitEntry, power_limit_watts: float | None) -> Unit:
    place, hardware = entry.place, entry.hardware
    is_mig = place.instance is not None
    uuid = hardware.uuid if hardware.uuid is None or hardware.uuid.startswith("MIG-") == is_mig else None
    whole_memory = None if is_mig else entry.memory_bytes
    return Unit(
        id=place.unit,
        kind=UnitKind.MIG if is_mig else UnitKind.GPU,
        node=place.node,
        index=place.index,
        uuid=uuid,
        machine_type=name_machine_type(hardware.model_name, whole_memory) if hardware.model_name else None,
        memory_bytes=entry.memory_bytes,
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
    # By name if counts are equal, so that the result does not depend on the order of rows.
    return min(counted, key=lambda value: (-counted[value], value), default=None)
