"""What an exporter's labels say: which GPU, which hardware, who holds it. The one place that knows how labels are spelled."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clusterscape.ingest.drops import DropReason
from clusterscape.model import GpuUuid, NodeId, UnitId, WorkloadId, gpu_unit_id, mig_unit_id

Labels = Mapping[str, str]

# Spellings, best first. dcgm-exporter changed some between versions; Prometheus adds `instance` and `exported_…`. A `node`
# is the orchestrator's word; the host name of an exporter in a container may be that of the container.
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
_JOB = ("hpc_job", "exported_hpc_job")

# One number of one GPU split over several rows: by XID, clock event, health check, peer or link.
_PART = ("xid", "clock_event", "health_watch", "peer_gpu", "nvlink", "link")

_NUMBER = re.compile(r"(?:nvidia)?(\d{1,5})", re.ASCII)
_HOST_AND_PORT = re.compile(r"(?:\[([^\]]*)\]|([^:]*))(?::\d*)?")
_ADDRESS = re.compile(r"[\d.]+|.*:.*")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row belongs: a GPU of a node, or a MIG instance of it."""

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
    """All that names the host of an exporter. ``is_asked``: ``address`` is where we ask it, not where a Prometheus does."""

    configured: NodeId | None = None
    address: str | None = None
    node: str | None = None  # the orchestrator's word
    host: str | None = None  # the exporter's own; in a container it may be the container's
    is_asked: bool = False


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the labels of one unit say about it; None where they are silent."""

    uuid: GpuUuid | None = None
    model_name: str | None = None
    pci_bus_id: str | None = None
    mig_profile: str | None = None
    driver_version: str | None = None


def find_names(labels: Labels, configured: NodeId | None, address: str | None) -> ExporterNames | None:
    """The names of the exporter that a row is from; ``address`` is where it was asked. None where nothing names it."""
    node, host = _find(labels, _NODE), _find(labels, _OWN_HOST)
    instance = address or _find(labels, _ADDRESS_LABELS)
    if not (configured or node or _host_of(host) or _host_of(instance)):
        return None
    return ExporterNames(configured, instance, node, host, is_asked=address is not None)


def _host_of(text: str | None) -> str:
    """Without the port; empty where there is nothing before it."""
    if not text:
        return ""
    found = _HOST_AND_PORT.fullmatch(text)
    return (found[1] or found[2]) if found else text  # more than one colon and no brackets: a bare IPv6 address


def find_node(labels: Labels) -> NodeId | None:
    """The node the exporter names, without domain and port; an address is kept whole."""
    text = _find(labels, _HOST)
    if text is None:
        return None
    host = _host_of(text)
    return NodeId(host if _ADDRESS.fullmatch(host) else host.partition(".")[0]) if host else None


def find_place(labels: Labels, node: NodeId | None) -> Place | DropReason:
    """Where a row belongs; ``node`` is the configured one and wins over what the exporter calls its host."""
    home = node or find_node(labels)
    if home is None:
        return DropReason.NO_NODE
    index = next((int(found[1]) for key in _INDEX if (found := _NUMBER.fullmatch(labels.get(key, "")))), None)
    if index is None:
        return DropReason.NO_GPU
    instance = _find(labels, _INSTANCE)
    if instance is None:
        return Place(home, index)
    number = _NUMBER.fullmatch(instance)
    return DropReason.NO_GPU if number is None else Place(home, index, int(number[1]))


def find_hardware(labels: Labels) -> Hardware:
    """The hardware facts in a row's labels."""
    uuid = _find(labels, _UUID)
    return Hardware(
        uuid=None if uuid is None else GpuUuid(uuid),
        model_name=_find(labels, _MODEL),
        pci_bus_id=_find(labels, _BUS),
        mig_profile=_find(labels, _PROFILE),
        driver_version=_find(labels, _DRIVER),
    )


def find_holder(labels: Labels, scheduler: str) -> WorkloadId | None:
    """Who the exporter says holds the unit: ``slurm:4711`` for a job, ``kubernetes:namespace/pod`` for a pod.

    A job wins over the pod it runs in. What Prometheus scraped carries `instance`; there a plain `pod` is the exporter's own.
    """
    job = _find(labels, _JOB)
    if job is not None:
        return WorkloadId(f"{scheduler}:{job}")
    prefix = "exported_" if "instance" in labels else ""
    pod = _find(labels, (f"{prefix}pod", f"{prefix}pod_name"))
    if pod is None:
        return None
    namespace = _find(labels, (f"{prefix}namespace", f"{prefix}pod_namespace"))
    return WorkloadId(f"kubernetes:{namespace}/{pod}" if namespace else f"kubernetes:{pod}")


def find_part(labels: Labels) -> str | None:
    """Which part of a number this row is, where a number is split over rows by a label."""
    found = [f"{key}={labels[key]}" for key in _PART if key in labels]
    return ",".join(found) or None


def _find(labels: Labels, spellings: tuple[str, ...]) -> str | None:
    """The first label that says something; DCGM writes `<<<NULL>>>` and the like for what it does not know."""
    for spelling in spellings:
        value = labels.get(spelling)
        if value and not value.startswith(("<<<", "ERROR - FAILED")):
            return value
    return None
