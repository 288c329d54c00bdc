"""Why a workload waits, in words. The scheduler's own word stays beside it."""

from collections.abc import Mapping

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


def explain_pending(reason: str | None) -> str | None:
    """The reason in one sentence; None where there is none, and the word itself where it is not known."""
    if reason is None:
        return None
    word = reason.split(",")[0].strip().strip("()")
    if word in _WORDS:
        return _WORDS[word]
    if word.startswith("ReqNodeNotAvail"):
        return _WORDS["ReqNodeNotAvail"]
    if word.startswith("Insufficient "):
        return _explain_lack(word.removeprefix("Insufficient "))
    return _explain_limit(word) or f"The scheduler says “{reason}”."


def _explain_lack(resource: str) -> str:
    return f"No node that could run it has enough free {_RESOURCES.get(resource, resource)}."


def _explain_limit(word: str) -> str | None:
    """Slurm names limits by a pattern: QOSMaxGRESPerUser, AssocGrpCpuLimit, MaxMemPerLimit, …"""
    holder = next(
        (text for prefix, text in (("QOS", "quality of service"), ("Assoc", "project")) if word.startswith(prefix)),
        None,
    )
    thing = next((text for part, text in _LIMIT_THINGS if part in word), None)
    if holder is None or thing is None:
        return None
    scope = next((text for part, text in _LIMIT_SCOPES if part in word), None)
    whose = f" for {scope}" if scope else ""
    return f"The limit of its {holder} on {thing}{whose} is reached."
