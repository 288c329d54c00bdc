"""All watched objects at one moment, by kind. Sorted by UID, so that the result is deterministic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from clusterscape.collect.kubernetes.endings import end_deleted
from clusterscape.collect.kubernetes.facts import (
    Claim,
    Device,
    Flavor,
    KueueWorkload,
    LocalQueue,
    NodeFacts,
    OwnerFacts,
    PodFacts,
    PodGroup,
    QueueFacts,
    Slice,
)
from clusterscape.model import UnixMs


@dataclass(slots=True)
class Snapshot:
    """Pods and owners by UID; claims by namespace and name."""

    nodes: list[NodeFacts] = field(default_factory=list)
    pods: dict[str, PodFacts] = field(default_factory=dict)
    owners: dict[str, OwnerFacts] = field(default_factory=dict)
    claims: dict[tuple[str, str], Claim] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)
    cluster_queues: list[QueueFacts] = field(default_factory=list)
    volcano_queues: list[QueueFacts] = field(default_factory=list)
    local_queues: dict[tuple[str, str], LocalQueue] = field(default_factory=dict)
    flavors: dict[str, Flavor] = field(default_factory=dict)
    kueue: list[KueueWorkload] = field(default_factory=list)
    pod_groups: list[PodGroup] = field(default_factory=list)


def take_snapshot(
    watched: Iterable[tuple[str, Mapping[str, object]]],
    departed: Iterable[Mapping[str, object]] = (),
    *,
    now_ms: UnixMs,
) -> Snapshot:
    """Build a snapshot from (kind, facts by UID) and from deleted pods and owners, which count as ended now."""
    snapshot = Snapshot()
    for facts in departed:
        for uid, fact in sorted(facts.items()):
            if isinstance(fact, PodFacts):
                snapshot.pods[uid] = replace(fact, ending=fact.ending or end_deleted(fact.disruption, now_ms))
            elif isinstance(fact, OwnerFacts):
                snapshot.owners[uid] = replace(fact, ending=fact.ending or end_deleted(None, now_ms))
    for key, facts in watched:
        for uid in sorted(facts):
            _put(snapshot, key, uid, facts[uid])
    snapshot.nodes.sort(key=lambda node: node.name)
    return snapshot


def _put(snapshot: Snapshot, key: str, uid: str, fact: object) -> None:
    match fact:
        case NodeFacts():
            snapshot.nodes.append(fact)
        case PodFacts():
            snapshot.pods[uid] = fact
        case OwnerFacts():
            snapshot.owners[uid] = fact
        case Claim():
            snapshot.claims[fact.namespace, fact.name] = fact
        case Slice():
            snapshot.devices += fact.devices
        case QueueFacts():
            (snapshot.cluster_queues if key == "cluster queues" else snapshot.volcano_queues).append(fact)
        case LocalQueue():
            snapshot.local_queues[fact.namespace, fact.name] = fact
        case Flavor():
            snapshot.flavors[fact.name] = fact
        case KueueWorkload():
            snapshot.kueue.append(fact)
        case PodGroup():
            snapshot.pod_groups.append(fact)
