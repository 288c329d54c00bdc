"""The GPUs that a workload's pods hold: by device if the scheduler, the kubelet or an annotation names it, else whole nodes.

Otherwise there is no allocation: it is never guessed. Exporters that label GPUs with pods may provide it.
"""

from collections.abc import Iterator, Sequence

from clusterscape.collect.kubernetes.facts import PodFacts
from clusterscape.collect.kubernetes.inventory import Inventory
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.model import (
    CONFIDENCE,
    Allocation,
    AllocationSource,
    NodeId,
    UnitId,
    UnixMs,
    WorkloadId,
    gpu_unit_id,
    unplaced_unit_id,
)

Holding = tuple[UnitId, AllocationSource]


def allocations_of(
    workload: WorkloadId, pods: Sequence[PodFacts], snapshot: Snapshot, inventory: Inventory, now_ms: UnixMs
) -> tuple[list[Allocation], int]:
    """Open allocations of bound pods, and the number of pods whose GPUs are unknown."""
    allocations: dict[UnitId, Allocation] = {}
    unplaced: dict[NodeId, list[PodFacts]] = {}
    for pod in pods:
        node = inventory.ids.get(pod.node or "")
        if node is None:
            continue
        holdings = list(_iter_named(pod, node, snapshot, inventory))
        for unit, source in holdings:
            allocations.setdefault(unit, _make(workload, unit, pod.bound_at, source, now_ms))
        if not holdings and pod.gpu_count:
            unplaced.setdefault(node, []).append(pod)
    missing = 0
    for node, node_pods in unplaced.items():
        units = inventory.node_units.get(node, ())
        if units and sum(pod.gpu_count for pod in node_pods) == len(units) and node not in inventory.shared_nodes:
            begin = min((pod.bound_at for pod in node_pods if pod.bound_at is not None), default=None)
            for unit in units:
                allocations.setdefault(unit, _make(workload, unit, begin, AllocationSource.WHOLE_NODE, now_ms))
        else:
            missing += len(node_pods)
    return list(allocations.values()), missing


def _make(
    workload: WorkloadId, unit: UnitId, begin: UnixMs | None, source: AllocationSource, now_ms: UnixMs
) -> Allocation:
    from_at = now_ms if begin is None else begin
    return Allocation(workload=workload, unit=unit, from_at=from_at, source=source, confidence=CONFIDENCE[source])


def _iter_named(pod: PodFacts, node: NodeId, snapshot: Snapshot, inventory: Inventory) -> Iterator[Holding]:
    yield from _iter_claimed(pod, node, snapshot, inventory)
    kubelets = AllocationSource.POD_RESOURCES if pod.are_uuids_kubelets else AllocationSource.SCHEDULER_INDEX
    yield from ((unplaced_unit_id(uuid), kubelets) for uuid in pod.uuids)
    if not pod.uuids:
        units = set(inventory.node_units.get(node, ()))
        for index in pod.indices:
            if (unit := gpu_unit_id(node, index)) in units:
                yield unit, AllocationSource.SCHEDULER_INDEX


def _iter_claimed(pod: PodFacts, node: NodeId, snapshot: Snapshot, inventory: Inventory) -> Iterator[Holding]:
    """Devices of the pod's claims: the scheduler itself chose them."""
    for name in pod.claims:
        claim = snapshot.claims.get((pod.meta.namespace, name))
        if claim is None or (claim.holders and pod.meta.uid not in claim.holders):
            continue
        for key in claim.devices:
            device = inventory.devices.get(key)
            if device is None or inventory.ids.get(device.node) != node:
                continue
            if device.uuid is not None:
                yield unplaced_unit_id(device.uuid), AllocationSource.SCHEDULER_INDEX
            elif device.index is not None and device.mig_profile is None:
                yield gpu_unit_id(node, device.index), AllocationSource.SCHEDULER_INDEX
