"""Reads dynamic resource allocation (DRA): devices of ResourceSlices, and which of them a ResourceClaim was given.

``resource.k8s.io`` v1, v1beta2 and v1beta1: in the last a device's attributes lie one level deeper.
"""

import re
from collections.abc import Iterator

from clusterscape.collect.kubernetes.facts import Claim, Device, Slice
from clusterscape.collect.kubernetes.values import Json, as_object, dig, iter_objects, read_count, read_int, read_text
from clusterscape.model import GpuUuid
from clusterscape.settings import KubernetesSettings

MAX_ASKED = 1024
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
        found
        for each in iter_objects(spec.get("devices"))
        if (found := _read_device(each, driver=driver, pool=pool, node=node)) is not None
    ]
    return Slice(tuple(devices)) if devices else None


def _read_device(item: Json, *, driver: str, pool: str, node: str) -> Device | None:
    name = read_text(item.get("name"))
    if name is None:
        return None
    inner = as_object(item.get("basic")) or item
    # An attribute may carry its driver's name: gpu.nvidia.com/uuid.
    told = {key.rpartition("/")[2]: as_object(value) for key, value in as_object(inner.get("attributes")).items()}

    def text(key: str) -> str | None:
        return read_text(told.get(key, {}).get("string"))

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
        index=None if is_mig else _find_index(told, name),
        uuid=GpuUuid(uuid) if uuid and _UUID.fullmatch(uuid) else None,
        product=text("productName"),
        mig_profile=(text("profile") or "mig") if is_mig else None,
        memory_bytes=read_count(as_object(memory).get("value", memory)) or None,
    )


def _find_index(told: dict[str, dict[str, object]], name: str) -> int | None:
    """NVML's index where the driver tells it, else the minor number, which is the same but on odd machines."""
    for key in ("index", "minor"):
        number = read_int(told.get(key, {}).get("int"))
        if number is not None and number >= 0:
            return number
    found = _NUMBERED.fullmatch(name)
    return int(found[1]) if found else None


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
    asked = min(sum(_iter_asked(item, settings)), MAX_ASKED)
    if not devices and not asked:
        return None
    holders = (
        read_text(each.get("uid"))
        for each in iter_objects(dig(item, "status", "reservedFor"))
        if each.get("resource") == "pods"
    )
    return Claim(namespace, name, asked, devices, tuple(uid for uid in holders if uid))


def _iter_asked(item: Json, settings: KubernetesSettings) -> Iterator[int]:
    for request in iter_objects(dig(item, "spec", "devices", "requests")):
        choices = list(iter_objects(request.get("firstAvailable")))
        exact = as_object(request.get("exactly")) or (choices[0] if choices else request)
        device_class = read_text(exact.get("deviceClassName")) or ""
        if not _is_gpu_class(device_class, settings) or exact.get("adminAccess") is True:
            continue
        if exact.get("allocationMode") != "All":  # how many "all" are is known once they are given
            yield 1 if (count := read_int(exact.get("count"))) is None else max(0, count)


def _is_gpu_class(name: str, settings: KubernetesSettings) -> bool:
    """A class is named as its driver, or ``mig.nvidia.com`` beside ``gpu.nvidia.com``."""
    return any(name in (driver, driver.replace("gpu.", "mig.", 1)) for driver in settings.device_drivers)
