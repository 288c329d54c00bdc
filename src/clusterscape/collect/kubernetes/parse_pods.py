"""Reads pods: what they ask for, where they are bound, why they wait or how they ended."""

import fnmatch
import functools
import re
from collections.abc import Iterator, Mapping

from clusterscape.collect.kubernetes.endings import read_pod_ending
from clusterscape.collect.kubernetes.facts import PodFacts
from clusterscape.collect.kubernetes.meta import read_meta
from clusterscape.collect.kubernetes.values import (
    Json,
    StatusCondition,
    as_object,
    dig,
    iter_objects,
    read_conditions,
    read_count,
    read_int,
    read_text,
    read_texts,
    read_time,
)
from clusterscape.model import GpuUuid, UnixMs
from clusterscape.settings import KubernetesSettings

MAX_GPUS_PER_POD = 1024
_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-fA-F-]{8,40}(?:/\d+/\d+)?")
_INDICES = re.compile(r"\d{1,3}(?:,\d{1,3})*", re.ASCII)
_NO_TROUBLE = frozenset({"ContainerCreating", "PodInitializing"})


@functools.lru_cache(maxsize=4096)
def is_gpu(resource: str, patterns: tuple[str, ...]) -> bool:
    """Whether the settings call this extended resource a GPU."""
    return any(fnmatch.fnmatchcase(resource, pattern) for pattern in patterns)


def read_gpus(spec: Json, patterns: tuple[str, ...]) -> dict[str, int]:
    """GPUs of a pod by resource: the sum over its containers, or the most that one that runs before them wants."""
    total: dict[str, int] = {}
    for container in iter_objects(spec.get("containers")):
        for resource, count in _iter_gpus(container, patterns):
            total[resource] = total.get(resource, 0) + count
    for container in iter_objects(spec.get("initContainers")):
        for resource, count in _iter_gpus(container, patterns):
            total[resource] = max(total.get(resource, 0), count)
    return {resource: min(count, MAX_GPUS_PER_POD) for resource, count in total.items() if count}


def _iter_gpus(container: Json, patterns: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    resources = as_object(container.get("resources"))
    # Of an extended resource both are the same; where one is missing the server fills it in, templates may not.
    requested = as_object(resources.get("limits")) | as_object(resources.get("requests"))
    for resource, quantity in requested.items():
        if is_gpu(resource, patterns):
            yield resource, read_count(quantity)


def parse_pod(item: Json, settings: KubernetesSettings) -> PodFacts | None:
    """A pod; None where it asks for no GPU and no claim."""
    spec, status = as_object(item.get("spec")), as_object(item.get("status"))
    gpus = read_gpus(spec, settings.gpu_resources)
    claims, has_unmade = _read_claims(spec, status)
    if not gpus and not claims and not has_unmade:
        return None
    conditions = read_conditions(status.get("conditions"))
    node = read_text(spec.get("nodeName"))
    notes = read_texts(dig(item, "metadata", "annotations"))
    allocated = _read_allocated(status, settings)
    noted = [text for name in settings.device_annotations if (text := notes.get(name))]
    return PodFacts(
        meta=read_meta(item, settings, kind="Pod"),
        node=node,
        gpus=gpus,
        claims=claims,
        has_unmade_claims=has_unmade,
        priority=read_int(spec.get("priority")),
        priority_class=read_text(spec.get("priorityClassName")),
        scheduler=read_text(spec.get("schedulerName")),
        selector=read_texts(spec.get("nodeSelector")),
        deadline_s=read_int(spec.get("activeDeadlineSeconds")),
        bound_at=_bound_at(item, status, conditions) if node else None,
        ending=read_pod_ending(status, conditions),
        restarts=sum(read_int(container.get("restartCount")) or 0 for container in _containers(status)),
        waiting=None if node else _waiting(conditions),
        disruption=target.reason if (target := conditions.get("DisruptionTarget")) and target.is_true else None,
        trouble=_read_trouble(status) if node else None,
        uuids=allocated or tuple(GpuUuid(uuid) for text in noted for uuid in _UUID.findall(text)),
        are_uuids_kubelets=bool(allocated),
        indices=tuple(int(index) for text in noted if _INDICES.fullmatch(text) for index in text.split(",")),
    )


def _read_claims(spec: Json, status: Json) -> tuple[tuple[str, ...], bool]:
    """Claims by name, those made from templates too; and whether one is still to be made."""
    created = {
        read_text(claim.get("name")): read_text(claim.get("resourceClaimName"))
        for claim in iter_objects(status.get("resourceClaimStatuses"))
    }
    claims: list[str] = []
    has_unmade = False
    for claim in iter_objects(spec.get("resourceClaims")):
        # Up to v1alpha2 the name stood one level deeper.
        name = read_text(claim.get("resourceClaimName")) or read_text(dig(claim, "source", "resourceClaimName"))
        name = name or created.get(read_text(claim.get("name")))
        if name:
            claims.append(name)
        else:
            has_unmade = True
    return tuple(claims), has_unmade


def _containers(status: Json) -> Iterator[dict[str, object]]:
    yield from iter_objects(status.get("initContainerStatuses"))
    yield from iter_objects(status.get("containerStatuses"))


def _bound_at(item: Json, status: Json, conditions: Mapping[str, StatusCondition]) -> UnixMs | None:
    scheduled = conditions.get("PodScheduled")
    if scheduled and scheduled.is_true and scheduled.at:
        return scheduled.at
    return read_time(status.get("startTime")) or read_time(dig(item, "metadata", "creationTimestamp"))


def _waiting(conditions: Mapping[str, StatusCondition]) -> StatusCondition | None:
    scheduled = conditions.get("PodScheduled")
    return scheduled if scheduled and not scheduled.is_true else None


def _read_trouble(status: Json) -> str | None:
    for container in _containers(status):
        reason = read_text(dig(container, "state", "waiting", "reason"))
        if reason and reason not in _NO_TROUBLE:
            return reason
    return None


def _read_allocated(status: Json, settings: KubernetesSettings) -> tuple[GpuUuid, ...]:
    """Devices that the kubelet gave (its PodResources), where it tells the API server: ``allocatedResourcesStatus``.

    A GPU that is shared by time has its UUID with ``::replica`` behind it.
    """
    uuids: dict[GpuUuid, None] = {}
    for container in _containers(status):
        for resource in iter_objects(container.get("allocatedResourcesStatus")):
            if is_gpu(read_text(resource.get("name")) or "", settings.gpu_resources):
                for device in iter_objects(resource.get("resources")):
                    match = _UUID.match(read_text(device.get("resourceID")) or "")
                    if match:
                        uuids[GpuUuid(match[0])] = None
    return tuple(uuids)
