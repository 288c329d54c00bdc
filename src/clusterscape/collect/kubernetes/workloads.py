"""Workloads from groups of pods: state, times, who, queue, why it waits and how it ended. Pure."""

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
    """What is active, and what has lately ended. ``aliases``: the names under which exporters know their pods."""

    workloads: tuple[Workload, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    aliases: dict[WorkloadId, WorkloadId] = field(default_factory=dict)
    unplaced_pods: int = 0  # that hold GPUs, of which it is not known which


@dataclass(slots=True)
class _Turn:
    """Where a group is in its life."""

    state: WorkloadState
    started_at: UnixMs | None = None
    ending: Ending | None = None


def find_queue(group: Group, seen: Snapshot) -> str | None:
    """The ClusterQueue or Volcano queue of a workload; None where no queue holds it."""
    if group.kueue is not None and group.kueue.cluster_queue:
        return group.kueue.cluster_queue
    local = group.kueue.local_queue if group.kueue else None
    local = local or _first(meta.queue for meta in group.metas)
    if local is not None and (found := seen.local_queues.get((group.namespace, local))) is not None:
        return found.cluster_queue or local
    return (group.pod_group.queue if group.pod_group else None) or local


def has_unqueued(groups: Iterable[Group], seen: Snapshot) -> bool:
    """Whether some active workload is in no queue."""
    return any(find_queue(group, seen) is None for group in groups if _find_turn(group).state.is_active)


def build_queue(
    groups: Iterable[Group], seen: Snapshot, inventory: Inventory, settings: KubernetesSettings, now_ms: UnixMs
) -> Queue:
    """All workloads of a snapshot, whose pods are ``groups``, and who holds what."""
    workloads: list[Workload] = []
    allocations: list[Allocation] = []
    aliases: dict[WorkloadId, WorkloadId] = {}
    unplaced = 0
    for group in groups:
        gpus = _count_gpus(group, seen)
        if not gpus:
            continue
        workload = _make_workload(group, gpus, seen, inventory, settings)
        workloads.append(workload)
        bound = [pod for pod in group.pods if pod.is_bound] if workload.state.is_active else []
        aliases.update((pod_alias(pod.meta), workload.id) for pod in bound)
        held, missing = allocations_of(workload.id, bound, seen, inventory, now_ms)
        allocations += held
        unplaced += missing
    return Queue(tuple(workloads), tuple(allocations), aliases, unplaced)


def _find_turn(group: Group) -> _Turn:
    live = [pod for pod in group.pods if pod.ending is None]
    bound = [pod for pod in live if pod.is_bound]
    ended = [pod for pod in group.pods if pod.ending is not None]
    started_at = min((pod.bound_at for pod in (*bound, *ended) if pod.bound_at is not None), default=None)
    if group.owner is not None and group.owner.ending is not None and not bound:
        return _Turn(_worst(group.owner.ending, ended), started_at, _join(group.owner.ending, ended))
    if bound:
        return _Turn(WorkloadState.RUNNING, min((p.bound_at for p in bound if p.bound_at), default=started_at))
    if live or group.kind in _RESPAWNED or _is_still_wanted(group):
        return _Turn(WorkloadState.WAITING)
    ending = _join(None, ended)
    return _Turn(ending.state if ending else WorkloadState.UNKNOWN, started_at, ending)


def _is_still_wanted(group: Group) -> bool:
    """Whether pods are yet to come: by an owner that has not ended, or by Kueue where the owner cannot be read."""
    if group.owner is not None:
        return group.owner.ending is None
    finished = group.kueue.conditions.get("Finished") if group.kueue else None
    return group.kueue is not None and not (finished and finished.is_true) and not group.pods


def _worst(told: Ending, ended: list[PodFacts]) -> WorkloadState:
    """An owner says only that it failed; its pods say why."""
    if told.state is not WorkloadState.FAILED:
        return told.state
    states = {pod.ending.state for pod in ended if pod.ending}
    return next((state for state in _WORST_FIRST[:-1] if state in states), told.state)


def _join(told: Ending | None, ended: list[PodFacts]) -> Ending | None:
    """When and how: the owner's word on the end, and the exit of the pod that failed worst."""
    endings = sorted(
        (pod.ending for pod in ended if pod.ending),
        key=lambda ending: (_WORST_FIRST.index(ending.state), -(ending.at or 0)),
    )
    worst = endings[0] if endings else None
    last = max((ending.at for ending in endings if ending.at is not None), default=None)
    if told is None:
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
    if worst is None or told.state is WorkloadState.COMPLETED:
        return Ending(
            state=told.state,
            at=told.at or last,
            exit_code=0 if told.state is WorkloadState.COMPLETED else None,
            reason=told.reason,
        )
    return Ending(
        state=told.state,
        at=told.at or last,
        reason=worst.reason or told.reason,
        exit_code=worst.exit_code,
        exit_signal=worst.exit_signal,
    )


def _count_gpus(group: Group, seen: Snapshot) -> int:
    """What it asks for: what it has now, or as much as its owner or queue says it wants."""
    live = sum(_pod_gpus(pod, seen) for pod in group.pods if pod.ending is None)
    wanted = max(group.owner.gpus if group.owner else 0, group.kueue.gpus if group.kueue else 0)
    if live or wanted:
        # A pod that is ended and replaced is not asked for twice; a service between two versions has more than it wants.
        return max(live, 0 if group.kind in _RESPAWNED and live else wanted)
    return sum(_pod_gpus(pod, seen) for pod in group.pods)


def _pod_gpus(pod: PodFacts, seen: Snapshot) -> int:
    claims = (seen.claims.get((pod.meta.namespace, name)) for name in pod.claims)
    return pod.gpu_count + sum(len(claim.devices) or claim.asked for claim in claims if claim)


def _make_workload(
    group: Group, gpus: int, seen: Snapshot, inventory: Inventory, settings: KubernetesSettings
) -> Workload:
    turn = _find_turn(group)
    is_waiting = turn.state is WorkloadState.WAITING
    shown = [pod for pod in group.pods if pod.is_bound] or [pod for pod in group.pods if pod.node]
    nodes = tuple(dict.fromkeys(key for pod in shown if (key := inventory.ids.get(pod.node or ""))))
    queue = settings.queue_prefix + (find_queue(group, seen) or DEFAULT_QUEUE)
    machine_type = _find_machine_type(group, nodes, queue, seen, inventory)
    reason, detail = (
        find_reason(
            group.pods, group.kueue, group.pod_group, is_suspended=bool(group.owner and group.owner.is_suspended)
        )
        if is_waiting
        else (None, None)
    )
    metas, ending = group.metas, turn.ending
    return Workload(
        id=group.id,
        state=turn.state,
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
        started_at=None if is_waiting else turn.started_at,
        ended_at=ending.at if ending and not turn.state.is_active else None,
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
    group: Group, nodes: tuple[NodeId, ...], queue: str, seen: Snapshot, inventory: Inventory
) -> str | None:
    """Of its nodes; else what it asks for by label or was promised by Kueue; else the only one of its queue."""
    for node in nodes:
        if found := inventory.machine_types.get(node):
            return found
    asked = [pod.selector for pod in group.pods]
    asked += [group.owner.selector] if group.owner else []
    asked += [
        seen.flavors[name].node_labels for name in (group.kueue.flavors if group.kueue else ()) if name in seen.flavors
    ]
    for labels in asked:
        for value in labels.values():
            if found := inventory.products.get(value):
                return found
    return inventory.partition_types.get(queue)


def _make_tags(group: Group, ending: Ending | None, detail: str | None) -> dict[str, str]:
    live = [pod for pod in group.pods if pod.ending is None]
    wanted = max(
        len(live),
        group.owner.pods if group.owner else 0,
        group.kueue.pods if group.kueue else 0,
        group.pod_group.min_pods or 0 if group.pod_group else 0,
    )
    bound = sum(pod.is_bound for pod in live)
    scheduler = _first(pod.scheduler for pod in group.pods)
    local = group.kueue.local_queue if group.kueue else None
    own = {
        "owner": group.kind,
        "namespace": group.namespace,
        "pods": f"{bound} of {wanted}" if bound < wanted and live else str(wanted or len(group.pods)),
        "local_queue": local,
        "scheduler": scheduler if scheduler != "default-scheduler" else None,
        "reason_detail": detail,
        "pod_trouble": _first(pod.trouble for pod in live),
        "exit_reason": ending.reason if ending else None,
    }
    return {key: value[:MAX_TAG_CHARS] for key, value in own.items() if value}


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)
