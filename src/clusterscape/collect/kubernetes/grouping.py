"""Which pods are one workload: those of the same owner, followed to the top, or of the same group by label. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterscape.collect.kubernetes.facts import KueueWorkload, Meta, OwnerFacts, OwnerRef, PodFacts, PodGroup
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.model import WorkloadId

NAME = "kubernetes"

_NOT_WORKLOADS = frozenset({"CronJob", "Node", "ScheduledWorkflow", "ScheduledSparkApplication", "PodGroup"})
"""What makes workloads again and again, or is none: the one below it is the workload."""


@dataclass(slots=True)
class Group:
    """One workload in the making. ``meta`` is that of its top owner, or of its first pod."""

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
        found = [self.owner.meta] if self.owner else []
        found += [self.kueue.meta] if self.kueue else []
        return found + [pod.meta for pod in self.pods]


def workload_id(namespace: str, name: str, uid: str) -> WorkloadId:
    """``kubernetes:team-a.train.1f3c9a2b``: a name is used again and again, the UID only once. A namespace has no dots."""
    return WorkloadId(f"{NAME}:{namespace}.{name}.{uid[:8]}" if uid else f"{NAME}:{namespace}.{name}")


def pod_alias(pod: Meta) -> WorkloadId:
    """The name under which exporters know a pod."""
    return WorkloadId(f"{NAME}:{pod.namespace}/{pod.name}")


def group_pods(seen: Snapshot) -> list[Group]:
    """Every workload that has pods, wants some, or waits in a queue for the leave to make them."""
    groups: dict[str, Group] = {}
    for pod in seen.pods.values():
        _open(groups, seen, _find_top(pod.meta, seen), pod.meta.namespace).pods.append(pod)
    for owner in seen.owners.values():
        if owner.gpus and _find_top(owner.meta, seen).uid == owner.meta.uid:
            _open(groups, seen, OwnerRef(owner.meta.kind, owner.meta.name, owner.meta.uid), owner.meta.namespace)
    for workload in seen.kueue:
        _put_kueue(groups, seen, workload)
    for group in seen.pod_groups:
        top = _find_top(group.meta, seen)
        if top.uid in groups:
            groups[top.uid].pod_group = group
    return list(groups.values())


def _open(groups: dict[str, Group], seen: Snapshot, top: OwnerRef, namespace: str) -> Group:
    key = top.uid or f"{namespace}/{top.name}"
    if key not in groups:
        groups[key] = Group(
            workload_id(namespace, top.name, top.uid), top.kind, top.name, namespace, seen.owners.get(top.uid)
        )
    return groups[key]


def _put_kueue(groups: dict[str, Group], seen: Snapshot, workload: KueueWorkload) -> None:
    """To the workload of its owners; where nobody has pods yet and the owner's kind is not read, it stands for it."""
    for uid in workload.owners:
        known: Mapping[str, OwnerFacts | PodFacts] = {**_one(seen.owners, uid), **_one(seen.pods, uid)}
        top = _find_top(known[uid].meta, seen) if uid in known else workload.meta.owner
        if top is None:
            continue
        key = top.uid or f"{workload.meta.namespace}/{top.name}"
        if key in groups or (workload.gpus and workload.is_active):
            _open(groups, seen, top, workload.meta.namespace).kueue = workload
            return


def _one(facts: Mapping[str, OwnerFacts] | Mapping[str, PodFacts], uid: str) -> Mapping[str, OwnerFacts | PodFacts]:
    return {uid: facts[uid]} if uid in facts else {}


def _find_top(meta: Meta, seen: Snapshot) -> OwnerRef:
    """The topmost owner that is a workload. An owner that cannot be read is the top: pods name it, but not who made it."""
    if meta.kind == "Pod" and meta.owner is None and meta.group is not None:
        return OwnerRef("pods", meta.group, "")
    top = OwnerRef(meta.kind, meta.name, meta.uid)
    parent = meta.owner
    passed = {meta.uid}
    while parent is not None and parent.kind not in _NOT_WORKLOADS and parent.uid not in passed:
        passed.add(parent.uid)
        top = parent
        known = seen.owners.get(parent.uid) or seen.pods.get(parent.uid)
        parent = known.meta.owner if known else None
    return top
