"""Builds workloads from groups of pods: state, times, user, queue, pending reason and ending. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from clusterscape.collect.kubernetes.facts import Ending, PodFacts
from clusterscape.collect.kubernetes.grouping import Group, pod_alias
from clusterscape.collect.kubernetes.holdings import allocations_of
from clusterscape.collect.kubernetes.inventory import DEFAULT_QUEUE, Inventory
from clusterscape.collect.kubernetes.reasons import find_reason
from clusterscape.collect.kubernetes.snapshot import Snapshot
from clusterscape.model import Allocation, NodeId, UnixMs, Workload, WorkloadId, WorkloadKind, WorkloadState
from clusterscape.settings import KubernetesSettings

MAX_TAG_CHARS = 300

_RESPAWNED = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "RayCluster", "LeaderWorkerSet"})
"""Services: they have no end of their own, and replace every pod that ends."""

_WORST_FIRST = (
    WorkloadState.OUT_OF_MEMORY,
    WorkloadState.NODE_FAILED,
    WorkloadState.TIMEOUT,
    WorkloadState.PREEMPTED,
    WorkloadState.FAILED,
    WorkloadState.CANCELLED,
    WorkloadState.COMPLETED,
)


@dataclass(frozen=True)
class Queue:
    """Active and recently ended workloads. ``aliases``: the names under which exporters know their pods."""

    workloads: tuple[Workload, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    aliases: dict[WorkloadId, WorkloadId] = field(default_factory=dict)
    unplaced_pods: int = 0  # pods whose GPUs are unknown


@dataclass(slots=True)
class _Lifecycle:
    """State, start and ending of a group."""

    state: WorkloadState
    started_at: UnixMs | None = None
    ending: Ending | None = None


def find_queue(group: Group, snapshot: Snapshot) -> str | None:
    """The ClusterQueue or Volcano queue of a workload; None where no queue holds it."""
    if group.kueue is not None and group.kueue.cluster_queue:
        return group.kueue.cluster_queue
    local = group.kueue.local_queue if group.kueue else None
    local = local or _first(meta.queue for meta in group.metas)
    if local is not None and (queue := snapshot.local_queues.get((group.namespace, local))) is not None:
        return queue.cluster_queue or local
    return (group.pod_group.queue if group.pod_group else None) or local


def has_unqueued(groups: Iterable[Group], snapshot: Snapshot) -> bool:
    """Whether some active workload is in no queue."""
    return any(find_queue(group, snapshot) is None for group in groups if _find_lifecycle(group).state.is_active)


def build_queue(
    groups: Iterable[Group], snapshot: Snapshot, inventory: Inventory, settings: KubernetesSettings, now_ms: UnixMs
) -> Queue:
    """All workloads of a snapshot, whose pods are ``groups``, and who holds what."""
    workloads: list[Workload] = []
    allocations: list[Allocation] = []
    aliases: dict[WorkloadId, WorkloadId] = {}
    unplaced = 0
    for group in groups:
        gpus = _count_gpus(group, snapshot)
        if not gpus:
            continue
        workload = _make_workload(group, gpus, snapshot, inventory, settings)
        workloads.append(workload)
        bound = [pod for pod in group.pods if pod.is_bound] if workload.state.is_active else []
        aliases.update((pod_alias(pod.meta), workload.id) for pod in bound)
        open_allocations, missing = allocations_of(workload.id, bound, snapshot, inventory, now_ms)
        allocations += open_allocations
        unplaced += missing
    return Queue(tuple(workloads), tuple(allocations), aliases, unplaced)


def _find_lifecycle(group: Group) -> _Lifecycle:
    live = [pod for pod in group.pods if pod.ending is None]
    bound = [pod for pod in live if pod.is_bound]
    ended = [pod for pod in group.pods if pod.ending is not None]
    started_at = min((pod.bound_at for pod in (*bound, *ended) if pod.bound_at is not None), default=None)
    if group.owner is not None and group.owner.ending is not None and not bound:
        return _Lifecycle(_worst(group.owner.ending, ended), started_at, _join(group.owner.ending, ended))
    if bound:
        return _Lifecycle(WorkloadState.RUNNING, min((p.bound_at for p in bound if p.bound_at), default=started_at))
    if live or group.kind in _RESPAWNED or _is_still_wanted(group):
        return _Lifecycle(WorkloadState.WAITING)
    ending = _join(None, ended)
    return _Lifecycle(ending.state if ending else WorkloadState.UNKNOWN, started_at, ending)


def _is_still_wanted(group: Group) -> bool:
    """Whether pods are yet to come: by an owner that has not ended, or by Kueue where the owner cannot be read."""
    if group.owner is not None:
        return group.owner.ending is None
    finished = group.kueue.conditions.get("Finished") if group.kueue else None
    return group.kueue is not None and not (finished and finished.is_true) and not group.pods


def _worst(owner_ending: Ending, ended: list[PodFacts]) -> WorkloadState:
    """An owner has only the state failed; its pods have the reason."""
    if owner_ending.state is not WorkloadState.FAILED:
        return owner_ending.state
    states = {pod.ending.state for pod in ended if pod.ending}
    return next((state for state in _WORST_FIRST[:-1] if state in states), owner_ending.state)


def _join(owner_ending: Ending | None, ended: list[PodFacts]) -> Ending | None:
    """The end time and state of the owner, with the exit code of the pod that failed worst."""
    endings = sorted(
        (pod.ending for pod in ended if pod.ending),
        key=lambda ending: (_WORST_FIRST.index(ending.state), -(ending.at or 0)),
    )
    worst = endings[0] if endings else None
    last = max((ending.at for ending in endings if ending.at is not None), default=None)
    if owner_ending is None:
        return (
            None
            if worst is None
            else Ending(
                state=worst.state,
                at=last,
                reason=worst.reason,
                exit_code=worst.exit_code,
                exit_signal=worst.exit_signal,
            )
        )
    if worst is None or owner_ending.state is WorkloadState.COMPLETED:
        return Ending(
            state=owner_ending.state,
            at=owner_ending.at or last,
            exit_code=0 if owner_ending.state is WorkloadState.COMPLETED else None,
            reason=owner_ending.reason,
        )
    return Ending(
        state=owner_ending.state,
        at=owner_ending.at or last,
        reason=worst.reason or owner_ending.reason,
        exit_code=worst.exit_code,
        exit_signal=worst.exit_signal,
    )


def _count_gpus(group: Group, snapshot: Snapshot) -> int:
    """Requested GPUs: those of its live pods, or as many as its owner or queue requests."""
    live = sum(_pod_gpus(pod, snapshot) for pod in group.pods if pod.ending is None)
    requested = max(group.owner.gpus if group.owner else 0, group.kueue.gpus if group.kueue else 0)
    if live or requested:
        # A pod that is ended and replaced is not asked for twice; a service between two versions has more than it wants.
        return max(live, 0 if group.kind in _RESPAWNED and live else requested)
    return sum(_pod_gpus(pod, snapshot) for pod in group.pods)


def _pod_gpus(pod: PodFacts, snapshot: Snapshot) -> int:
    claims = (snapshot.claims.get((pod.meta.namespace, name)) for name in pod.claims)
    return pod.gpu_count + sum(len(claim.devices) or claim.requested for claim in claims if claim)


def _make_workload(
    group: Group, gpus: int, snapshot: Snapshot, inventory: Inventory, settings: KubernetesSettings
) -> Workload:
    lifecycle = _find_lifecycle(group)
    is_waiting = lifecycle.state is WorkloadState.WAITING
    shown = [pod for pod in group.pods if pod.is_bound] or [pod for pod in group.pods if pod.node]
    nodes = tuple(dict.fromkeys(key for pod in shown if (key := inventory.ids.get(pod.node or ""))))
    queue = settings.queue_prefix + (find_queue(group, snapshot) or DEFAULT_QUEUE)
    machine_type = _find_machine_type(group, nodes, queue, snapshot, inventory)
    reason, detail = (
        find_reason(
            group.pods, group.kueue, group.pod_group, is_suspended=bool(group.owner and group.owner.is_suspended)
        )
        if is_waiting
        else (None, None)
    )
    metas, ending = group.metas, lifecycle.ending
    return Workload(
        id=group.id,
        state=lifecycle.state,
        kind=WorkloadKind.SESSION if _is_session(group) else WorkloadKind.JOB,
        name=group.name,
        user=_first(meta.user for meta in metas),
        project=_first(meta.project for meta in metas) or group.namespace,
        experiment=_first(meta.experiment for meta in metas),
        partition=queue,
        resource_type=f"{machine_type}-{gpus}" if machine_type else None,
        qos=_first(
            (
                group.kueue.priority_class if group.kueue else None,
                *(p.priority_class for p in group.pods),
                group.owner.priority_class if group.owner else None,
            )
        ),
        priority=_find_priority(group),
        gpus_requested=gpus,
        time_limit_s=_find_limit(group),
        submitted_at=min((meta.created_at for meta in metas if meta.created_at is not None), default=None),
        started_at=None if is_waiting else lifecycle.started_at,
        ended_at=ending.at if ending and not lifecycle.state.is_active else None,
        pending_reason=reason,
        exit_code=ending.exit_code if ending else None,
        exit_signal=ending.exit_signal if ending else None,
        restarts=sum(pod.restarts for pod in group.pods),
        nodes=nodes,
        tags=_make_tags(group, ending, detail),
    )


def _is_session(group: Group) -> bool:
    return any(meta.is_session for meta in group.metas)


def _find_priority(group: Group) -> int | None:
    if group.kueue is not None and group.kueue.priority is not None:
        return group.kueue.priority
    return max((pod.priority for pod in group.pods if pod.priority is not None), default=None)


def _find_limit(group: Group) -> int | None:
    if group.owner is not None and group.owner.deadline_s is not None:
        return group.owner.deadline_s
    return max((pod.deadline_s for pod in group.pods if pod.deadline_s is not None), default=None)


def _find_machine_type(
    group: Group, nodes: tuple[NodeId, ...], queue: str, snapshot: Snapshot, inventory: Inventory
) -> str | None:
    """Of its nodes; else what it asks for by label or was promised by Kueue; else the only one of its queue."""
    for node in nodes:
        if machine_type := inventory.machine_types.get(node):
            return machine_type
    label_sets = [pod.selector for pod in group.pods]
    label_sets += [group.owner.selector] if group.owner else []
    label_sets += [
        snapshot.flavors[name].node_labels
        for name in (group.kueue.flavors if group.kueue else ())
        if name in snapshot.flavors
    ]
    for labels in label_sets:
        for value in labels.values():
            if machine_type := inventory.products.get(value):
                return machine_type
    return inventory.partition_types.get(queue)


def _make_tags(group: Group, ending: Ending | None, detail: str | None) -> dict[str, str]:
    live = [pod for pod in group.pods if pod.ending is None]
    requested = max(
        len(live),
        group.owner.pods if group.owner else 0,
        group.kueue.pods if group.kueue else 0,
        group.pod_group.min_pods or 0 if group.pod_group else 0,
    )
    bound = sum(pod.is_bound for pod in live)
    scheduler = _first(pod.scheduler for pod in group.pods)
    local = group.kueue.local_queue if group.kueue else None
    tags = {
        "owner": group.kind,
        "namespace": group.namespace,
        "pods": f"{bound} of {requested}" if bound < requested and live else str(requested or len(group.pods)),
        "local_queue": local,
        "scheduler": scheduler if scheduler != "default-scheduler" else None,
        "reason_detail": detail,
        "pod_trouble": _first(pod.trouble for pod in live),
        "exit_reason": ending.reason if ending else None,
    }
    return {key: value[:MAX_TAG_CHARS] for key, value in tags.items() if value}


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)
