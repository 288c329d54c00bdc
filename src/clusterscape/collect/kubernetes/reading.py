"""Converts a snapshot to nodes, queues and workloads. Pure; used by the collector and by doctor."""

from clusterscape.collect.kubernetes.grouping import group_pods
from clusterscape.collect.kubernetes.inventory import Inventory, build_inventory
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.collect.kubernetes.workloads import Queue, build_queue, has_unqueued
from clusterscape.model import UnixMs
from clusterscape.settings import KubernetesSettings


def read_snapshot(snapshot: Snapshot, settings: KubernetesSettings, now_ms: UnixMs) -> tuple[Inventory, Queue]:
    """The inventory and the queue of a snapshot."""
    groups = group_pods(snapshot)
    inventory = build_inventory(snapshot, settings, has_unqueued=has_unqueued(groups, snapshot))
    return inventory, build_queue(groups, snapshot, inventory, settings, now_ms)
