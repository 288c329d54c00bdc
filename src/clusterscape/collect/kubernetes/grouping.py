"""Which pods are one workload: those of the same owner, followed to the top, or of the same group by label. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterscape.collect.kubernetes.facts import KueueWorkload, Meta, OwnerFacts, OwnerRef, PodFacts, PodGroup
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.model import WorkloadId

NAME = "kubernetes"

_NOT_WORKLOADS = frozenset({"CronJob", "Node", "ScheduledWorkflow", "ScheduledSparkApplication", "PodGroup"})
"""Kinds that create workloads repeatedly, or are not workloads: the object below is the workload."""


@dataclass(slots=True)
class Group:
    """The objects of one workload: its top owner, its pods, and its queue entries."""

    id: WorkloadId
    kind: str
    name: str
    namespace: str
    owner: OwnerFacts | None = None
    pods: list[PodFacts] = field(default_factory=list)
    kueue: KueueWorkload | None = None
    pod_group: PodGroup | None = None

    @property
    def metas(self) -> list[Meta]:
        """Where labels may be, the top first."""
        metas = [self.owner.meta] if self.owner else []
        metas += [self.kueue.meta] if self.kueue else []
        return metas + [pod.meta for pod in self.pods]


def workload_id(namespace: str, name: str, uid: str) -> WorkloadId:
    """``kubernetes:team-a.train.1f3c9a2b``: a name is used again and again, the UID only once. A namespace has no dots."""
    return WorkloadId(f"{NAME}:{namespace}.{name}.{uid[:8]}" if uid else f"{NAME}:{namespace}.{name}")


def pod_alias(pod: Meta) -> WorkloadId:
    """The name under which exporters know a pod."""
    return WorkloadId(f"{NAME}:{pod.namespace}/{pod.name}")


def group_pods(snapshot: Snapshot) -> list[Group]:
    """All workloads that have pods, request some, or wait in a queue for admission."""
    groups: dict[str, Group] = {}
    for pod in snapshot.pods.values():
        _open(groups, snapshot, _find_top(pod.meta, snapshot), pod.meta.namespace).pods.append(pod)
    for owner in snapshot.owners.values():
        if owner.gpus and _find_top(owner.meta, snapshot).uid == owner.meta.uid:
            _open(groups, snapshot, OwnerRef(owner.meta.kind, owner.meta.name, owner.meta.uid), owner.meta.namespace)
    for workload in snapshot.kueue:
        _put_kueue(groups, snapshot, workload)
    for group in snapshot.pod_groups:
        top = _find_top(group.meta, snapshot)
        if top.uid in groups:
            groups[top.uid].pod_group = group
    return list(groups.values())


def _open(groups: dict[str, Group], snapshot: Snapshot, top: OwnerRef, namespace: str) -> Group:
    key = top.uid or f"{namespace}/{top.name}"
    if key not in groups:
        groups[key] = Group(
            workload_id(namespace, top.name, top.uid), top.kind, top.name, namespace, snapshot.owners.get(top.uid)
        )
    return groups[key]


def _put_kueue(groups: dict[str, Group], snapshot: Snapshot, workload: KueueWorkload) -> None:
    """Attach to the workload of its owners; without pods and with an unread owner kind, it creates the workload."""
    for uid in workload.owners:
        owner_facts: Mapping[str, OwnerFacts | PodFacts] = {**_one(snapshot.owners, uid), **_one(snapshot.pods, uid)}
        top = _find_top(owner_facts[uid].meta, snapshot) if uid in owner_facts else workload.meta.owner
        if top is None:
            continue
        key = top.uid or f"{workload.meta.namespace}/{top.name}"
        if key in groups or (workload.gpus and workload.is_active):
            _open(groups, snapshot, top, workload.meta.namespace).kueue = workload
            return


def _one(facts: Mapping[str, OwnerFacts] | Mapping[str, PodFacts], uid: str) -> Mapping[str, OwnerFacts | PodFacts]:
    return {uid: facts[uid]} if uid in facts else {}


def _find_top(meta: Meta, snapshot: Snapshot) -> OwnerRef:
    """The topmost owner that is a workload. An owner that cannot be read counts as the top, because its owner is unknown."""
    if meta.kind == "Pod" and meta.owner is None and meta.group is not None:
        return OwnerRef("pods", meta.group, "")
    top = OwnerRef(meta.kind, meta.name, meta.uid)
    parent = meta.owner
    visited = {meta.uid}
    while parent is not None and parent.kind not in _NOT_WORKLOADS and parent.uid not in visited:
        visited.add(parent.uid)
        top = parent
        parent_facts = snapshot.owners.get(parent.uid) or snapshot.pods.get(parent.uid)
        parent = parent_facts.meta.owner if parent_facts else None
    return top
