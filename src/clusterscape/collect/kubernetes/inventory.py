"""Builds nodes, units and partitions from a snapshot. Pure.

A node's GPUs are numbered from 0, as NVML does. MIG instances are left to exporters, which alone know the GPU they are cut from.
A queue is a partition: a ClusterQueue of Kueue has the nodes that its flavors mean, a Queue of Volcano all that have GPUs.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clusterscape.collect.kubernetes.facts import Device, Flavor, NodeFacts, QueueFacts
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.collect.kubernetes.values import read_count
from clusterscape.collect.targets import short_name
from clusterscape.model import Node, NodeId, NodeState, Partition, Unit, UnitId, UnitKind, gpu_unit_id
from clusterscape.model.machine_types import name_machine_type
from clusterscape.settings import KubernetesSettings

DEFAULT_QUEUE = "default"
"""Where pods go that no queue holds back."""

_WHOLE = ("/gpu", "/gpu.shared", "/i915")
_RACKS = ("topology.kubernetes.io/rack", "kubernetes.io/rack", "rack")

DeviceKey = tuple[str, str, str]
"""Driver, pool and device, as a claim names what it was given."""


@dataclass(frozen=True)
class Inventory:
    """The nodes, with what reading workloads needs to know of them. Nodes by the API's name in ``ids``."""

    nodes: tuple[Node, ...] = ()
    units: tuple[Unit, ...] = ()
    partitions: tuple[Partition, ...] = ()
    ids: Mapping[str, NodeId] = field(default_factory=dict)
    node_units: Mapping[NodeId, tuple[UnitId, ...]] = field(default_factory=dict)
    shared_nodes: frozenset[NodeId] = frozenset()  # where a GPU is offered more than once
    machine_types: Mapping[NodeId, str | None] = field(default_factory=dict)
    products: Mapping[str, str | None] = field(default_factory=dict)  # label → machine type
    partition_types: Mapping[str, str | None] = field(default_factory=dict)  # None: several
    devices: Mapping[DeviceKey, Device] = field(default_factory=dict)
    host_names: Mapping[NodeId, tuple[str, ...]] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)


@functools.lru_cache(maxsize=1024)  # a cluster has few kinds of nodes
def _machine_type(product: str | None, memory_bytes: int | None) -> str | None:
    return None if product is None else name_machine_type(product, memory_bytes)


def build_inventory(snapshot: Snapshot, settings: KubernetesSettings, *, has_unqueued: bool) -> Inventory:
    """``has_unqueued``: some workload is in no queue, so that the default one is shown."""
    dropped: Counter[str] = Counter()
    by_node: dict[str, list[Device]] = {}
    for device in snapshot.devices:
        by_node.setdefault(device.node, []).append(device)
    ids: dict[str, NodeId] = {}
    units: dict[NodeId, list[Unit]] = {}
    facts: list[NodeFacts] = []
    for node in snapshot.nodes:
        key = short_name(node.name)
        if key in units:
            dropped["nodes: two with the same short name"] += 1
            continue
        ids[node.name] = key
        units[key] = _make_units(node, key, by_node.get(node.name, ()))
        facts.append(node)
    partitions = _make_partitions(snapshot, settings, facts, ids, units, has_unqueued=has_unqueued)
    homes: dict[NodeId, list[str]] = {}
    for partition in sorted(
        partitions, key=lambda partition: (len(partition.nodes), partition.name)
    ):  # most specific first
        for key in partition.nodes:
            homes.setdefault(key, []).append(partition.name)
    held = _count_held(snapshot)
    nodes = [
        _make_node(node, key, units[key], tuple(homes.get(key, ())), held[node.name])
        for node in facts
        for key in (ids[node.name],)
    ]
    types = {node.id: node.machine_type for node in nodes}
    return Inventory(
        nodes=tuple(nodes),
        units=tuple(unit for node_units in units.values() for unit in node_units),
        partitions=tuple(partitions),
        ids=ids,
        node_units={key: tuple(unit.id for unit in node_units) for key, node_units in units.items()},
        shared_nodes=frozenset(ids[node.name] for node in facts if _is_shared(node)),
        machine_types=types,
        products={node.product: types[ids[node.name]] for node in facts if node.product},
        partition_types={partition.name: _only(types[node] for node in partition.nodes) for partition in partitions},
        host_names={ids[node.name]: (node.name, *node.addresses) for node in facts},
        devices={(device.driver, device.pool, device.name): device for device in snapshot.devices},
        dropped=dict(dropped),
    )


def _make_units(node: NodeFacts, key: NodeId, devices: Sequence[Device]) -> list[Unit]:
    """The node's whole GPUs: those listed by a DRA driver, with UUIDs, filled up to the node's GPU count."""
    listed: dict[int, Device] = {}
    for device in sorted(devices, key=lambda device: device.name):
        if device.mig_profile is None:
            index = len(listed) if device.index is None else device.index
            listed.setdefault(index, device)
    count = 0 if node.mig_profile else _count_whole(node)
    machine_type = _machine_type(node.product, node.gpu_memory_bytes)
    units = []
    for index in sorted({*range(count), *listed}):
        listed_device = listed.get(index)
        own_type = _machine_type(listed_device.product, listed_device.memory_bytes) if listed_device else None
        units.append(
            Unit(
                id=gpu_unit_id(key, index),
                kind=UnitKind.GPU,
                node=key,
                index=index,
                uuid=listed_device.uuid if listed_device else None,
                machine_type=own_type or machine_type,
                memory_bytes=(listed_device.memory_bytes if listed_device else None) or node.gpu_memory_bytes,
            )
        )
    return units


def _count_whole(node: NodeFacts) -> int:
    """Physical GPUs, however often each is offered."""
    offered = sum(count for resource, count in node.gpus.items() if resource.endswith(_WHOLE))
    if node.physical_gpus is not None:
        return node.physical_gpus
    return -(-offered // max(1, read_count(node.labels.get("nvidia.com/gpu.replicas"))))


def _is_shared(node: NodeFacts) -> bool:
    offered = sum(count for resource, count in node.gpus.items() if resource.endswith(_WHOLE))
    return node.mig_profile is None and offered > _count_whole(node)


def _count_held(snapshot: Snapshot) -> Counter[str]:
    """GPUs that pods hold, by the API's name of their node."""
    held: Counter[str] = Counter()
    for pod in snapshot.pods.values():
        if pod.is_bound and pod.node is not None:
            claimed = sum(
                len(claim.devices) for name in pod.claims if (claim := snapshot.claims.get((pod.meta.namespace, name)))
            )
            held[pod.node] += pod.gpu_count + claimed
    return held


def _make_node(node: NodeFacts, key: NodeId, units: Sequence[Unit], partitions: tuple[str, ...], held: int) -> Node:
    state = node.state
    if state is NodeState.IDLE and held:
        offered = max(len(units), sum(node.gpus.values()))
        state = NodeState.ALLOCATED if held >= offered else NodeState.MIXED
    elif state is NodeState.DRAINED and held:
        state = NodeState.DRAINING
    slices = (f"{resource.rpartition('/')[2]}={count}" for resource, count in node.gpus.items() if "/mig-" in resource)
    types = sorted({unit.machine_type for unit in units if unit.machine_type})
    return Node(
        id=key,
        partitions=partitions,
        machine_type="+".join(types) or _machine_type(node.product, None),
        state=state,
        reason=node.reason,
        gpu_count=len(units),
        cpu_count=node.cpu_count,
        memory_bytes=node.memory_bytes,
        features=(*slices, *node.taints),
        rack=next((text for label in _RACKS if (text := node.labels.get(label))), None),
    )


def _make_partitions(
    snapshot: Snapshot,
    settings: KubernetesSettings,
    facts: Iterable[NodeFacts],
    ids: Mapping[str, NodeId],
    units: Mapping[NodeId, Sequence[Unit]],
    *,
    has_unqueued: bool,
) -> list[Partition]:
    with_gpus = [node for node in facts if node.gpus or units[ids[node.name]]]
    everywhere = tuple(ids[node.name] for node in with_gpus)
    partitions: dict[str, Partition] = {}
    for queue in snapshot.cluster_queues:
        nodes = tuple(ids[node.name] for node in with_gpus if _serves(queue, node, snapshot.flavors))
        partitions[queue.name] = Partition(name=settings.queue_prefix + queue.name, nodes=nodes, is_up=queue.is_open)
    for queue in snapshot.volcano_queues:
        name = settings.queue_prefix + queue.name
        partitions.setdefault(queue.name, Partition(name=name, nodes=everywhere, is_up=queue.is_open))
    if has_unqueued or not partitions:
        default = Partition(name=settings.queue_prefix + DEFAULT_QUEUE, nodes=everywhere, is_default=True)
        partitions[DEFAULT_QUEUE] = replace(partitions.get(DEFAULT_QUEUE, default), is_default=True)
    return [partitions[name] for name in sorted(partitions)]


def _serves(queue: QueueFacts, node: NodeFacts, flavors: Mapping[str, Flavor]) -> bool:
    """Whether one of the queue's flavors means this node. One that is not there (yet) means none."""
    return any(
        all(node.labels.get(label) == value for label, value in flavor.node_labels.items())
        for name in queue.flavors
        if (flavor := flavors.get(name)) is not None
    )


def _only(names: Iterable[str | None]) -> str | None:
    distinct = set(names)
    return distinct.pop() if len(distinct) == 1 else None
