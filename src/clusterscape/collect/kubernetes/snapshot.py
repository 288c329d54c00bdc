"""All that the watches hold at one moment, by kind. Sorted by UID, so that the same cluster always reads the same."""

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
    held: Iterable[tuple[str, Mapping[str, object]]], departed: Iterable[Mapping[str, object]] = (), *, now_ms: UnixMs
) -> Snapshot:
    """From (key of the kind, facts by UID), and what was deleted since the last look: pods and owners, which have ended now."""
    seen = Snapshot()
    for facts in departed:
        for uid, fact in sorted(facts.items()):
            if isinstance(fact, PodFacts):
                seen.pods[uid] = replace(fact, ending=fact.ending or end_deleted(fact.disruption, now_ms))
            elif isinstance(fact, OwnerFacts):
                seen.owners[uid] = replace(fact, ending=fact.ending or end_deleted(None, now_ms))
    for key, facts in held:
        for uid in sorted(facts):
            _put(seen, key, uid, facts[uid])
    seen.nodes.sort(key=lambda node: node.name)
    return seen


def _put(seen: Snapshot, key: str, uid: str, fact: object) -> None:
    match fact:
        case NodeFacts():
            seen.nodes.append(fact)
        case PodFacts():
            seen.pods[uid] = fact
        case OwnerFacts():
            seen.owners[uid] = fact
        case Claim():
            seen.claims[fact.namespace, fact.name] = fact
        case Slice():
            seen.devices += fact.devices
        case QueueFacts():
            (seen.cluster_queues if key == "cluster queues" else seen.volcano_queues).append(fact)
        case LocalQueue():
            seen.local_queues[fact.namespace, fact.name] = fact
        case Flavor():
            seen.flavors[fact.name] = fact
        case KueueWorkload():
            seen.kueue.append(fact)
        case PodGroup():
            seen.pod_groups.append(fact)
