"""Reads dynamic resource allocation (DRA): devices of ResourceSlices, and which of them a ResourceClaim was given.

``resource.k8s.io`` v1, v1beta2 and v1beta1: in the last a device's attributes lie one level deeper.
"""

import re
from collections.abc import Iterator

from clusterscape.collect.kubernetes.facts import Claim, Device, Slice
from clusterscape.collect.kubernetes.values import Json, as_object, dig, iter_objects, read_count, read_int, read_text
from clusterscape.model import GpuUuid
from clusterscape.settings import KubernetesSettings

MAX_REQUESTED = 1024
_NUMBERED = re.compile(r"gpu-(\d{1,3})", re.ASCII)
_UUID = re.compile(r"(?:GPU|MIG)-\S+")


def parse_slice(item: Json, settings: KubernetesSettings) -> Slice | None:
    """The GPUs of a ResourceSlice; None where it has none, or belongs to no single node."""
    spec = as_object(item.get("spec"))
    driver, node, pool = (
        read_text(value) for value in (spec.get("driver"), spec.get("nodeName"), dig(spec, "pool", "name"))
    )
    if driver not in settings.device_drivers or driver is None or node is None or pool is None:
        return None
    devices = [
        device
        for entry in iter_objects(spec.get("devices"))
        if (device := _read_device(entry, driver=driver, pool=pool, node=node)) is not None
    ]
    return Slice(tuple(devices)) if devices else None


def _read_device(item: Json, *, driver: str, pool: str, node: str) -> Device | None:
    name = read_text(item.get("name"))
    if name is None:
        return None
    inner = as_object(item.get("basic")) or item
    # An attribute may carry its driver's name: gpu.nvidia.com/uuid.
    attributes = {key.rpartition("/")[2]: as_object(value) for key, value in as_object(inner.get("attributes")).items()}

    def text(key: str) -> str | None:
        return read_text(attributes.get(key, {}).get("string"))

    kind = text("type") or "gpu"
    is_mig = kind == "mig" or "-mig-" in name
    if kind not in ("gpu", "mig", "amdgpu", "amdgpu-partition"):
        return None  # such as the channels of the same driver
    uuid = text("uuid")
    memory = as_object(inner.get("capacity")).get("memory")
    return Device(
        driver=driver,
        pool=pool,
        name=name,
        node=node,
        index=None if is_mig else _find_index(attributes, name),
        uuid=GpuUuid(uuid) if uuid and _UUID.fullmatch(uuid) else None,
        product=text("productName"),
        mig_profile=(text("profile") or "mig") if is_mig else None,
        memory_bytes=read_count(as_object(memory).get("value", memory)) or None,
    )


def _find_index(attributes: dict[str, dict[str, object]], name: str) -> int | None:
    """NVML's index if the driver gives it, else the minor number, which is the same on almost all machines."""
    for key in ("index", "minor"):
        number = read_int(attributes.get(key, {}).get("int"))
        if number is not None and number >= 0:
            return number
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match else None


def parse_claim(item: Json, settings: KubernetesSettings) -> Claim | None:
    """A ResourceClaim for GPUs; None for other devices. What an observer was given with ``adminAccess`` is nobody's."""
    namespace, name = (read_text(dig(item, "metadata", key)) for key in ("namespace", "name"))
    if namespace is None or name is None:
        return None
    devices = tuple(
        (driver, pool, device)
        for result in iter_objects(dig(item, "status", "allocation", "devices", "results"))
        if result.get("adminAccess") is not True
        and (driver := read_text(result.get("driver"))) in settings.device_drivers
        and driver is not None
        and (pool := read_text(result.get("pool"))) is not None
        and (device := read_text(result.get("device"))) is not None
    )
    requested = min(sum(_iter_requested(item, settings)), MAX_REQUESTED)
    if not devices and not requested:
        return None
    holders = (
        read_text(consumer.get("uid"))
        for consumer in iter_objects(dig(item, "status", "reservedFor"))
        if consumer.get("resource") == "pods"
    )
    return Claim(namespace, name, requested, devices, tuple(uid for uid in holders if uid))


def _iter_requested(item: Json, settings: KubernetesSettings) -> Iterator[int]:
    for request in iter_objects(dig(item, "spec", "devices", "requests")):
        choices = list(iter_objects(request.get("firstAvailable")))
        exact = as_object(request.get("exactly")) or (choices[0] if choices else request)
        device_class = read_text(exact.get("deviceClassName")) or ""
        if not _is_gpu_class(device_class, settings) or exact.get("adminAccess") is True:
            continue
        if exact.get("allocationMode") != "All":  # how many "all" are is known once they are given
            yield 1 if (count := read_int(exact.get("count"))) is None else max(0, count)


def _is_gpu_class(name: str, settings: KubernetesSettings) -> bool:
    """A class has the name of its driver, or ``mig.nvidia.com`` for ``gpu.nvidia.com``."""
    return any(name in (driver, driver.replace("gpu.", "mig.", 1)) for driver in settings.device_drivers)
