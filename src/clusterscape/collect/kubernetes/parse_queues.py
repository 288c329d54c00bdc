"""Reads queues and what waits in them: those of Kueue with flavors and Workloads, those of Volcano with PodGroups."""

from clusterscape.collect.kubernetes.facts import Flavor, KueueWorkload, LocalQueue, PodGroup, QueueFacts
from clusterscape.collect.kubernetes.meta import read_meta
from clusterscape.collect.kubernetes.parse_pods import is_gpu, read_gpus
from clusterscape.collect.kubernetes.values import (
    Json,
    as_object,
    dig,
    iter_objects,
    read_conditions,
    read_count,
    read_int,
    read_text,
    read_texts,
)
from clusterscape.settings import KubernetesSettings


def parse_cluster_queue(item: Json, settings: KubernetesSettings) -> QueueFacts | None:
    """Flavors are those with GPUs in them; a queue without GPUs is none of ours."""
    quotas: dict[str, int] = {}
    for group in iter_objects(dig(item, "spec", "resourceGroups")):
        for flavor in iter_objects(group.get("flavors")):
            for resource in iter_objects(flavor.get("resources")):
                name = read_text(flavor.get("name"))
                if name and is_gpu(read_text(resource.get("name")) or "", settings.gpu_resources):
                    quotas[name] = quotas.get(name, 0) + read_count(resource.get("nominalQuota"))
    name = read_text(dig(item, "metadata", "name"))
    if name is None or not quotas:
        return None
    status = as_object(item.get("status"))
    used = sum(
        read_count(resource.get("total"))
        for flavor in iter_objects(status.get("flavorsUsage"))
        for resource in iter_objects(flavor.get("resources"))
        if is_gpu(read_text(resource.get("name")) or "", settings.gpu_resources)
    )
    active = read_conditions(status.get("conditions")).get("Active")
    stopped = dig(item, "spec", "stopPolicy") in ("Hold", "HoldAndDrain")
    return QueueFacts(
        name=name,
        is_open=not stopped and (active is None or active.is_true),
        flavors=tuple(quotas),
        quotas=quotas,
        used=used,
        waiting=read_int(status.get("pendingWorkloads")),
    )


def parse_local_queue(item: Json) -> LocalQueue | None:
    """A LocalQueue."""
    namespace, name = (read_text(dig(item, "metadata", key)) for key in ("namespace", "name"))
    if namespace is None or name is None:
        return None
    return LocalQueue(namespace, name, read_text(dig(item, "spec", "clusterQueue")))


def parse_flavor(item: Json) -> Flavor | None:
    """A ResourceFlavor."""
    name = read_text(dig(item, "metadata", "name"))
    return None if name is None else Flavor(name, read_texts(dig(item, "spec", "nodeLabels")))


def parse_kueue_workload(item: Json, settings: KubernetesSettings) -> KueueWorkload:
    """A Workload of Kueue, of v1beta1 and v1beta2."""
    spec, status = as_object(item.get("spec")), as_object(item.get("status"))
    sets = [
        (read_int(entry.get("count")) or 0, sum(read_gpus(pod, settings.gpu_resources).values()))
        for entry in iter_objects(spec.get("podSets"))
        for pod in (as_object(dig(entry, "template", "spec")),)
    ]
    flavors = {
        flavor
        for entry in iter_objects(dig(status, "admission", "podSetAssignments"))
        for resource, flavor in read_texts(entry.get("flavors")).items()
        if is_gpu(resource, settings.gpu_resources)
    }
    owners = (read_text(entry.get("uid")) for entry in iter_objects(dig(item, "metadata", "ownerReferences")))
    return KueueWorkload(
        meta=read_meta(item, settings, kind="Workload"),
        owners=tuple(uid for uid in owners if uid),
        local_queue=read_text(spec.get("queueName")),
        cluster_queue=read_text(dig(status, "admission", "clusterQueue")),
        flavors=tuple(sorted(flavors)),
        gpus=sum(count * gpus for count, gpus in sets),
        pods=sum(count for count, gpus in sets if gpus),
        priority=read_int(spec.get("priority")),
        priority_class=read_text(spec.get("priorityClassName")) or read_text(dig(spec, "priorityClassRef", "name")),
        is_active=spec.get("active") is not False,
        conditions=read_conditions(status.get("conditions")),
    )


def parse_volcano_queue(item: Json, settings: KubernetesSettings) -> QueueFacts | None:
    """A Queue of Volcano; ``capability`` is its limit, where it has one."""
    name = read_text(dig(item, "metadata", "name"))
    if name is None:
        return None
    status = as_object(item.get("status"))

    def sum_gpus(amounts: object) -> int:
        return sum(read_count(v) for k, v in as_object(amounts).items() if is_gpu(k, settings.gpu_resources))

    limit = sum_gpus(dig(item, "spec", "capability"))
    return QueueFacts(
        name=name,
        is_open=read_text(status.get("state")) in (None, "Open"),
        quotas={"capability": limit} if limit else {},
        used=sum_gpus(status.get("allocated")),
        waiting=read_int(status.get("pending")),
    )


def parse_pod_group(item: Json, settings: KubernetesSettings) -> PodGroup:
    """A PodGroup of Volcano."""
    spec, status = as_object(item.get("spec")), as_object(item.get("status"))
    blocked = read_conditions(status.get("conditions")).get("Unschedulable")
    return PodGroup(
        meta=read_meta(item, settings, kind="PodGroup"),
        queue=read_text(spec.get("queue")),
        phase=read_text(status.get("phase")),
        min_pods=read_int(spec.get("minMember")),
        waiting=blocked if blocked and blocked.is_true else None,
    )
