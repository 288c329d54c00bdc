"""Reads nodes: GPUs, what the feature discoverers' labels say of them, whether they take work. Units are made elsewhere."""

import re
from collections.abc import Mapping

from clusterscape.collect.kubernetes.facts import NodeFacts
from clusterscape.collect.kubernetes.parse_pods import is_gpu
from clusterscape.collect.kubernetes.values import (
    Json,
    StatusCondition,
    as_object,
    iter_objects,
    read_conditions,
    read_count,
    read_text,
    read_texts,
)
from clusterscape.model import NodeState
from clusterscape.settings import KubernetesSettings

MAX_GPUS_PER_NODE = 1024
MEBIBYTE = 2**20

_OWN_TAINTS = "node.kubernetes.io/"
_PRODUCTS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
)
_MIG_PRODUCT = re.compile(r"(.*?)-MIG-(\d+g\.\d+gb.*?)(?:-SHARED)?", re.IGNORECASE)


def parse_node(item: Json, settings: KubernetesSettings) -> NodeFacts | None:
    """A node; None without a name."""
    name = read_text(as_object(item.get("metadata")).get("name"))
    if name is None:
        return None
    spec, status = as_object(item.get("spec")), as_object(item.get("status"))
    labels = read_texts(as_object(item.get("metadata")).get("labels"))
    capacity = as_object(status.get("capacity"))
    taints = tuple(_iter_taint_texts(spec))
    is_cordoned = spec.get("unschedulable") is True
    state, reason = _read_state(read_conditions(status.get("conditions")), is_cordoned=is_cordoned, taints=taints)
    product, profile = _read_product(labels)
    return NodeFacts(
        name=name,
        state=state,
        reason=reason,
        is_cordoned=is_cordoned,
        labels=labels,
        taints=taints,
        gpus={
            resource: min(count, MAX_GPUS_PER_NODE)
            for resource, quantity in capacity.items()
            if is_gpu(resource, settings.gpu_resources) and (count := read_count(quantity))
        },
        physical_gpus=_read_physical(labels),
        product=product,
        mig_profile=profile,
        gpu_memory_bytes=_read_memory(labels),
        cpu_count=read_count(capacity.get("cpu")) or None,
        memory_bytes=read_count(capacity.get("memory")) or None,
        addresses=tuple(
            text for address in iter_objects(status.get("addresses")) if (text := read_text(address.get("address")))
        ),
    )


def _iter_taint_texts(spec: Json) -> list[str]:
    """Taints that keep pods away, but for the server's own and those that only say "here are GPUs"."""
    texts = []
    for taint in iter_objects(spec.get("taints")):
        key, effect = read_text(taint.get("key")), read_text(taint.get("effect"))
        if key is None or effect == "PreferNoSchedule" or key.startswith(_OWN_TAINTS) or key.endswith("/gpu"):
            continue
        value = read_text(taint.get("value"))
        texts.append(f"{key}={value}:{effect}" if value else f"{key}:{effect}")
    return texts


def _read_state(
    conditions: Mapping[str, StatusCondition], *, is_cordoned: bool, taints: tuple[str, ...]
) -> tuple[NodeState, str | None]:
    """Whether it takes work; how busy it is its pods tell."""
    ready = conditions.get("Ready")
    if ready is None:
        return NodeState.UNKNOWN, "the node has not reported yet"
    if not ready.is_true:
        return NodeState.DOWN, ready.message or ready.reason or "not ready"
    if is_cordoned:
        why = f"cordoned; {', '.join(taints)}" if taints else "cordoned"
        return NodeState.DRAINED, why
    return NodeState.IDLE, None


def _read_product(labels: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The GPUs' product name, and the MIG profile where the strategy "single" made it part of the name."""
    product = next((text for key in _PRODUCTS if (text := labels.get(key))), None)
    if product is None:
        return None, None
    cut = _MIG_PRODUCT.fullmatch(product)
    return (cut[1], cut[2].lower()) if cut else (product.removesuffix("-SHARED"), None)


def _read_physical(labels: Mapping[str, str]) -> int | None:
    """How many GPUs there are whatever the number that is offered: time slicing and MPS offer each several times."""
    count = read_count(labels.get("nvidia.com/gpu.count")) or read_count(labels.get("amd.com/gpu.count"))
    return min(count, MAX_GPUS_PER_NODE) or None


def _read_memory(labels: Mapping[str, str]) -> int | None:
    """In MiB for NVIDIA (``81559``); AMD writes ``192G``."""
    nvidia = read_count(labels.get("nvidia.com/gpu.memory"))
    if nvidia:
        return nvidia * MEBIBYTE
    match = re.fullmatch(r"(\d{1,4})G", labels.get("amd.com/gpu.vram", ""))
    return int(match[1]) * 2**30 if match else None
