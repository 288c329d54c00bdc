"""Explains in plain sentences why a workload waits. The scheduler's own reason code is always shown too."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from clusterscape.model import Reservation, Workload

_EXPLANATIONS: Mapping[str, str] = {
    "Resources": "Waits until enough GPUs are free.",
    "Priority": "Other workloads are ahead of it in the queue.",
    "Dependency": "Waits for another workload to end.",
    "DependencyNeverSatisfied": "Depends on a workload that did not end as required; it will never start.",
    "BeginTime": "Its requested begin time has not come yet.",
    "JobHeldUser": "Held by its owner; release it with `scontrol release`.",
    "JobHeldAdmin": "Held by an operator.",
    "JobArrayTaskLimit": "Its job array already runs its maximum number of simultaneous tasks.",
    "ReqNodeNotAvail": "A node that it requests is down, drained or reserved.",
    "NodeDown": "A node it needs is down.",
    "PartitionDown": "Its partition is down.",
    "PartitionInactive": "Its partition is inactive and starts no workloads.",
    "PartitionNodeLimit": "Requests more nodes than its partition allows.",
    "PartitionTimeLimit": "Requests more time than its partition allows.",
    "PartitionConfig": "Requests something that its partition does not offer.",
    "BadConstraints": "No node can satisfy its constraints.",
    "Licenses": "Waits for a license.",
    "Reservation": "Waits for its reservation to begin.",
    "ReservationDeleted": "Its reservation no longer exists.",
    "Prolog": "The prolog still runs on its nodes.",
    "Cleaning": "Its previous execution is still being cleaned up.",
    "JobLaunchFailure": "Could not be launched; an operator should check its nodes.",
    "InvalidAccount": "The scheduler does not know its project.",
    "InvalidQOS": "The scheduler does not know its QOS.",
    "QOSNotAllowed": "Its project may not use this QOS.",
    "AccountNotAllowed": "Its project may not use this partition.",
    "AssociationJobLimit": "Its project has reached its limit on workloads.",
    "AssocMaxJobsLimit": "Its project has reached its limit on running workloads.",
    "None": "The scheduler has not considered it yet.",
    # Reasons of Kubernetes: kube-scheduler, Kueue and Volcano.
    "UntoleratedTaint": "The nodes that could run it are tainted, and it tolerates none of the taints.",
    "NodeAffinity": "No node has the labels that it requests.",
    "PodAffinity": "Its pod affinity rules allow no node.",
    "NodesCordoned": "The nodes that could run it are cordoned.",
    "ClaimsNotAllocated": "Waits until devices that match its resource claims are free.",
    "VolumeBinding": "A volume that it needs cannot be bound, or is on another node.",
    "Unschedulable": "No node can run it now.",
    "SchedulingGated": "Held by a scheduling gate until its queue admits it.",
    "JobSuspended": "Suspended and not resumed yet.",
    "KueueQueued": "Waits in its Kueue queue; not considered yet.",
    "KueueQuota": "Waits until its Kueue queue has quota for it.",
    "KueueInadmissible": "Its Kueue queue cannot admit it: the queue does not exist, or the request exceeds the quota.",
    "KueueAdmissionCheck": "Has quota and waits for an admission check of its Kueue queue.",
    "KueuePreempted": "Was preempted by a workload with a higher priority and waits for quota again.",
    "KueueStopped": "Deactivated in Kueue; it does not start until it is activated again.",
    "NotEnoughResources": "Its pods must start together, and not all of them fit now.",
    "VolcanoQueued": "Waits in its Volcano queue.",
}

_RESOURCES = {
    "cpu": "CPUs",
    "memory": "memory",
    "nvidia.com/gpu": "GPUs",
    "amd.com/gpu": "GPUs",
    "pods": "pod slots",
}

_LIMIT_SCOPES: tuple[tuple[str, str], ...] = (
    ("PerUser", "its owner"),
    ("PerAccount", "its project"),
    ("PerJob", "one workload"),
    ("PerNode", "one node"),
)

_LIMIT_RESOURCES: tuple[tuple[str, str], ...] = (
    ("GRES", "GPUs"),
    ("Gres", "GPUs"),
    ("Cpu", "CPUs"),
    ("CPU", "CPUs"),
    ("Mem", "memory"),
    ("Node", "nodes"),
    ("Jobs", "workloads"),
    ("Submit", "submitted workloads"),
    ("Wall", "time"),
    ("Billing", "billing units"),
)


class WaitKind(StrEnum):
    """What a waiting workload waits for. ``HELD`` is only what a person holds back."""

    ROOM = "room"
    HELD = "held"
    DEPENDENCY = "dependency"
    LIMIT = "limit"
    BEGIN_TIME = "begin_time"
    RESERVATION = "reservation"
    OTHER = "other"


_KINDS: Mapping[str, WaitKind] = {
    "": WaitKind.ROOM,
    "None": WaitKind.ROOM,
    "Resources": WaitKind.ROOM,
    "Priority": WaitKind.ROOM,
    "ReqNodeNotAvail": WaitKind.ROOM,
    "NodeDown": WaitKind.ROOM,
    "Prolog": WaitKind.ROOM,
    "Cleaning": WaitKind.ROOM,
    "NotEnoughResources": WaitKind.ROOM,
    "JobHeldUser": WaitKind.HELD,
    "JobHeldAdmin": WaitKind.HELD,
    "Dependency": WaitKind.DEPENDENCY,
    "DependencyNeverSatisfied": WaitKind.DEPENDENCY,
    "BeginTime": WaitKind.BEGIN_TIME,
    "Reservation": WaitKind.RESERVATION,
    "ReservationDeleted": WaitKind.RESERVATION,
    "JobArrayTaskLimit": WaitKind.LIMIT,
    "AssociationJobLimit": WaitKind.LIMIT,
    "KueueQuota": WaitKind.LIMIT,
}


def classify_pending(reason: str | None) -> WaitKind:
    """The kind of wait that the scheduler's reason stands for."""
    code = _parse_code(reason or "")
    if code in _KINDS:
        return _KINDS[code]
    if code.startswith(("ReqNodeNotAvail", "Insufficient ")):
        return WaitKind.ROOM
    return WaitKind.LIMIT if _explain_limit(code, None, None) else WaitKind.OTHER


_KIND_WORDS: Mapping[WaitKind, str] = {
    WaitKind.ROOM: "free GPUs",
    WaitKind.HELD: "release (held)",
    WaitKind.DEPENDENCY: "dependency",
    WaitKind.LIMIT: "limit",
    WaitKind.BEGIN_TIME: "begin time",
    WaitKind.RESERVATION: "reservation",
    WaitKind.OTHER: "other reason",
}


def name_wait(reason: str | None) -> str | None:
    """What a waiting workload waits for, in words to group by; None if the reason is unknown, as in the past."""
    return None if reason is None else _KIND_WORDS[classify_pending(reason)]


def waits_for_gpus(reason: str | None) -> bool:
    """Whether the workload lacks only GPUs, now or once its reservation begins, so that its start can be planned."""
    return classify_pending(reason) is WaitKind.ROOM or _parse_code(reason or "") == "Reservation"


def demands_gpus_now(reason: str | None) -> bool:
    """Whether the workload would start now if it had room: not if it waits for a reservation, a node or anything else."""
    return classify_pending(reason) is WaitKind.ROOM and not _parse_code(reason or "").startswith(_WAITS_FOR_NODE)


_WAITS_FOR_NODE = ("ReqNodeNotAvail", "NodeDown", "Prolog", "Cleaning")


def explain_waiting(workload: Workload, reservations: Sequence[Reservation] = ()) -> str | None:
    """Why ``workload`` waits, in one or two sentences that name the job, reservation, QOS or node it waits for."""
    code, tags = _parse_code(workload.pending_reason or ""), workload.tags
    dependency, reservation = tags.get("dependency"), tags.get("reservation")
    if code in ("Dependency", "DependencyNeverSatisfied") and dependency:
        sentence = explain_dependency(dependency)
        return f"{sentence} That did not happen; it will never start." if code != "Dependency" else sentence
    if code == "Reservation" and reservation:
        return f"Waits for its reservation {reservation} to begin."
    if code == "ReservationDeleted" and reservation:
        return f"Its reservation {reservation} no longer exists."
    if code == "InvalidQOS" and workload.qos:
        return f"The scheduler does not know its QOS {workload.qos}."
    if code == "QOSNotAllowed" and workload.qos:
        return f"Its project may not use QOS {workload.qos}."
    if code == "ReqNodeNotAvail":
        return _explain_unavailable(tags.get("reason_detail") or workload.pending_reason or "", reservations)
    return _explain_limit(code, workload.qos, workload.project) or explain_pending(workload.pending_reason)


def explain_pending(reason: str | None) -> str | None:
    """The reason in one sentence; None without a reason. An unknown reason is quoted."""
    if reason is None:
        return None
    code = _parse_code(reason)
    if code in _EXPLANATIONS:
        return _EXPLANATIONS[code]
    if code.startswith("ReqNodeNotAvail"):
        return _EXPLANATIONS["ReqNodeNotAvail"]
    if code.startswith("Insufficient "):
        return _explain_insufficient(code.removeprefix("Insufficient "))
    return _explain_limit(code, None, None) or f"The scheduler says “{reason}”."


def explain_dependency(text: str) -> str:
    """Slurm's ``afterok:12(unfulfilled),afterany:13_4(unfulfilled)`` in a sentence; ``?`` separates alternatives."""
    conjunction = " or " if "?" in text else " and "
    unfulfilled = []
    for part in re.split(r"[,?]", text):
        match = _DEPENDENCY.fullmatch(part.strip())
        if match is None:
            return f"Waits for {text}."
        if match["state"] not in ("fulfilled", "satisfied"):
            unfulfilled.append(_format_dependency(match["kind"], match["jobs"]))
    if not unfulfilled:
        return "Waits until the scheduler checks its dependency again."
    return f"Waits for {conjunction.join(unfulfilled)}."


def _format_dependency(kind: str, jobs: str | None) -> str:
    if kind == "singleton":
        return "other jobs of the same name and user to end"
    numbers = [job.partition("+")[0] for job in (jobs or "").strip(":").split(":")]
    noun = "job" if len(numbers) == 1 else "jobs"
    return f"{noun} {', '.join(numbers)} {_AFTER.get(kind, f'({kind})')}"


_DEPENDENCY = re.compile(r"(?P<kind>[a-z]+)(?P<jobs>(?::[0-9_*+]+)+)?(?:\((?P<state>[a-z]+)\))?", re.ASCII)
_AFTER = {
    "after": "to start",
    "afterany": "to end",
    "afterok": "to succeed",
    "afternotok": "to fail",
    "aftercorr": "to succeed, task by task",
    "afterburstbuffer": "to end and its data to be staged",
}


def _parse_code(reason: str) -> str:
    """The reason code, without the details that Slurm adds after a comma."""
    return reason.split(",")[0].strip("() ")


def _explain_unavailable(detail: str, reservations: Sequence[Reservation]) -> str:
    """Explains ``ReqNodeNotAvail, UnavailableNodes:gpu-[1-3]`` and ``…, Reserved for maintenance``."""
    if "Reserved" in detail:
        names = ", ".join(reservation.name for reservation in reservations if reservation.is_maintenance)
        name_list = f" ({names})" if names else ""
        return f"Its nodes are reserved for maintenance{name_list}, and it would not end before that."
    nodes = re.search(r"UnavailableNodes:(\S+)", detail)
    return f"Needs {nodes[1]}, which is down, drained or reserved." if nodes else _EXPLANATIONS["ReqNodeNotAvail"]


def _explain_insufficient(resource: str) -> str:
    return f"No node that could run it has enough free {_RESOURCES.get(resource, resource)}."


def _explain_limit(code: str, qos: str | None, project: str | None) -> str | None:
    """Explains limits, which Slurm names by a pattern: QOSMaxGRESPerUser, AssocGrpCpuLimit, MaxMemPerLimit, …"""
    holders = (("QOS", "QOS", qos), ("Assoc", "project", project))
    holder = next(
        (f"{kind} {name}" if name else f"its {kind}" for start, kind, name in holders if code.startswith(start)), None
    )
    resource = next((text for part, text in _LIMIT_RESOURCES if part in code), None)
    if holder is None or resource is None:
        return None
    scope = next((text for part, text in _LIMIT_SCOPES if part in code), None)
    scope_text = f" for {scope}" if scope else " in total" if "Grp" in code else ""
    return f"The limit of {holder} on {resource}{scope_text} is reached ({code})."
