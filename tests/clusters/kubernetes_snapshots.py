"""A cluster's objects read as the collector reads them, without a server."""

import uuid
from typing import Any

from clusterscape.collect.kubernetes.inventory import Inventory
from clusterscape.collect.kubernetes.reading import read_snapshot
from clusterscape.collect.kubernetes.resources import RESOURCES
from clusterscape.collect.kubernetes.snapshot import Snapshot, take_snapshot
from clusterscape.collect.kubernetes.workloads import Queue
from clusterscape.model import UnixMs
from clusterscape.settings import KubernetesSettings

Json = dict[str, Any]

SETTINGS = KubernetesSettings(mode="url", url="http://127.0.0.1:1")
NOW = UnixMs(1_794_733_200_000)  # 2026-11-15T09:00:00Z

_KEYS = {
    "Node": "nodes",
    "Pod": "pods",
    "ResourceClaim": "claims",
    "ResourceSlice": "slices",
    "ClusterQueue": "cluster queues",
    "LocalQueue": "local queues",
    "ResourceFlavor": "flavors",
    "Workload": "kueue workloads",
    "Queue": "volcano queues",
    "PodGroup": "pod groups",
    "Job": "owner jobs.batch",
    "Deployment": "owner deployments.apps",
    "ReplicaSet": "owner replicasets.apps",
    "PyTorchJob": "owner pytorchjobs.kubeflow.org",
}


def stored(thing: Json, **status: Any) -> Json:
    """As the server gives it back: with a UID of its own and a time."""
    metadata = {
        "creationTimestamp": "2026-11-15T08:00:00Z",
        "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, str(thing["metadata"]))),
    }
    return thing | {"metadata": metadata | thing["metadata"]} | ({"status": status} if status else {})


def look(*things: Json, settings: KubernetesSettings = SETTINGS) -> Snapshot:
    """Contents of watches of these objects."""
    parse = {resource.key: resource.parse for resource in RESOURCES}
    held: dict[str, dict[str, object]] = {}
    for thing in map(stored, things):
        key = _KEYS[thing["kind"]]
        fact = parse[key](thing, settings)
        if fact is not None:
            held.setdefault(key, {})[thing["metadata"]["uid"]] = fact
    return take_snapshot(held.items(), now_ms=NOW)


def read(*things: Json, settings: KubernetesSettings = SETTINGS) -> tuple[Inventory, Queue]:
    """Nodes and workloads of these objects."""
    return read_snapshot(look(*things, settings=settings), settings, NOW)
