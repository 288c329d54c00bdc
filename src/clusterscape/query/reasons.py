"""Why a workload waits, in words. The scheduler's own word stays beside it."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from clusterscape.model import Reservation, Workload

_WORDS: Mapping[str, str] = {
    "Resources": "Next in line: waits until enough GPUs are free.",
    "Priority": "Others with a higher priority are ahead.",
    "Dependency": "Waits for another workload to end.",
    "DependencyNeverSatisfied": "Depends on a workload that did not end as required; it will never start.",
    "BeginTime": "Asked to start later.",
    "JobHeldUser": "Held by its owner; release it with `scontrol release`.",
    "JobHeldAdmin": "Held by an operator.",
    "JobArrayTaskLimit": "Its array runs as many tasks at once as it allows itself.",
    "ReqNodeNotAvail": "A node it asks for by name is down, drained or reserved.",
    "NodeDown": "A node it needs is down.",
    "PartitionDown": "Its partition is closed.",
    "PartitionInactive": "Its partition does not start workloads now.",
    "PartitionNodeLimit": "Asks for more nodes than its partition allows.",
    "PartitionTimeLimit": "Asks for more time than its partition allows.",
    "PartitionConfig": "Asks for something its partition does not offer.",
    "BadConstraints": "No node can ever meet what it asks for.",
    "Licenses": "Waits for a licence.",
    "Reservation": "Waits for its reservation to begin.",
    "ReservationDeleted": "Its reservation no longer exists.",
    "Prolog": "Its nodes are being prepared.",
    "Cleaning": "Its last run is still being cleaned up.",
    "JobLaunchFailure": "Could not be launched; an operator should look.",
    "InvalidAccount": "Its project is not known to the scheduler.",
    "InvalidQOS": "Its quality of service is not known to the scheduler.",
    "QOSNotAllowed": "Its project may not use this quality of service.",
    "AccountNotAllowed": "Its project may not use this partition.",
    "AssociationJobLimit": "Its project has as many workloads as it may.",
    "AssocMaxJobsLimit": "Its project runs as many workloads as it may.",
    "None": "Not looked at by the scheduler yet.",
    # Kubernetes: kube-scheduler's, Kueue's and Volcano's.
    "UntoleratedTaint": "The nodes that could run it are tainted, and it tolerates none of the taints.",
    "NodeAffinity": "No node has the labels it asks for.",
    "PodAffinity": "Its rules on which pods may be together allow no node.",
    "NodesCordoned": "The nodes that could run it are cordoned.",
    "ClaimsNotAllocated": "Waits until devices that meet its resource claims are free.",
    "VolumeBinding": "A volume it needs cannot be bound or is elsewhere.",
    "Unschedulable": "No node can run it now.",
    "SchedulingGated": "Held by a scheduling gate until its queue lets it in.",
    "JobSuspended": "Suspended; nobody has resumed it yet.",
    "KueueQueued": "Waits in its Kueue queue; not looked at yet.",
    "KueueQuota": "Waits until its Kueue queue has quota for it.",
    "KueueInadmissible": "Its Kueue queue cannot take it as it is: no such queue, or more than its quota.",
    "KueueAdmissionCheck": "Has quota, and waits for an admission check of its Kueue queue.",
    "KueuePreempted": "Gave way to a workload with a higher priority, and waits for quota again.",
    "KueueStopped": "Deactivated in Kueue; it does not start until it is activated again.",
    "NotEnoughResources": "Its pods start together or not at all, and there is not room for all of them.",
    "VolcanoQueued": "Waits in its Volcano queue.",
}

_RESOURCES = {
    "cpu": "CPUs",
    "memory": "memory",
    "nvidia.com/gpu": "GPUs",
    "amd.com/gpu": "GPUs",
    "pods": "places for pods",
}

_LIMIT_SCOPES: tuple[tuple[str, str], ...] = (
    ("PerUser", "its owner"),
    ("PerAccount", "its project"),
    ("PerJob", "one workload"),
    ("PerNode", "one node"),
)

_LIMIT_THINGS: tuple[tuple[str, str], ...] = (
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
    """What a waiting workload waits for. Only what somebody holds back is held."""

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
    """What the scheduler's word means for who waits."""
    word = _first_word(reason or "")
    if word in _KINDS:
        return _KINDS[word]
    if word.startswith(("ReqNodeNotAvail", "Insufficient ")):
        return WaitKind.ROOM
    return WaitKind.LIMIT if _explain_limit(word, None, None) else WaitKind.OTHER


def waits_for_gpus(reason: str | None) -> bool:
    """Whether only GPUs are missing, now or once its reservation begins, so that a start can be planned."""
    return classify_pending(reason) is WaitKind.ROOM or _first_word(reason or "") == "Reservation"


def explain_waiting(workload: Workload, reservations: Sequence[Reservation] = ()) -> str | None:
    """Why ``workload`` waits, in one or two sentences, with what it waits for by name."""
    word, tags = _first_word(workload.pending_reason or ""), workload.tags
    dependency, reservation = tags.get("dependency"), tags.get("reservation")
    if word in ("Dependency", "DependencyNeverSatisfied") and dependency:
        waits = explain_dependency(dependency)
        return f"{waits} That did not happen; it will never start." if word != "Dependency" else waits
    if word == "Reservation" and reservation:
        return f"Waits for its reservation {reservation} to begin."
    if word == "ReservationDeleted" and reservation:
        return f"Its reservation {reservation} no longer exists."
    if word == "InvalidQOS" and workload.qos:
        return f"Its QOS {workload.qos} is not known to the scheduler."
    if word == "QOSNotAllowed" and workload.qos:
        return f"Its project may not use QOS {workload.qos}."
    if word == "ReqNodeNotAvail":
        return _explain_unavailable(tags.get("reason_detail") or workload.pending_reason or "", reservations)
    return _explain_limit(word, workload.qos, workload.project) or explain_pending(workload.pending_reason)


def explain_pending(reason: str | None) -> str | None:
    """The reason in one sentence; None where there is none, and the word itself where it is not known."""
    if reason is None:
        return None
    word = _first_word(reason)
    if word in _WORDS:
        return _WORDS[word]
    if word.startswith("ReqNodeNotAvail"):
        return _WORDS["ReqNodeNotAvail"]
    if word.startswith("Insufficient "):
        return _explain_lack(word.removeprefix("Insufficient "))
    return _explain_limit(word, None, None) or f"The scheduler says “{reason}”."


def explain_dependency(text: str) -> str:
    """Slurm's ``afterok:12(unfulfilled),afterany:13_4(unfulfilled)`` in a sentence; ``?`` separates alternatives."""
    joint = " or " if "?" in text else " and "
    wanted = []
    for part in re.split(r"[,?]", text):
        match = _DEPENDENCY.fullmatch(part.strip())
        if match is None:
            return f"Waits for {text}."
        if match["state"] not in ("fulfilled", "satisfied"):
            wanted.append(_say_dependency(match["kind"], match["jobs"]))
    return f"Waits for {joint.join(wanted)}." if wanted else "Waits until the scheduler looks at its dependency again."


def _say_dependency(kind: str, jobs: str | None) -> str:
    if kind == "singleton":
        return "other jobs of the same name and user to end"
    numbers = [each.partition("+")[0] for each in (jobs or "").strip(":").split(":")]
    named = f"{'job' if len(numbers) == 1 else 'jobs'} {', '.join(numbers)}"
    return f"{named} {_AFTER.get(kind, f'({kind})')}"


_DEPENDENCY = re.compile(r"(?P<kind>[a-z]+)(?P<jobs>(?::[0-9_*+]+)+)?(?:\((?P<state>[a-z]+)\))?", re.ASCII)
_AFTER = {
    "after": "to start",
    "afterany": "to end",
    "afterok": "to succeed",
    "afternotok": "to fail",
    "aftercorr": "to succeed, task by task",
    "afterburstbuffer": "to end and its data to be staged",
}


def _first_word(reason: str) -> str:
    return reason.split(",")[0].strip("() ")


def _explain_unavailable(detail: str, reservations: Sequence[Reservation]) -> str:
    """``ReqNodeNotAvail, UnavailableNodes:gpu-[1-3]`` or ``…, Reserved for maintenance``, by name."""
    if "Reserved" in detail:
        names = ", ".join(each.name for each in reservations if each.is_maintenance)
        return f"Its nodes are reserved for maintenance{f' ({names})' if names else ''}, and it would not end before."
    nodes = re.search(r"UnavailableNodes:(\S+)", detail)
    return f"Needs {nodes[1]}, which is down, drained or reserved." if nodes else _WORDS["ReqNodeNotAvail"]


def _explain_lack(resource: str) -> str:
    return f"No node that could run it has enough free {_RESOURCES.get(resource, resource)}."


def _explain_limit(word: str, qos: str | None, project: str | None) -> str | None:
    """Slurm names limits by a pattern: QOSMaxGRESPerUser, AssocGrpCpuLimit, MaxMemPerLimit, …"""
    holders = (("QOS", "QOS", qos), ("Assoc", "project", project))
    holder = next(
        (f"{kind} {name}" if name else f"its {kind}" for start, kind, name in holders if word.startswith(start)), None
    )
    thing = next((text for part, text in _LIMIT_THINGS if part in word), None)
    if holder is None or thing is None:
        return None
    scope = next((text for part, text in _LIMIT_SCOPES if part in word), None)
    whose = f" for {scope}" if scope else " in all" if "Grp" in word else ""
    return f"The limit of {holder} on {thing}{whose} is reached ({word})."
