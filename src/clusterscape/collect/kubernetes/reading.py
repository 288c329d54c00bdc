"""From what the watches hold to nodes, queues and workloads: the whole way, pure. Used by the collector and by doctor."""

from clusterscape.collect.kubernetes.grouping import group_pods
from clusterscape.collect.kubernetes.inventory import Inventory, build_inventory
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.collect.kubernetes.workloads import Queue, build_queue, has_unqueued
from clusterscape.model import UnixMs
from clusterscape.settings import KubernetesSettings


def read_snapshot(seen: Snapshot, settings: KubernetesSettings, now_ms: UnixMs) -> tuple[Inventory, Queue]:
    """The cluster of one moment in our words. Pure."""
    groups = group_pods(seen)
    inventory = build_inventory(seen, settings, has_unqueued=has_unqueued(groups, seen))
    return inventory, build_queue(groups, seen, inventory, settings, now_ms)
